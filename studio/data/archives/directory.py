"""Read the central directory at the end of a zip archive: names, positions and sizes of its members."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from studio.data.files.source_files import MAX_FILES, ArchiveEntry, UnreadableFile

_MAX_BYTES = 256 << 20  # of a directory, which is read at once
_RECORD = struct.Struct("<4s4xHH4xIIIHHH4xII")
_END = struct.Struct("<4sH4xHII2x")
_END64 = struct.Struct("<4s12xI4x8xQQQ")
_LOCATOR_BYTES = 20
_MAX_TAIL = _END64.size + _LOCATOR_BYTES + _END.size + 0xFFFF  # with the longest possible comment
_IN_EXTRA = 0xFFFFFFFF  # zip64: the number needs 64 bits and is in an extra field
_DAMAGED = "damaged: the archive's list of files can't be read"
_BREAKS_OFF = "damaged: the archive's list of files breaks off"


class DirectoryRecord(NamedTuple):
    """A member of a zip archive as listed in the central directory, unchecked."""

    name: bytes  # undecoded
    flags: int  # general-purpose bits of the zip format
    mode: int  # st_mode, 0 if not given
    entry: ArchiveEntry


class _Directory(NamedTuple):
    """Position of the central directory in a zip file."""

    start: int  # bytes
    length: int  # bytes
    members: int  # number of entries
    shift: int  # bytes before the archive, as in a self-extracting file


def read_directory(stream: BinaryIO, size: int) -> Iterator[DirectoryRecord]:
    """Yield every member of the archive in `stream`, a file of `size` bytes, in directory order.

    Raises UnreadableFile without a directory. For a damaged directory, yields the intact members first, then raises.
    """
    directory = _directory(stream, size)
    stream.seek(directory.start)
    data = stream.read(directory.length)
    position = count = 0
    while position < len(data):
        if len(data) - position < _RECORD.size:
            raise UnreadableFile("unreadable", _BREAKS_OFF)
        (mark, flags, method, crc, packed_size, unpacked_size, name_length, extra_length, comment_length,
         attributes, offset) = _RECORD.unpack_from(data, position)  # fmt: skip
        extra_start = position + _RECORD.size + name_length
        position = extra_start + extra_length + comment_length
        if mark != b"PK\1\2" or position > len(data):
            raise UnreadableFile("unreadable", _BREAKS_OFF)
        if _IN_EXTRA in (packed_size, unpacked_size, offset):
            extra = data[extra_start : extra_start + extra_length]
            unpacked_size, packed_size, offset = _widened((unpacked_size, packed_size, offset), extra)
        entry = ArchiveEntry(min(offset + directory.shift, size), packed_size, unpacked_size, method, crc)
        count += 1
        if count > MAX_FILES:
            raise UnreadableFile("refused", f"an archive of more than {MAX_FILES:,} files: the rest is left out")
        yield DirectoryRecord(data[extra_start - name_length : extra_start], flags, attributes >> 16, entry)
    if count % 0x10000 != directory.members % 0x10000:  # some programs write only 16 bits
        raise UnreadableFile("unreadable", _BREAKS_OFF)


def _directory(stream: BinaryIO, size: int) -> _Directory:
    """Find the central directory of a zip archive with the record at the end of the file. Raises UnreadableFile."""
    tail_start = max(0, size - _MAX_TAIL)
    stream.seek(0)
    beginning = stream.read(4)
    stream.seek(tail_start)
    tail = stream.read(_MAX_TAIL)
    position = tail.rfind(b"PK\5\6")
    if not tail:
        raise UnreadableFile("unreadable", "empty: the file has no bytes")
    if position < 0 and beginning[:2] != b"PK":
        raise UnreadableFile("unreadable", "not a zip archive")
    if position < 0 or len(tail) - position < _END.size:
        raise UnreadableFile("unreadable", "cut off: the archive ends without a list of files")
    _, disk, count, length, offset = _END.unpack_from(tail, position)
    locator = position - _LOCATOR_BYTES
    end64 = locator - _END64.size
    if end64 >= 0 and tail.startswith(b"PK\6\6", end64) and tail.startswith(b"PK\6\7", locator):
        position = end64
        _, disk, count, length, offset = _END64.unpack_from(tail, position)
    if disk:
        raise UnreadableFile("unsupported", "part of a split archive: unpack the archive first")
    if length > _MAX_BYTES:
        reason = f"a list of files larger than {_MAX_BYTES >> 20} MB: unpack the archive first"
        raise UnreadableFile("refused", reason)
    start = tail_start + position - length
    if start < offset:
        raise UnreadableFile("unreadable", _DAMAGED)
    return _Directory(start, length, count, start - offset)


def _widened(numbers: tuple[int, int, int], extra: bytes) -> tuple[int, int, int]:
    """Replace each 0xFFFFFFFF in (unpacked size, packed size, offset) by its 64-bit value in the zip64 extra field."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(length, len(extra) - position) // 8}Q", extra, position))
            first, second, third = (next(wide, number) if number == _IN_EXTRA else number for number in numbers)
            return first, second, third
        position += length
    return numbers
