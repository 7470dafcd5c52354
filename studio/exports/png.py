"""Sprites as PNG files, and as one sheet with a JSON file beside it that Aseprite, engines and the studio read.

Pixels are written as they are, alpha included. The files keep what made them (model, seed, settings) in text chunks.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from studio.core import files, pictures
from studio.core.errors import ExportError
from studio.core.events import Rgba

LARGEST_SCALE = 64


def save_files(
    folder: Path, sprites: Rgba, names: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write sprites, uint8 [N, S, S, 4], as one PNG each into `folder`, which is made when it is missing.

    names: one for each sprite, without suffix; they are made safe, and one that is taken gets a number. Without names
    they are 'sprite 001' and on. metadata: text chunks for every file. Nothing is overwritten. Raises ExportError.
    """
    names = _checked(names, len(sprites)) or [f"sprite {number:03d}" for number in range(1, len(sprites) + 1)]
    chunks, written = _text_chunks(metadata or {}), []
    for pixels, name in zip(sprites, names, strict=True):
        target = files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png")
        _write(target, _encoded(pixels, chunks))
        written.append(target)
    return written


def save_sheet(
    path: Path,
    sprites: Rgba,
    columns: int = 8,
    names: Sequence[str] = (),
    classes: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write sprites, uint8 [N, S, S, 4], as one PNG and an Aseprite-style JSON array of its frames beside it.

    names, classes: one for each sprite, or none; they are in the JSON ('sword/sword 001'), classes without '..', as
    programs make paths of them. metadata: text chunks of the PNG, and under 'meta' in the JSON. Neither file is
    overwritten: the pair gets a name that is free.
    Returns the PNG and the JSON. Raises ExportError.
    """
    if not len(sprites):
        raise ExportError("There are no sprites to save.", "Generate some first.")
    names = _checked(names, len(sprites)) or _numbered(classes, len(sprites))
    columns = max(1, min(columns, len(sprites)))
    picture = pictures.tile(sprites, columns)
    target = _free_pair(path if path.suffix.lower() == ".png" else path.with_name(f"{path.name}.png"))
    about = _description(target, picture, sprites.shape[1], columns, _in_classes(names, classes), metadata or {})
    _write(target, _encoded(picture, _text_chunks(metadata or {})))
    beside = target.with_suffix(".json")
    try:
        _write(beside, (json.dumps(about, indent=1) + "\n").encode())
    except ExportError:
        files.remove(target)
        raise
    return [target, beside]


def save_enlarged(path: Path, sprites: Rgba, columns: int = 8, scale: int = 4) -> Path:
    """Write sprites as one picture, each pixel a block of `scale` x `scale`, to look at. Raises ExportError."""
    scale = max(1, min(scale, LARGEST_SCALE))
    picture = pictures.tile(sprites, max(1, min(columns, len(sprites)))).repeat(scale, 0).repeat(scale, 1)
    target = files.free_path(path)
    _write(target, _encoded(picture, PngInfo()))
    return target


def _checked(names: Sequence[str], count: int) -> Sequence[str]:
    if names and len(names) != count:
        raise ExportError(f"There are {len(names):,} names for {count:,} sprites.", "Give one name for each sprite.")
    return names


def _numbered(classes: Sequence[str], count: int) -> list[str]:
    """'sword 001', 'sword 002', ...: each class counts for itself."""
    used: dict[str, int] = {}
    found = []
    for label in _checked(classes, count) or ["sprite"] * count:
        stem = label.rpartition("/")[2] or "sprite"
        used[stem] = used.get(stem, 0) + 1
        found.append(f"{stem} {used[stem]:03d}")
    return found


def _in_classes(names: Sequence[str], classes: Sequence[str]) -> list[str]:
    if not classes:
        return list(names)
    return ["/".join([*_folders(label), name]) for label, name in zip(classes, names, strict=True)]


def _folders(label: str) -> list[str]:
    """'item/sword' -> ['item', 'sword'], without what would lead out of a folder."""
    return [part for part in re.split(r"[/\\]", label) if part.strip(" .")]


def _free_pair(path: Path) -> Path:
    """`path`, or the first numbered name for which neither the PNG nor the JSON is there."""
    candidate, number = files.free_path(path), 2
    while candidate.with_suffix(".json").exists():
        candidate = files.free_path(path.with_name(f"{path.stem} {number}{path.suffix}"))
        number += 1
    return candidate


def _description(
    target: Path, picture: Rgba, size: int, columns: int, names: Sequence[str], metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """The JSON as Aseprite writes it for 'Array': one entry a frame, then the picture."""
    frames = []
    for number, name in enumerate(names):
        row, column = divmod(number, columns)
        frames.append(
            {
                "filename": name,
                "frame": {"x": column * size, "y": row * size, "w": size, "h": size},
                "rotated": False,
                "trimmed": False,
                "spriteSourceSize": {"x": 0, "y": 0, "w": size, "h": size},
                "sourceSize": {"w": size, "h": size},
                "duration": 100,
            }
        )
    meta = {
        "app": "Sprite Training Studio",
        "image": target.name,
        "format": "RGBA8888",
        "size": {"w": picture.shape[1], "h": picture.shape[0]},
        "scale": "1",
    }
    return {"frames": frames, "meta": {**{str(key): value for key, value in metadata.items()}, **meta}}


def _text_chunks(metadata: Mapping[str, Any]) -> PngInfo:
    """Text chunks of a PNG: 'Software', then what was asked for. Keywords are cut to what the format takes."""
    chunks = PngInfo()
    chunks.add_text("Software", "Sprite Training Studio")
    for key, value in metadata.items():
        keyword = str(key).encode("latin-1", "replace").decode("latin-1").strip()[:79]
        chunks.add_itxt(keyword or "note", str(value).encode("utf-8", "replace").decode())
    return chunks


def _encoded(pixels: Rgba, chunks: PngInfo) -> bytes:
    packed = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(packed, format="PNG", pnginfo=chunks, optimize=False)
    return packed.getvalue()


def _write(target: Path, data: bytes) -> None:
    """Write to a name that is free. Raises ExportError, and the name is free again."""
    with files.exporting(target):
        try:
            files.write_atomic(target, data)
        except OSError:
            with contextlib.suppress(OSError):  # the system may have refused after the file was in its place
                files.remove(target)
            raise
