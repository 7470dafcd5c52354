"""`Sprites` in one file: safetensors, with the texts in its metadata and a checksum over all of it.

A run folder keeps its data like this, and so does the cache of imports.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.core.files import atomic_path
from studio.data.sprites import Sprites

_FORMAT, _FORMAT_WITH_TARGETS = "sprites 1", "sprites 2"
_LONGEST_HEADER = 100_000_000  # bytes; safetensors' own bound
_LARGEST_SIDE = 4096
_JSON_TEXTS = ("title", "class_names", "names", "extra")
_TEXTS = frozenset({"format", *_JSON_TEXTS})
_ITEM_BYTES = {"U8": 1, "F32": 4, "I64": 8}


def save(sprites: Sprites, path: Path, extra: Mapping[str, Any] | None = None) -> None:
    """Write `sprites` to `path` through a temporary file, with `extra` (anything JSON) beside them. Raises OSError."""
    texts = {
        "format": _FORMAT,
        "title": json.dumps(sprites.title),
        "class_names": json.dumps(sprites.class_names),
        "names": json.dumps(sprites.names),
        "extra": json.dumps(extra or {}),
    }
    arrays: dict[str, NDArray[Any]] = {"rgba": sprites.rgba, "labels": sprites.labels}
    if sprites.target_names:  # without, it is what earlier versions read
        texts |= {"format": _FORMAT_WITH_TARGETS, "target_names": json.dumps(sprites.target_names)}
        arrays["targets"] = sprites.targets
    tensors = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    with atomic_path(path) as temporary:
        try:
            safetensors.numpy.save_file(tensors, temporary, {**texts, "sha256": _checksum(texts, sprites)})
        except safetensors.SafetensorError as error:  # its word for a full disk, too
            raise OSError(str(error)) from error


def load(path: Path) -> Sprites:
    """Read what `save` wrote. Raises BadInputError when the file is missing, damaged or lies about itself."""
    return load_with_extra(path)[0]


def load_with_extra(path: Path) -> tuple[Sprites, dict[str, Any]]:
    """The sprites and the `extra` that was saved with them. Raises BadInputError as `load` does."""
    try:
        data = _read(path)
    except OSError as error:
        title = f"The sprites in {path.name!r} can't be read: {error.strerror or error}."
        raise BadInputError(title, "Import them again from their folder.") from None
    try:
        return _parse(data)
    except _Damaged as damage:
        title = f"{path.name!r} is damaged: {damage}."
        raise BadInputError(title, "Import the sprites again from their folder.") from None


class _Damaged(Exception):  # noqa: N818
    """Why the bytes are not what `save` wrote."""


def _read(path: Path) -> NDArray[np.uint8]:
    """The whole file as uint8 [bytes], in memory that the sprites can be a view of: 100,000 of them are not copied."""
    with path.open("rb", buffering=0) as stream:
        data = np.empty(os.fstat(stream.fileno()).st_size, np.uint8)
        filled = 0
        while filled < len(data) and (count := stream.readinto(data[filled:].data)):
            filled += count
    return data[:filled]


def _parse(data: NDArray[np.uint8]) -> tuple[Sprites, dict[str, Any]]:
    header, texts, body = _header(data)
    labels = _array(data, body, header.get("labels"), "I64", 1).view(np.int64).copy()
    rgba = _array(data, body, header.get("rgba"), "U8", 4)
    size = rgba.shape[1]
    if not 0 < size <= _LARGEST_SIDE or rgba.shape != (len(labels), size, size, 4):
        raise _Damaged("its pixels have the wrong shape")
    try:
        title, class_names, names, extra = (json.loads(texts[key]) for key in _JSON_TEXTS)
        target_names = json.loads(texts.get("target_names", "[]"))
    except (ValueError, RecursionError):
        raise _Damaged("its names can't be read") from None
    all_texts = all(map(_all_texts, (class_names, names, target_names)))
    if not (isinstance(title, str) and all_texts and isinstance(extra, dict)):
        raise _Damaged("its names are not texts")
    if len(names) != len(labels) or (len(labels) and not 0 <= labels.min() <= labels.max() < len(class_names)):
        raise _Damaged("its names, classes and sprites don't match each other")
    targets = np.zeros((len(labels), 0), np.float32)
    if target_names:
        targets = _array(data, body, header.get("targets"), "F32", 2).view(np.float32).copy()
    if targets.shape != (len(labels), len(target_names)):
        raise _Damaged("its numbers don't match its sprites")
    sprites = Sprites(rgba, labels, tuple(class_names), tuple(names), title, targets, tuple(target_names))
    summed = {key: text for key, text in texts.items() if key in _TEXTS or key == "target_names"}
    if texts.get("sha256") != _checksum(summed, sprites):
        raise _Damaged("its checksum is wrong")
    return sprites, extra


def _header(data: NDArray[np.uint8]) -> tuple[dict[str, Any], dict[str, str], int]:
    """The header of a safetensors file, the texts in it, and where the arrays begin. Its first eight bytes count it."""
    length = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or length > min(_LONGEST_HEADER, len(data) - 8):
        raise _Damaged("it is cut off")
    try:
        header = json.loads(data[8 : 8 + length].tobytes())
    except (ValueError, RecursionError):
        raise _Damaged("its header can't be read") from None
    texts = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(texts, dict) or not _all_texts(list(texts.values())) or not texts.keys() >= _TEXTS:
        raise _Damaged("it holds no sprites")
    if texts["format"] not in (_FORMAT, _FORMAT_WITH_TARGETS):
        raise _Damaged("it was written by another version of the studio")
    return header, texts, 8 + length


def _array(data: NDArray[np.uint8], body: int, about: Any, kind: str, dimensions: int) -> NDArray[np.uint8]:
    """The bytes of one array as uint8 in its shape, the last axis in bytes: a view that can be written.

    Nothing that the header says of it is believed: kind, shape and place must agree with each other and with the file.
    """
    about = about if isinstance(about, dict) else {}
    shape, place = about.get("shape"), about.get("data_offsets")
    if about.get("dtype") != kind or not _whole_numbers(shape, dimensions) or not _whole_numbers(place, 2):
        raise _Damaged("its arrays are not those of sprites")
    sizes = [*shape[:-1], shape[-1] * _ITEM_BYTES[kind]]
    if place[1] - place[0] != math.prod(sizes) or body + place[1] > len(data):
        raise _Damaged("its contents don't match its header")
    return data[body + place[0] : body + place[1]].reshape(sizes)


def _whole_numbers(values: object, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(type(n) is int and 0 <= n < 2**40 for n in values)


def _all_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _checksum(texts: Mapping[str, str], sprites: Sprites) -> str:
    """Over every text and, through the fingerprint, every pixel, label and target."""
    digest = hashlib.sha256(sprites.fingerprint.encode())
    digest.update(json.dumps(sorted(texts.items())).encode())
    return digest.hexdigest()
