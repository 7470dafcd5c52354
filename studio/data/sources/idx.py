"""Read IDX files of MNIST and similar data sets: thousands of grey images in a file, and their classes in another.

'train-images-idx3-ubyte.gz' holds the images and 'train-labels-idx1-ubyte.gz' the class numbers; both may be unpacked.
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.names import escape_unprintable
from studio.data.files.source_files import CUT_OFF
from studio.data.images.decoding import check_size, read_bytes
from studio.data.sources.base import Source, SourceFile, SourceImage, SourceIssue, UnreadableFile

_MAX_IMAGES = 250_000
_MAX_UNPACKED = 256 << 20  # bytes
_GZIP = b"\x1f\x8b"
_BYTES, _OTHER_TYPES = 0x08, frozenset({0x09, 0x0B, 0x0C, 0x0D, 0x0E})  # data types of an IDX file
_BATCH = 256  # images
_FASHION = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


class IdxSource(Source):
    """Reads the images of IDX files as opaque sprites. Images of 't10k-images-idx3-ubyte' are the test set."""

    name = "idx"

    def claims(self, file: SourceFile) -> bool:
        return _has_images(file) or "idx1-ubyte" in _file_name(file)

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        if not _has_images(file):
            return  # the labels are read together with the images
        grey = _numbers(read_bytes(file), 3)
        labels = _labels(file, len(grey))
        digits = len(str(len(grey) - 1))
        for start in range(0, len(grey), _BATCH):
            batch = grey[start : start + _BATCH]
            rgba = np.full((*batch.shape, 4), 255, np.uint8)
            rgba[..., :3] = batch[..., None]
            for number, image in enumerate(rgba, start):
                yield SourceImage(image, f"{number:0{digits}}", label=labels[number] if labels else "")
        if file.is_of_test_set:
            yield SourceIssue("test set", "test set: not used for training")
        if not labels:
            yield SourceIssue("no classes", "no labels file found: import the folder with both files")

    def example(self, folder: Path) -> Path:
        grey = np.zeros((2, 8, 8), np.uint8)
        grey[0, 2:6, 1:7], grey[1, 1:7, 2:6] = 200, 90
        path = folder / "train-images-idx3-ubyte.gz"
        path.write_bytes(gzip.compress(struct.pack(">IIII", 0x803, *grey.shape) + grey.tobytes()))
        labels = struct.pack(">II", 0x801, len(grey)) + bytes([3, 7])
        (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        return path


def _file_name(file: SourceFile) -> str:
    return file.file_name.lower()


def _has_images(file: SourceFile) -> bool:
    return "idx3-ubyte" in _file_name(file)


def _labels(file: SourceFile, count: int) -> list[str]:
    """Return the class name of each of `count` images; [] without a labels file. Raises UnreadableFile."""
    stem = _file_name(file).replace("images", "labels").replace("idx3", "idx1").removesuffix(".gz")
    siblings = {name.lower(): name for name in file.siblings}
    name = siblings.get(stem) or siblings.get(f"{stem}.gz")
    if name is None:
        return []
    printable = escape_unprintable(name)
    try:
        labels = _numbers(read_bytes(file.sibling(name)), 1)
    except UnreadableFile as refused:
        raise UnreadableFile(refused.group, f"unusable labels in {printable}: {refused.reason}") from None
    if len(labels) != count:
        raise UnreadableFile("unreadable", f"{count:,} images, but {len(labels):,} labels in {printable}")
    words = _FASHION if _is_fashion(file) else ()
    names = [words[label] if label < len(words) else str(label) for label in range(256)]
    return [names[label] for label in labels.tolist()]


def _is_fashion(file: SourceFile) -> bool:
    """Return whether a file belongs to Fashion-MNIST, judged by the names of the file and its folders."""
    above = [part.lower() for part in reversed(file.path.parts) if "mnist" in part.lower()][:1]
    return any("fashion" in words for words in (f"{file.default_class}/{file.name}".lower(), *above))


def _numbers(data: bytes, axes: int) -> NDArray[np.uint8]:
    """Parse an IDX file, gzip-compressed or not: uint8 [count, height, width] for 3 `axes`, [count] for 1.

    Raises UnreadableFile unless the file has exactly the length in its header, which also limits the unpacked size.
    """
    if not data:
        raise UnreadableFile("unreadable", "empty: the file has no bytes")
    stream = gzip.GzipFile(fileobj=io.BytesIO(data)) if data.startswith(_GZIP) else io.BytesIO(data)
    try:
        shape = _shape(stream.read(4 + 4 * axes), axes)
        numbers = stream.read(math.prod(shape) + 1)
    except EOFError:
        raise UnreadableFile("unreadable", CUT_OFF) from None
    except (gzip.BadGzipFile, zlib.error):
        raise UnreadableFile("unreadable", "damaged: it can't be unpacked") from None
    if len(numbers) < math.prod(shape):
        raise UnreadableFile("unreadable", CUT_OFF)
    if len(numbers) > math.prod(shape):
        raise UnreadableFile("unreadable", "damaged: it is longer than its header says")
    return np.frombuffer(numbers, np.uint8).reshape(shape)


def _shape(header: bytes, axes: int) -> tuple[int, ...]:
    """Parse the array shape in an IDX header. Raises UnreadableFile for unsupported types and large arrays."""
    if len(header) < 4 + 4 * axes:
        raise UnreadableFile("unreadable", CUT_OFF)
    zero, kind, found, *sizes = struct.unpack(f">HBB{axes}I", header)
    if zero or found != axes or kind not in _OTHER_TYPES | {_BYTES}:
        raise UnreadableFile("unreadable", f"not an IDX file of {'images' if axes == 3 else 'labels'} despite the name")
    if kind != _BYTES:
        raise UnreadableFile("unsupported", "unsupported number type in an IDX file")
    if not all(sizes):
        raise UnreadableFile("unreadable", "an IDX file without data")
    if sizes[0] > _MAX_IMAGES:
        raise UnreadableFile("refused", f"too many: {sizes[0]:,} pictures, at most {_MAX_IMAGES:,} are read")
    if axes == 3:
        check_size(sizes[2], sizes[1])
    length = math.prod(sizes)
    if length > _MAX_UNPACKED:
        raise UnreadableFile("refused", f"too large: {length >> 20:,} MB, at most {_MAX_UNPACKED >> 20} are read")
    return tuple(sizes)
