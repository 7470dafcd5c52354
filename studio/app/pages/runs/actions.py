"""Buttons for the selected runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QMenu, QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import SavedModel
from studio.app.pages.export_dialog import ExportDialog
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.core.curves import MAX_CURVES
from studio.core.errors import UsageError
from studio.core.formatting import count, duration

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary

_TIPS = {
    "resume": "Resume this run from its last checkpoint.",
    "watch": "Watch this run, trained by another process or machine, on the Train page.",
    "longer": "Continue this run for more minutes.",
    "anew": "Train the open sprites with this run's settings, or from its model.",
    "use": "Use this run's model on the Generate page.",
    "export": "Export this run's best model for other programs. (Ctrl+E)",
    "report": "Save curves, samples and settings as an HTML page or for TensorBoard.",
    "folder": "Open the run's folder in the file manager.",
    "trash": "Move the selected runs to the trash. Undo restores them. (Delete)",
}
_REPORT_KINDS = "HTML page (*.html)"
_COMPLETE = "This run is finished. Use 'Train longer' to continue."
_NOT_BEGUN = "This run has not started. Press Resume, or start the queue."
_WATCHABLE = ("training", "interrupted")  # a shared drive may not show another machine's lock
_LONGER_MIN = (2, 5, 10, 30, 60, 120)


class RunActions(QWidget):
    """A row of buttons for the selected runs.

    train_requested: show the Train page. use_requested: (Path) use this run's model on the Generate page.
    """

    train_requested = Signal()
    use_requested = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._runs: Sequence[RunSummary] = ()
        self.resume = factory.button("Resume", _TIPS["resume"], "play")
        self.watch = factory.button("Watch", _TIPS["watch"], "train")
        self.longer = factory.button("Train longer", _TIPS["longer"], "resume")
        self._minutes = QMenu(self.longer)
        self.anew = factory.button("Retrain", _TIPS["anew"], "train")
        self._ways = QMenu(self.anew)
        self.use = factory.button("Use in Generate", _TIPS["use"], "generate")
        self.export = factory.button("Export…", _TIPS["export"], "export")
        self.report = factory.button("Save report", _TIPS["report"], "save")
        self._reports = QMenu(self.report)
        self.folder = factory.button("Open folder", _TIPS["folder"], "folder")
        self.trash = factory.button("Move to trash", _TIPS["trash"], "trash")
        row = FlowLayout(factory.GRID, factory.GRID)
        first = (self.resume, self.watch, self.longer, self.anew)
        for button in (*first, self.use, self.export, self.report, self.folder, self.trash):
            row.addWidget(button)
        self.setLayout(row)
        self.resume.clicked.connect(self._on_resume_clicked)
        self.watch.clicked.connect(self._on_watch_clicked)
        for minutes in _LONGER_MIN:
            self._minutes.addAction(duration(60 * minutes)).setData(float(minutes))
        self._minutes.triggered.connect(self._on_train_longer)
        self.longer.setMenu(self._minutes)
        self._ways.addAction("With these settings").triggered.connect(self._on_retrain_with_settings)
        self._ways.addAction("From this model").triggered.connect(self._on_retrain_from_model)
        self.anew.setMenu(self._ways)
        self.use.clicked.connect(self._on_use_clicked)
        self.export.clicked.connect(self.export_model)
        self._reports.addAction("As HTML page…").triggered.connect(self._on_save_html)
        self._reports.addAction("For TensorBoard…").triggered.connect(self._on_save_tensorboard)
        self.report.setMenu(self._reports)
        self.folder.clicked.connect(self._on_open_folder_clicked)
        self.trash.clicked.connect(self._on_trash_clicked)
        session.training.state_changed.connect(self._refresh)
        session.catalog.devices_found.connect(self._refresh)
        session.catalog.ready.connect(self._refresh)
        self._refresh()

    def set_runs(self, runs: Sequence[RunSummary]) -> None:
        self._runs = runs
        self._refresh()

    @Slot()
    def export_model(self) -> bool:
        """Open the export dialog for the run's best model. Return False if not possible."""
        device = self._session.device_choice.device
        if self._why_no_export() or device is None:
            return False
        run = self._runs[0]
        recipe = run.record.recipe if run.record is not None else ""
        ExportDialog(self._session, SavedModel(run.path, "best"), run.title, recipe, device, self).open()
        return True

    @Slot()
    def trash_by_key(self) -> None:
        """Move the selected runs to the trash, or show why this is impossible."""
        if self.trash.isEnabled():
            self.trash.click()
        else:
            self._session.notify(self.trash.toolTip(), holds=lambda: not self.trash.isEnabled())

    @Slot()
    def _refresh(self) -> None:
        one = "" if len(self._runs) == 1 else "Select one run."
        factory.set_enabled(self.resume, self._why_not_resumed(), _TIPS["resume"])
        factory.set_enabled(self.watch, self._why_not_watched(), _TIPS["watch"])
        is_queued = any(run.standing == "queued" for run in self._runs)
        factory.set_enabled(self.longer, _NOT_BEGUN if is_queued else self._why_not_longer(), _TIPS["longer"])
        factory.set_enabled(self.anew, self._why_no_run(), _TIPS["anew"])
        factory.set_enabled(self.use, self._why_no_model(), _TIPS["use"])
        factory.set_enabled(self.export, self._why_no_export(), _TIPS["export"])
        factory.set_enabled(self.report, self._why_no_report(), _TIPS["report"])
        factory.set_enabled(self.folder, one, _TIPS["folder"])
        busy = any(run.standing == "training" for run in self._runs)
        reason = "This run is training. Stop it first." if busy else ""
        factory.set_enabled(self.trash, reason if self._runs else "Select a run.", _TIPS["trash"])

    def _why_no_run(self) -> str:
        if len(self._runs) != 1:
            return "Select one run."
        if self._runs[0].record is None:
            return "This run is damaged."
        return "" if self._session.catalog.devices else "Searching for devices…"

    def _why_no_model(self) -> str:
        run = self._runs[0] if len(self._runs) == 1 else None
        if run is not None and run.record is not None and not run.saved_step:
            return "This run has no checkpoint yet."
        return self._why_no_run()

    def _why_no_export(self) -> str:
        return self._why_no_model() or ("" if self._session.catalog.exports else "Loading PyTorch…")

    def _why_no_report(self) -> str:
        if not 0 < len(self._runs) <= MAX_CURVES:
            return f"Select up to {MAX_CURVES} runs."
        return "" if any(run.record is not None for run in self._runs) else "This run is damaged."

    def _why_not_resumed(self) -> str:
        is_finished = len(self._runs) == 1 and self._runs[0].standing == "finished"
        return _COMPLETE if is_finished else self._why_not_longer()

    def _why_not_longer(self) -> str:
        if len(self._runs) == 1 and self._runs[0].standing == "training":
            return "This run is training."
        if self._session.training.owns_run():
            return "Another run is training. Stop it first."
        return self._why_no_run()

    def _why_not_watched(self) -> str:
        if len(self._runs) != 1 or self._runs[0].standing not in _WATCHABLE:
            return "Select one run that is training."
        training = self._session.training
        if training.owns_run() and training.path != self._runs[0].path:
            return "This window is training a run. Stop it to watch another."
        return ""

    @Slot()
    def _on_resume_clicked(self) -> None:
        self._session.resume_run(self._runs[0].path)
        self.train_requested.emit()

    @Slot()
    def _on_watch_clicked(self) -> None:
        self._session.watch(self._runs[0].path)
        self.train_requested.emit()

    @Slot(QAction)
    def _on_train_longer(self, chosen: QAction) -> None:
        self._session.resume_run(self._runs[0].path, chosen.data())
        self.train_requested.emit()

    @Slot()
    def _on_retrain_with_settings(self) -> None:
        """Show the Train page with this run's settings."""
        if (record := self._runs[0].record) is not None:
            self._prepare(partial(self._session.setup.use_settings, record))

    @Slot()
    def _on_retrain_from_model(self) -> None:
        """Show the Train page with this run's model as start weights."""
        if (record := self._runs[0].record) is not None:
            self._prepare(partial(self._session.setup.start_from, self._runs[0].path, record))

    def _prepare(self, choose: Callable[[], None]) -> None:
        """Call `choose`, which sets up the next training, and show the Train page, or show its UsageError."""
        try:
            choose()
        except UsageError as error:
            self._session.show_error(error)
        else:
            self.train_requested.emit()

    @Slot()
    def _on_use_clicked(self) -> None:
        self.use_requested.emit(self._runs[0].path)

    @Slot()
    def _on_save_html(self) -> None:
        paths = [run.path for run in self._runs]
        name = self._runs[0].title if len(paths) == 1 else count(len(paths), "run")
        target = dialogs.choose_save_file(self, self._session.settings, "Save report", f"{name}.html", _REPORT_KINDS)
        if target is not None:
            self._session.runs.save_report(paths, target)

    @Slot()
    def _on_save_tensorboard(self) -> None:
        folder = dialogs.choose_save_folder(self, self._session.settings, "Choose a folder for TensorBoard")
        if folder is not None:
            self._session.runs.save_event_logs([run.path for run in self._runs if run.record is not None], folder)

    @Slot()
    def _on_open_folder_clicked(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._runs[0].path)))

    @Slot()
    def _on_trash_clicked(self) -> None:
        self._session.runs.trash_runs([run.path for run in self._runs])
