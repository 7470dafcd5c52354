"""Sprites in one safetensors file, with texts beside the arrays and a checksum.

Run folders and the import cache use this format. A finished file is never modified, so large files are memory-mapped
and hard-linked instead of copied. Texts are short lines of JSON, so parsing never blocks other threads for long.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.core.files import atomic_path, read_into
from studio.core.generators import run_to_end
from studio.data.attributes.attributes import Attributes
from studio.data.files import scratch
from studio.data.sets.layout import NO_SETS, SetLayout
from studio.data.sprites import MappedFile, Sprites

_FORMAT = "sprites 3"
_LONGEST_HEADER = 100_000_000  # bytes; limit of safetensors
_LARGEST_SIDE = 4096
_SLICE = 32 << 20  # bytes written at a time
_BYTES = {"U8": 1, "I16": 2, "F32": 4, "I64": 8}
_A_LINE = 4096  # list entries per line
_EXTRA, _SETS, _ATTRIBUTES = "extra.", "sets.", "attributes."


class DamagedFile(Exception):  # noqa: N818
    """Raised for a damaged packed file. The message is the reason."""


@dataclass(frozen=True, eq=False)
class PackedTexts:
    """The texts in a packed file."""

    title: str
    class_names: list[str]
    names: list[str]
    target_names: list[str]
    sets: dict[str, Any]  # SetLayout.to_json; empty without sets
    attributes: dict[str, Any]  # Attributes.to_json; empty without attributes
    extra: dict[str, Any]  # values saved with the sprites


def save(sprites: Sprites, path: Path, extra: Mapping[str, Any] | None = None) -> None:
    """Save `sprites` and `extra`, any JSON values, to `path` through a temporary file. Raises OSError."""
    for _ in save_in_slices(sprites, path, extra):
        pass


def save_in_slices(sprites: Sprites, path: Path, extra: Mapping[str, Any] | None = None) -> Generator[int, None, None]:
    """Write like `save`; yields the number of sprites hashed, then written. Closing it cancels. Raises OSError."""
    if sprites.rgba.nbytes > scratch.MEMORY_LIMIT:
        scratch.check_free_space(scratch.writable_folder(path.parent), sprites.rgba.nbytes)
    yield from sprites.compute_fingerprint()
    texts = b"".join(_lines_of(sprites, extra or {}))
    columns = {"labels": "I64", "groups": "I64", "is_test": "U8", "targets": "F32", "rgba": "U8"}
    arrays = {name: (kind, (array := getattr(sprites, name)).shape, array.nbytes) for name, kind in columns.items()}
    table = np.ascontiguousarray(sprites.attributes.table)  # int16 [N, A]
    if sprites.attributes:
        arrays["attributes"] = ("I16", table.shape, table.nbytes)
    arrays["texts"] = ("U8", (len(texts),), len(texts))
    about = {"format": _FORMAT, "fingerprint": sprites.fingerprint, "groups": _hash_of_split(sprites)}
    about["sha256"] = _checksum(sprites, texts)
    if sprites.sets:
        about["sets"] = sprites.sets.digest
    step = max(1, _SLICE // max(1, sprites.rgba[:1].nbytes))
    with atomic_path(path) as temporary:
        with temporary.open("wb") as stream:
            stream.write(_header_bytes(about, arrays))
            for array in (sprites.labels, sprites.groups, sprites.is_test, sprites.targets):
                stream.write(np.ascontiguousarray(array).tobytes())
            for start in range(0, len(sprites), step):
                stream.write(np.ascontiguousarray(sprites.rgba[start : start + step]).data)
                yield min(start + step, len(sprites))
            stream.write(table.tobytes())
            stream.write(texts)
        yield len(sprites)


def link_or_save(sprites: Sprites, path: Path) -> Generator[int, None, None]:
    """Store sprites at `path`: hard-link the packed file from which they are memory-mapped, or else save a copy.

    A hard link takes no space. Sprites on another drive, or changed since the file was written, are copied. Yields
    counts of saved sprites.
    """
    if sprites.stored is not None:
        with contextlib.suppress(OSError, DamagedFile):
            with sprites.stored.path.open("rb") as stream:
                about = _header(_contents(stream))[1]
            own = (sprites.fingerprint, _hash_of_split(sprites), sprites.sets.digest)
            if (about.get("fingerprint"), about.get("groups"), about.get("sets", "")) == own:
                os.link(sprites.stored.path, path)
                return
    yield from save_in_slices(sprites, path)


def map_saved(sprites: Sprites, path: Path) -> Sprites:
    """Return sprites just saved to `path`; large sets are memory-mapped from the file. Raises OSError."""
    if sprites.rgba.nbytes <= scratch.MEMORY_LIMIT:
        return sprites
    with path.open("rb") as stream:
        data = _contents(stream)
    header, _, body = _header(data)
    rgba, start = _array(data, body, header.get("rgba"), "U8", 4)
    return sprites.with_pixels(rgba, MappedFile(path, start))


def load(path: Path) -> Sprites:
    """Load sprites from a packed file. Raises BadInputError for a missing or damaged file."""
    return run_to_end(load_in_slices(path))[0]


def load_in_slices(path: Path) -> Generator[int, None, tuple[Sprites, dict[str, Any]]]:
    """Load sprites, and the extra values saved with them, from a packed file.

    Yields the number of checked sprites. Large files are memory-mapped. Raises BadInputError for a missing or damaged
    file.
    """
    try:
        with path.open("rb", buffering=0) as stream:
            data = _contents(stream)
    except OSError as error:
        title = f"Can't read sprites from {path.name!r}: {error.strerror or error}."
        raise BadInputError(title, "Import the sprites again from their folder.") from None
    try:
        return (yield from _parse(data, path))
    except DamagedFile as damage:
        title = f"{path.name!r} is damaged: {damage}."
        raise BadInputError(title, "Import the sprites again from their folder.") from None


def _contents(stream: BinaryIO) -> NDArray[np.uint8]:
    """Return the whole file as uint8 [bytes]: memory-mapped if large, else in memory shared with the sprites."""
    size = os.fstat(stream.fileno()).st_size
    if size > scratch.MEMORY_LIMIT:
        return scratch.map_bytes(stream, 0, size)
    data = np.empty(size, np.uint8)
    return data[: read_into(stream, 0, data.data)]


def _parse(data: NDArray[np.uint8], path: Path) -> Generator[int, None, tuple[Sprites, dict[str, Any]]]:
    header, about, body = _header(data)
    labels = _array(data, body, header.get("labels"), "I64", 1)[0].view(np.int64).copy()
    rgba, start = _array(data, body, header.get("rgba"), "U8", 4)
    size = rgba.shape[1]
    if not 0 < size <= _LARGEST_SIDE or rgba.shape != (len(labels), size, size, 4):
        raise DamagedFile("the pixels have a wrong shape")
    lines = _array(data, body, header.get("texts"), "U8", 1)[0].tobytes()
    texts = _texts_in(lines)
    groups = _array(data, body, header.get("groups"), "I64", 1)[0].view(np.int64).copy()
    is_test = np.zeros(len(labels), np.bool_)
    if "is_test" in header:
        is_test = _array(data, body, header["is_test"], "U8", 1)[0] != 0
    targets = np.zeros((len(labels), 0), np.float32)
    if texts.target_names:
        targets = _array(data, body, header.get("targets"), "F32", 2)[0].view(np.float32).copy()
    stored = MappedFile(path, start) if len(data) > scratch.MEMORY_LIMIT else None
    sprites = _sprites_from(rgba, labels, targets, groups, is_test, texts, stored)
    if texts.attributes:
        table = _array(data, body, header.get("attributes"), "I16", 2)[0].view(np.int16).copy()
        sprites = replace(sprites, attributes=_attributes_from(texts, table, len(sprites)))
    yield from sprites.compute_fingerprint()
    if about.get("sha256") != _checksum(sprites, lines):
        raise DamagedFile("wrong checksum")
    return sprites, texts.extra


def _sprites_from(
    rgba: NDArray[np.uint8], labels: NDArray[np.int64], targets: NDArray[np.float32], groups: NDArray[np.int64],
    is_test: NDArray[np.bool_], texts: PackedTexts, stored: MappedFile | None,
) -> Sprites:  # fmt: skip
    in_range = not len(labels) or 0 <= labels.min() <= labels.max() < len(texts.class_names)
    if len(texts.names) != len(labels) or not in_range:
        raise DamagedFile("names, classes and sprites don't match")
    if len(groups) != len(labels) or len(is_test) != len(labels):
        raise DamagedFile("groups and sprites don't match")
    if targets.shape != (len(labels), len(texts.target_names)):
        raise DamagedFile("numbers and sprites don't match")
    names, class_names, target_names = tuple(texts.names), tuple(texts.class_names), tuple(texts.target_names)
    about = (rgba, labels, class_names, names, texts.title, targets, target_names, stored)
    try:
        sets = NO_SETS if not texts.sets else SetLayout.from_json(texts.sets, len(labels))
    except ValueError as error:
        raise DamagedFile(str(error)) from None
    return Sprites(*about, groups=groups, is_test=is_test, sets=sets)


def _attributes_from(texts: PackedTexts, table: NDArray[np.int16], count: int) -> Attributes:
    try:
        if len(table) != count:
            raise ValueError("attributes and sprites don't match")
        return Attributes.from_json(texts.attributes, table)
    except ValueError as error:
        raise DamagedFile(str(error)) from None


def _header_bytes(about: Mapping[str, str], arrays: Mapping[str, tuple[str, tuple[int, ...], int]]) -> bytes:
    """Return a safetensors header, padded so that the arrays begin at a multiple of eight bytes."""
    header: dict[str, Any] = {"__metadata__": about}
    start = 0
    for name, (kind, shape, length) in arrays.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": (start, start + length)}
        start += length
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _header(data: NDArray[np.uint8]) -> tuple[dict[str, Any], dict[str, str], int]:
    """Return a safetensors header, whose first eight bytes hold its length, its metadata, and the arrays' offset."""
    length = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or length > min(_LONGEST_HEADER, len(data) - 8):
        raise DamagedFile("cut off")
    try:
        header = json.loads(data[8 : 8 + length].tobytes())
    except (ValueError, RecursionError):
        raise DamagedFile("unreadable header") from None
    about = header.get("__metadata__") if isinstance(header, dict) else None
    are_texts = isinstance(about, dict) and all(isinstance(text, str) for text in about.values())
    if not isinstance(about, dict) or not are_texts or "format" not in about:
        raise DamagedFile("no sprites in the file")
    if about["format"] != _FORMAT:
        raise DamagedFile("written by another version of the studio")
    return header, about, 8 + length


def _array(data: NDArray[np.uint8], body: int, about: Any, kind: str, dimensions: int) -> tuple[NDArray[np.uint8], int]:
    """Return a uint8 view of an array in a packed file, and the array's offset in the file.

    The view has the array's shape, with the last axis in bytes. Raises DamagedFile if dtype, shape and offsets in the
    header don't match each other and the file.
    """
    about = about if isinstance(about, dict) else {}
    shape, offsets = about.get("shape"), about.get("data_offsets")
    if about.get("dtype") != kind or not _whole_numbers(shape, dimensions) or not _whole_numbers(offsets, 2):
        raise DamagedFile("unexpected arrays")
    sizes = [*shape[:-1], shape[-1] * _BYTES[kind]]
    if offsets[1] - offsets[0] != math.prod(sizes) or body + offsets[1] > len(data):
        raise DamagedFile("contents and header don't match")
    return data[body + offsets[0] : body + offsets[1]].reshape(sizes), body + offsets[0]


def _whole_numbers(values: object, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(type(n) is int and 0 <= n < 2**40 for n in values)


def _checksum(sprites: Sprites, texts: bytes) -> str:
    """Hash all texts, the groups and, through the fingerprint, all pixels, labels and targets."""
    digest = hashlib.sha256(sprites.fingerprint.encode())
    digest.update(texts)
    digest.update(_hash_of_split(sprites).encode())
    return digest.hexdigest()


def _hash_of_split(sprites: Sprites) -> str:
    """Hash the groups and the test set, which determine the validation set."""
    digest = hashlib.sha256(np.ascontiguousarray(sprites.groups).data)
    if sprites.is_test.any():  # older files have no test set
        digest.update(np.ascontiguousarray(sprites.is_test).data)
    return digest.hexdigest()


def _lines_of(sprites: Sprites, extra: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield all texts for a packed file as JSON lines [key, value]; a long list takes several lines."""
    texts: dict[str, Any] = {"title": sprites.title, "class_names": sprites.class_names, "names": sprites.names}
    texts["target_names"] = sprites.target_names
    if sprites.attributes:
        texts |= {_ATTRIBUTES + name: value for name, value in sprites.attributes.to_json().items()}
    if sprites.sets:
        texts |= {_SETS + name: value for name, value in sprites.sets.to_json().items()}
    for key, value in {**texts, **{_EXTRA + name: value for name, value in extra.items()}}.items():
        starts = range(0, max(1, len(value)), _A_LINE) if isinstance(value, list | tuple) else ()
        for piece in [value[start : start + _A_LINE] for start in starts] or (value,):
            yield json.dumps([key, piece]).encode() + b"\n"


def _texts_in(lines: bytes) -> PackedTexts:
    """Parse the text lines of a packed file. Raises DamagedFile."""
    found: dict[str, Any] = {}
    try:
        for line in lines.split(b"\n")[:-1]:
            key, value = json.loads(line)
            if isinstance(value, list) and isinstance(found.setdefault(key, []), list):
                found[key] += value
            else:
                found[key] = value
    except (ValueError, TypeError, RecursionError):
        raise DamagedFile("unreadable names") from None
    extra, sets, attributes = (
        {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
        for prefix in (_EXTRA, _SETS, _ATTRIBUTES)
    )
    title, *lists = (found.get(key) for key in ("title", "class_names", "names", "target_names"))
    if not (isinstance(title, str) and all(map(_all_texts, lists))):
        raise DamagedFile("names are not texts")
    named = (found["class_names"], found["names"], found["target_names"])
    return PackedTexts(title, *named, sets, attributes, extra)


def _all_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
