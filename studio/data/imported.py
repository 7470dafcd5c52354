"""What an import is asked for and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from studio.core.config import Config, setting
from studio.core.events import Event
from studio.data.sprites import Sprites

LARGEST_CANVAS = 256
MOST_FILES = 1_000_000
MOST_IN_SHEET = 30_000  # sprites


@dataclass(frozen=True)
class ImportOptions(Config):
    """How dropped files become sprites of one size, in classes."""

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
        "of a grid, or cut packed ones where emptiness parts their sprites. Cuts every picture that is larger than the "
        "canvas size, or every one where that is 0; one in which no grid or no second sprite is seen stays whole.",
        choices=("as they are", "grid", "packed"),
    )
    tile: int = setting(
        0,
        "Width of a grid's tiles; 0 tells the whole grid of each sheet from its pixels.",
        label="Tile width",
        unit="px",
        low=0,
        high=LARGEST_CANVAS,
    )
    tile_height: int = setting(0, "Height of the tiles; 0 takes their width.", unit="px", low=0, high=LARGEST_CANVAS)
    margin: int = setting(
        0,
        "Left of and above the first tile, where the tile width is given.",
        unit="px",
        low=0,
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


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file (or a sprite of a sheet) that was left out, or that was kept and deserves a look.

    name: as in `Sprites.names` ('item/potion/ruby.png', 'potions.png#ruby'), for people.
    reason: one plain sentence without the name ('cut off: the file ends too early').
    group: one of QUARANTINE_GROUPS or NOTE_GROUPS.
    path: the file itself, so that it can be shown; None when there is none.
    """

    name: str
    reason: str
    group: str
    path: Path | None = None


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
)

# Kept.
NOTE_GROUPS = (
    "jpeg",
    "misnamed",  # another kind than its name says
    "converted",  # 16 bits, CMYK, LAB, ...: colours are not bit for bit those of the file
    "animation",  # of its frames those that differ were taken, or only the first, or those that are not too many
    "blend mode",  # of a layer, not known: drawn as normal
    "incomplete",  # a layer is missing whose tiles are in another file
    "turned",  # by its EXIF entry
    "no classes",  # a file of many sprites whose labels are missing
    "soft alpha",  # half-transparent pixels
    "upscaled",  # every pixel is a block of pixels
    "smooth",  # like a photo or a smoothed enlargement
    "odd shape",  # 1 x 1, or one pixel thin
)


@dataclass(frozen=True, eq=False)
class SpritesImported(Event):
    """The import is done.

    quarantine: what was left out and why. notes: what was kept and deserves a look. Both sorted by name.
    sizes: pictures that could be read, by (width, height) in pixels.
    proposed_size: the canvas that fits most sprites, whatever size was asked for.
    """

    sprites: Sprites
    quarantine: tuple[Quarantined, ...]
    notes: tuple[Quarantined, ...]
    sizes: Mapping[tuple[int, int], int]
    proposed_size: int
    elapsed_s: float
    from_cache: bool
