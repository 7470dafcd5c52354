"""Import settings, and the grid for slicing a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from studio.core.config import Config, setting, settings_of
from studio.core.errors import UsageError
from studio.data.decimal_marks import AUTO, MARKS

LARGEST_CANVAS = 256  # pixels on a side
MAX_SHEET_SPRITES = 30_000
MAX_COLOURS = 256
_PER_SPRITE = ("clear_magenta", "shrink", "alpha_threshold")  # options with an effect on single sprites
_advanced = partial(setting, advanced=True)
_limit = partial(setting, advanced=True, low=0, high=MAX_COLOURS, low_text="No limit")
_pixels = partial(setting, unit="px", low=0, high=LARGEST_CANVAS)


@dataclass(frozen=True)
class ReadOptions(Config):
    """Import options that control how files become square sprites with classes."""

    size: int = _pixels(
        0, "Canvas side in pixels. Auto: the size that suits most sprites.", label="Canvas size", low_text="Auto"
    )
    class_levels: int = setting(
        2, "Number of nested folders that make up a class name.", label="Folder levels used as class", low=1, high=8
    )
    other_sizes: str = setting(
        "pad",
        "Pad smaller sprites and crop transparent borders of larger sprites, or exclude sprites of any other size.",
        label="Sprites of another size", choices=("pad", "leave out"),
    )  # fmt: skip
    sheets: str = setting(
        "as they are",
        "Sprite sheets without a description file: keep them whole, slice them by a grid, or split them at transparent "
        "gaps (packed). With grid and no tile width, each sheet is sliced by the grid detected in the sheet. With a "
        "tile width, or with packed, every image larger than the canvas is sliced (with an Auto canvas, every image). "
        "An image of a single sprite stays whole.",
        choices=("as they are", "grid", "packed"),
    )
    tile: int = _pixels(
        0, "Width of a tile. Auto: detect sheets and grids from the pixels.", label="Tile width", low_text="Auto"
    )
    tile_height: int = _pixels(0, "Height of a tile. Square: the tile width.", low_text="Square")
    margin: int = _pixels(0, "Space left of the first tile. Needs a tile width.", label="Left margin", advanced=True)
    margin_top: int = setting(
        -1, "Space above the first tile. Needs a tile width.", label="Top margin", unit="px",
        low=-1, high=LARGEST_CANVAS, advanced=True, low_text="Same as left",
    )  # fmt: skip
    spacing: int = _pixels(0, "Space between neighbouring tiles. Needs a tile width.", advanced=True)
    sheet_grids: str = _advanced(
        "",
        "Grids for individual sheets, separated by ';'. They override the settings above. NAME=16x24: tiles of 16 x 24 "
        "pixels. NAME=16x24+1+2/3: also a left margin of 1, a top margin of 2 and a spacing of 3 pixels. * in a name "
        "matches any text.",
        label="Grids for individual sheets",
    )
    gap: int = _advanced(
        1, "Largest transparent gap between two parts of one sprite in a packed sheet.", unit="px", low=0, high=16
    )
    sheet_classes: str = _advanced(
        "auto", "Class of sliced sprites: the sheet's folder, the sheet, or the row of the sheet. Auto: the folder if "
        "several folders hold sheets, or if sheets are sets; else the sheet.",
        choices=("auto", "folder", "sheet", "row"), label="Classes of sheets", legacy_default="sheet",
    )  # fmt: skip
    sets: str = _advanced(
        "auto", "Which sprites are views and frames of one character. Auto: sets.csv, or what names and sliced sheets "
        "clearly say. folders: a folder for each view, with equal file names. sheets: a sheet for each character, "
        "sliced by one grid. names: words in names of files, frames and Aseprite tags, as in knight_walk_left_2. csv: "
        "sets.csv with the columns file, set, cell. Sets chosen here are held out whole.",
        choices=("auto", "folders", "sheets", "names", "csv", "off"), label="Views and frames", legacy_default="off",
    )  # fmt: skip
    rows: str = _advanced(
        "", "Names of the views, separated by commas: for sheets from the top row down, else the words in names and "
        "folders. Example: down,up,left,right. 'front=down' renames a found view, and joins equal names.",
        label="Names of views", legacy_default="",
    )  # fmt: skip
    columns: str = _advanced(
        "", "Names of the frames of a view, separated by commas: for sheets from the left column on. Example: "
        "stand,step,stand2,step2. 'walk1=step' renames a found frame.", label="Names of frames", legacy_default="",
    )  # fmt: skip
    attributes: str = _advanced(
        "auto", "What tells attributes beside the class, such as an element. Auto: columns of texts in labels.csv, and "
        "lines like element=fire in the user data of Aseprite files. folders: also the levels of folders, as in "
        "swords/fire. names: also the words in file names, as in sword_fire_01. layers: also the groups of layers in "
        "Aseprite files, by their visible layer.",
        choices=("auto", "folders", "names", "layers", "off"), legacy_default="off",
    )  # fmt: skip
    attribute_names: str = _advanced(
        "", "Names of the attributes from folder levels or words, in order, separated by commas. - skips one. Example: "
        "kind,element.", label="Names of attributes", legacy_default="",
    )  # fmt: skip
    decimal_mark: str = _advanced(
        AUTO, "Decimal mark in labels.csv files. Auto: decided for each column of numbers.", choices=MARKS
    )
    duplicates: str = _advanced(
        "leave out",
        "Whether to keep sprites with equal pixels. Leave duplicates out for training: otherwise the validation set "
        "may hold copies of training sprites.", choices=("leave out", "keep"),
    )  # fmt: skip
    split_folders: bool = _advanced(
        True, "Read sibling folders named train, val and test as the splits of a data set, not as classes. Sprites in "
        "test become the test set.",
    )  # fmt: skip
    tag_classes: bool = _advanced(
        False, "Make each tag of an Aseprite animation a class. Untagged frames keep the folder's class.",
        label="Tags as classes",
    )  # fmt: skip
    clear_magenta: bool = _advanced(
        False, "Make magenta pixels (255, 0, 255) transparent in images without transparency.",
        label="Magenta as transparent",
    )  # fmt: skip
    shrink: int = _advanced(
        1, "Scale down upscaled sprites by this factor. Auto: detect the factor of each sprite. 1 changes nothing. "
        "Needs blocks of equal pixels.", label="Undo upscaling", low=0, high=16, low_text="Auto",
    )  # fmt: skip

    @property
    def uses_detected_grids(self) -> bool:
        """Whether the import slices sheets by detected grids."""
        return self.sheets == "grid" and not self.tile

    @property
    def detects_sheets(self) -> bool:
        """Whether the import searches for sheets with several sprites."""
        return self.sheets == "as they are" or self.uses_detected_grids


@dataclass(frozen=True)
class ImportOptions(ReadOptions):
    """All import options: how to read files, and fixes for the sprites, applied after reading in the order below."""

    alpha_threshold: int = _advanced(
        0, "Make pixels opaque from this alpha on, and all others transparent. Off: keep semi-transparency.",
        low=0, high=255, low_text="Off",
    )  # fmt: skip
    merge_colours: float = _advanced(
        0.0, "Merge colours closer than this distance into the more frequent colour. In OKLab: black and white are 1 "
        "apart, 0.02 is hardly visible.", label="Merge similar colours", low=0.0, high=0.2, low_text="Off",
    )  # fmt: skip
    colours_all: int = _limit(0, "Limit for the colours of the whole set.", label="Max. colours overall")
    palette: str = _advanced(
        "",
        "Palette file: each pixel takes the nearest palette colour. Empty keeps the colours.",
        label="Palette file",
        path="file",
    )
    colours_each: int = _limit(0, "Limit for the colours of each sprite.", label="Max. colours per sprite")
    similar: str = _advanced(
        "keep", "Whether to keep near-duplicates, including shifted or mirrored sprites.",
        label="Similar sprites", choices=("keep", "leave out"),
    )  # fmt: skip
    edits: str = _advanced(
        "on", "Whether to follow your edits, such as moves to other classes, or to use the files as they are.",
        label="Your edits", choices=("on", "off"),
    )  # fmt: skip
    leave_out: str = _advanced(
        "", "Names of sprites to exclude, separated by ';'. * matches any text: 'item/old_*'.", label="Exclude"
    )
    merge_classes: bool = _advanced(False, "Merge classes whose names differ only in case or spaces.")
    class_minimum: int = _advanced(
        1, "Exclude classes with fewer sprites.", label="Smallest class", unit="sprites", low=1, high=100_000
    )

    @property
    def has_fixes(self) -> bool:
        """Whether some option changes or excludes sprites after reading."""
        return not self.changed().keys() <= {"edits", *(item.name for item in settings_of(ReadOptions))}


def settings_of_reading(options: ReadOptions) -> dict[str, Any]:
    """Return the options that control the reading of files, by name; without the fixes applied afterwards."""
    return {item.name: getattr(options, item.name) for item in settings_of(ReadOptions)}


@dataclass(frozen=True, slots=True)
class SheetGrid:
    """A grid for slicing a sheet into equal tiles. Sizes in pixels."""

    tile_width: int
    tile_height: int
    left: int = 0  # position of the first tile
    top: int = 0
    spacing: int = 0  # gap between neighbouring tiles
    confidence: float = 1.0  # 0 to 1

    def columns(self, width: int) -> int:
        """Return the number of whole tiles that fit across an image `width` pixels wide."""
        return max(0, (width - self.left + self.spacing) // (self.tile_width + self.spacing))

    def rows(self, height: int) -> int:
        """Return the number of whole tiles that fit down an image `height` pixels high."""
        return max(0, (height - self.top + self.spacing) // (self.tile_height + self.spacing))


def options_for_prediction(size: int, origin: Mapping[str, Any]) -> ImportOptions:
    """Return the options to import sprites for predictions of a trained model.

    The import keeps duplicates. Options for single sprites, like `alpha_threshold`, equal the training's. size: side of
    the model's canvas in pixels. origin: `Sprites.origin` of the training's sprites.
    """
    options, trained = ImportOptions(size=size, duplicates="keep"), origin.get("options")
    if not isinstance(trained, Mapping):
        return options
    try:
        return options.replace(**{name: trained[name] for name in _PER_SPRITE if name in trained})
    except UsageError:  # somebody edited run.json
        return options
