"""Sprites as PNG files, and as one sheet with a JSON file beside it that Aseprite, engines and the studio read.

Pixels are written as they are, alpha included. The files keep what made them (model, seed, settings) in text chunks.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from studio.core import files, pictures
from studio.core.errors import ExportError
from studio.core.events import Rgba
from studio.exports import sheets

LARGEST_SCALE = 64
_FRAME_MS = 100  # what is written where nothing moves


def save_files(
    folder: Path, sprites: Rgba, names: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write sprites, uint8 [N, S, S, 4], as one PNG each into `folder`, which is made when it is missing.

    names: one for each sprite, without suffix; they are made safe, and one that is taken gets a number. Without names
    they are 'sprite 001' and on. metadata: text chunks for every file. Nothing is overwritten. Raises ExportError.
    """
    chunks, written = text_chunks(metadata or {}), []
    for pixels, name in zip(sprites, sheets.sprite_names(names, (), len(sprites)), strict=True):
        target = files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png")
        files.export_together({target: encoded(pixels, chunks)})
        written.append(target)
    return written


def save_sheet(
    path: Path,
    sprites: Rgba,
    columns: int = sheets.COLUMNS,
    names: Sequence[str] = (),
    classes: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write sprites, uint8 [N, S, S, 4], as one PNG and an Aseprite-style JSON array of its frames beside it.

    names, classes: one for each sprite, or none; they are in the JSON ('sword/sword 001'). metadata: text chunks of the
    PNG, and under 'meta' in the JSON. Neither file is overwritten: the pair gets a name that is free.
    Returns the PNG and the JSON. Raises ExportError.
    """
    if not len(sprites):
        raise ExportError("There are no sprites to save.", "Generate some first.")
    path = path if path.suffix.lower() == ".png" else path.with_name(f"{path.name}.png")
    target = files.free_path(path, (".json",))
    contents = sheet_contents(target, sprites, columns, names, classes, metadata or {}, [_FRAME_MS] * len(sprites))
    files.export_together(contents)
    return list(contents)


def save_enlarged(path: Path, sprites: Rgba, columns: int = sheets.COLUMNS, scale: int = 4) -> Path:
    """Write sprites as one picture, each pixel a block of `scale` x `scale`, to look at. Raises ExportError."""
    scale = max(1, min(scale, LARGEST_SCALE))
    picture = pictures.tile(sprites, max(1, min(columns, len(sprites)))).repeat(scale, 0).repeat(scale, 1)
    target = files.free_path(path)
    files.export_together({target: encoded(picture, PngInfo())})
    return target


def sheet_contents(
    target: Path,
    sprites: Rgba,
    columns: int,
    names: Sequence[str],
    classes: Sequence[str],
    metadata: Mapping[str, Any],
    durations_ms: Sequence[int],
) -> dict[Path, bytes]:
    """The PNG that belongs to `target` and the JSON beside it, of sprites, uint8 [N, H, W, 4]. Raises ExportError."""
    grid = grid_of(sprites, columns)
    named = sheets.sprite_names(names, classes, len(sprites))
    picture = pictures.tile(sprites, grid.columns)
    about = sheets.description(target.name, grid, named, classes, metadata, durations_ms)
    return {target: encoded(picture, text_chunks(metadata)), target.with_suffix(".json"): about}


def grid_of(sprites: Rgba, columns: int) -> sheets.Grid:
    """How sprites, uint8 [N, H, W, 4], lie in a sheet that is no wider than it must be."""
    count, height, width = sprites.shape[:3]
    return sheets.Grid(count, width, height, max(1, min(columns, count)))


def text_chunks(metadata: Mapping[str, Any]) -> PngInfo:
    """Text chunks of a PNG: 'Software', then what was asked for. Keywords are cut to what the format takes."""
    chunks = PngInfo()
    chunks.add_text("Software", "Sprite Training Studio")
    for key, value in metadata.items():
        keyword = str(key).encode("latin-1", "replace").decode("latin-1").strip()[:79]
        chunks.add_itxt(keyword or "note", str(value).encode("utf-8", "replace").decode())
    return chunks


def encoded(pixels: Rgba, chunks: PngInfo) -> bytes:
    """A picture, uint8 [H, W, 4], as a PNG file."""
    packed = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(packed, format="PNG", pnginfo=chunks, optimize=False)
    return packed.getvalue()
