"""Files made wrong by seeded chance, in the ways in which disks, programs and people make them wrong."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable

import numpy as np

from tests.data.making import MAGIC

_EXTREMES = (0, 1, -1, 2**31 - 1, 2**32 - 1)
_NUMERALS = (
    b"0", b"-1", b"2147483647", b"4294967296", b"1e999", b"NaN", b"256", b"9" * 5000,
    b"null", b"true", b'"x"', b"[]", b"{}",  # values of another type
)  # fmt: skip
_LONGEST_RANGE = 64  # bytes


def mutated(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Return `data` with one, two or four changes. other: data to splice in."""
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        change = _CHANGES[int(rng.integers(len(_CHANGES)))]
        data = change(data, rng)
    if rng.random() < 0.1:
        data = data[: _place(data, rng)] + other[_place(other, rng) :]
    return data


def with_right_checksums(data: bytes) -> bytes:
    """Return a PNG file with corrected chunk checksums, so that the decoder reaches the damage."""
    parts, start = [data[: len(MAGIC)]], len(MAGIC)
    while start + 12 <= len(data):
        length = int.from_bytes(data[start : start + 4], "big")
        end = start + 8 + length
        if end + 4 > len(data):
            break
        parts.append(data[start:end] + struct.pack(">I", zlib.crc32(data[start + 4 : end])))
        start = end + 4
    return b"".join([*parts, data[start:]])


def _place(data: bytes, rng: np.random.Generator) -> int:
    """Anywhere, but half of the time near the beginning or the end, where formats keep what they say of themselves."""
    length = len(data) + 1
    near = int(rng.integers(min(length, 128)))
    anywhere = int(rng.integers(length))
    return int(rng.choice([near, length - 1 - near, anywhere, anywhere]))


def _range(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = _place(data, rng)
    return start, min(start + int(rng.integers(1, _LONGEST_RANGE)), len(data))


def _flipped(data: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return (
        data[:start] + bytes(byte ^ 1 << int(rng.integers(8)) for byte in data[start : start + 1]) + data[start + 1 :]
    )


def _cut_off(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: _place(data, rng)]


def _inserted(data: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return data[:start] + rng.bytes(int(rng.integers(1, _LONGEST_RANGE))) + data[start:]


def _doubled(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _range(data, rng)
    return data[:end] + data[start:]


def _removed(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _range(data, rng)
    return data[:start] + data[end:]


def _swapped(data: bytes, rng: np.random.Generator) -> bytes:
    """Exchange two ranges of bytes."""
    (start, end), (later, last) = sorted([_range(data, rng), _range(data, rng)])
    later = max(later, end)
    return data[:start] + data[later:last] + data[end:later] + data[start:end] + data[max(last, later) :]


def _set_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Set a 16- or 32-bit number, in either byte order, to a value that breaks programs."""
    start, size = _place(data, rng), int(rng.choice([2, 4]))
    value = _EXTREMES[int(rng.integers(len(_EXTREMES)))] % (1 << 8 * size)
    return data[:start] + value.to_bytes(size, "little" if rng.random() < 0.5 else "big") + data[start + size :]


def _set_numeral(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a number written in digits, or a random byte without digits."""
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return _flipped(data, rng)
    numeral = found[int(rng.integers(len(found)))]
    return data[: numeral.start()] + _NUMERALS[int(rng.integers(len(_NUMERALS)))] + data[numeral.end() :]


_CHANGES: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    _flipped, _flipped, _flipped, _cut_off, _inserted, _doubled, _removed, _set_number, _set_number, _set_number,
    _set_numeral, _swapped,
)  # fmt: skip
