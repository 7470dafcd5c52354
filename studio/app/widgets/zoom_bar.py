"""Two buttons and a number: how large a sheet is shown."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from studio.app import parts
from studio.app.widgets.sheet_area import ZOOMS, SheetArea


class ZoomBar(QWidget):
    """The zoom of one sheet."""

    def __init__(self, area: SheetArea) -> None:
        super().__init__()
        self._area = area
        self.smaller = parts.tool("zoom-out", "Smaller", "Show the sheet smaller. (-)")
        self.larger = parts.tool("zoom-in", "Larger", "Show the sheet larger. (+)")
        self._words = parts.text("", "muted", wrap=False)
        self.setLayout(parts.row(self.smaller, self._words, self.larger, spacing=4))
        self.smaller.clicked.connect(self._shrink)
        self.larger.clicked.connect(self._grow)
        area.zoom_changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _shrink(self) -> None:
        self._area.step_zoom(-1)

    @Slot()
    def _grow(self) -> None:
        self._area.step_zoom(1)

    @Slot()
    def _refresh(self) -> None:
        zoom = self._area.zoom()
        self._words.setText(f"{zoom}×")
        self.smaller.setEnabled(zoom > ZOOMS[0])
        self.larger.setEnabled(zoom < ZOOMS[-1])
