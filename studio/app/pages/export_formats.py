"""Radio buttons for the export formats, with the chosen format's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QWidget

from studio.app.widgets import factory
from studio.app.widgets.config_form import ConfigForm
from studio.core.config import Config, settings_of

if TYPE_CHECKING:
    from studio.exports.base import ModelExport
    from studio.recipes.base import Recipe


class ExportFormats(QWidget):
    """Radio buttons for export formats. A format that does not support the model is disabled and shows why."""

    format_chosen = Signal()  # the user chose another format
    edited = Signal()  # the user changed a setting

    def __init__(self, formats: Sequence[ModelExport], recipe: Recipe | None) -> None:
        """Create a button for each format and choose the first usable. recipe: the model's recipe; None if unknown."""
        super().__init__()
        self._formats = formats
        self._recipe = recipe
        self._choice = QButtonGroup(self)
        self._forms: dict[str, ConfigForm] = {}
        self._rows = [self._row(index, form) for index, form in enumerate(formats)]
        self.setLayout(factory.column(*self._rows, 1, spacing=2 * factory.GRID))
        usable = [button for button in self._choice.buttons() if button.isEnabled()]
        if usable:
            usable[0].setChecked(True)
        self._show_settings()
        self._choice.idClicked.connect(self._on_format_clicked)

    def chosen(self) -> ModelExport | None:
        """Return the chosen format; None if the list has no usable format."""
        index = self._choice.checkedId()
        return self._formats[index] if index >= 0 else None

    def chosen_row(self) -> QWidget | None:
        """Return the widget with the chosen format and its settings."""
        index = self._choice.checkedId()
        return self._rows[index] if index >= 0 else None

    def config(self) -> Config:
        """Return the chosen format's settings. Raises UsageError for an invalid value."""
        form = self.chosen()
        assert form is not None
        settings = self._forms.get(form.name)
        return settings.config() if settings else form.Config()

    def problem(self) -> str:
        """Return why the export can't start with these choices; '' if it can."""
        form = self.chosen()
        settings = self._forms.get(form.name) if form else None
        return "No format supports this model." if form is None else settings.problem() if settings else ""

    def _row(self, index: int, form: ModelExport) -> QWidget:
        radio = QRadioButton(form.title)
        opened_by = f" Opened by {form.opened_by}." if form.opened_by else ""
        problem = form.missing() or (form.problem(self._recipe) if self._recipe is not None else "")
        factory.set_name_and_tip(radio, form.title, problem or form.help)
        radio.setEnabled(not problem)
        self._choice.addButton(radio, index)
        below: list[QWidget] = [factory.caption(f"{form.help}{opened_by}")]
        if problem:
            below.append(factory.caption(problem))
        unused = form.unused(self._recipe) if self._recipe is not None else ()
        if {item.name for item in settings_of(form.Config)} - set(unused):
            settings = self._forms[form.name] = ConfigForm(form.Config(), exclude=unused)
            settings.changed.connect(self.edited)
            below.append(settings)
        indented = factory.column(*below, margin=(3 * factory.GRID, 0, 0, 0))
        return factory.panel(factory.column(radio, indented, spacing=factory.GRID // 2))

    @Slot()
    def _on_format_clicked(self) -> None:
        self._show_settings()
        self.format_chosen.emit()

    def _show_settings(self) -> None:
        chosen = self.chosen()
        for name, form in self._forms.items():
            form.setVisible(chosen is not None and name == chosen.name)
