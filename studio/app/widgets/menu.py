"""Context menus, which open by right click, the Menu key and Shift+F10."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from studio.app import keys, theme
from studio.app.widgets import factory


class ContextMenu(QMenu):
    """A widget's context menu. The actions' keys also work without the menu, while the widget has the focus.

    left: the user triggered an action of `leave_after`.
    """

    left = Signal()

    def __init__(self, widget: QWidget, name: str) -> None:
        """Create an empty menu. name: accessible name."""
        super().__init__(widget)
        self._widget = widget
        self.in_large_view: list[QAction] = []  # actions shown as buttons in a large view
        self.setAccessibleName(name)
        self.setToolTipsVisible(True)  # tool tips say why an action is disabled

    def add(self, text: str, tip: str, slot: factory.Action, icon: str = "", command: str = "") -> QAction:
        """Append an action. tip: tool tip, a sentence. slot: called by the action. command: the action has its keys."""
        action = self.addAction(theme.icon(icon) if icon else QIcon(), text)
        action.setToolTip(keys.tip(tip))
        action.setProperty("tip", tip)
        if command:
            set_keys(action, self._widget, command)
        action.triggered.connect(slot)
        return action

    def add_button(self, button: QAbstractButton) -> QAction:
        """Append an action that presses a button. Only an enabled button enables the action."""
        action = self.add(button.accessibleName(), button.toolTip(), button.click)
        action.setIcon(button.icon())
        _ButtonFollower(button, action)
        return action

    def leave_after(self, action: QAction) -> None:
        """Emit `left` after this action, which leads away from the widget, for example to the editor."""
        action.triggered.connect(self.left)

    def open_at(self, position: QPoint) -> None:
        """Open the menu at a position on the screen, unless the menu is empty."""
        if not self.isEmpty():
            self.popup(position)


class _ButtonFollower(QObject):
    """Copies a button's enabled state and tool tip to an action, whenever they change."""

    def __init__(self, button: QAbstractButton, action: QAction) -> None:
        super().__init__(action)
        self._button, self._action = button, action
        button.installEventFilter(self)
        self._follow()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.EnabledChange, QEvent.Type.ToolTipChange):
            self._follow()
        return super().eventFilter(watched, event)

    def _follow(self) -> None:
        self._action.setEnabled(self._button.isEnabled())
        self._action.setToolTip(self._button.toolTip())


def set_keys(action: QAction, widget: QWidget, command: str) -> None:
    """Trigger an action by a command's keys while the widget, or a child of the widget, has the focus."""
    keys.bind(action, command)
    action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
    action.setShortcutVisibleInContextMenu(True)
    widget.addAction(action)


def set_action_enabled(action: QAction, reason: str) -> None:
    """Disable a context menu's action and show the reason as the tool tip; enable the action if `reason` is ''."""
    action.setEnabled(not reason)
    action.setToolTip(reason or keys.tip(action.property("tip")))
