"""The empty page: a place to drop sprites, and other ways on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class DropZone(QWidget):
    """paths_dropped: list[str] of local paths. recent_chosen: one of the recent folders."""

    paths_dropped = Signal(list)
    browse_requested = Signal()
    demo_requested = Signal()
    recent_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_recent(self, paths: Sequence[str]) -> None:
        """Offer these folders, newest first."""
