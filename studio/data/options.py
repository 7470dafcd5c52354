"""What an import is asked for and what it gives back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from studio.core.config import Config, setting, settings_of
from studio.core.errors import UsageError
from studio.core.events import Event
from studio.data.files.source_files import Quarantined
from studio.data.notation import AUTO, MARKS
from studio.data.sprites import Sprites

LARGEST_CANVAS = 256
MOST_IN_SHEET = 30_000  # sprites
MOST_COLOURS_ASKED = 256
_OF_ONE_PICTURE = (
    "clear_magenta",
    "shrink",
    "alpha_threshold",
)  # they change each picture by itself


@dataclass(frozen=True)
class ReadOptions(Config):
    """How files become sprites of one size, in classes: what has to be known when they are read."""

    size: int = setting(
        0,
        "Side of the canvas in pixels; 0 takes the size that fits most sprites.",
        label="Canvas size",
        unit="px",
        low=0,
        high=LARGEST_CANVAS,
    )
    class_levels: int = setting(2, "How many levels of sub-folders make a class name.", low=1, high=8)
    other_sizes: str = setting(
        "pad",
        "Sprites of another size than the canvas: pad smaller ones with transparency and cut transparent borders off "
        "larger ones, or leave all of them out.",
        choices=("pad", "leave out"),
    )
    sheets: str = setting(
        "as they are",
        "Pictures of many sprites that no file beside them describes: keep them as they are, cut them into the tiles "
        "of a grid, or cut packed ones where emptiness parts their sprites. Without a tile width, 'grid' cuts each "
        "picture that looks like a strip or a sheet by the grid that is seen in it. With a tile width, and with "
        "'packed', every picture larger than the canvas is cut (with a canvas of 0, every picture). A picture that "
        "would give only one sprite stays whole.",
        choices=("as they are", "grid", "packed"),
    )
    tile: int = setting(
        0,
        "Width of a grid's tiles; 0 finds out which pictures are sheets, and the grid of each, from their pixels.",
        label="Tile width",
        unit="px",
        low=0,
        high=LARGEST_CANVAS,
    )
    tile_height: int = setting(0, "Height of the tiles; 0 takes their width.", unit="px", low=0, high=LARGEST_CANVAS)
    margin: int = setting(
        0,
        "Left of the first tile, where the tile width is given.",
        unit="px",
        low=0,
        high=LARGEST_CANVAS,
        advanced=True,
    )
    margin_top: int = setting(
        -1,
        "Above the first tile, where the tile width is given; -1 takes the margin on its left.",
        label="Margin above",
        unit="px",
        low=-1,
        high=LARGEST_CANVAS,
        advanced=True,
    )
    spacing: int = setting(
        0,
        "Between neighbouring tiles, where the tile width is given.",
        unit="px",
        low=0,
        high=LARGEST_CANVAS,
        advanced=True,
    )
    sheet_grids: str = setting(
        "",
        "Grids of single sheets, used instead of the settings above and separated by ';'. NAME=16x24: tiles of 16 x 24 "
        "pixels. NAME=16x24+1+2/3: a margin of 1 pixel on the left and 2 above, and a spacing of 3. * in a name stands "
        "for any text.",
        label="Grids of single sheets",
        advanced=True,
    )
    gap: int = setting(
        1,
        "How many empty pixels may lie between two parts of one sprite of a packed sheet.",
        unit="px",
        low=0,
        high=16,
        advanced=True,
    )
    sheet_classes: str = setting(
        "sheet", "Make each sheet that is cut a class, or each of its rows.", choices=("sheet", "row"), advanced=True
    )
    decimal_mark: str = setting(
        AUTO,
        "Decimal mark of the numbers in a labels.csv; auto decides for each column by all its numbers.",
        choices=MARKS,
        advanced=True,
    )
    duplicates: str = setting(
        "leave out",
        "Whether to keep sprites with equal pixels. Leave duplicates out for training: otherwise the validation set "
        "may hold copies of training sprites.",
        choices=("leave out", "keep"),
        advanced=True,
    )
    split_folders: bool = setting(
        True,
        "Read sibling folders named train, val and test as the splits of a data set, not as classes. Sprites in test "
        "become the test set.",
        advanced=True,
    )
    tag_classes: bool = setting(
        False,
        "Make each tag of an Aseprite animation a class; frames without one stay in the class of their folder.",
        label="Tags as classes",
        advanced=True,
    )
    clear_magenta: bool = setting(
        False,
        "Make magenta pixels (255, 0, 255) transparent in pictures that have no transparent pixel.",
        label="Magenta as transparent",
        advanced=True,
    )
    shrink: int = setting(
        1,
        "Sprites that were enlarged come back to their true size: so many pixels become one where all of them agree; "
        "0 finds out for each sprite, 1 leaves all as they are.",
        label="Enlarged by",
        low=0,
        high=16,
        advanced=True,
    )

    @property
    def cuts_each_by_its_own(self) -> bool:
        """Whether sheets are cut along the grids that are seen in them."""
        return self.sheets == "grid" and not self.tile

    @property
    def looks_for_sheets(self) -> bool:
        """Whether pictures that are sheets have to be recognised."""
        return self.sheets == "as they are" or self.cuts_each_by_its_own


@dataclass(frozen=True)
class ImportOptions(ReadOptions):
    """How dropped files become what a model learns from: read, then mended, one setting after the other."""

    alpha_threshold: int = setting(
        0,
        "Pixels at least this opaque become solid and all others clear; 0 leaves half-transparent pixels.",
        low=0,
        high=255,
        advanced=True,
    )
    merge_colours: float = setting(
        0.0,
        "Colours nearer to each other than this become one, the more used; 0 leaves all. In OKLab, where black and "
        "white are 1 apart and 0.02 can hardly be seen.",
        low=0.0,
        high=0.2,
        advanced=True,
    )
    colours_all: int = setting(
        0,
        "So many colours for all sprites together, the main ones of the set; 0 leaves them.",
        label="Colours in all",
        low=0,
        high=MOST_COLOURS_ASKED,
        advanced=True,
    )
    palette: str = setting(
        "",
        "File of a palette whose nearest colours all sprites take; empty leaves them.",
        label="Palette file",
        advanced=True,
    )
    colours_each: int = setting(
        0,
        "Sprites of more colours are brought down to so many; 0 leaves them.",
        label="Colours a sprite",
        low=0,
        high=MOST_COLOURS_ASKED,
        advanced=True,
    )
    similar: str = setting(
        "keep",
        "Sprites that hardly differ from another one, also where they are moved or mirrored.",
        label="Similar sprites",
        choices=("keep", "leave out"),
        advanced=True,
    )
    leave_out: str = setting(
        "", "Names of sprites to leave out, parted by ';'. * stands for any text: 'item/old_*'.", advanced=True
    )
    merge_classes: bool = setting(
        False, "Merge classes whose names differ only in upper and lower case or in blanks.", advanced=True
    )
    class_minimum: int = setting(
        1,
        "Classes of fewer sprites are left out.",
        label="Smallest class",
        unit="sprites",
        low=1,
        high=100_000,
        advanced=True,
    )

    @property
    def mends(self) -> bool:
        """Whether anything is changed in what was read, or left out of it."""
        return not self.changed().keys() <= {item.name for item in settings_of(ReadOptions)}


@dataclass(frozen=True, slots=True)
class FoundSheet:
    """A picture that looks like a strip or a sheet of many sprites. name: as in Quarantined. sprites: in its grid."""

    name: str
    grid: Grid
    sprites: int


Groups = Mapping[str, tuple[Quarantined, ...]]


def by_group(items: Iterable[Quarantined]) -> Groups:
    """The items of each group, in their order."""
    groups: dict[str, list[Quarantined]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    return {group: tuple(members) for group, members in groups.items()}


# Left out.
QUARANTINE_GROUPS = (
    "unreadable",  # damaged, cut off, empty, or not a picture at all
    "unsupported",  # a kind of picture that the studio does not read
    "refused",  # too large, or nothing that should be opened: pipes, devices, links
    "no access",  # not allowed, gone, or the drive failed
    "duplicate",
    "wrong size",
    "looks like a sheet",
    "empty",  # no visible pixel
    "similar",  # to another one
    "small class",
    "chosen",  # by name
)

# Groups of sheets whose cut the user can still change.
SHEET_GROUPS = ("looks like a sheet", "cut sheet", "wrong size", "partly described", "left over")

# Kept.
NOTE_GROUPS = (
    "cut sheet",  # into how many sprites, kept or not
    "left over",  # pixels behind the last whole tiles of a cut sheet
    "looks like a sheet",  # a sheet that fits the canvas uncut
    "partly described",  # a file describes only some sprites of the sheet
    "jpeg",
    "misnamed",  # another kind than its name says
    "description",  # the description of a sheet is unusable or was adapted
    "converted",  # 16 bits, CMYK, LAB, ...: colours are not bit for bit those of the file
    "animation",  # of its frames those that differ were taken, or only the first, or those that are not too many
    "blend mode",  # of a layer, not known: drawn as normal
    "incomplete",  # a layer is missing whose tiles are in another file
    "magenta ground",  # magenta may mean transparent in a picture without alpha
    "sizes",  # an icon file with several sizes: the largest was read
    "turned",  # by its EXIF entry
    "labels",  # lines of a labels.csv that can't be used, and sprites that it forgets
    "ambiguous numbers",  # columns of a labels.csv that fit decimal points and decimal commas
    "no classes",  # a file of many sprites whose labels are missing
    "split folders",  # folders train, val and test of a data set
    "test set",  # a file of the sprites by which a data set is judged
    "soft alpha",  # half-transparent pixels
    "upscaled",  # every pixel is a block of pixels
    "smooth",  # like a photo or a smoothed enlargement
    "odd shape",  # 1 x 1, or one pixel thin
    "mended",  # other pixels than in the file, as was asked for
)


@dataclass(frozen=True, eq=False)
class SpritesImported(Event):
    """The import is done.

    quarantine: what was left out and why. notes: what was kept and deserves a look. Both sorted by name, and once more
    by group, as there can be too many of them to go through while a window waits.
    sizes: pictures that could be read, by (width, height) in pixels.
    proposed_size: the canvas that fits most sprites, whatever size was asked for.
    sheets: pictures that look like sheets, cut or not, in the order of their names.
    """

    sprites: Sprites
    quarantine: tuple[Quarantined, ...]
    notes: tuple[Quarantined, ...]
    sizes: Mapping[tuple[int, int], int]
    proposed_size: int
    elapsed_s: float
    from_cache: bool
    sheets: tuple[FoundSheet, ...] = ()
    quarantine_groups: Groups = field(init=False)
    note_groups: Groups = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quarantine_groups", by_group(self.quarantine))
        object.__setattr__(self, "note_groups", by_group(self.notes))


@dataclass(frozen=True, slots=True)
class Grid:
    """Tiles of one size in rows and columns, all in pixels.

    left, top: of the first tile. spacing: between neighbours in both directions. confidence: from 0 to 1.
    """

    tile_width: int
    tile_height: int
    left: int = 0
    top: int = 0
    spacing: int = 0
    confidence: float = 1.0

    def columns(self, width: int) -> int:
        """How many whole tiles fit into a picture that is this wide."""
        return max(0, (width - self.left + self.spacing) // (self.tile_width + self.spacing))

    def rows(self, height: int) -> int:
        """How many whole tiles fit into a picture that is this high."""
        return max(0, (height - self.top + self.spacing) // (self.tile_height + self.spacing))


def options_for_prediction(size: int, origin: Mapping[str, Any]) -> ImportOptions:
    """Return options that read every given file, and change single pictures as the training's import did.

    size: side of the model's canvas in pixels. origin: of the training's sprites, as in Sprites.
    """
    options, trained = ImportOptions(size=size, duplicates="keep"), origin.get("options")
    if not isinstance(trained, Mapping):
        return options
    try:
        return options.replace(**{name: trained[name] for name in _OF_ONE_PICTURE if name in trained})
    except UsageError:  # run.json was changed by hand
        return options
