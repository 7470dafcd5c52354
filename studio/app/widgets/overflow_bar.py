"""A single row of buttons, with texts if the row has room. A menu at the end holds the buttons that don't fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from studio.app.widgets import factory

_GAP, _GROUP_GAP = 4, 16  # logical pixels between buttons and between groups
_ICON, _TEXT = Qt.ToolButtonStyle.ToolButtonIconOnly, Qt.ToolButtonStyle.ToolButtonTextBesideIcon


class OverflowBar(QWidget):
    """A row of tool buttons in groups. The row never wraps: buttons that don't fit move to a menu, from the right.

    A group's buttons show their texts beside the icons if the row has room; earlier groups come first. The bar decides
    which buttons are visible; call `set_offered` instead of `setVisible`.
    """

    def __init__(self, *groups: Sequence[QToolButton]) -> None:
        super().__init__()
        self._groups = groups
        self._withdrawn: set[QToolButton] = set()
        self._in_menu: list[QToolButton] = []
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)  # tool tips say why an entry is disabled
        for _, button in self._buttons():
            button.setParent(self)
        self.more = factory.tool_button("more", "More actions", "Show the actions that don't fit into the row.")
        self.more.setParent(self)
        self.more.setMenu(self._menu)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._menu.aboutToShow.connect(self._fill_menu)
        self._arrange()

    def set_offered(self, button: QToolButton, is_offered: bool) -> None:
        """Offer a button in the row or in the menu, or remove the button from both."""
        if is_offered != (button not in self._withdrawn):
            (self._withdrawn.discard if is_offered else self._withdrawn.add)(button)
            self.updateGeometry()
            self._arrange()

    def sizeHint(self) -> QSize:
        """Return the size for every offered button with text."""
        return QSize(self._full_width([_TEXT] * len(self._groups)), self._height())

    def minimumSizeHint(self) -> QSize:
        """Return the size for the menu button alone."""
        return QSize(self.more.sizeHint().width(), self._height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def event(self, event: QEvent) -> bool:
        """Arrange the buttons again when a button changes its size."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def _buttons(self) -> Iterator[tuple[int, QToolButton]]:
        """Yield the buttons, with the gap before each button."""
        for group in self._groups:
            for index, button in enumerate(group):
                yield _GAP if index else _GROUP_GAP, button

    def _full_width(self, styles: Sequence[Qt.ToolButtonStyle]) -> int:
        """Return the width of the offered buttons with gaps. styles: by group."""
        offered = [[button for button in group if button not in self._withdrawn] for group in self._groups]
        shown = [
            [_width(button, style) for button in group] for group, style in zip(offered, styles, strict=True) if group
        ]
        gaps = sum(_GAP * (len(widths) - 1) for widths in shown) + _GROUP_GAP * max(0, len(shown) - 1)
        return sum(map(sum, shown)) + gaps

    def _styles(self, room: int) -> list[Qt.ToolButtonStyle]:
        """Return the styles by group: texts beside icons if they fit into `room`, from the left."""
        styles = [_ICON] * len(self._groups)
        for number in range(len(styles)):
            styles[number] = _TEXT
            if self._full_width(styles) > room:
                styles[number] = _ICON
        return styles

    def _height(self) -> int:
        return max(button.sizeHint().height() for button in (self.more, *(button for _, button in self._buttons())))

    def _arrange(self) -> None:
        """Place the buttons from the left, and hide the buttons that don't fit."""
        room, more = self.width(), self.more.sizeHint()
        styles = self._styles(room)
        for group, style in zip(self._groups, styles, strict=True):
            for button in group:
                if button.text() and button.toolButtonStyle() != style:
                    button.setToolButtonStyle(style)
        overflows = self._full_width(styles) > room
        end = room - more.width() - _GAP if overflows else room
        x, self._in_menu, lost_focus = 0, list[QToolButton](), False
        for gap, button in self._buttons():
            size, left = button.sizeHint(), x + gap if x else 0
            is_offered = button not in self._withdrawn
            fits = is_offered and not self._in_menu and left + size.width() <= end
            if fits:
                button.setGeometry(QRect(left, (self.height() - size.height()) // 2, size.width(), size.height()))
                x = left + size.width()
            elif is_offered:
                self._in_menu.append(button)
            lost_focus = lost_focus or (button.hasFocus() and not fits)
            button.setVisible(fits)
        self.more.setGeometry(QRect(room - more.width(), (self.height() - more.height()) // 2, *more.toTuple()))
        self.more.setVisible(overflows)
        if lost_focus and overflows:
            self.more.setFocus()

    @Slot()
    def _fill_menu(self) -> None:
        self._menu.clear()
        for button in self._in_menu:
            submenu: QMenu | None = button.menu()  # the stubs omit None
            if submenu is not None:
                submenu.setTitle(button.accessibleName())
                submenu.setIcon(button.icon())
                action = self._menu.addMenu(submenu)
            else:
                action = self._menu.addAction(button.icon(), button.accessibleName())
                action.triggered.connect(button.click)
            action.setEnabled(button.isEnabled())
            action.setToolTip(button.toolTip())


def _width(button: QToolButton, style: Qt.ToolButtonStyle) -> int:
    """Return a button's width in a style. Changing the button's style to measure it would start another layout."""
    if not button.text() or button.toolButtonStyle() == style:
        return button.sizeHint().width()
    metrics = button.fontMetrics()
    text = metrics.size(Qt.TextFlag.TextShowMnemonic, button.text()).width() + 2 * metrics.horizontalAdvance(" ")
    text += 4  # as QToolButton.sizeHint
    return button.sizeHint().width() + (text if style == _TEXT else -text)
