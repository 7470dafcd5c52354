"""Give the selected sprites a value of an attribute: an action of the grid's menu, and a key."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from studio.app.pages.sprites.attribute_dialogs import ValueDialog
from studio.app.state.sprites.attributes import AttributeEdits
from studio.app.widgets.menu import set_action_enabled
from studio.app.widgets.sprites.grid import SpriteGrid

_TIP = "Give the selected sprites an attribute, such as element fire. Your files are not changed."


class AttributeSetter(QObject):
    """Adds 'Set attribute…' to the context menu of a grid of open sprites."""

    def __init__(self, grid: SpriteGrid, edits: AttributeEdits) -> None:
        super().__init__(grid)
        self._grid, self._edits = grid, edits
        self.action = grid.menu.add("Set attribute…", _TIP, self.open_dialog, command="set_attribute")
        grid.menu.aboutToShow.connect(self._refresh)
        grid.selection_changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def open_dialog(self) -> None:
        """Ask for the attribute and the value of the selected sprites."""
        if not self._why_not():
            attributes = self._edits.attributes
            known = dict(zip(attributes.names, attributes.values, strict=True))
            dialog = ValueDialog(self._grid, known, self._grid.selected_count())
            dialog.chosen.connect(self._on_chosen)
            dialog.open()

    def _why_not(self) -> str:
        return self._edits.why_not() if self._grid.selected_count() else "Select some sprites first."

    @Slot()
    def _refresh(self) -> None:
        set_action_enabled(self.action, self._why_not())

    @Slot(str, str)
    def _on_chosen(self, name: str, value: str) -> None:
        self._edits.set_value(self._grid.selected(), name, value)
