"""A section that can be collapsed, and a flow layout."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QLayout, QLayoutItem, QToolButton, QWidget

from studio.app import theme
from studio.app.widgets import factory


class Collapsible(QWidget):
    """A heading with a chevron; a click shows or hides what is under it. In its place there can be a line about it."""

    toggled = Signal(bool)

    def __init__(self, text: str, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content = content
        self._about = factory.caption("")
        self._heading = QToolButton()
        self._heading.setText(text)
        self._heading.setCheckable(True)
        self._heading.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._heading.setToolTip(f"Show or hide: {text.lower()}.")
        self.setLayout(factory.column(self._heading, self._about, content))
        self._heading.toggled.connect(self._on_toggled)
        self._on_toggled(False)

    def is_open(self) -> bool:
        """Whether the content is shown."""
        return self._heading.isChecked()

    def heading(self) -> QWidget:
        """What is pressed to show or hide the content."""
        return self._heading

    def set_summary(self, text: str) -> None:
        """What to know of the content while it is hidden; nothing when empty."""
        self._about.setText(text)
        self._about.setVisible(bool(text) and not self.is_open())

    def set_open(self, opened: bool) -> None:
        """Show or hide the content."""
        self._heading.setChecked(opened)

    @Slot(bool)
    def _on_toggled(self, opened: bool) -> None:
        self._heading.setIcon(theme.icon("chevron-down" if opened else "chevron-right"))
        self._content.setVisible(opened)
        self._about.setVisible(not opened and bool(self._about.text()))
        self.toggled.emit(opened)


class FlowLayout(QLayout):
    """Widgets in rows, each as wide as it needs to be."""

    def __init__(self, across: int, down: int) -> None:
        super().__init__()
        self._across, self._down = across, down
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """Put an item at the end."""
        self._items.append(item)

    def count(self) -> int:
        """How many items there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """The item in that place; None beyond the end."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove the item in that place."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """It takes no more than it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Narrower is higher."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of all rows."""
        return self._arrange(QRect(0, 0, width, 0), apply=False)

    def setGeometry(self, rect: QRect) -> None:
        """Place everything."""
        super().setGeometry(rect)
        self._arrange(rect, apply=True)

    def sizeHint(self) -> QSize:
        """All in one row."""
        hints = [item.sizeHint() for item in self._shown()]
        width = sum(hint.width() + self._across for hint in hints)
        return QSize(max(0, width - self._across), max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        """The widest item alone in its row."""
        sizes = [item.minimumSize() for item in self._items]
        return QSize(
            max((size.width() for size in sizes), default=0), max((size.height() for size in sizes), default=0)
        )

    def _shown(self) -> list[QLayoutItem]:
        """The items that are not hidden."""
        return [item for item in self._items if not item.isEmpty()]

    def _arrange(self, rect: QRect, *, apply: bool) -> int:
        x, y, row = rect.x(), rect.y(), 0
        for item in self._shown():
            hint = item.sizeHint()
            if x > rect.x() and x + hint.width() > rect.right() + 1:
                x, y, row = rect.x(), y + row + self._down, 0
            if apply:
                item.setGeometry(QRect(x, y, hint.width(), hint.height()))
            x, row = x + hint.width() + self._across, max(row, hint.height())
        return y + row - rect.y()
