"""The directory at the end of a zip archive: which members there are and where, read without unpacking any."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from studio.data.files.source_files import MAX_FILES, ArchiveEntry, UnreadableFile

_LARGEST_DIRECTORY = 256 << 20  # bytes; it is read in one piece
_RECORD = struct.Struct("<4s4xHH4xIIIHHH4xII")
_END = struct.Struct("<4sH4xHII2x")
_END64 = struct.Struct("<4s12xI4x8xQQQ")
_LOCATOR_BYTES = 20
_LONGEST_END = _END64.size + _LOCATOR_BYTES + _END.size + 0xFFFF  # with the archive's comment after it
_TOO_LARGE = 0xFFFFFFFF  # stands where a number needs 64 bits, which then are in an extra field
_DAMAGED = "damaged: the list of the files in the archive can't be read"
_BREAKS_OFF = "damaged: the list of the files in the archive breaks off"


class DirectoryRecord(NamedTuple):
    """One line of the directory. Like all in it, it may lie.

    name: in no known encoding. flags: bits as zip defines them. mode: as in os.stat, 0 where it is not given.
    """

    name: bytes
    flags: int
    mode: int
    entry: ArchiveEntry


class _Directory(NamedTuple):
    """start, length: its place in the file, in bytes. members: how many. shift: bytes put before the archive."""

    start: int
    length: int
    members: int
    shift: int


def read_directory(stream: BinaryIO, size: int) -> Iterator[DirectoryRecord]:
    """Every member of the archive in `stream`, which is `size` bytes long, in the directory's order.

    Raises Refused: at once when there is no directory, after the last good record where it breaks off.
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
        if _TOO_LARGE in (packed_size, unpacked_size, offset):
            extra = data[extra_start : extra_start + extra_length]
            unpacked_size, packed_size, offset = _widened((unpacked_size, packed_size, offset), extra)
        entry = ArchiveEntry(min(offset + directory.shift, size), packed_size, unpacked_size, method, crc)
        count += 1
        if count > MAX_FILES:
            raise UnreadableFile("refused", f"an archive of more than {MAX_FILES:,} files: no more are looked at")
        yield DirectoryRecord(data[extra_start - name_length : extra_start], flags, attributes >> 16, entry)
    if count % 0x10000 != directory.members % 0x10000:  # some programs write no more of it
        raise UnreadableFile("unreadable", _BREAKS_OFF)


def _directory(stream: BinaryIO, size: int) -> _Directory:
    """Where the directory is, from the file's last bytes. Raises Refused."""
    tail_start = max(0, size - _LONGEST_END)
    stream.seek(0)
    beginning = stream.read(4)
    stream.seek(tail_start)
    tail = stream.read(_LONGEST_END)
    place = tail.rfind(b"PK\5\6")
    if not tail:
        raise UnreadableFile("unreadable", "empty: the file has no bytes")
    if place < 0 and beginning[:2] != b"PK":
        raise UnreadableFile("unreadable", "not a zip archive: its contents are something else")
    if place < 0 or len(tail) - place < _END.size:
        raise UnreadableFile("unreadable", "cut off: the list of files at the end of the archive is missing")
    _, disk, count, length, offset = _END.unpack_from(tail, place)
    place64 = place - _LOCATOR_BYTES - _END64.size
    if place64 >= 0 and tail.startswith(b"PK\6\6", place64) and tail.startswith(b"PK\6\7", place - _LOCATOR_BYTES):
        place = place64
        _, disk, count, length, offset = _END64.unpack_from(tail, place)
    if disk:
        raise UnreadableFile("unsupported", "one part of a split archive, which is not read: unpack it first")
    if length > _LARGEST_DIRECTORY:
        raise UnreadableFile("refused", f"the list of its files is larger than {_LARGEST_DIRECTORY >> 20} MB")
    start = tail_start + place - length
    if start < offset:
        raise UnreadableFile("unreadable", _DAMAGED)
    return _Directory(start, length, count, start - offset)


def _widened(numbers: tuple[int, int, int], extra: bytes) -> tuple[int, int, int]:
    """Unpacked size, packed size and offset, those that need 64 bits taken from the extra field made for them."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(length, len(extra) - position) // 8}Q", extra, position))
            first, second, third = (next(wide, number) if number == _TOO_LARGE else number for number in numbers)
            return first, second, third
        position += length
    return numbers
