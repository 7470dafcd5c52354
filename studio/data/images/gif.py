"""Splits a GIF into its frames without decoding any; frames.py decodes them and lays them over one another.

Pillow does all of it at once, but gives a frame without a disposal that of the one before, and fills with the
background colour what every viewer clears.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.animation import Disposal, EncodedFrame, display_ms

_SCREEN_BYTES = 13  # magic, width, height, flags, background, aspect
# 4 is not in the format, but old encoders write it for 3 and viewers take it so.
_DISPOSALS = {2: Disposal.CLEAR, 3: Disposal.RESTORE, 4: Disposal.RESTORE}


def split_frames(data: bytes) -> Iterator[EncodedFrame]:
    """The frames in order, however many. Raises Refused where the file is cut off or damaged.

    The screen is the one that the file names, or the first frame where that is larger.
    """
    if len(data) < _SCREEN_BYTES:
        raise UnreadableFile("unreadable", CUT_OFF)
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    palette = _palette(data, _SCREEN_BYTES, flags)
    place, control, screen, first = _SCREEN_BYTES + len(palette), b"", (width, height), True
    while data[place : place + 1] not in (b";", b""):
        if data[place] == 0x21:  # an extension; 0xF9 tells how to draw the next frame
            end = _end_of_blocks(data, place + 2)
            control = data[place + 3 : end - 1] if data[place + 1] == 0xF9 else control
            place = end
        elif data[place] == 0x2C:
            frame, place = _frame(data, place, palette, control, screen, grows=first)
            yield frame
            screen, control, first = frame.screen, b"", False
        elif data[place] == 0:
            place += 1  # encoders that end their blocks twice
        else:
            raise UnreadableFile("unreadable", "damaged: a part of it is not what a GIF picture is made of")


def _frame(
    data: bytes, place: int, palette: bytes, control: bytes, screen: tuple[int, int], *, grows: bool
) -> tuple[EncodedFrame, int]:
    """The frame that begins at `place`, and where it ends."""
    if place + 10 > len(data):
        raise UnreadableFile("unreadable", CUT_OFF)
    left, top, width, height, flags = struct.unpack_from("<HHHHB", data, place + 1)
    own = _palette(data, place + 10, flags)
    start = place + 10 + len(own)
    end = _end_of_blocks(data, start + 1)  # after the byte that says how wide the codes begin
    drawing, ticks, clear = struct.unpack_from("<BHB", control) if len(control) >= 4 else (0, 0, 0)
    colours = own or palette
    header = struct.pack("<6sHHBBB", b"GIF89a", width, height, _palette_flags(colours), 0, 0)
    extension = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, drawing & 1, 0, clear, 0)
    description = struct.pack("<BHHHHB", 0x2C, 0, 0, width, height, flags & 0x40)  # its rows may be interlaced
    alone = b"".join((header, colours, extension, description, data[start:end], b";"))
    if grows:
        screen = (max(screen[0], left + width), max(screen[1], top + height))
    disposal = _DISPOSALS.get(drawing >> 2 & 7, Disposal.KEEP)
    return EncodedFrame(alone, left, top, width, height, screen, True, disposal, display_ms(10 * ticks)), end


def _palette(data: bytes, place: int, flags: int) -> bytes:
    return data[place : place + (6 << (flags & 7))] if flags & 0x80 else b""


def _palette_flags(colours: bytes) -> int:
    return 0x80 | (len(colours) // 6).bit_length() - 1 if colours else 0


def _end_of_blocks(data: bytes, place: int) -> int:
    """Where the blocks that begin at `place` end: each tells its length, and the last one is empty."""
    while place < len(data):
        length = data[place]
        place += length + 1
        if not length:
            return place
    raise UnreadableFile("unreadable", CUT_OFF)
