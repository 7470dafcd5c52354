"""Dialog that exports a model: choose a format and a path, check the written file, show example code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import SavedModel
from studio.app.file_manager import show_in_folder
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.config_form import ConfigForm
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.path_field import PathField
from studio.core import files, formatting
from studio.core.config import Config, settings_of
from studio.core.events import Exported, JobFailed, Progress
from studio.engine.control.control import Control
from studio.engine.devices.types import Device

if TYPE_CHECKING:
    from studio.exports.base import ModelExport
    from studio.recipes.base import Recipe

_WHERE = "Where to write the model."
_LOWEST, _HIGHEST = 520, 760  # logical pixels: as high as the window, to show many formats
_CHOOSING, _WRITING, _DONE = range(3)


class ExportDialog(Dialog):
    """Dialog that exports a model: choose format and path, write, done. A running training continues meanwhile."""

    def __init__(
        self, session: Session, source: SavedModel | Control, title: str, recipe: str, device: Device, parent: QWidget
    ) -> None:
        """Create the dialog for a model. title: the model's display name. recipe: its recipe's name; '' if unknown."""
        super().__init__(f"Export {title}", parent)
        self._session, self._source, self._device = session, source, device
        self._name = files.output_name(title)
        self.formats = ExportFormats(list(session.catalog.exports.values()), session.catalog.recipes.get(recipe))
        self.path = PathField("file", self._on_browse_clicked)
        self.path_reason = factory.FieldError(self.path.line, _WHERE)
        self.failure = factory.text("", "error")
        tip = "Write the file, then read it back and compare."
        self.start = factory.button("Export", tip, "export", "primary", self._on_export_clicked)
        self.cancel = factory.button("Cancel", "Close without exporting.", slot=self.reject)
        self.stop = factory.button("Cancel", "Stop the export and delete the partial file.", slot=self.reject)
        self.done_button = factory.button("Close", "Close this window.", role="primary", slot=self.accept)
        tip = "Show the exported files in the file manager."
        self.show_files = factory.button("Show in folder", tip, "folder", slot=self._on_show_clicked)
        self.copy = factory.button("Copy", "Copy this code to the clipboard.", "copy", slot=self._copy)
        self.outcome = factory.text()
        self.language = factory.combo("Language", "Language of the code below.")
        self.snippet = factory.code_view("Example code", "Example code that loads the file.")
        self._bar = factory.ProgressBar()
        self._scroll = factory.scroll_area(self.formats)
        self.setMinimumWidth(640)
        self.resize(640, max(_LOWEST, min(_HIGHEST, parent.window().height())))
        self._written: tuple[Path, ...] = ()
        self._snippets: Mapping[str, str] = {}
        self._stages = factory.stack(self._choosing(title), self._writing(), self._finished())
        self.setLayout(factory.column(self._stages, margin=3 * factory.GRID))
        self.start.setDefault(True)
        NoSecondPress(self.stop)
        self.failure.hide()
        self.formats.format_chosen.connect(self._suggest_path)
        self.formats.format_chosen.connect(self._on_format_chosen)
        self.formats.edited.connect(self._refresh_buttons)
        self.path.changed.connect(self._clear_errors)
        self.path.changed.connect(self._refresh_buttons)
        self.language.currentTextChanged.connect(self._show_snippet)
        session.inference.exported.connect(self._on_exported)
        session.inference.failed.connect(self._on_failed)
        session.inference.progressed.connect(self._on_progressed)
        session.inference.busy_changed.connect(self._refresh_buttons)
        self._suggest_path()
        self._refresh_buttons()

    def _choosing(self, title: str) -> QWidget:
        factory.set_name_and_tip(self.path.line, "File", _WHERE)
        buttons = factory.row(1, self.cancel, self.start)
        head = (factory.elided_title(f"Export {title}"), self._scroll, factory.heading("Where"))
        return factory.panel(factory.column(*head, self.path, self.path_reason, self.failure, buttons))

    def _writing(self) -> QWidget:
        text = "Writing the file and comparing it with the model…"
        return factory.panel(factory.column(1, factory.text(text), self._bar, 1, factory.row(1, self.stop)))

    def _finished(self) -> QWidget:
        self.snippet.setMinimumHeight(200)
        head = factory.row(factory.heading("Example code for"), self.language, 1, self.copy)
        below = factory.row(self.show_files, 1, self.done_button)
        parts = (factory.title("Done"), self.outcome, head, self.snippet, below)
        return factory.panel(factory.column(*parts))

    @Slot()
    def _on_format_chosen(self) -> None:
        QTimer.singleShot(0, self, self._scroll_to_chosen)  # after the layout has shown the settings

    @Slot()
    def _scroll_to_chosen(self) -> None:
        row = self.formats.chosen_row()
        if row is not None:
            self._scroll.ensureWidgetVisible(row, 0, factory.GRID)

    @Slot()
    def _suggest_path(self) -> None:
        form = self.formats.chosen()
        if form is not None:
            self.path.set_text(
                str(files.free_path(dialogs.save_folder(self._session.settings) / f"{self._name}{form.suffix}"))
            )

    @Slot()
    def _on_browse_clicked(self) -> None:
        form = self.formats.chosen()
        kinds = f"{form.title} (*{form.suffix})" if form is not None else ""
        name = Path(self.path.text()).name
        chosen = dialogs.choose_save_file(self, self._session.settings, "Export to", name, kinds, replaces=False)
        if chosen is not None:
            self.path.set_text(str(chosen))

    @Slot()
    def _on_export_clicked(self) -> None:
        form = self.formats.chosen()
        path = dialogs.save_folder(self._session.settings) / self.path.path()
        reason = files.why_unwritable(path)
        self._clear_errors()
        self.path_reason.show_reason(reason)
        if form is not None and not reason:
            self._bar.show_busy()
            self._stages.setCurrentIndex(_WRITING)
            self._session.inference.export(self._source, self._device, form.name, path, self.formats.config())

    @Slot()
    def _clear_errors(self) -> None:
        self.path_reason.show_reason("")
        self.failure.hide()

    @Slot(object)
    def _on_failed(self, failed: JobFailed) -> None:
        """Return to the choices and show the error, so that the user can choose another path or format."""
        if self._stages.currentIndex() == _WRITING:
            self.failure.setText(f"{failed.title} {failed.hint}".strip())
            self.failure.show()
            self._stages.setCurrentIndex(_CHOOSING)

    @Slot(object)
    def _on_progressed(self, progress: Progress) -> None:
        if self._stages.currentIndex() == _WRITING:
            self._bar.show_progress(progress)

    @Slot(object)
    def _on_exported(self, exported: Exported) -> None:
        """Show the written files and example code, if this dialog started the export."""
        if self._stages.currentIndex() != _WRITING:
            return
        names = "\n".join(str(path) for path in exported.paths)
        same, size = formatting.describe_agreement(exported.difference), formatting.memory(exported.size_bytes)
        card = f"\nModel card: {exported.card[1].name}" if exported.card else ""
        self.outcome.setText(f"Verified: outputs of the file and of the model are {same}.\n\n{names}\n{size}{card}")
        self._written, self._snippets = exported.paths, exported.snippets
        self.language.clear()
        self.language.addItems(list(exported.snippets))
        self._stages.setCurrentIndex(_DONE)

    @Slot()
    def _refresh_buttons(self) -> None:
        """Enable Export if an export can start. Close the dialog if the export was cancelled in the status bar."""
        busy = self._session.inference.is_busy()
        reason = self.formats.problem() or ("" if self.path.text().strip() else "Enter a file name first.")
        factory.set_enabled(self.start, "A model is busy. Try again in a moment." if busy else reason)
        if not busy and self._stages.currentIndex() == _WRITING:
            super().reject()

    @Slot()
    def reject(self) -> None:
        """Close the dialog and cancel a running export; the status bar shows the export until its end."""
        if self._stages.currentIndex() == _WRITING:
            self._session.inference.cancel()
        super().reject()

    @Slot(str)
    def _show_snippet(self, language: str) -> None:
        self.snippet.setPlainText(self._snippets.get(language, ""))

    @Slot()
    def _on_show_clicked(self) -> None:
        show_in_folder(self._written)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.snippet.toPlainText())


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
