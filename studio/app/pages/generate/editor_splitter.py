"""The splitter of the Generate page between an editor and the results."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from studio.app.state.settings import Settings
from studio.app.widgets import factory

_SIDE_BY_SIDE = 760  # smallest width in logical pixels for results beside the editor
_SPLITS = {  # settings key and sizes of editor and results
    Qt.Orientation.Vertical: ("generate_editor", (500, 360)),
    Qt.Orientation.Horizontal: ("generate_editor_side", (548, 252)),
}
_EDITOR_HEIGHT = 440  # logical pixels for an editor above the results, if the window has the height
_STRETCHES = (2, 1)  # stretch of the editor and of the results, side by side


class EditorSplitter(QSplitter):
    """The editor with the results below, or at its side in a wide window. area: scrolls both in a small window."""

    def __init__(self, settings: Settings, editing: QWidget, results: QWidget) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._settings, self._editing, self._results = settings, editing, results
        key, sizes = _SPLITS[self.orientation()]
        factory.fill_splitter(self, (editing, results), sizes, settings.layout(key))
        self.area = factory.scroll_area(self)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)  # the editor is wide

    @Slot()
    def show_editor(self) -> None:
        """Scroll to the editor."""
        self.area.verticalScrollBar().setValue(0)

    @Slot()
    def show_results(self) -> None:
        """Scroll to the top of the results, where their buttons are."""
        self.area.verticalScrollBar().setValue(self._results.y())

    def save_state(self) -> None:
        """Store the sizes of the parts for the current orientation."""
        self._settings.set_layout(_SPLITS[self.orientation()][0], self.saveState())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_wide = self.width() >= _SIDE_BY_SIDE
        orientation = Qt.Orientation.Horizontal if is_wide else Qt.Orientation.Vertical
        height = 0 if is_wide else min(self.area.viewport().height(), _EDITOR_HEIGHT)
        self._editing.setMinimumHeight(height)
        if orientation != self.orientation():
            self.save_state()
            self.setOrientation(orientation)
            key, sizes = _SPLITS[orientation]
            for index, factor in enumerate(_STRETCHES):
                self.setStretchFactor(index, factor)
            self.setSizes(sizes)
            self.restoreState(self._settings.layout(key))
