"""NumPy's .npy files: an array of sprites, uint8 [N, H, W, 4]."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from studio.data.files.source_files import SourceFile, SourceImage, SourceIssue, UnreadableFile
from studio.data.images.decoding import check_size, read_bytes
from studio.data.sources.base import Source

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '\|u1', 'fortran_order': False, "
    rb"'shape': \((\d{1,9}), (\d{1,9}), (\d{1,9}), 4\), \} *\n",
    re.DOTALL,
)


class NpySource(Source):
    """Every row of the array is a sprite."""

    name = "npy"

    def claims(self, file: SourceFile) -> bool:
        return file.suffix == ".npy"

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        data = read_bytes(file)
        header = _HEADER.match(data)
        if header is None:
            raise UnreadableFile("unreadable", "no array uint8 [N, H, W, 4] of NumPy's")
        count, height, width = map(int, header.groups())
        if count * height * width == 0 or len(data) - header.end() != 4 * math.prod((count, height, width)):
            raise UnreadableFile("unreadable", "its array is not as long as its header says")
        check_size(width, height)
        sprites = np.frombuffer(data, np.uint8, offset=header.end()).reshape(count, height, width, 4)
        for number, sprite in enumerate(sprites):
            yield SourceImage(sprite.copy(), f"{number:0{len(str(count - 1))}}")

    def example(self, folder: Path) -> Path:
        sprites = np.zeros((2, 8, 8, 4), np.uint8)
        sprites[0, 1:7, 2:6], sprites[1, 2:6, 1:7] = (200, 30, 30, 255), (30, 30, 200, 255)
        np.save(folder / "two.npy", sprites)
        return folder / "two.npy"
