"""Helpers for palette formats made of text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from studio.core.names import escape_unprintable
from studio.data.colour.palette import Palette
from studio.data.palettes.base import Colour, Unreadable

_BOM = b"\xef\xbb\xbf"
_MAGIC_BYTES = 256
_LONGEST_WORD = 24  # letters quoted in a message
_HEX = re.compile(r"#?([0-9a-fA-F]{6})([0-9a-fA-F]{2})?")


def first_bytes(data: bytes) -> bytes:
    """Return a file's first bytes without leading whitespace, to recognise the format."""
    return data.removeprefix(_BOM)[:_MAGIC_BYTES].lstrip()


def decode_text(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark, else Latin-1. Raises Unreadable for NUL bytes."""
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    before, nul, _ = text.partition("\0")
    if nul:
        raise Unreadable("not a text", f"line {len(_split(before))}")
    return text


def split_lines(data: bytes) -> list[tuple[str, str]]:
    """Return the non-blank lines, stripped, with positions: ('line 12', '255 0 0'). Raises Unreadable."""
    lines = enumerate(map(str.strip, _split(decode_text(data))), 1)
    return [(f"line {number}", line) for number, line in lines if line]


def parse_number(word: str, most: int, where: str) -> int:
    """Parse a whole number from 0 to `most`. Raises Unreadable."""
    if word.isascii() and word.isdecimal() and len(word) <= 9 and int(word) <= most:
        return int(word)
    raise Unreadable(f"{_quoted(word)} is not a number from 0 to {most}", where)


def parse_colour(words: Sequence[str], count: int, where: str) -> Colour:
    """Parse three or four numbers from 0 to 255 as a colour. Raises Unreadable."""
    values = [parse_number(word, 255, where) for word in words]
    if len(values) != count:
        raise Unreadable(f"expected {count} numbers from 0 to 255", where)
    return values[0], values[1], values[2], values[3] if count == 4 else 255


def parse_hex(word: str, where: str) -> Colour:
    """Parse 'be4a2f', '#be4a2f' or 'be4a2f80' as a colour. Raises Unreadable."""
    found = _HEX.fullmatch(word)
    if found is None:
        raise Unreadable(f"{_quoted(word)} is not a colour such as be4a2f", where)
    red, green, blue = bytes.fromhex(found[1])
    return red, green, blue, int(found[2] or "ff", 16)


def format_hex(palette: Palette) -> list[str]:
    """Format colours as 'be4a2f', or with alpha below 255 as 'be4a2f80'."""
    return [bytes(colour[: 3 if colour[3] == 255 else 4]).hex() for colour in palette.colours.tolist()]


def _split(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)


def _quoted(word: str) -> str:
    return f"'{escape_unprintable(word[:_LONGEST_WORD])}{'…' if len(word) > _LONGEST_WORD else ''}'"
