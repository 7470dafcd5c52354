"""Palettes from lospec.com's API: {"name": "Warm", "author": "...", "colors": ["be4a2f", ...]}."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from studio.data.colour.palette import Palette
from studio.data.palettes.base import NamedColour, PaletteFormat, Unreadable, palette_from
from studio.data.palettes.text import decode_text, first_bytes, format_hex, parse_hex


class LospecJson(PaletteFormat):
    """Lospec palette: a JSON object with a list of colours."""

    name = "lospec"
    title = "Lospec palette"
    suffixes = (".json",)

    def recognises(self, data: bytes) -> bool:
        return first_bytes(data).startswith(b"{")

    def read(self, data: bytes) -> Palette:
        try:
            content = json.loads(decode_text(data))
        except json.JSONDecodeError as error:
            raise Unreadable("invalid JSON", f"line {error.lineno}") from None
        except (ValueError, RecursionError):  # very long numbers, very deep nesting
            raise Unreadable("invalid JSON") from None
        colours = content.get("colors") if isinstance(content, dict) else None
        if not isinstance(colours, list):
            raise Unreadable("the list 'colors' is missing")
        name = content.get("name")
        return palette_from(_entries(colours), name if isinstance(name, str) else "")

    def write(self, palette: Palette) -> bytes:
        content = {"name": palette.name, "author": "", "colors": format_hex(palette)}
        return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def _entries(colours: list[Any]) -> Iterator[NamedColour]:
    for number, colour in enumerate(colours, 1):
        where = f"colour {number}"
        if not isinstance(colour, str):
            raise Unreadable("not a text such as 'be4a2f'", where)
        yield NamedColour(where, parse_hex(colour, where))
