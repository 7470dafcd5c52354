"""The bytes of one member of a zip archive, never more than were asked for, whatever the archive says or holds."""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from typing import BinaryIO, Protocol

from studio.data.files.source_files import CUT_OFF, ArchiveEntry, UnreadableFile

_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
READ_METHODS = frozenset({_STORED, _DEFLATED, _BZIP2, _LZMA})
_HEADER = struct.Struct("<4s22xHH")
_BLOCK = 64 << 10  # bytes
_LZMA_MEMORY = 128 << 20  # bytes; a stream may ask for 4 GB before its first byte
_DAMAGED = "damaged: it can't be unpacked"
_ERRORS = (zlib.error, lzma.LZMAError, OSError, ValueError, MemoryError)


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpack_member(stream: BinaryIO, entry: ArchiveEntry, most: int) -> bytes:
    """The member's bytes, or its first `most`, from the archive in `stream`.

    Its checksum is compared when all of it is read. Raises OSError, and Refused for anything wrong inside.
    """
    stream.seek(entry.offset)
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise UnreadableFile("unreadable", CUT_OFF)
    mark, name_length, extra_length = _HEADER.unpack(header)
    if mark != b"PK\3\4":
        raise UnreadableFile("unreadable", "damaged: it is not where the archive says")
    stream.seek(entry.offset + _HEADER.size + name_length + extra_length)
    wanted = min(most, entry.size)
    stored = entry.method == _STORED
    data = stream.read(min(wanted, entry.packed_size)) if stored else _unpacked(stream, entry, wanted)
    if len(data) < wanted:
        raise UnreadableFile("unreadable", CUT_OFF)
    if wanted == entry.size and zlib.crc32(data) != entry.crc:
        raise UnreadableFile("unreadable", "damaged: its checksum in the archive is another")
    return data


def _unpacked(stream: BinaryIO, entry: ArchiveEntry, wanted: int) -> bytes:
    """At most `wanted` bytes; fewer where the packed ones end before."""
    left, missing = entry.packed_size, wanted
    beginning = b""
    if entry.method == _LZMA:
        beginning = stream.read(min(9, left))
        left -= len(beginning)
    unpacker = _unpacker(entry.method, beginning)
    pieces = []
    while left > 0 and missing > 0 and not unpacker.eof:
        packed = stream.read(min(left, _BLOCK))
        if not packed:
            break
        left -= len(packed)
        try:
            pieces.append(unpacker.decompress(packed, missing))
        except _ERRORS:
            raise UnreadableFile("unreadable", _DAMAGED) from None
        missing -= len(pieces[-1])
    return b"".join(pieces)


def _unpacker(method: int, beginning: bytes) -> _Unpacker:
    """`beginning`: the first nine bytes of a member packed by LZMA: four of zip's own and five of settings."""
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS)
    if method == _BZIP2:
        return bz2.BZ2Decompressor()
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_ALONE, _LZMA_MEMORY)
    try:
        unpacker.decompress(beginning[4:] + b"\xff" * 8)  # of unknown length: no more than `wanted` is asked for anyway
    except _ERRORS:
        raise UnreadableFile("unreadable", _DAMAGED) from None
    return unpacker
