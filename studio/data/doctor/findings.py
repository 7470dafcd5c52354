"""The doctor's findings: groups of files and sprites with a problem, advice, and one-click fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from studio.core.config import Value, settings_of
from studio.core.events import NOT_IN_JSON, Event, Notice
from studio.core.formatting import count
from studio.data.decimal_marks import COMMA, POINT
from studio.data.doctor.fixes import as_patterns, exclusion_filter, patterns_without
from studio.data.doctor.neighbours import SpriteNeighbours
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import COMMON_SIZES, upscaling_factor
from studio.data.import_result import IssueGroups, SpritesImported, by_group
from studio.data.options import ImportOptions, ReadOptions
from studio.data.sprites import Sprites

SMALL_CLASS = 8  # sprites; from fewer a model learns little more than copying
MANY_COLOURS = 64  # per sprite
HARDLY_SEEN = 0.02  # see quantizing.oklab_with_toe
_HALF = 128
_MOSTLY = 0.8
_ENOUGH = 200  # sprites to estimate the scale from


@dataclass(frozen=True)
class Fix:
    """A one-click change of import settings."""

    title: str  # the button's text
    changes: Mapping[str, Value]  # new values by setting
    undo_title: str = ""  # completes 'Undo' in the Edit menu; '' for the lower-case title


@dataclass(frozen=True)
class FixOffered(Notice):
    """A notice about imported files. The window shows the fix as a button."""

    fix: Fix = field(kw_only=True)


SPLITS_AS_CLASSES = Fix("Use them as classes", {"split_folders": False}, "use splits as classes")
MERGE_CLASSES = Fix("Merge these classes", {"merge_classes": True}, "merge classes")
_EXCLUDE_SMALL = Fix("Exclude", {"class_minimum": SMALL_CLASS}, "exclude small classes")
_INCLUDE_SMALL = Fix("Include them", {"class_minimum": 1}, "include small classes")
_INCLUDE_SIMILAR = Fix("Include them", {"similar": "keep"}, "include similar sprites")


@dataclass(frozen=True, eq=False)
class Finding:
    """Files or sprites with a common problem."""

    group: str
    items: tuple[ImportIssue, ...]
    left_out: bool  # True if the import excludes the files and sprites
    advice: str  # explanation of the problem
    fixes: tuple[Fix, ...]

    @property
    def title(self) -> str:
        """The problem's name for users, in lower case."""
        return _TITLES.get(self.group, self.group)


@dataclass(frozen=True, eq=False)
class SpritesChecked(Event):
    """Results from the slower checks on imported sprites. neighbours: set by the check with learned features."""

    json_type = "Examined"

    sprites: Sprites
    items: tuple[ImportIssue, ...]  # an issue per sprite with a problem
    looked_at: int  # number of checked sprites; the check samples large sets
    palette_colours: int = 0  # size of a palette shared by nearly all sprites, or 0
    neighbours: SpriteNeighbours | None = field(default=None, metadata=NOT_IN_JSON)
    groups: IssueGroups = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", by_group(self.items))


def list_findings(
    found: SpritesImported, options: ImportOptions, examined: Sequence[SpritesChecked] = ()
) -> tuple[Finding, ...]:
    """Return the groups of problems that an import found: excluded sprites first, then larger groups before smaller."""
    case = _Case(found, options, max((each.palette_colours for each in examined), default=0))
    kept = _joined_groups(found.note_groups, *(each.groups for each in examined))
    return (*_findings(found.quarantine_groups, case, left_out=True), *_findings(kept, case, left_out=False))


@dataclass(frozen=True, eq=False)
class _Case:
    """Import result and options, to derive fixes from. palette_colours: size of a shared palette, or 0."""

    found: SpritesImported
    options: ImportOptions
    palette_colours: int


def _joined_groups(*parts: IssueGroups) -> IssueGroups:
    together: dict[str, tuple[ImportIssue, ...]] = {}
    for part in parts:
        for group, items in part.items():
            together[group] = together.get(group, ()) + items
    return together


def _findings(groups: IssueGroups, case: _Case, *, left_out: bool) -> list[Finding]:
    made = []
    for group, items in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        advice, fixes = (_LEFT_OUT if left_out else _KEPT)[group]
        offered = [fixes] if isinstance(fixes, Fix) else fixes(items, case) if fixes else ()
        made.append(Finding(group, items, left_out, advice, tuple(offered)))
    return made


_Fixes = Fix | Callable[[Sequence[ImportIssue], _Case], Iterable[Fix]] | None


def _exclude(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    yield exclude_fix([item.name for item in items], case.options)


def exclude_fix(names: Sequence[str], options: ImportOptions) -> Fix:
    """Return a fix that excludes the named sprites, in addition to already excluded sprites."""
    before = [options.leave_out] if options.leave_out else []
    leave_out = ";".join([*before, as_patterns(list(names))])
    return Fix("Exclude", {"leave_out": leave_out}, f"exclude {count(len(names), 'sprite')}")


def include_fix(names: Sequence[str], excluded: Iterable[str], options: ImportOptions) -> Fix:
    """Return a fix that includes excluded sprites again. names: sprites to include. excluded: every excluded sprite.

    If a pattern such as 'old_*' matches a sprite in `names`, the fix replaces the pattern by the names of the other
    matching sprites.
    """
    wanted, kept = set(names), patterns_without(options.leave_out, set(names))
    is_excluded = exclusion_filter(kept)
    others = [name for name in excluded if name not in wanted and not is_excluded(name)]
    leave_out = ";".join(filter(None, (kept, as_patterns(others))))
    return Fix("Include", {"leave_out": leave_out}, f"include {count(len(names), 'sprite')}")


def slice_fix(options: ImportOptions) -> Fix:
    """Return a fix that slices sheets into sprites by the sheets' detected grids."""
    return _slicing("Slice into sprites", {"sheets": "grid"}, options)


def characters_fix(options: ImportOptions) -> Fix:
    """Return a fix that slices sheets of characters by a common grid, and keeps a character's cells together."""
    return _slicing("Slice into characters", {"sets": "sheets"}, options)


def _slicing(title: str, changes: Mapping[str, Value], options: ImportOptions) -> Fix:
    """Return a fix that changes `changes`, and lets the import detect the tiles' size and the canvas."""
    changes = {**changes, "tile": 0, "size": 0}
    return Fix(title, {name: to for name, to in changes.items() if getattr(options, name) != to})


def canvas_fix(found: SpritesImported) -> Fix | None:
    """Return a fix that enlarges the canvas for the largest picture up to 256 x 256 pixels; None if the canvas fits."""
    largest = max((max(size) for size in found.sizes if max(size) <= COMMON_SIZES[-1]), default=0)
    fitting = next(size for size in COMMON_SIZES if size >= largest)
    if fitting <= found.sprites.size:
        return None
    return Fix(f"Set canvas to {fitting} x {fitting}", {"size": fitting, "other_sizes": "pad"})


def _larger_canvas(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    if case.options.other_sizes == "leave out":
        yield Fix("Fit to the canvas", {"other_sizes": "pad"})
    if (fix := canvas_fix(case.found)) is not None:
        yield fix


def _original_size(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    """Yield a fix to undo upscaling: by a common factor if most sprites share the factor, otherwise per sprite."""
    sprites, wanted = case.found.sprites, {item.name for item in items[:_ENOUGH]}
    some = [sprites.rgba[index] for index, name in enumerate(sprites.names) if name in wanted]
    if not some:
        return
    scale, how_many = Counter(upscaling_factor(rgba) for rgba in some).most_common(1)[0]
    shrink = scale if how_many >= _MOSTLY * len(some) else 0
    if shrink == 1:
        return
    # The canvas may have been set for upscaled sprites; when slicing, pictures up to the canvas stay whole.
    size = max(1, case.options.size // scale) if case.options.size and case.options.sheets != "as they are" else 0
    yield Fix("Undo upscaling", {"shrink": shrink, "size": size}, "shrink upscaled sprites")


def _slice(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    if case.found.proposed_sets is not None:
        yield characters_fix(case.options)
    if case.options.sheets != "grid":
        yield slice_fix(case.options)
    if case.options.sheets != "packed":
        yield Fix("Slice at transparent gaps", {"sheets": "packed"})


def _keep_whole(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    sets: Mapping[str, Value] = {"sets": "auto"} if case.options.sets == "sheets" else {}
    yield Fix("Don't slice", {"sheets": "as they are", "sheet_grids": "", **sets})


def _own_grid(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    if case.options.tile:
        yield replace(slice_fix(case.options), title="Use each sheet's own grid")


def _revert(items: Sequence[ImportIssue], case: _Case) -> Iterable[Fix]:
    changes = {item.name: item.default for item in settings_of(ImportOptions)}
    for item in (*settings_of(ReadOptions), *(s for s in settings_of(ImportOptions) if s.name in _CHOICES)):
        changes.pop(item.name)
    yield Fix("Revert to the files", changes)


# Settings that choose sprites. "Revert to the files" keeps these settings.
_CHOICES = ("edits", "similar", "leave_out", "class_minimum", "merge_classes")
_SLICING = "The pictures contain several sprites. Slice them into separate sprites."
_TITLES = {
    "attributed": "attributes set here",
    "attributes": "attribute problems",
    "chosen": "excluded",
    "incomplete": "missing layer",
    "labels": "label file problems",
    "left over": "leftover pixels",
    "like-named": "class names that differ in case or spaces",
    "lost moves": "edits without a sprite",
    "magenta ground": "magenta background",
    "mended": "edited here",
    "misnamed": "wrong file extension",
    "moved": "moved to another class",
    "near colours": "similar colours",
    "no access": "no permission",
    "no classes": "missing labels",
    "odd shape": "one pixel wide or high",
    "off palette": "colours outside the palette",
    "partly described": "partly described sheet",
    "recoloured": "recoloured by you",
    "refused": "skipped files",
    "sets": "sets.csv problems",
    "sizes": "icons of several sizes",
    "smooth": "blurry",
    "soft alpha": "semi-transparent",
    "turned": "rotated by EXIF",
}

_LEFT_OUT: Mapping[str, tuple[str, _Fixes]] = {
    "unreadable": ("The files are damaged, truncated, or not pictures.", None),
    "unsupported": ("The studio can't read these file types. Save drawings as PNG; unpack archives.", None),
    "refused": ("The files are too large, or not regular files (links, pipes or devices).", None),
    "no access": ("The studio has no read access. Check permissions and drive, then open the folder again.", None),
    "duplicate": (
        "Duplicates are skipped so that no validation sprite is also trained on. Cells of sets stay filled.",
        None,
    ),
    "wrong size": ("These pictures don't fit the canvas.", _larger_canvas),
    "looks like a sheet": (_SLICING, _slice),
    "empty": ("The pictures have no visible pixels.", None),
    "similar": (
        "Excluded: each nearly equals a kept sprite.",
        _INCLUDE_SIMILAR,
    ),
    "small class": (
        "Excluded: the classes of these sprites are too small.",
        _INCLUDE_SMALL,
    ),
    "chosen": ("You excluded these sprites.", Fix("Include them", {"leave_out": ""}, "include excluded sprites")),
}

_KEPT: Mapping[str, tuple[str, _Fixes]] = {
    "cut sheet": ("The sheets were sliced into sprites.", _keep_whole),
    "looks like a sheet": (_SLICING, _slice),
    "left over": ("The sheet's last column or row does not fit the grid. Change the tile size, spacing or margin, or "
                  "use each sheet's own grid.", _own_grid),
    "partly described": ("The description covers only a part of these sheets. Slicing adds the other sprites.", _slice),
    "jpeg": ("JPEG blurs edges and adds colours. Find the originals, or exclude these sprites.", _exclude),
    "misnamed": ("The file type does not match the extension. The studio went by the contents.", None),
    "description": ("The description beside the picture is unusable, does not fit, or is empty. Export both again, or "
                    "slice the picture with a grid.", None),
    "converted": ("These files have more than 8 bits per channel or are not RGB: colours may differ slightly.", None),
    "animation": ("Repeated frames were skipped, and very long animations were shortened.", None),
    "blend mode": ("Layers with an unknown blend mode were drawn in normal mode.", _exclude),
    "incomplete": ("A layer is missing, because its tiles come from another file.", _exclude),
    "magenta ground": ("Programs without alpha use magenta (255, 0, 255) as transparent. A model would learn to draw "
                       "magenta.", Fix("Make magenta transparent", {"clear_magenta": True})),
    "sizes": ("These icons hold several sizes. The studio read the largest.", None),
    "turned": ("The studio rotated these pictures by their EXIF entry.", None),
    "labels": ("labels.csv has invalid lines, or lacks lines for sprites.", None),
    "sets": ("sets.csv has invalid lines. The sprites are imported without a place in a set.", None),
    "ambiguous numbers": ("A dot or comma in these numbers may separate decimals or thousands.", lambda items, case:
                          [Fix(f"Read as decimal {mark}s", {"decimal_mark": mark}) for mark in (POINT, COMMA)]),
    "split folders": ("Sibling folders named train, val and test are the splits of a data set, not classes. Sprites in "
                      "test are not used for training.", SPLITS_AS_CLASSES),
    "test set": ("Sprites for testing the finished model are not trained on, unless the folder has no others.", None),
    "no classes": ("The label file is missing: put it beside this file to get classes.", None),
    "soft alpha": ("A model trained on semi-transparent pixels draws them, too. If edges should be hard, remove "
                   "semi-transparency.", Fix("Remove semi-transparency", {"alpha_threshold": _HALF})),
    "upscaled": ("These sprites were enlarged. At original size, training takes a fraction of the time.",
                 _original_size),
    "smooth": ("The pictures are blurry or photo-like, and can't be scaled back.", _exclude),
    "odd shape": ("The pictures are only one pixel wide or high.", _exclude),
    "mended": ("Your import settings changed pixels of these sprites.", _revert),
    "moved": ("You moved these sprites to another class. Your files are not changed.",
              Fix("Use the files' classes", {"edits": "off"})),
    "recoloured": ("You exchanged colour ramps of these sprites. Your files are not changed.",
                   Fix("Use the files' classes and colours", {"edits": "off"})),
    "attributed": ("You gave these sprites attributes. Your files are not changed.",
                   Fix("Use the files' classes and attributes", {"edits": "off"})),
    "attributes": ("Correct the tables or files, or change Attributes in the import settings.", None),
    "lost moves": ("The files of these sprites were redrawn or removed. Edit the new sprites again.", None),
    "similar": ("Near-duplicates: these get extra weight, and may be in both training and validation set. Animation "
                "frames are fine.", Fix("Keep one of each", {"similar": "leave out"}, "exclude similar sprites")),
    "small class": (f"A model learns little from fewer than {SMALL_CLASS} sprites per class. Use fewer folder levels "
                    "as class, add sprites, or exclude these.", _EXCLUDE_SMALL),
    "like-named": ("The class names differ from other class names only in case or spaces.", MERGE_CLASSES),
    "many colours": (f"The sprites have more than {MANY_COLOURS} colours, usually from scaling, JPEG or painting.",
                     Fix("Reduce to 32 colours", {"colours_each": 32})),
    "near colours": ("The sprites have nearly identical colours, often from scaling.",
                     Fix("Merge similar colours", {"merge_colours": HARDLY_SEEN})),
    "off palette": ("Nearly all sprites share a palette; these use further colours.", lambda items, case:
                    [Fix(f"Map to its {case.palette_colours} colours", {"colours_all": case.palette_colours})]),
    "outlier": ("These sprites look unlike all other sprites.", _exclude),
    "wrong class": ("These sprites may belong to another class: most sprites like them do.", _exclude),
}  # fmt: skip
