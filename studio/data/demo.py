"""The bundled demo art and its import options."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from studio.core import paths
from studio.data.options import ImportOptions

DemoKind = Literal["sprites", "sets"]
_ROWS, _COLUMNS = "down,up,left,right", "stand,step,stand2,step2"  # rows and columns in sheets of characters


class Demo(NamedTuple):
    """Demo art. recipe: the recipe to train, '' for the default."""

    folder: Path
    options: ImportOptions
    recipe: str


def demo_art(kind: DemoKind) -> Demo:
    """Return the demo sprites, or the demo characters for 'sets'."""
    if kind == "sprites":
        return Demo(paths.demo_sprites(), ImportOptions(), "")
    options = ImportOptions(sets="sheets", rows=_ROWS, columns=_COLUMNS)
    return Demo(paths.demo_characters(), options, "sets")
