"""The attributes of the open sprites with their values and counts; a chosen value filters the sprites."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from studio.app import keys
from studio.app.pages.sprites.attribute_dialogs import RenameDialog
from studio.app.state.sprites.attributes import AttributeEdits
from studio.app.widgets import factory
from studio.core.formatting import number
from studio.data.attributes.attributes import NO_ATTRIBUTES, NONE, Attributes

_ANY = NONE - 1  # code for an attribute's own item, which stands for every value
_CODE, _ATTRIBUTE = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
_CHOOSE = "Choose an attribute or a value first."
_ROWS = 9  # the list grows up to this many rows


class AttributeList(QWidget):
    """A tree of attributes and values, with buttons to rename and remove them. Hidden without attributes.

    indices: int64 [n], the sprites with the chosen values; None for all. chosen: `indices` changed.
    """

    chosen = Signal()

    def __init__(self, edits: AttributeEdits) -> None:
        super().__init__()
        self.indices: NDArray[np.int64] | None = None
        self._edits, self._attributes = edits, NO_ATTRIBUTES
        self.items: list[QTreeWidgetItem] = []  # the tree's items, from top to bottom
        self.tree = QTreeWidget()
        self.tree.setColumnCount(2)
        self.tree.setHeaderHidden(True)
        self.tree.setUniformRowHeights(True)
        self.tree.setSelectionMode(QTreeWidget.SelectionMode.ExtendedSelection)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        tip = "Select a value to show only its sprites. Ctrl + click adds a value."
        factory.set_name_and_tip(self.tree, "Attributes", tip)
        self.rename = factory.button("Rename…", "", slot=self._on_rename)
        self.remove = factory.button("Remove", "", slot=self._on_remove)
        buttons = factory.row(self.rename, self.remove, 1)
        self.setLayout(factory.column(factory.heading("Attributes"), self.tree, buttons))
        keys.fixed_shortcut("F2", self.tree, self._on_rename)
        keys.fixed_shortcut("Del", self.tree, self._on_remove)
        self.tree.itemSelectionChanged.connect(self._on_selection_changed)
        self.hide()

    def show_attributes(self, attributes: Attributes, total: int, *, keeps_choice: bool) -> None:
        """List the attributes of `total` sprites. keeps_choice: keep chosen values that still exist."""
        kept = self._chosen_names() if keeps_choice else set[tuple[str, str]]()
        self._attributes = attributes
        with QSignalBlocker(self.tree):
            self.items = []
            self.tree.clear()
            everything = self._item("All values", total, "", _ANY)
            self.tree.addTopLevelItem(everything)
            for name, values, counts in zip(attributes.names, attributes.values, attributes.counts(), strict=True):
                top = self._item(name, int(counts.sum()), name, _ANY)
                self.tree.addTopLevelItem(top)
                for code, (value, count) in enumerate(zip(values, counts.tolist(), strict=True)):
                    top.addChild(self._item(value, count, name, code))
                if without := total - int(counts.sum()):
                    top.addChild(self._item(f"No {name}", without, name, NONE))
                top.setExpanded(len(values) <= _ROWS)
            found = [item for item in self.items if (item.data(0, _ATTRIBUTE), item.text(0)) in kept]
            for item in found:
                item.setSelected(True)
            self.tree.setCurrentItem(found[0] if found else everything)
            for item in found:
                item.setSelected(True)
        shown = min(_ROWS, len(self.items))
        self.tree.setMinimumHeight(self.tree.sizeHintForRow(0) * shown + 2 * self.tree.frameWidth() + factory.GRID)
        self.setVisible(bool(attributes))
        self._refresh()

    def show_all(self) -> None:
        """Choose all values."""
        self.tree.setCurrentItem(self.items[0])

    def _item(self, text: str, count: int, name: str, code: int) -> QTreeWidgetItem:
        item = QTreeWidgetItem([text, number(count)])
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setData(0, _CODE, code)
        item.setData(0, _ATTRIBUTE, name)
        item.setToolTip(0, text)
        self.items.append(item)
        return item

    def _chosen_names(self) -> set[tuple[str, str]]:
        """Return attribute and text of the selected items."""
        return {(item.data(0, _ATTRIBUTE), item.text(0)) for item in self.tree.selectedItems()}

    def _current(self) -> tuple[str, str]:
        """Return the current item's attribute and value: ('element', '') for an attribute, ('', '') for other items."""
        item = self.tree.currentItem()
        if item is None:
            return "", ""
        code = item.data(0, _CODE)
        if code == NONE:  # sprites without a value
            return "", ""
        return str(item.data(0, _ATTRIBUTE)), "" if code == _ANY else item.text(0)

    @Slot()
    def _on_selection_changed(self) -> None:
        self._refresh()
        self.chosen.emit()

    def _refresh(self) -> None:
        self.indices = self._matching()
        name, value = self._current()
        reason, what = self._edits.why_not() or ("" if name else _CHOOSE), "value" if value else "attribute"
        factory.set_enabled(self.rename, reason, f"Rename this {what}. (F2)")
        factory.set_enabled(self.remove, reason, f"Remove this {what} from all sprites. Undo brings it back. (Del)")

    def _matching(self) -> NDArray[np.int64] | None:
        """Return the sprites with a chosen value in every chosen attribute, int64 [n]; None without a choice."""
        codes: dict[str, set[int]] = {}
        for item in self.tree.selectedItems():
            name, code = item.data(0, _ATTRIBUTE), item.data(0, _CODE)
            if name:
                every = range(len(self._attributes.values[self._attributes.names.index(name)]))
                codes.setdefault(name, set()).update(every if code == _ANY else (code,))
        if not codes:
            return None
        columns = (self._attributes.table[:, self._attributes.names.index(name)] for name in codes)
        masks = [np.isin(column, list(wanted)) for column, wanted in zip(columns, codes.values(), strict=True)]
        return np.flatnonzero(np.logical_and.reduce(masks))

    @Slot()
    def _on_rename(self) -> None:
        if self.rename.isEnabled():
            name, value = self._current()
            dialog = RenameDialog(self, name, value, self._attributes.names)
            dialog.chosen.connect(self._edits.rename)
            dialog.open()

    @Slot()
    def _on_remove(self) -> None:
        if self.remove.isEnabled():
            self._edits.remove(*self._current())
