"""The classes of the open sprites, with their counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from studio.app import parts
from studio.core import wording
from studio.data.sprites import Sprites


class ClassList(QTreeWidget):
    """chosen: (indices of the sprites of the chosen class, or None for all)."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._labels: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        parts.describe(self, "Classes", "Choose a class to see its sprites; a model learns to draw each class.")
        self.currentItemChanged.connect(self._choose)

    def show_classes(self, sprites: Sprites) -> None:
        """List the classes of these sprites, all of them chosen."""
        self._labels = sprites.labels
        self.clear()
        everything = self._add("All classes", len(sprites), -1)
        for label, (name, count) in enumerate(zip(sprites.class_names, sprites.class_counts(), strict=True)):
            self._add(name, int(count), label)
        self.setCurrentItem(everything)

    def _add(self, name: str, count: int, label: int) -> QTreeWidgetItem:
        item = QTreeWidgetItem([name, wording.number(count)])
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setData(0, Qt.ItemDataRole.UserRole, label)
        item.setToolTip(0, name)
        self.addTopLevelItem(item)
        return item

    @Slot(QTreeWidgetItem, QTreeWidgetItem)
    def _choose(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            label = item.data(0, Qt.ItemDataRole.UserRole)
            self.chosen.emit(None if label < 0 else np.flatnonzero(self._labels == label))
