"""Short captions for the narrow places below sprites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

_FOLDERS = re.compile(r"(^|✗ |\(is |; )[^✗;()]*/")  # of the classes in a caption: '✗ orcs/Mage (is orcs/Grunt)'


def short_captions(captions: Sequence[str]) -> list[str]:
    """Return the captions without folders: 'Mage' for 'orcs/Mage'. Captions that would be equal keep their folders."""
    short = {caption: _FOLDERS.sub(r"\1", caption) for caption in set(captions)}
    counts = Counter(short.values())
    return [short[caption] if counts[short[caption]] == 1 else caption for caption in captions]


def fitting_caption(caption: str, short: str, metrics: QFontMetrics, width: int) -> str:
    """Return the caption if it fits into `width` logical pixels, else its short form, elided if need be."""
    return caption if metrics.horizontalAdvance(caption) <= width else _elided(short, metrics, width)


def _elided(caption: str, metrics: QFontMetrics, width: int) -> str:
    """Elide the start of a path, or the middle of a name."""
    elide = Qt.TextElideMode.ElideLeft if "/" in caption else Qt.TextElideMode.ElideMiddle
    return metrics.elidedText(caption, elide, width)
