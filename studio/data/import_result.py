"""Results of an import: the sprites, and issues with left-out files and with kept sprites, by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.core.events import NOT_IN_JSON, Event
from studio.data.attributes.reading import AttributeProposal
from studio.data.edits import Edits
from studio.data.files.source_files import ImportIssue
from studio.data.options import SheetGrid
from studio.data.sets.layout import SetProposal
from studio.data.sprites import Sprites

IssueGroups = Mapping[str, tuple[ImportIssue, ...]]

# Issue groups for excluded files and sprites.
QUARANTINE_GROUPS = (
    "unreadable",  # damaged, cut off, empty, or not an image at all
    "unsupported",  # an image format that the studio does not read
    "refused",  # too large, or must not be opened: a pipe, a device or a link
    "no access",  # no permission, deleted, or the drive failed
    "duplicate",
    "wrong size",
    "looks like a sheet",
    "empty",  # no visible pixel
    "similar",  # near-duplicate
    "small class",
    "chosen",  # excluded by name
)
_DUPLICATES = {"duplicate": "duplicate", "similar": "near-duplicate"}  # words for issues, by group

# Issue groups for sheets with other possible grids.
SHEET_GROUPS = ("looks like a sheet", "cut sheet", "wrong size", "partly described", "left over")

# Issue groups for kept sprites.
NOTE_GROUPS = (
    "cut sheet",  # number of sprites in a sliced sheet
    "left over",  # pixels behind the last whole tiles of a sliced sheet
    "looks like a sheet",  # a sheet that fits on the canvas unsliced
    "partly described",  # a file describes only some sprites of the sheet
    "jpeg",
    "misnamed",  # file name suffix for a different format
    "description",  # unusable or adapted description of a sheet
    "converted",  # 16 bits, CMYK, LAB, ...: colours differ from the file's
    "animation",  # some frames were left out: equal frames, too many, or all but the first
    "blend mode",  # layer with unknown blend mode, drawn as normal
    "incomplete",  # layer missing: external tiles
    "magenta ground",  # magenta may mean transparent in an image without alpha
    "sizes",  # an icon file has several sizes; the largest was read
    "turned",  # rotated by the EXIF orientation
    "labels",  # unusable lines of a labels.csv, and sprites without a line
    "sets",  # unusable lines of a sets.csv
    "attributes",  # contradicting or unusable attributes
    "ambiguous numbers",  # columns of a labels.csv that fit decimal points and decimal commas
    "no classes",  # labels missing for a file with many sprites
    "split folders",  # folders train, val and test of a data set
    "test set",  # a file with the test set of a data set
    "soft alpha",  # semi-transparent pixels
    "upscaled",  # enlarged pixel art
    "smooth",  # like a photo or a smoothed enlargement
    "odd shape",  # 1 x 1, or one pixel thin
    "mended",  # a fix changed the pixels
    "moved",  # the user moved the sprite to another class
    "recoloured",  # the user changed colours of the sprite
    "attributed",  # the user gave the sprite attributes
    "lost moves",  # an edit without its sprite
)


@dataclass(frozen=True, slots=True)
class DetectedSheet:
    """An image resembling a sheet or a strip of sprites."""

    name: str  # printable file name with folders
    grid: SheetGrid
    sprites: int  # number of sprites sliced from the sheet, or in the detected grid


@dataclass(frozen=True, slots=True)
class SheetSummary:
    """The sheets' classes in an import, sliced or unsliced, and the effect of slicing on other images."""

    classes: str = ""  # value of ImportOptions.sheet_classes, decided for 'auto'; '' without sheets
    folders: int = 0  # number of classes if folders become classes
    sheets: int = 0  # number of classes if sheets become classes
    canvas: int = 0  # side in pixels after slicing; 0 if unknown
    whole: int = 0  # number of other images within the canvas
    skipped: tuple[tuple[int, int, int], ...] = ()  # width, height and count of other, larger images
    hidden: tuple[str, ...] = ()  # folders where every unsliced sheet exceeds the canvas

    def count_classes(self, choice: str) -> int:
        """Return the number of classes with a value of ImportOptions.sheet_classes; 0 if unknown."""
        return {"folder": self.folders, "sheet": self.sheets}.get(self.classes if choice == "auto" else choice, 0)


NO_SHEETS = SheetSummary()


@dataclass(frozen=True, eq=False, slots=True)
class Duplicate:
    """A sprite left out because a kept sprite has equal pixels."""

    item: ImportIssue  # the reported issue
    first: int  # kept sprite (index)
    class_name: str  # the duplicate's class
    numbers: tuple[float, ...]  # the duplicate's targets in the order of Sprites.target_names, NaN if missing
    place: tuple[int, int] | None = None  # set and cell in Sprites.sets where the kept sprite stands in


@dataclass(frozen=True, eq=False)
class ImportResult:
    """Sprites and issues of an import; SpritesImported documents the shared fields. `sprites` may be empty."""

    sprites: Sprites
    quarantine: tuple[ImportIssue, ...]
    notes: tuple[ImportIssue, ...]
    sizes: Mapping[tuple[int, int], int]
    proposed_size: int
    duplicates: tuple[Duplicate, ...]  # sprites left out because of equal pixels, sorted by file name
    sheets: tuple[DetectedSheet, ...] = ()
    sheet_summary: SheetSummary = NO_SHEETS
    proposed_sets: SetProposal | None = None
    proposed_attributes: AttributeProposal | None = None
    rows: NDArray[np.int64] | None = None  # ReadSprites.rows after fixes; None before


@dataclass(frozen=True, eq=False)
class ReadSprites:
    """The sprites as read from the files, before the user's edits and fixes.

    rows: int64 [N], index in `sprites` of each imported sprite, ascending.
    """

    sprites: Sprites
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SpritesImported(Event):
    """The last event of an import, with the imported sprites and all issues, sorted by name.

    quarantine_groups, note_groups: the issues by group, prepared to spare the window a loop over a million issues.
    """

    sprites: Sprites
    quarantine: tuple[ImportIssue, ...]  # files and sprites left out
    notes: tuple[ImportIssue, ...]  # kept sprites
    sizes: Mapping[tuple[int, int], int]  # number of readable images by (width, height) in pixels
    proposed_size: int  # width of a canvas that fits most sprites, in pixels, even if the user chose another size
    elapsed_s: float
    from_cache: bool
    read: ReadSprites = field(metadata=NOT_IN_JSON)
    edits: Edits = field(metadata=NOT_IN_JSON)  # of the imported folders; the notes name the moved sprites
    sheets: tuple[DetectedSheet, ...] = ()  # images that look like sheets, sliced or not, sorted by name
    sheet_summary: SheetSummary = field(default=NO_SHEETS, metadata=NOT_IN_JSON)
    proposed_sets: SetProposal | None = None  # sets that slicing the sheets with --sets sheets would give
    proposed_attributes: AttributeProposal | None = None  # attributes that --attributes folders or names would give
    quarantine_groups: IssueGroups = field(init=False)
    note_groups: IssueGroups = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quarantine_groups", by_group(self.quarantine))
        object.__setattr__(self, "note_groups", by_group(self.notes))


def by_group(issues: Iterable[ImportIssue]) -> IssueGroups:
    """Group issues by `ImportIssue.group`. The issues in a group keep their order."""
    groups: dict[str, list[ImportIssue]] = {}
    for issue in issues:
        groups.setdefault(issue.group, []).append(issue)
    return {group: tuple(members) for group, members in groups.items()}


def most_common_reasons(quarantine: Sequence[ImportIssue], most: int = 3) -> str:
    """Return the `most` common reasons for leaving files out, with counts: '8 x empty: the file has no bytes; ...'.

    Duplicates count together, since the reason for each names another sprite.
    """
    counts = Counter(_DUPLICATES.get(issue.group, issue.reason) for issue in quarantine)
    return "; ".join(f"{count:,} x {reason}" for reason, count in counts.most_common(most))


def duplicate_reason(name: str, classes: tuple[str, str], *, numbers_differ: bool) -> str:
    """Return the reason, for users, why the import leaves out a duplicate of the kept sprite `name`.

    classes: class of the kept sprite, class of the duplicate. numbers_differ: whether their targets differ.
    """
    kept, own = classes
    conflict = "" if kept == own else f" of class {kept!r} instead of {own!r}"
    return f"duplicate of {name}{conflict}" + (" with other numbers" if numbers_differ else "")


def small_class_reason(class_name: str, count: int) -> str:
    """Return the reason, for users, why the import leaves out sprites of a class with only `count` sprites."""
    return f"class {class_name!r} has only {formatting.count(count, 'sprite')}"
