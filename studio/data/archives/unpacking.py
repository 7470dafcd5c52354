"""Unpack one member of a zip archive up to a given number of bytes, since sizes in the archive may be wrong."""

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
_LZMA_MEMORY = 128 << 20  # bytes; a stream can demand 4 GB before its first byte
_DAMAGED = "damaged: it can't be unpacked"
_ERRORS = (zlib.error, lzma.LZMAError, OSError, ValueError, MemoryError)


class _Unpacker(Protocol):
    """The interface shared by the decompressors of zlib, bz2 and lzma."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpack_member(stream: BinaryIO, entry: ArchiveEntry, most: int) -> bytes:
    """Return the first `most` unpacked bytes of a member of the zip archive in `stream`.

    Verifies the checksum if the whole member is unpacked. Raises OSError, and UnreadableFile for a damaged member.
    """
    stream.seek(entry.offset)
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise UnreadableFile("unreadable", CUT_OFF)
    mark, name_length, extra_length = _HEADER.unpack(header)
    if mark != b"PK\3\4":
        raise UnreadableFile("unreadable", "damaged: its position in the archive is wrong")
    stream.seek(entry.offset + _HEADER.size + name_length + extra_length)
    wanted = min(most, entry.size)
    stored = entry.method == _STORED
    data = stream.read(min(wanted, entry.packed_size)) if stored else _unpacked(stream, entry, wanted)
    if len(data) < wanted:
        raise UnreadableFile("unreadable", CUT_OFF)
    if wanted == entry.size and zlib.crc32(data) != entry.crc:
        raise UnreadableFile("unreadable", "damaged: its checksum is wrong")
    return data


def _unpacked(stream: BinaryIO, entry: ArchiveEntry, wanted: int) -> bytes:
    """Decompress up to `wanted` bytes of the member at the current position; fewer if the packed data end earlier."""
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
    """Return a decompressor for a zip compression method. beginning: the first 9 packed bytes for LZMA, else unused."""
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS)
    if method == _BZIP2:
        return bz2.BZ2Decompressor()
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_ALONE, _LZMA_MEMORY)
    try:
        unpacker.decompress(beginning[4:] + b"\xff" * 8)  # unknown length: the caller limits the length
    except _ERRORS:
        raise UnreadableFile("unreadable", _DAMAGED) from None
    return unpacker
