"""Split a GIF into encoded frames; frames.py decodes and composes them.

Pillow composes GIF frames too, but a frame without a disposal gets the disposal of the frame before, and areas that
viewers clear are filled with the background colour.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.animation import Disposal, EncodedFrame, display_ms

_SCREEN_BYTES = 13  # magic, width, height, flags, background, aspect
# 4 is not in the standard: old encoders write 4 instead of 3, and viewers accept it.
_DISPOSALS = {2: Disposal.CLEAR, 3: Disposal.RESTORE, 4: Disposal.RESTORE}


def split_frames(data: bytes) -> Iterator[EncodedFrame]:
    """Yield all frames in order; the first may enlarge the screen. Raises UnreadableFile for truncation and damage."""
    if len(data) < _SCREEN_BYTES:
        raise UnreadableFile("unreadable", CUT_OFF)
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    palette = _palette(data, _SCREEN_BYTES, flags)
    offset, control, screen, first = _SCREEN_BYTES + len(palette), b"", (width, height), True
    while data[offset : offset + 1] not in (b";", b""):
        if data[offset] == 0x21:  # an extension; 0xF9 describes the next frame
            end = _end_of_blocks(data, offset + 2)
            control = data[offset + 3 : end - 1] if data[offset + 1] == 0xF9 else control
            offset = end
        elif data[offset] == 0x2C:
            frame, offset = _frame(data, offset, palette, control, screen, grows=first)
            yield frame
            screen, control, first = frame.screen, b"", False
        elif data[offset] == 0:
            offset += 1  # some encoders end their blocks twice
        else:
            raise UnreadableFile("unreadable", "damaged: not a valid GIF block")


def _frame(
    data: bytes, offset: int, palette: bytes, control: bytes, screen: tuple[int, int], *, grows: bool
) -> tuple[EncodedFrame, int]:
    """Parse the frame at `offset`; return the frame and the offset of its end."""
    if offset + 10 > len(data):
        raise UnreadableFile("unreadable", CUT_OFF)
    left, top, width, height, flags = struct.unpack_from("<HHHHB", data, offset + 1)
    own = _palette(data, offset + 10, flags)
    start = offset + 10 + len(own)
    end = _end_of_blocks(data, start + 1)  # skip the initial code size
    drawing, ticks, clear = struct.unpack_from("<BHB", control) if len(control) >= 4 else (0, 0, 0)
    colours = own or palette
    palette_flags = 0x80 | (len(colours) // 6).bit_length() - 1 if colours else 0
    header = struct.pack("<6sHHBBB", b"GIF89a", width, height, palette_flags, 0, 0)
    extension = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, drawing & 1, 0, clear, 0)
    description = struct.pack("<BHHHHB", 0x2C, 0, 0, width, height, flags & 0x40)  # keep the interlaced flag
    alone = b"".join((header, colours, extension, description, data[start:end], b";"))
    if grows:
        screen = (max(screen[0], left + width), max(screen[1], top + height))
    disposal = _DISPOSALS.get(drawing >> 2 & 7, Disposal.KEEP)
    return EncodedFrame(alone, left, top, width, height, screen, True, disposal, display_ms(10 * ticks)), end


def _palette(data: bytes, offset: int, flags: int) -> bytes:
    return data[offset : offset + (6 << (flags & 7))] if flags & 0x80 else b""


def _end_of_blocks(data: bytes, offset: int) -> int:
    """Return the offset after the data blocks at `offset`. A block begins with its length; length 0 ends the blocks."""
    while offset < len(data):
        length = data[offset]
        offset += length + 1
        if not length:
            return offset
    raise UnreadableFile("unreadable", CUT_OFF)
