"""Unicode normalisation of names."""

from __future__ import annotations

import unicodedata


def composed(name: str) -> str:
    """Return `name` in Unicode's composed form (NFC).

    macOS and some archives store 'é' as two characters, 'e' and an accent, while keyboards type a single character.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)
