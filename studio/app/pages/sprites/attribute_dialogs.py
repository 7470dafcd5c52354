"""Give the selected sprites a value of an attribute, by menu, key and dialog, and rename an attribute in a dialog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from studio.app.state.sprites.attributes import AttributeEdits
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.menu import set_action_enabled
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core.errors import UsageError
from studio.core.formatting import count
from studio.data.attributes.columns import checked_attribute, checked_value

_SET = "Give the selected sprites an attribute, such as element fire. Your files are not changed."
_UNCHANGED = "Files and classes are not changed."


class AttributeSetter(QObject):
    """Adds 'Set attribute…' to the context menu of a grid of open sprites."""

    def __init__(self, grid: SpriteGrid, edits: AttributeEdits) -> None:
        super().__init__(grid)
        self._grid, self._edits = grid, edits
        self.action = grid.menu.add("Set attribute…", _SET, self.open_dialog, command="set_attribute")
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


class ValueDialog(Dialog):
    """A dialog for the value of an attribute, which may be new. chosen: attribute and value, '' for none."""

    chosen = Signal(str, str)

    def __init__(self, parent: QWidget, known: Mapping[str, Sequence[str]], sprites: int) -> None:
        """Create the dialog. known: values by attribute. sprites: number of selected sprites."""
        super().__init__("Set attribute", parent)
        self._known = known
        self.name = _typing_combo("Attribute", "Choose an attribute, or type a new one.", "element")
        self.value = _typing_combo("Value", "Choose a value, or type a new one. Empty: no value.", "No value")
        self._error = factory.FieldError(self.name, self.name.toolTip())
        self.set_button = factory.button("Set", "Give the sprites this value.", role="primary", slot=self._on_set)
        self.set_button.setDefault(True)
        cancel = factory.button("Cancel", "Leave the sprites as they are.", slot=self.reject)
        title = factory.caption(f"For {count(sprites, 'sprite')}. {_UNCHANGED}")
        fields = (factory.labelled("Attribute", self.name), factory.labelled("Value", self.value))
        buttons = factory.row(1, cancel, self.set_button)
        self.setLayout(
            factory.column(*fields, self._error, title, buttons, spacing=factory.GRID, margin=2 * factory.GRID)
        )
        self.setMinimumWidth(320)
        self.name.addItems(list(known))
        self.name.currentTextChanged.connect(self._on_name_changed)
        self._on_name_changed()
        self.name.setFocus()

    @Slot()
    def _on_name_changed(self) -> None:
        typed = self.value.currentText()
        self.value.clear()
        self.value.addItems(list(self._known.get(self.name.currentText().strip(), ())))
        self.value.setCurrentIndex(-1)
        self.value.setEditText(typed)
        self._error.show_reason("")
        factory.set_enabled(self.set_button, "" if self.name.currentText().strip() else "Type an attribute first.")

    @Slot()
    def _on_set(self) -> None:
        try:
            name, value = checked_attribute(self.name.currentText()), checked_value(self.value.currentText())
        except UsageError as error:
            self._error.show_reason(f"{error.title} {error.hint}")
            self.adjustSize()
            return
        self.chosen.emit(name, value)
        self.accept()


class RenameDialog(Dialog):
    """A dialog for the new name of an attribute or a value. chosen: attribute, value, '' for none, and new name."""

    chosen = Signal(str, str, str)

    def __init__(self, parent: QWidget, name: str, value: str, names: Sequence[str]) -> None:
        """Create the dialog. value: of the attribute `name`, '' to rename the attribute. names: of all attributes."""
        what = "value" if value else "attribute"
        super().__init__(f"Rename {what}", parent)
        self._name, self._value, self._others = name, value, [each for each in names if each != name]
        self.field = QLineEdit(value or name)
        factory.set_name_and_tip(self.field, "Name", f"Type a new name for the {what}.")
        self._error = factory.FieldError(self.field, self.field.toolTip())
        tip = f"Rename the {what}."
        self.rename = factory.button("Rename", tip, role="primary", slot=self._on_rename)
        self.rename.setDefault(True)
        buttons = factory.row(1, factory.button("Cancel", "Keep the name.", slot=self.reject), self.rename)
        parts = (factory.labelled("Name", self.field), self._error, factory.caption(_UNCHANGED), buttons)
        self.setLayout(factory.column(*parts, spacing=factory.GRID, margin=2 * factory.GRID))
        self.setMinimumWidth(320)
        self.field.selectAll()
        self.field.textChanged.connect(self._on_text_changed)

    @Slot()
    def _on_text_changed(self) -> None:
        self._error.show_reason("")

    @Slot()
    def _on_rename(self) -> None:
        try:
            new = checked_value(self.field.text()) if self._value else checked_attribute(self.field.text())
            if not new:
                raise UsageError("Type a name for the value.", "Remove takes it away.")
            if not self._value and new in self._others:
                raise UsageError(f"The attribute {new!r} exists already.", "Type another name.")
        except UsageError as error:
            self._error.show_reason(f"{error.title} {error.hint}")
            self.adjustSize()
            return
        if new != (self._value or self._name):
            self.chosen.emit(self._name, self._value, new)
        self.accept()


def _typing_combo(name: str, tip: str, placeholder: str) -> QComboBox:
    """Return a combo box in which users can also type. placeholder: shown while the box is empty."""
    made = factory.combo(name, tip)
    made.setEditable(True)
    field = made.lineEdit()
    assert field is not None, "the box is editable"
    field.setPlaceholderText(placeholder)
    made.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
    return made
