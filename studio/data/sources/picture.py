"""A picture or an animation: PNG, GIF, BMP, WebP, JPEG, TGA or TIFF, recognised by content and not by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from studio.data.images.decoding import HEAD_BYTES, read_bytes, sniff
from studio.data.images.frames import pictures_in
from studio.data.sources.base import PICTURE_SUFFIXES, Picture, Refused, Remark, Source, SourceFile

# Drawings that the studio does not read and that an artist may miss among the sprites.
_UNREAD = {
    ".avif": "an AVIF picture",
    ".clip": "a Clip Studio file",
    ".dds": "a DDS texture",
    ".heic": "a HEIC picture",
    ".ico": "an icon file",
    ".kra": "a Krita file",
    ".pcx": "a PCX picture",
    ".psd": "a Photoshop file",
    ".pyxel": "a Pyxel Edit file",
    ".svg": "a vector drawing",
    ".xcf": "a GIMP file",
}


class PictureSource(Source):
    """The last one asked: it takes whatever might be a picture."""

    name = "picture"
    order = 100

    def claims(self, file: SourceFile) -> bool:
        return True

    def read(self, file: SourceFile) -> Iterator[Picture | Remark]:
        if file.suffix in _UNREAD:
            raise Refused("unsupported", f"{_UNREAD[file.suffix]}, which is not read: save it as PNG")
        if file.suffix not in PICTURE_SUFFIXES and sniff(read_bytes(file, HEAD_BYTES), file.suffix) is None:
            return  # notes, licences, sounds: nobody expects a sprite from them
        yield from pictures_in(read_bytes(file), file.suffix)

    def example(self, folder: Path) -> Path:
        pixels = np.zeros((8, 8, 4), np.uint8)
        pixels[2:6, 1:7] = (200, 60, 40, 255)
        path = folder / "ruby.png"
        Image.fromarray(pixels).save(path)
        return path
