"""Short captions for the narrow places below sprites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

# The folders of the classes in a caption: '✗ orcs/Mage (is orcs/Grunt)', 'orcs/Mage, looks like elves/Mage'.
_FOLDERS = re.compile(r"(^|✗ |\(is |; |, looks like )(?:(?!, looks like )[^✗;()])*/")


def short_captions(captions: Sequence[str]) -> list[str]:
    """Return the captions without folders: 'Mage' for 'orcs/Mage'. Captions that would be equal keep their folders."""
    short = {caption: _FOLDERS.sub(r"\1", caption) for caption in set(captions)}
    counts = Counter(short.values())
    return [short[caption] if counts[short[caption]] == 1 else caption for caption in captions]


def fitting_caption(caption: str, short: str, metrics: QFontMetrics, width: int) -> str:
    """Return the caption if it fits into `width` logical pixels, else its short form, elided if need be.

    Elides in the middle: a short form with folders differs from another caption by its start.
    """
    fits = metrics.horizontalAdvance(caption) <= width
    return caption if fits else metrics.elidedText(short, Qt.TextElideMode.ElideMiddle, width)
