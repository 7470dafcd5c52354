"""The window's jobs with colours: palettes of sprites, of files and of runs.

As in `jobs`, what a generator imports is imported in the worker's thread, when the job runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.answers import ColourFound, FilesSaved, PaletteFound, PaletteLoaded, StyleRead
from studio.core.events import Events, Rgba

if TYPE_CHECKING:
    from studio.data.palettes.base import Palette
    from studio.data.sprites import Sprites


def find_palette(sprites: Sprites) -> Events:
    """The colours that a set of sprites uses most."""
    from studio.data.colour_use import colour_use

    yield PaletteFound(colour_use(sprites.rgba))


def find_colour(sprites: Sprites, colour: Rgba) -> Events:
    """The sprites that use a colour."""
    from studio.data.colour_use import sprites_with

    yield ColourFound(sprites, colour, (yield from sprites_with(sprites.rgba, colour)))


def load_palette(path: Path) -> Events:
    """A palette from a file, of whatever kind; one in which nothing can be seen is refused."""
    from studio.data.palette_files import load_palette

    palette = load_palette(path)
    palette.visible()
    yield PaletteLoaded(path, palette)


def save_palette(path: Path, palette: Palette) -> Events:
    """Write a palette as what the suffix of `path` says."""
    from studio.data.palette_files import save_palette

    yield FilesSaved((save_palette(path, palette),))


def read_style(path: Path) -> Events:
    """The palette of the sprites that a run learns from."""
    from studio.engine.rundir import RunDir
    from studio.engine.style_file import load_style

    run = RunDir(path)
    yield StyleRead(path, load_style(run, run.record()).palette)
