"""Read images and animations: PNG, GIF, BMP, WebP, JPEG, TGA, TIFF and others, recognised by content, not by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from studio.data.images.decoding import read_picture_bytes
from studio.data.images.frames import read_pictures
from studio.data.sources.base import Source, SourceFile, SourceImage, SourceIssue


class PictureSource(Source):
    """Reads common image formats. It comes last, claims every file, and yields nothing for other contents."""

    name = "picture"
    order = 100

    def claims(self, file: SourceFile) -> bool:
        return True

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        data = read_picture_bytes(file)
        if data is not None:
            yield from read_pictures(data, file.suffix)

    def example(self, folder: Path) -> Path:
        pixels = np.zeros((8, 8, 4), np.uint8)
        pixels[2:6, 1:7] = (200, 60, 40, 255)
        path = folder / "ruby.png"
        Image.fromarray(pixels).save(path)
        return path
