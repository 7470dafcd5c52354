"""Unicode normalisation (NFC) of names and typed paths, and names with unprintable characters escaped."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

# Characters that `escape_unprintable` escapes besides control characters: line breaks of Unicode, marks that reverse
# the writing direction and so can disguise a name, and invisible characters. Joiners stay: emoji and Persian need them.
_ESCAPED = frozenset({0xAD, 0x200B, 0x2028, 0x2029, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)})


def nfc(name: str) -> str:
    """Return `name` in Unicode's composed form (NFC).
    macOS and some archives store 'é' as two characters, 'e' and an accent; keyboards type one character.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def existing_path(text: str) -> Path:
    """Return the typed path in the Unicode form, NFC or NFD, of the existing file: on Linux the forms differ."""
    forms = () if text.isascii() else (text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD")))
    return Path(next(filter(os.path.exists, forms), text))  # Path.exists raises OSError for long names


def escape_unprintable(text: str) -> str:
    """Return `text` in composed Unicode with undecodable bytes, surrogates and control characters escaped."""
    text = nfc(text)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # an invalid UTF-8 byte in the form of os.fsdecode
        return f"\\x{code - 0xDC00:02x}"
    if code < 32 or 0x7F <= code < 0xA0:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF or code in _ESCAPED else character
