"""The list of keyboard shortcuts, with a search field and a field to change keys."""

from __future__ import annotations

from PySide6.QtCore import QKeyCombination, QModelIndex, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QHeaderView, QKeySequenceEdit, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from studio.app import keys
from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.layout import SteadyWidth

_NAME = Qt.ItemDataRole.UserRole  # item role of the command's name
_CHOOSE, _FIXED = "Select a command first.", "This key can't be changed."
_EDIT = "Press the new key. Tab leaves the field."
_DEFAULTS = "All keys are default keys."
_RESET_ALL = "Restore all default keys."
_DEFAULT = "The command has its default keys."


class ShortcutList(QWidget):
    """Lists all keyboard shortcuts by context. The user can change the keys of the selected command."""

    def __init__(self) -> None:
        super().__init__()
        self._table = keys.table()
        self.search = QLineEdit(placeholderText="Search keys and commands", clearButtonEnabled=True)
        self.tree = QTreeWidget()
        self._groups: list[tuple[QTreeWidgetItem, list[QTreeWidgetItem]]] = []
        self.none = factory.caption("No shortcut matches.")
        self.field = QKeySequenceEdit(maximumSequenceLength=1)
        line = self.field.findChild(QLineEdit)
        assert isinstance(line, QLineEdit)
        self._line = line  # of the field
        self.error = factory.FieldError(line, _EDIT)
        factory.retain_size_when_hidden(self.error)
        self.reset = factory.button("Reset", "Restore the command's default keys.", slot=self._on_reset)
        self.reset_all = factory.button("Reset all", _RESET_ALL, slot=self._on_reset_all)
        NoSecondPress(self.reset_all, lambda: bool(self._before_reset))
        SteadyWidth(self.reset_all, "Reset all", "Undo reset")
        self._before_reset: dict[str, str] = {}  # the user's keys before Reset all, until the next change
        factory.set_name_and_tip(self.search, "Search", "Show only the shortcuts with this text.")
        factory.set_name_and_tip(self.tree, "Keyboard shortcuts", "Select a command to change its key.")
        leaving = (Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Escape)
        self.field.setFinishingKeyCombinations([QKeyCombination(key) for key in leaving])
        for field in (self.field, line):
            factory.set_name_and_tip(field, "Key", _EDIT)
        for button in (self.reset, self.reset_all):
            button.setAutoDefault(False)
        self._fill_tree()
        self.none.hide()
        key = factory.text("Key", wrap=False)
        key.setBuddy(self.field)
        row = factory.row(key, self.field, self.reset, self.reset_all, grows=1)
        self.setLayout(factory.column(self.search, self.tree, self.none, row, self.error))
        self.search.textChanged.connect(self._on_search_changed)
        self.tree.currentItemChanged.connect(self._refresh)
        self.field.editingFinished.connect(self._on_key_pressed)
        self._table.changed.connect(self._refresh)
        self._refresh()

    def shown(self) -> list[tuple[str, str]]:
        """Return keys and title of each visible shortcut."""
        return [(item.text(1), item.text(0)) for item in self._items() if not item.isHidden()]

    def select(self, name: str) -> None:
        """Select a command."""
        self.tree.setCurrentItem(next(item for item in self._items() if item.data(0, _NAME) == name))

    def _items(self) -> list[QTreeWidgetItem]:
        return [item for _, items in self._groups for item in items]

    def _fill_tree(self) -> None:
        self.tree.setColumnCount(2)
        self.tree.setHeaderLabels(["Command", "Keys"])
        self.tree.setRootIsDecorated(False)
        self.tree.setItemsExpandable(False)
        self.tree.setIndentation(factory.GRID)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        widest = max(self.fontMetrics().horizontalAdvance(command.keys) for command in keys.COMMANDS.values())
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.Fixed)
        self.tree.header().resizeSection(1, widest + 4 * factory.GRID)
        for context in dict.fromkeys(command.context for command in keys.COMMANDS.values()):
            group = QTreeWidgetItem(self.tree, [context])
            group.setFlags(Qt.ItemFlag.ItemIsEnabled)
            font = group.font(0)
            font.setBold(True)
            group.setFont(0, font)
            self._groups.append((group, []))
            for name, command in keys.COMMANDS.items():
                if command.context == context:
                    item = QTreeWidgetItem(group, [command.title])
                    item.setData(0, _NAME, name)
                    self._groups[-1][1].append(item)
        self.tree.expandAll()

    def _selected(self) -> str:
        """Return the name of the selected command; '' without a selection."""
        item = self.tree.currentItem()
        return item.data(0, _NAME) or "" if item is not None else ""

    @Slot()
    def _refresh(self) -> None:
        """Show all keys, changed keys in bold, and the key of the selected command in the field."""
        for item in self._items():
            name = item.data(0, _NAME)
            item.setText(1, self._table.text(name))
            font = item.font(1)
            font.setBold(not self._table.is_default(name))
            item.setFont(1, font)
        name = self._selected()
        reason = _CHOOSE if not name else _FIXED if keys.COMMANDS[name].is_fixed else ""
        of_command = self._table.sequences(name) if name else []
        with QSignalBlocker(self.field):
            self.field.setKeySequence(of_command[0] if of_command else QKeySequence())
        self.error.show_reason("")
        for field in (self.field, self._line):
            factory.set_enabled(field, reason)
        factory.set_enabled(self.reset, reason or (_DEFAULT if self._table.is_default(name) else ""))
        if self._table.own():
            self._before_reset = {}
        can_undo = bool(self._before_reset)
        factory.set_button_text(self.reset_all, "Undo reset" if can_undo else "Reset all")
        reason = "" if can_undo or self._table.own() else _DEFAULTS
        factory.set_enabled(self.reset_all, reason, "Restore the keys before the reset." if can_undo else _RESET_ALL)

    @Slot()
    def _on_key_pressed(self) -> None:
        key = self.field.keySequence()
        if not key.isEmpty():  # the focus can leave the field without a pressed key
            self.error.show_reason(self._table.set_key(self._selected(), key))

    @Slot()
    def _on_reset(self) -> None:
        self.error.show_reason(self._table.reset(self._selected()))

    @Slot()
    def _on_reset_all(self) -> None:
        """Restore all default keys, or undo that."""
        keys_before, self._before_reset = self._before_reset, self._table.own()
        self._table.restore(keys_before)

    @Slot(str)
    def _on_search_changed(self, text: str) -> None:
        """Hide the shortcuts without all words of the text, and groups without a shown shortcut."""
        words = text.casefold().split()
        for group, items in self._groups:
            for item in items:
                found = f"{group.text(0)} {item.text(0)} {item.text(1)}".casefold()
                item.setHidden(not all(word in found for word in words))
            group.setHidden(all(item.isHidden() for item in items))
        self.none.setVisible(not self.shown())
        chosen = self.tree.currentItem()
        if chosen is not None and chosen.isHidden():
            self.tree.setCurrentIndex(QModelIndex())
