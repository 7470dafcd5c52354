"""Save sprites as PNG files in a folder, named after titles, classes or cells."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path

from studio.core import files
from studio.exports.png import encode_png, save_files
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from studio.exports.sprites.splitting import unique_file_names


def save_png_files(folder: Path, sprites: SpriteSet) -> list[Path]:
    """Write each sprite as a PNG into `folder`, created if necessary; return the files. Raises ExportError.

    With cells, each filled cell is a file: 'down-step.png', or 'front.png' for a cell without a column. A set with a
    name has a folder, 'knight/front.png'; several sets without names are numbered, '1/front.png'. Existing files are
    not overwritten.
    """
    if sprites.cells is not None:
        contents = _contents(folder, sprites, sprites.cells)
        files.export_together(contents)
        return list(contents)
    digits = len(str(len(sprites)))
    stems = [label.rpartition("/")[2] or "sprite" for label in sprites.classes or [""] * len(sprites)]
    names = sprites.names or [f"{stem}-{place:0{digits}d}" for place, stem in enumerate(stems, 1)]
    return save_files(folder, sprites.sprites, [files.output_name(name) for name in names], sprites.about)


def _contents(folder: Path, sprites: SpriteSet, cells: Cells) -> dict[Path, bytes]:
    """Return the PNG of every filled cell by path. Two sets never share a folder."""
    names = [
        f"{name}.png" for name in unique_file_names([files.output_name(cell.replace("/", "-")) for cell in cells.names])
    ]
    named = unique_file_names(["/".join(map(files.output_name, name.split("/"))) for name in cells.sets])
    numbered = _numbered(folder, len(cells))
    contents: dict[Path, bytes] = {}
    for index, own in enumerate(cells.table.tolist()):
        filled = {name: sprite for name, sprite in zip(names, own, strict=True) if sprite != GAP}
        target = _first_free(_alternatives(folder / named[index]) if named else numbered, filled, contents)
        contents |= {target / name: encode_png(sprites.sprites[at], sprites.about) for name, at in filled.items()}
    return contents


def _numbered(folder: Path, sets: int) -> Iterator[Path]:
    """Yield the folders for sets without names: `folder` for a single set, then numbered folders in it."""
    if sets == 1:
        yield folder
    yield from (folder / str(number) for number in count(2 if sets == 1 else 1))


def _alternatives(folder: Path) -> Iterator[Path]:
    """Yield `folder`, then 'name-2', 'name-3', ... beside it."""
    yield folder
    yield from (folder.with_name(f"{folder.name}-{number}") for number in count(2))


def _first_free(folders: Iterator[Path], names: Collection[str], used: Collection[Path]) -> Path:
    """Return the first folder without files called `names`, on disk or in `used`."""
    return next(
        folder
        for folder in folders
        if not any(folder / name in used or os.path.lexists(folder / name) for name in names)
    )
