"""A collapsible section, a flow layout, and buttons of a constant width."""

from __future__ import annotations

from functools import reduce

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QLayout, QLayoutItem, QPushButton, QWidget

from studio.app import theme
from studio.app.widgets import factory


class Collapsible(QWidget):
    """A heading, a button, that shows or hides content. A summary can be shown while collapsed."""

    toggled = Signal(bool)

    def __init__(self, text: str, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self._about = factory.caption("")
        self.heading = factory.toggle(text, f"Show or hide: {text.lower()}.")
        self.heading.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setLayout(factory.column(self.heading, self._about, content))
        self.heading.toggled.connect(self._on_toggled)
        self._on_toggled(False)

    def is_open(self) -> bool:
        return self.heading.isChecked()

    def set_summary(self, text: str) -> None:
        """Set the line shown while collapsed; '' for no line."""
        self._about.setText(text)
        self._about.setVisible(bool(text) and not self.is_open())

    def set_open(self, opened: bool) -> None:
        self.heading.setChecked(opened)

    @Slot(bool)
    def _on_toggled(self, opened: bool) -> None:
        self.heading.setIcon(theme.icon("chevron-down" if opened else "chevron-right"))
        self._content.setVisible(opened)
        self._about.setVisible(not opened and bool(self._about.text()))
        self.toggled.emit(opened)


class SteadyWidth(QObject):
    """Keeps a button as wide as its widest text, so that its neighbours don't move when the text changes."""

    def __init__(self, button: QPushButton, *texts: str) -> None:
        """Install the filter. texts: all texts of the button."""
        super().__init__(button)
        self._button, self._texts = button, texts
        button.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the minimum width once the stylesheet and the font are known."""
        if event.type() in (QEvent.Type.Polish, QEvent.Type.StyleChange, QEvent.Type.FontChange):
            width = self._button.fontMetrics().horizontalAdvance
            frame = self._button.sizeHint().width() - width(self._button.text().strip())
            self._button.setMinimumWidth(frame + max(map(width, self._texts)))
        return super().eventFilter(watched, event)


class FlowLayout(QLayout):
    """A layout that places widgets in rows and wraps at the right edge."""

    def __init__(self, across: int, down: int, *widgets: QWidget, shares: bool = False) -> None:
        """Create a layout. across, down: gaps between widgets and between rows, in logical pixels.

        shares: widgets that fit in one row share its width equally.
        """
        super().__init__()
        self._across, self._down, self._shares = across, down, shares
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), apply=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, apply=True)

    def sizeHint(self) -> QSize:
        """Return the size of all items in a single row."""
        hints = [item.sizeHint() for item in self._shown()]
        width = sum(hint.width() + self._across for hint in hints)
        return QSize(max(0, width - self._across), max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        """Return the size of the widest and the highest item."""
        return reduce(QSize.expandedTo, (item.minimumSize() for item in self._items), QSize(0, 0))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _arrange(self, rect: QRect, *, apply: bool) -> int:
        """Lay out the items, centred in their lines, and return the height. apply: whether to move the items."""
        x, y, height, line, shown = rect.x(), rect.y(), 0, list[tuple[QLayoutItem, QRect]](), self._shown()
        share = (rect.width() + self._across) // max(1, len(shown)) - self._across
        shares = self._shares and all(item.sizeHint().width() <= share for item in shown)
        lines = [line]
        for item in shown:
            hint = QSize(share, item.sizeHint().height()) if shares else item.sizeHint()
            if x > rect.x() and x + hint.width() > rect.right() + 1:
                x, y, height, line = rect.x(), y + height + self._down, 0, []
                lines.append(line)
            line.append((item, QRect(QPoint(x, y), hint)))
            x, height = x + hint.width() + self._across, max(height, hint.height())
        for line in lines if apply else ():
            highest = max((place.height() for _, place in line), default=0)
            for item, place in line:
                item.setGeometry(place.translated(0, (highest - place.height()) // 2))
        return y + height - rect.y()
