"""What the doctor says: groups of files and sprites that deserve a look, what that means, and what can be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from studio.core.config import Value, settings_of
from studio.core.events import Event, Notice
from studio.data.decimal_marks import COMMA, POINT
from studio.data.doctor.fixes import as_patterns
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import COMMON_SIZES, upscaling_factor
from studio.data.import_result import IssueGroups, SpritesImported, by_group
from studio.data.options import ImportOptions, ReadOptions
from studio.data.sprites import Sprites

SMALL_CLASS = 8  # sprites: of fewer a model learns little more than to copy them
MANY_COLOURS = 64  # of a sprite
HARDLY_SEEN = 0.02  # see merging.places_of
_HALF = 128
_MOSTLY = 0.8
_ENOUGH = 200  # sprites to tell from by how much all were enlarged


@dataclass(frozen=True)
class Fix:
    """One click: some of the import's settings change. title: what the button says."""

    title: str
    changes: Mapping[str, Value]


@dataclass(frozen=True)
class FixOffered(Notice):
    """A notice about the imported files with a fix: the window shows the fix as a button."""

    fix: Fix = field(kw_only=True)


SPLITS_AS_CLASSES = Fix("Take them as classes", {"split_folders": False})
MERGE_CLASSES = Fix("Merge these classes", {"merge_classes": True})


@dataclass(frozen=True, eq=False)
class Finding:
    """A group. left_out: whether its items are not among the sprites. advice: what it means, in a sentence or two."""

    group: str
    items: tuple[ImportIssue, ...]
    left_out: bool
    advice: str
    fixes: tuple[Fix, ...]


@dataclass(frozen=True, eq=False)
class SpritesChecked(Event):
    """What was found on the sprites of an import themselves.

    items: as the notes of the import, and once more by group. looked_at: how many sprites, where there are very many.
    palette_colours: of the palette that nearly all of them share; 0 where they share none.
    """

    json_type = "Examined"

    sprites: Sprites
    items: tuple[ImportIssue, ...]
    looked_at: int
    palette_colours: int = 0
    groups: IssueGroups = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", by_group(self.items))


def list_findings(
    found: SpritesImported, options: ImportOptions, examined: Sequence[SpritesChecked] = ()
) -> tuple[Finding, ...]:
    """Everything that is known of an import with these options: what was left out first, the largest groups first."""
    case = _Case(found, options, max((each.palette_colours for each in examined), default=0))
    kept = _together(found.note_groups, *(each.groups for each in examined))
    return (*_findings(found.quarantine_groups, case, left_out=True), *_findings(kept, case, left_out=False))


@dataclass(frozen=True, eq=False)
class _Case:
    """What a fix can depend on."""

    found: SpritesImported
    options: ImportOptions
    palette_colours: int


def _together(*parts: IssueGroups) -> IssueGroups:
    together: dict[str, tuple[ImportIssue, ...]] = {}
    for part in parts:
        for group, items in part.items():
            together[group] = together.get(group, ()) + items
    return together


def _findings(groups: IssueGroups, case: _Case, *, left_out: bool) -> list[Finding]:
    made = []
    for group, items in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        advice, fixes = (_LEFT_OUT if left_out else _KEPT)[group]
        made.append(Finding(group, items, left_out, advice, tuple(fixes(items, case))))
    return made


_Fixes = Callable[[Sequence[ImportIssue], _Case], Iterable[Fix]]


def _none(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    return ()


def _always(fix: Fix) -> _Fixes:
    """Return a _Fixes function that always yields `fix`."""

    def fixes(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
        yield fix

    return fixes


def _setting(title: str, changes: Mapping[str, Value]) -> _Fixes:
    """Return a _Fixes function that always offers to change these settings."""
    return _always(Fix(title, changes))


def _without_them(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    yield exclude_fix([item.name for item in items], case.options)


def exclude_fix(names: Sequence[str], options: ImportOptions) -> Fix:
    """Leave these sprites out, beside those that are left out already."""
    before = [options.leave_out] if options.leave_out else []
    return Fix("Leave them out", {"leave_out": ";".join([*before, as_patterns(list(names))])})


def slice_fix(options: ImportOptions) -> Fix:
    """Cut each picture that looks like a sheet by its own cells, which the canvas is made to fit."""
    changes: Mapping[str, Value] = {"sheets": "grid", "tile": 0, "size": 0}
    return Fix("Cut them into sprites", {name: to for name, to in changes.items() if getattr(options, name) != to})


def canvas_fix(found: SpritesImported) -> Fix | None:
    """Return a fix to a canvas that holds every picture of up to 256 pixels; None if the canvas is large enough."""
    largest = max((max(size) for size in found.sizes if max(size) <= COMMON_SIZES[-1]), default=0)
    fitting = next(size for size in COMMON_SIZES if size >= largest)
    if fitting <= found.sprites.size:
        return None
    return Fix(f"Make the canvas {fitting} x {fitting}", {"size": fitting, "other_sizes": "pad"})


def _larger_canvas(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    if case.options.other_sizes == "leave out":
        yield Fix("Fit them to the canvas", {"other_sizes": "pad"})
    if (fix := canvas_fix(case.found)) is not None:
        yield fix


def _true_size(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    """By one number where most show the same, which then helps those that are too plain to show any."""
    sprites, wanted = case.found.sprites, {item.name for item in items[:_ENOUGH]}
    some = [sprites.rgba[index] for index, name in enumerate(sprites.names) if name in wanted]
    if not some:
        return
    scale, how_many = Counter(upscaling_factor(rgba) for rgba in some).most_common(1)[0]
    shrink = scale if how_many >= _MOSTLY * len(some) else 0
    if shrink == 1:
        return
    # The canvas may have been chosen for the enlarged ones; where sheets are cut, it says which pictures are none.
    size = max(1, case.options.size // scale) if case.options.size and case.options.sheets != "as they are" else 0
    yield Fix("Bring them to their true size", {"shrink": shrink, "size": size})


def _cut(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    if case.options.sheets != "grid":
        yield slice_fix(case.options)
    if case.options.sheets != "packed":
        yield Fix("Cut them where emptiness parts their sprites", {"sheets": "packed"})


def _own_grid(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    if case.options.tile:
        yield replace(slice_fix(case.options), title="Use the grid of each sheet")


def _decimal_marks(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    for mark in (POINT, COMMA):
        yield Fix(f"Read decimal {mark}s", {"decimal_mark": mark})


def _as_in_the_files(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    mended = {item.name: item.default for item in settings_of(ImportOptions)}
    for item in (*settings_of(ReadOptions), *(s for s in settings_of(ImportOptions) if s.name in _ABOUT_CHOICE)):
        mended.pop(item.name)
    yield Fix("Take them as they are in their files", mended)


def _own_palette(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    yield Fix(f"Bring them into its {case.palette_colours} colours", {"colours_all": case.palette_colours})


_ABOUT_CHOICE = ("similar", "leave_out", "class_minimum", "merge_classes")  # settings that choose sprites

_LEFT_OUT: Mapping[str, tuple[str, _Fixes]] = {
    "unreadable": ("These files are damaged, cut off or no pictures. The others were read.", _none),
    "unsupported": ("The studio can't read these kinds of files. Save drawings as PNG, and unpack archives.", _none),
    "refused": ("Too large, or nothing that should be opened: links, pipes and devices.", _none),
    "no access": ("These could not be read just now. Check their permissions and drive, then open the folder again.",
                  _none),
    "duplicate": ("Each sprite is kept once, so that none is both learnt from and held out to check on.", _none),
    "wrong size": ("They don't fit the canvas.", _larger_canvas),
    "looks like a sheet": (
        "Each of these pictures holds many sprites. Cutting makes each of those a sprite of its own.", _cut),
    "empty": ("There is nothing to see in them.", _none),
    "similar": ("Left out as asked for: each hardly differs from one that is kept.",
                _setting("Take them back", {"similar": "keep"})),
    "small class": ("Left out as asked for: their classes are small.",
                    _setting("Take them back", {"class_minimum": 1})),
    "chosen": ("Left out as asked for.", _setting("Take them back", {"leave_out": ""})),
}  # fmt: skip

_KEPT: Mapping[str, tuple[str, _Fixes]] = {
    "cut sheet": ("Cut into sprites of their own.",
                  _setting("Keep them whole", {"sheets": "as they are", "sheet_grids": ""})),
    "looks like a sheet": (
        "Each of these pictures holds many sprites. Cutting makes each of those a sprite of its own.", _cut),
    "left over": ("The sheet's last column or row does not fit the grid. Change the tile size, spacing or margin, or "
                  "use each sheet's own grid.", _own_grid),
    "partly described": ("A file describes only a part of these sheets. Cutting adds the other sprites.", _cut),
    "jpeg": ("JPEG blurs edges and invents colours. Look for the originals, or leave them out.", _without_them),
    "misnamed": ("They are another kind of file than their names say, and were read as what they are.", _none),
    "description": ("The file beside the picture is unusable, does not fit, or describes no sprites. Export picture "
                    "and file again, or cut the picture along a grid.", _none),
    "converted": ("Their files hold more than eight bits, or no RGB: the colours are not bit for bit the same.",
                  _none),
    "animation": ("Frames that repeat were passed over, and very long animations cut short.", _none),
    "blend mode": ("Layers in a blend mode that is not known were drawn as normal ones.", _without_them),
    "incomplete": ("A layer is missing whose tiles are in another file.", _without_them),
    "magenta ground": ("Programs without alpha mark transparent pixels by magenta (255, 0, 255). A model learns to "
                       "draw the magenta.",
                       _setting("Make magenta transparent", {"clear_magenta": True})),
    "sizes": ("These icon files hold several sizes. The studio read the largest.", _none),
    "turned": ("Turned upright as their EXIF entry says.", _none),
    "labels": ("Lines of a labels.csv that can't be used, and sprites that it forgets.", _none),
    "ambiguous numbers": ("A dot or comma in these numbers may part decimals or thousands.", _decimal_marks),
    "split folders": ("Sibling folders named train, val and test are the splits of a data set, not classes. Sprites in "
                      "test are not used for training.",
                      _always(SPLITS_AS_CLASSES)),
    "test set": ("By these sprites the result is judged. They are not learnt from, unless there are no others.", _none),
    "no classes": ("The file of their labels is missing: put it beside them to have classes.", _none),
    "soft alpha": ("Half-transparent pixels. Where edges should be hard, make them solid or clear; a model learns "
                   "what it is shown.", _setting("Make them solid or clear", {"alpha_threshold": _HALF})),
    "upscaled": ("Every pixel is a block of pixels. At their true size a model learns the same in a fraction of the "
                 "time.", _true_size),
    "smooth": ("Shaded like photos or smoothed enlargements, which no whole number undoes.", _without_them),
    "odd shape": ("One pixel wide or high.", _without_them),
    "mended": ("Other pixels than in their files, as asked for.", _as_in_the_files),
    "similar": ("They hardly differ from another sprite, which so counts more than others, and may be both learnt "
                     "from and held out. Animation frames can be meant to be so.",
                     _setting("Keep one of each", {"similar": "leave out"})),
    "small class": (f"A model learns little of a class of fewer than {SMALL_CLASS} sprites. Let fewer levels of "
                      "sub-folders make a class, add sprites, or leave them out.",
                      _setting("Leave them out", {"class_minimum": SMALL_CLASS})),
    "like-named": ("Their classes differ from other classes only in upper and lower case or in blanks.",
                   _always(MERGE_CLASSES)),
    "many colours": (f"More than {MANY_COLOURS} colours in one sprite is more than pixel art has: a trace of scaling, "
                     "of JPEG or of painting.", _setting("Bring them down to 32", {"colours_each": 32})),
    "near colours": ("Colours that the eye hardly tells apart, as saving and scaling leave them.",
                     _setting("Make near colours one", {"merge_colours": HARDLY_SEEN})),
    "off palette": ("Nearly all sprites share one palette; these have other colours.", _own_palette),
    "outlier": ("They look like nothing else here.", _without_them),
    "wrong class": ("They look like sprites of another class.", _without_them),
}  # fmt: skip
