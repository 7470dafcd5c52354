"""What the palette files made of text have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence

from studio.core.names import escape_unprintable
from studio.data.colour.palette import Palette
from studio.data.palettes.base import Colour, Unreadable

_BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 256  # bytes
_LONGEST_WORD = 24  # letters of a file that a message repeats
_HEX = re.compile(r"#?([0-9a-fA-F]{6})([0-9a-fA-F]{2})?")


def first_bytes(data: bytes) -> bytes:
    """The first few bytes that are not blank, to tell a format by."""
    return data.removeprefix(_BOM)[:_LOOKED_AT].lstrip()


def decode_text(data: bytes) -> str:
    """UTF-8 with or without its mark, or else Latin-1, as old programs write it. Raises Unreadable for NUL bytes."""
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    before, nul, _ = text.partition("\0")
    if nul:
        raise Unreadable("holds bytes that are no text", f"line {len(_split(before))}")
    return text


def split_lines(data: bytes) -> list[tuple[str, str]]:
    """The lines that are not blank, stripped, each after its place: ('line 12', '255 0 0'). Raises Unreadable."""
    lines = enumerate(map(str.strip, _split(decode_text(data))), 1)
    return [(f"line {number}", line) for number, line in lines if line]


def parse_number(word: str, most: int, where: str) -> int:
    """Raises Unreadable for anything but a number from 0 to `most`."""
    if word.isascii() and word.isdecimal() and len(word) <= 9 and int(word) <= most:
        return int(word)
    raise Unreadable(f"{_quoted(word)} is not a number from 0 to {most}", where)


def parse_colour(words: Sequence[str], count: int, where: str) -> Colour:
    """Three or four numbers from 0 to 255 as a colour. Raises Unreadable."""
    values = [parse_number(word, 255, where) for word in words]
    if len(values) != count:
        raise Unreadable(f"{count} numbers from 0 to 255 are expected", where)
    return values[0], values[1], values[2], values[3] if count == 4 else 255


def parse_hex(word: str, where: str) -> Colour:
    """'be4a2f', '#be4a2f' or 'be4a2f80' as a colour. Raises Unreadable."""
    found = _HEX.fullmatch(word)
    if found is None:
        raise Unreadable(f"{_quoted(word)} is not a colour such as be4a2f", where)
    red, green, blue = bytes.fromhex(found[1])
    return red, green, blue, int(found[2] or "ff", 16)


def format_hex(palette: Palette) -> list[str]:
    """Each colour as 'be4a2f', or as 'be4a2f80' where it can be seen through."""
    return [bytes(colour[: 3 if colour[3] == 255 else 4]).hex() for colour in palette.colours.tolist()]


def _split(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)


def _quoted(word: str) -> str:
    return f"'{escape_unprintable(word[:_LONGEST_WORD])}{'…' if len(word) > _LONGEST_WORD else ''}'"
