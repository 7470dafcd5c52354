"""Read OpenRaster files of Krita, MyPaint and GIMP: zip archives that include the merged image as PNG.

https://www.openraster.org/baseline/file-layout-spec.html
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from studio.data.archives.directory import read_directory
from studio.data.archives.unpacking import READ_METHODS, unpack_member
from studio.data.images.decoding import LARGEST_FILE, decode, read_bytes
from studio.data.sources.base import Source, SourceFile, SourceImage, SourceIssue, UnreadableFile

_MERGED = "mergedimage.png"
_ENCRYPTED = 1  # flag bit of a zip entry


class OraSource(Source):
    """Reads the merged image of an OpenRaster file."""

    name = "ora"

    def claims(self, file: SourceFile) -> bool:
        return file.suffix == ".ora"

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        decoded = decode(_merged(read_bytes(file)), ".png")
        yield SourceImage(decoded.rgba)
        yield from decoded.remarks

    def example(self, folder: Path) -> Path:
        pixels = np.zeros((8, 8, 4), np.uint8)
        pixels[2:6, 1:7] = (200, 60, 40, 255)
        packed = io.BytesIO()
        Image.fromarray(pixels).save(packed, "PNG")
        path = folder / "ruby.ora"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("mimetype", "image/openraster")
            archive.writestr(_MERGED, packed.getvalue())
        return path


def _merged(data: bytes) -> bytes:
    """Return the merged image in an OpenRaster file, as PNG bytes. Raises UnreadableFile if damaged or missing."""
    stream = io.BytesIO(data)
    found = next((each for each in read_directory(stream, len(data)) if each.name == _MERGED.encode()), None)
    if found is None:
        raise UnreadableFile("unsupported", "an OpenRaster file without a merged image: save it as PNG")
    if found.flags & _ENCRYPTED or found.entry.method not in READ_METHODS:
        raise UnreadableFile("unsupported", "an encrypted or unusually packed OpenRaster file: save it as PNG")
    if found.entry.size > LARGEST_FILE:
        raise UnreadableFile("refused", f"too large: at most {LARGEST_FILE >> 20} MB are read")
    return unpack_member(stream, found.entry, LARGEST_FILE)
