"""Sprites as PNG files, and as one sheet with a JSON file beside it that Aseprite, engines and the studio read.

Pixels are written as they are, alpha included. The files keep what made them (model, seed, settings) in text chunks,
and a last one that tells whether any byte was changed since.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from PIL.PngImagePlugin import PngInfo

from studio.core import files, pictures
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError, ExportError
from studio.exports import sheets
from studio.exports.model_cards import PROVENANCE, ModelSource
from studio.exports.provenance_note import parse_sources

LARGEST_SCALE = 64
_SEAL = b"SHA-256"  # of the text that is the sum of all that comes before it
_SEAL_BYTES, _END_BYTES = 12 + len(_SEAL) + 1 + 64, 12  # chunks with their lengths, kinds and checksums
_FRAME_MS = 100  # what is written where nothing moves


def save_files(
    folder: Path, sprites: Rgba, names: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write sprites, uint8 [N, S, S, 4], as one PNG each into `folder`, which is made when it is missing.

    names: one for each sprite, without suffix; they are made safe, and one that is taken gets a number. Without names
    they are 'sprite 001' and on. metadata: text chunks for every file. Nothing is overwritten. Raises ExportError.
    """
    written = []
    for pixels, name in zip(sprites, sheets.sprite_names(names, (), len(sprites)), strict=True):
        target = files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png")
        files.export_together({target: encode_png(pixels, metadata)})
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
    contents = sheet_files(target, sprites, columns, names, classes, metadata or {}, [_FRAME_MS] * len(sprites))
    files.export_together(contents)
    return list(contents)


def save_enlarged(
    path: Path,
    sprites: Rgba,
    columns: int = sheets.COLUMNS,
    scale: int = 4,
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write sprites as one picture, each pixel a block of `scale` x `scale`, to look at. Raises ExportError."""
    scale = max(1, min(scale, LARGEST_SCALE))
    picture = pictures.tile(sprites, max(1, min(columns, len(sprites)))).repeat(scale, 0).repeat(scale, 1)
    target = files.free_path(path)
    files.export_together({target: encode_png(picture, metadata)})
    return target


def sheet_files(
    target: Path,
    sprites: Rgba,
    columns: int,
    names: Sequence[str],
    classes: Sequence[str],
    metadata: Mapping[str, Any],
    durations_ms: Sequence[int],
) -> dict[Path, bytes]:
    """The PNG that belongs to `target` and the JSON beside it, of sprites, uint8 [N, H, W, 4]. Raises ExportError."""
    grid = sheet_layout(sprites, columns)
    named = sheets.sprite_names(names, classes, len(sprites))
    picture = pictures.tile(sprites, grid.columns)
    about = sheets.sheet_json(target.name, grid, named, classes, metadata, durations_ms)
    return {target: encode_png(picture, metadata), target.with_suffix(".json"): about}


def sheet_layout(sprites: Rgba, columns: int) -> sheets.SheetLayout:
    """How sprites, uint8 [N, H, W, 4], lie in a sheet that is no wider than it must be."""
    count, height, width = sprites.shape[:3]
    return sheets.SheetLayout(count, width, height, max(1, min(columns, count)))


def _text_chunks(metadata: Mapping[str, Any]) -> PngInfo:
    """Text chunks of a PNG: 'Software', then what was asked for. Keywords are cut to what the format takes."""
    chunks = PngInfo()
    chunks.add_text("Software", "Sprite Training Studio")
    for key, value in metadata.items():
        keyword = str(key).encode("latin-1", "replace").decode("latin-1").strip()[:79]
        chunks.add_itxt(keyword or "note", str(value).encode("utf-8", "replace").decode())
    return chunks


def encode_png(pixels: Rgba, metadata: Mapping[str, Any] | None = None) -> bytes:
    """A picture, uint8 [H, W, 4], as a PNG file, sealed if there is something to say of it."""
    png = encode_without_checksum(pixels, metadata)
    return add_checksum(png) if metadata else png


def encode_without_checksum(pixels: Rgba, metadata: Mapping[str, Any] | None = None) -> bytes:
    """The same before it is sealed, for who puts more chunks into it."""
    return _packed(Image.fromarray(np.ascontiguousarray(pixels)), metadata)


def encode_indexed_png(indices: NDArray[np.uint8], table: Rgba, metadata: Mapping[str, Any]) -> bytes:
    """Colour numbers, uint8 [H, W], with the colours that they stand for, as a PNG file: see `encode_png`."""
    image = Image.fromarray(np.ascontiguousarray(indices))
    image.putpalette(table[:, :3].tobytes())
    png = _packed(image, metadata, transparency=table[:, 3].tobytes())
    return add_checksum(png) if metadata else png


def _packed(image: Image.Image, metadata: Mapping[str, Any] | None, **options: Any) -> bytes:
    packed = io.BytesIO()
    image.save(packed, "PNG", pnginfo=_text_chunks(metadata) if metadata else None, optimize=False, **options)
    return packed.getvalue()


def add_checksum(png: bytes) -> bytes:
    """A PNG file with one chunk more, before its end: the SHA-256 of all others."""
    return png[:-_END_BYTES] + _seal_of(png) + png[-_END_BYTES:]


def _checksum_matches(data: bytes) -> bool:
    """Whether a file is as it was sealed."""
    return data == add_checksum(data[: -_SEAL_BYTES - _END_BYTES] + data[-_END_BYTES:])


def _seal_of(png: bytes) -> bytes:
    body = _SEAL + b"\0" + hashlib.sha256(png).hexdigest().encode()
    return struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", zlib.crc32(b"tEXt" + body))


def read_provenance(path: Path) -> tuple[list[ModelSource], bool]:
    """What a picture says that it comes from, and whether it is as it was saved. Raises BadInputError."""
    try:
        data = path.read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            said = getattr(image, "text", {}).get(PROVENANCE, "")
    except (Image.DecompressionBombError, MemoryError) as error:
        raise BadInputError(f"{path.name} has too many pixels.", "The studio saves smaller pictures.") from error
    except OSError as error:
        if not isinstance(error, UnidentifiedImageError):
            raise BadInputError(f"{path.name} can't be read.", str(error)) from error
        raise BadInputError(f"{path.name} is no PNG file, or damaged.", "Choose another file.") from error
    except pictures.PILLOW_ERRORS as error:
        raise BadInputError(f"{path.name} is no PNG file, or damaged.", "Choose another file.") from error
    return parse_sources(path.name, said), _checksum_matches(data)
