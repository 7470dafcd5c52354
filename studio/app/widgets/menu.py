"""Context menus, which open by right click, the Menu key and Shift+F10."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QIcon, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from studio.app import theme
from studio.app.widgets import factory


class ContextMenu(QMenu):
    """A widget's context menu. The keys of its actions also work without the menu, while the widget has the focus."""

    def __init__(self, widget: QWidget, name: str) -> None:
        """Create an empty menu. name: accessible name."""
        super().__init__(widget)
        self._widget = widget
        self.setAccessibleName(name)
        self.setToolTipsVisible(True)  # tool tips say why an action is disabled

    def add(
        self, text: str, tip: str, slot: factory.Action, icon: str = "", keys: str | QKeySequence.StandardKey = ""
    ) -> QAction:
        """Append an action. tip: tool tip, a sentence. slot: called by the action. keys: the action's shortcut."""
        action = self.addAction(theme.icon(icon) if icon else QIcon(), text)
        action.setToolTip(tip)
        action.setProperty("tip", tip)
        if keys:
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.setShortcutVisibleInContextMenu(True)
            self._widget.addAction(action)
        action.triggered.connect(slot)
        return action

    def open_at(self, position: QPoint) -> None:
        """Open the menu at a position on the screen, unless it is empty."""
        if not self.isEmpty():
            self.popup(position)


def set_action_enabled(action: QAction, reason: str) -> None:
    """Disable an action of a context menu if `reason` is not empty, and show the reason as its tool tip."""
    action.setEnabled(not reason)
    action.setToolTip(reason or action.property("tip"))
