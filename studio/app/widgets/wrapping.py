"""Widgets that count wrapped content in a minimum height. Qt's scroll areas and splitters ignore height-for-width."""

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QScrollArea, QWidget


class ScrollArea(QScrollArea):
    """A scroll area whose content keeps the height of its wrapped text."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the minimum height when the content's layout changes."""
        if watched is self.widget() and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    @Slot(int, int)
    def take_tab_if_scrollable(self, first: int, last: int) -> None:
        """Let Tab stop here if the scroll bar has a range."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if last > first else Qt.FocusPolicy.ClickFocus)

    def _fit(self) -> None:
        content = self.widget()
        if content is not None:
            _set_minimum_height(content, self.viewport().width())


class WrappingPanel(QWidget):
    """A panel that keeps the height of its wrapped content in a splitter."""

    def __init__(self, layout: QLayout | None = None) -> None:
        super().__init__()
        if layout is not None:
            self.setLayout(layout)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        _set_minimum_height(self, self.width())

    def event(self, event: QEvent) -> bool:
        """Update the minimum height when the layout changes."""
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            _set_minimum_height(self, self.width())
        return done


def _set_minimum_height(content: QWidget, width: int) -> None:
    """Set a widget's minimum height to the height that its layout needs at this width, in logical pixels."""
    layout = content.layout()
    if layout is not None:
        wraps = layout.hasHeightForWidth()  # False once the wrapping text is hidden
        content.setMinimumHeight(layout.minimumHeightForWidth(width) if wraps else 0)
