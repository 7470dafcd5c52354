"""Unicode normalisation (NFC) of names and typed paths."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path


def nfc(name: str) -> str:
    """Return `name` in Unicode's composed form (NFC).

    macOS and some archives store 'é' as two characters, 'e' and an accent, while keyboards type a single character.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def existing_path(text: str) -> Path:
    """Return the path that a user typed, in the Unicode form of the existing file.

    On Linux the composed and the decomposed form of a name are different files; copies from macOS may be decomposed.
    """
    forms = () if text.isascii() else (text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD")))
    return Path(next(filter(os.path.exists, forms), text))  # Path.exists raises OSError for long names
