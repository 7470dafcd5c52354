"""Save sprites as PNG files, or as a sprite sheet with a JSON file that Aseprite, game engines and the studio read.

Pixels and alpha are exact. Text chunks store the origin (model, seed, settings); the last chunk holds a SHA-256 of the
file that reveals later changes.
"""

from __future__ import annotations

import hashlib
import io
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
_CHECKSUM_KEY = b"SHA-256"  # keyword of the last text chunk
_CHECKSUM_BYTES, _END_BYTES = 12 + len(_CHECKSUM_KEY) + 1 + 64, 12  # chunk sizes with length, type and CRC
_FRAME_MS = 100  # written duration of sprites without animation


def save_files(
    folder: Path, sprites: Rgba, names: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write each sprite of uint8 [N, S, S, 4] as a PNG into `folder`, and create the folder if necessary.

    names: a file name per sprite, without suffix; by default 'sprite 001', 'sprite 002', ... Unsafe characters are
    replaced, and an existing name gets a number. metadata: text chunks of each file. Raises ExportError.
    """
    written = []
    for pixels, name in zip(sprites, sheets.sprite_names(names, (), len(sprites)), strict=True):
        target = files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png")
        files.export_together({target: encode_png(pixels, metadata)})
        written.append(target)
    return written


def save_sheet(
    path: Path, sprites: Rgba, columns: int = sheets.COLUMNS, names: Sequence[str] = (), classes: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> list[Path]:  # fmt: skip
    """Write sprites, uint8 [N, S, S, 4], as a PNG sheet with a JSON array of frames in Aseprite's format.

    names, classes: one per sprite, or empty; the JSON combines them ('sword/sword 001'). metadata: for the PNG's text
    chunks and 'meta' in the JSON. Existing files are not overwritten: both files get a free name. Returns the paths of
    the PNG and the JSON. Raises ExportError.
    """
    if not len(sprites):
        raise ExportError("There are no sprites to save.", "Generate some first.")
    path = path if path.suffix.lower() == ".png" else path.with_name(f"{path.name}.png")
    target = files.free_path(path, (".json",))
    contents = sheet_files(target, sprites, columns, names, classes, metadata or {}, [_FRAME_MS] * len(sprites))
    files.export_together(contents)
    return list(contents)


def save_enlarged(
    path: Path, sprites: Rgba, columns: int = sheets.COLUMNS, scale: int = 4, metadata: Mapping[str, Any] | None = None
) -> Path:
    """Write sprites as a sheet with each pixel enlarged to `scale` x `scale`. Raises ExportError."""
    scale = max(1, min(scale, LARGEST_SCALE))
    picture = pictures.tile(sprites, max(1, min(columns, len(sprites)))).repeat(scale, 0).repeat(scale, 1)
    target = files.free_path(path)
    files.export_together({target: encode_png(picture, metadata)})
    return target


def sheet_files(
    target: Path, sprites: Rgba, columns: int, names: Sequence[str], classes: Sequence[str],
    metadata: Mapping[str, Any], durations_ms: Sequence[int],
) -> dict[Path, bytes]:  # fmt: skip
    """Encode sprites, uint8 [N, H, W, 4], as a PNG sheet and its JSON; return both by path. Raises ExportError."""
    grid = sheet_layout(sprites, columns)
    named = sheets.sprite_names(names, classes, len(sprites))
    picture = pictures.tile(sprites, grid.columns)
    about = sheets.sheet_json(target.name, grid, named, classes, metadata, durations_ms)
    return {target: encode_png(picture, metadata), target.with_suffix(".json"): about}


def sheet_layout(sprites: Rgba, columns: int) -> sheets.SheetLayout:
    """Return the layout of a sheet for sprites, uint8 [N, H, W, 4], with at most `columns` columns."""
    count, height, width = sprites.shape[:3]
    return sheets.SheetLayout(count, width, height, max(1, min(columns, count)))


def _text_chunks(metadata: Mapping[str, Any]) -> PngInfo:
    """Return the text chunks of a PNG. Keywords are shortened to the 79 Latin-1 characters that PNG allows."""
    chunks = PngInfo()
    chunks.add_text("Software", "Sprite Training Studio")
    for key, value in metadata.items():
        keyword = str(key).encode("latin-1", "replace").decode("latin-1").strip()[:79]
        chunks.add_itxt(keyword or "note", str(value).encode("utf-8", "replace").decode())
    return chunks


def encode_png(pixels: Rgba, metadata: Mapping[str, Any] | None = None) -> bytes:
    """Return an image, uint8 [H, W, 4], as a PNG file. With metadata, the file gets a checksum."""
    png = encode_without_checksum(pixels, metadata)
    return add_checksum(png) if metadata else png


def encode_without_checksum(pixels: Rgba, metadata: Mapping[str, Any] | None = None) -> bytes:
    """Return an image as a PNG file without checksum, for callers that add chunks."""
    return _encode(Image.fromarray(np.ascontiguousarray(pixels)), metadata)


def encode_indexed_png(indices: NDArray[np.uint8], table: Rgba, metadata: Mapping[str, Any]) -> bytes:
    """Return an indexed image as a PNG file. indices: uint8 [H, W] into the palette `table`."""
    image = Image.fromarray(np.ascontiguousarray(indices))
    image.putpalette(table[:, :3].tobytes())
    png = _encode(image, metadata, transparency=table[:, 3].tobytes())
    return add_checksum(png) if metadata else png


def _encode(image: Image.Image, metadata: Mapping[str, Any] | None, **options: Any) -> bytes:
    encoded = io.BytesIO()
    image.save(encoded, "PNG", pnginfo=_text_chunks(metadata) if metadata else None, optimize=False, **options)
    return encoded.getvalue()


def add_checksum(png: bytes) -> bytes:
    """Insert a chunk with the SHA-256 of a PNG file before its end chunk."""
    body = _CHECKSUM_KEY + b"\0" + hashlib.sha256(png).hexdigest().encode()
    return png[:-_END_BYTES] + pictures.png_chunk(b"tEXt", body) + png[-_END_BYTES:]


def read_provenance(path: Path) -> tuple[list[ModelSource], bool]:
    """Return the models named in a PNG's text chunks, and whether its checksum is right. Raises BadInputError."""
    try:
        data = path.read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            text = getattr(image, "text", {}).get(PROVENANCE, "")
    except (Image.DecompressionBombError, MemoryError) as error:
        raise BadInputError(f"{path.name} is too large.", "The studio never saves images of this size.") from error
    except pictures.PILLOW_ERRORS as error:
        if isinstance(error, OSError) and not isinstance(error, UnidentifiedImageError):
            raise BadInputError(f"{path.name} can't be read.", str(error)) from error
        raise BadInputError(f"{path.name} is not a PNG file, or it is damaged.", "Choose another file.") from error
    without = data[: -_CHECKSUM_BYTES - _END_BYTES] + data[-_END_BYTES:]
    return parse_sources(path.name, text), data == add_checksum(without)
