"""`Sprites` in one file: safetensors, with the texts in its metadata and a checksum over all of it.

A run folder keeps its data like this, and so does the cache of imports.
"""

from __future__ import annotations

import hashlib
import json
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

_FORMAT = "sprites 1"
_LONGEST_HEADER = 100_000_000  # bytes; safetensors' own bound
_LARGEST_SIDE = 4096
_TEXTS = frozenset({"format", "title", "class_names", "names", "extra"})


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
        data = path.read_bytes()
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


def _parse(data: bytes) -> tuple[Sprites, dict[str, Any]]:
    texts = _metadata(data)
    try:
        tensors = safetensors.numpy.load(data)
        title, class_names, names, extra = (
            json.loads(texts[key]) for key in ("title", "class_names", "names", "extra")
        )
    except (safetensors.SafetensorError, ValueError, RecursionError, KeyError, TypeError):
        raise _Damaged("its contents don't match its header") from None
    rgba, labels = _checked(tensors)
    if not (isinstance(title, str) and _all_texts(class_names) and _all_texts(names) and isinstance(extra, dict)):
        raise _Damaged("its names are not texts")
    if len(names) != len(labels) or (len(labels) and not 0 <= labels.min() <= labels.max() < len(class_names)):
        raise _Damaged("its names, classes and sprites don't match each other")
    sprites = Sprites(rgba, labels, tuple(class_names), tuple(names), title)
    if texts.get("sha256") != _checksum({key: texts[key] for key in _TEXTS}, sprites):
        raise _Damaged("its checksum is wrong")
    return sprites, extra


def _metadata(data: bytes) -> dict[str, str]:
    """The texts in the header of a safetensors file, whose length is its first eight bytes."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_LONGEST_HEADER, len(data) - 8):
        raise _Damaged("it is cut off")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        raise _Damaged("its header can't be read") from None
    texts = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(texts, dict) or not _all_texts(list(texts.values())) or not texts.keys() >= _TEXTS:
        raise _Damaged("it holds no sprites")
    if texts["format"] != _FORMAT:
        raise _Damaged("it was written by another version of the studio")
    return texts


def _checked(tensors: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Copies of the two arrays, so that they can be written to (torch warns of arrays that can't)."""
    if tensors.keys() != {"rgba", "labels"}:
        raise _Damaged("it holds other arrays than sprites")
    rgba, labels = tensors["rgba"], tensors["labels"]
    square = rgba.ndim == 4 and rgba.shape[1] == rgba.shape[2] and rgba.shape[3] == 4 and rgba.dtype == np.uint8
    if not square or not 0 < rgba.shape[1] <= _LARGEST_SIDE:
        raise _Damaged("its pixels have the wrong shape")
    if labels.shape != rgba.shape[:1] or labels.dtype != np.int64:
        raise _Damaged("its labels have the wrong shape")
    return rgba.copy(), labels.copy()


def _all_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _checksum(texts: Mapping[str, str], sprites: Sprites) -> str:
    """Over every text and, through the fingerprint, every pixel and label."""
    digest = hashlib.sha256(sprites.fingerprint.encode())
    digest.update(json.dumps(sorted(texts.items())).encode())
    return digest.hexdigest()
