"""A large view of the sprites in a grid, one at a time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from PySide6.QtCore import QSize, Qt, SignalInstance, Slot
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtWidgets import QToolButton, QWidget

from studio.app import keys
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.sprites.zoom_canvas import ZoomCanvas
from studio.core.arrays import Rgba
from studio.core.formatting import number

_SHARE = 0.9  # of the window's size
_SMALLEST = QSize(480, 400)


class ShownSprite(NamedTuple):
    """A sprite for the large view. rgba: uint8 [S, S, 4]. about: more words, such as the class; '' for none."""

    rgba: Rgba
    name: str
    about: str


class SpriteSource(Protocol):
    """The grid behind the large view: rows of sprites and a current row."""

    menu: ContextMenu

    @property
    def selection_changed(self) -> SignalInstance:
        """Emitted when sprites, order or current row have changed."""

    def visible_count(self) -> int:
        """Return the number of rows."""

    def current_row(self) -> int:
        """Return the current row; -1 for none."""

    def go_to_row(self, row: int) -> None:
        """Make this row current, and scroll to it."""

    def shown_sprite(self, row: int) -> ShownSprite:
        """Return the sprite of a row."""


class LargeView(Dialog):
    """A dialog with the current sprite of a grid at a whole-number zoom. The arrow keys go to the next sprite.

    The context menu and the keys of the grid work here too, on the shown sprite.
    """

    def __init__(self, source: SpriteSource, parent: QWidget, title: str = "Sprite") -> None:
        """Create a view that shows the current sprite of `source`. parent: a widget in the window."""
        super().__init__(title, parent)
        self._source = source
        self.canvas = _Canvas()
        self.name = factory.ElidedLabel("heading", Qt.TextElideMode.ElideMiddle)
        self.about = factory.ElidedLabel("muted")
        button = factory.tool_button
        self.previous = button("chevron-left", "Previous", "Show the previous sprite. (Left)", self.go_back)
        self.next = button("chevron-right", "Next", "Show the next sprite. (Right)", self.go_on)
        smaller = button("zoom-out", "Zoom out", "Zoom out. (-)", self.canvas.zoom_out)
        larger = button("zoom-in", "Zoom in", "Zoom in. (+)", self.canvas.zoom_in)
        fit = button("fit", "Fit", "Fit the sprite into the view. (0)", self.canvas.fit)
        self.zoom = factory.text("", "muted", wrap=False)
        self.zoom.setMinimumWidth(self.fontMetrics().horizontalAdvance("00,000 %"))
        self.zoom.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        close = factory.button("Close", "Close the large view. (Esc)", slot=self.reject)
        self.buttons = [_ActionButton(action) for action in source.menu.in_large_view if action.isVisible()]
        foot = factory.row(self.previous, self.next, *self.buttons, 1, self.zoom, smaller, larger, fit, close)
        texts = factory.column(self.name, self.about, spacing=0)
        self.setLayout(factory.column(texts, self.canvas, foot, margin=2 * factory.GRID, grows=1))
        self._add_keys()
        window = parent.window()
        self.resize((window.size() * _SHARE).expandedTo(_SMALLEST))
        self.canvas.setFocus()
        self.canvas.zoom_changed.connect(self._refresh_zoom)
        source.selection_changed.connect(self._refresh)
        source.menu.left.connect(self.reject)
        self._refresh()

    def _add_keys(self) -> None:
        for of, slot in (
            (("Left", "Up", "PgUp"), self.go_back),
            (("Right", "Down", "PgDown"), self.go_on),
            (("Home",), self.go_to_first),
            (("End",), self.go_to_last),
            (("+", "=", "Ctrl++", "Ctrl+="), self.canvas.zoom_in),
            (("-", "Ctrl+-"), self.canvas.zoom_out),
            (("0", "Ctrl+0"), self.canvas.fit),
            (("Shift+F10",), self.open_menu),
        ):
            for key in of:
                keys.fixed_shortcut(key, self, slot)
        self.addActions([action for action in self._source.menu.actions() if not action.shortcut().isEmpty()])

    @Slot()
    def go_on(self) -> None:
        self._go(self._source.current_row() + 1)

    @Slot()
    def go_back(self) -> None:
        self._go(self._source.current_row() - 1)

    @Slot()
    def go_to_first(self) -> None:
        self._go(0)

    @Slot()
    def go_to_last(self) -> None:
        self._go(self._source.visible_count() - 1)

    def _go(self, row: int) -> None:
        if 0 <= row < self._source.visible_count():
            self._source.go_to_row(row)

    @Slot()
    def open_menu(self) -> None:
        """Open the grid's context menu over the sprite."""
        self._source.menu.open_at(self.canvas.mapToGlobal(self.canvas.rect().center()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._source.menu.open_at(event.globalPos())

    @Slot()
    def _refresh(self) -> None:
        """Show the current sprite; keep the shown one while none is current. Close without sprites."""
        row, count = self._source.current_row(), self._source.visible_count()
        if not count:
            self.reject()
        if not 0 <= row < count:
            return
        shown = self._source.shown_sprite(row)
        size = f"{shown.rgba.shape[1]} × {shown.rgba.shape[0]} pixels"
        self.name.show_text(shown.name)
        parts = (shown.about, size, f"{number(row + 1)} of {number(count)}" if count > 1 else "")
        self.about.show_text(" · ".join(part for part in parts if part))
        self.canvas.setAccessibleDescription(f"{shown.name}, {size}")
        self.canvas.set_sprite(shown.rgba)
        for button in (self.previous, self.next):
            button.setVisible(count > 1)
        factory.set_enabled(self.previous, "" if row else "This is the first sprite.")
        factory.set_enabled(self.next, "" if row < count - 1 else "This is the last sprite.")
        self._refresh_zoom()

    @Slot()
    def _refresh_zoom(self) -> None:
        self.zoom.setText(f"{round(100 * self.canvas.zoom()):,} %")


class _ActionButton(QToolButton):
    """A button with a text that triggers a menu's action, and is enabled while the action is."""

    def __init__(self, action: QAction) -> None:
        super().__init__()
        self._action = action
        self.setText(action.text())
        self.setAccessibleName(action.text())
        self.setIcon(action.icon())
        self.setIconSize(QSize(18, 18))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self.setEnabled(self._action.isEnabled())
        self.setToolTip(self._action.toolTip())


class _Canvas(ZoomCanvas):
    """The sprite of a large view; the left and the middle button move it. A large picture is shrunk to fit."""

    pan_buttons = Qt.MouseButton.LeftButton | Qt.MouseButton.MiddleButton
    shrinks = True

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        factory.set_name_and_tip(self, "Sprite", "Scroll to zoom, drag to move.")
