"""Buttons for the selected runs."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QMenu, QMessageBox, QWidget

from studio.app import dialogs, theme
from studio.app.background.model_jobs import SavedModel
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.train_longer import train_longer_button
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.core.curves import MAX_CURVES
from studio.core.errors import UsageError
from studio.core.formatting import count
from studio.engine.runs.listing import RunSummary

_WATCH = "Watch this run, trained by another process or machine, on the Train page."
_RETRAIN = "Train a new model with this run's sprites and settings, or from its model."
_SAME_SETTINGS = "Open this run's sprites and train a new model with its settings."
_FROM_MODEL = "Train this model further on the open sprites, or else on its own."
_REPORT = "Save curves, samples and settings as an HTML page or for TensorBoard."
_TRASH = "Move the selected runs to the trash. Undo restores them. ({trash})"
_COMPLETE = "This run is finished. Use 'Train longer' to continue."
_NOT_BEGUN = "This run has not started. Press Resume, or start the queue."
_NO_TRASH = "The drive has no trash: this can't be undone. Checkpoints, samples and settings are lost."
_DELETE = "Delete permanently"
_MAX_NAMES = 5  # of runs in the question
_REPORT_KINDS = "HTML page (*.html)"
_WATCHABLE = ("training", "interrupted")  # a shared drive may not show another machine's lock


class RunActions(QWidget):
    """A row of buttons for the selected runs."""

    train_requested = Signal()  # show the Train page
    use_requested = Signal(object)  # run folder: use this run's model on the Generate page

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._runs: Sequence[RunSummary] = ()
        button = factory.button
        resume = "Resume this run from its last checkpoint."
        self.resume = button("Resume", resume, "play", slot=self._on_resume_clicked)
        self.watch = button("Watch", _WATCH, "train", slot=self._on_watch_clicked)
        self.longer = train_longer_button(self._on_train_longer)
        self.anew = button("Retrain", _RETRAIN, "train")
        use = "Use this run's model on the Generate page."
        self.use = button("Use in Generate", use, "generate", slot=self._on_use_clicked)
        export = "Export this run's best model for other programs. ({export})"
        self.export = button("Export…", export, "export", slot=self.export_model)
        self.report = button("Save report", _REPORT, "save")
        folder = "Open the run's folder in the file manager."
        self.folder = button("Open folder", folder, "folder", slot=self._on_open_folder_clicked)
        self.trash = button("Move to trash", _TRASH, "trash", slot=self._on_trash_clicked)
        self._buttons = {  # by the names in `_obstacles`
            "resume": self.resume, "watch": self.watch, "longer": self.longer, "anew": self.anew, "use": self.use,
            "export": self.export, "report": self.report, "folder": self.folder, "trash": self.trash,
        }  # fmt: skip
        self.setLayout(FlowLayout(factory.GRID, factory.GRID, *self._buttons.values()))
        self._doomed: Sequence[Path] = ()  # the runs that the user is asked about
        self._add_menus()
        session.run_trash.trash_missing.connect(self._on_trash_missing)
        for signal in (session.training.state_changed, session.catalog.devices_found, session.catalog.ready):
            signal.connect(self._refresh)
        self._refresh()

    def _add_menus(self) -> None:
        ways, reports = QMenu(self.anew), QMenu(self.report)
        for button, menu in ((self.anew, ways), (self.report, reports)):
            button.setMenu(menu)
        for text, tip, slot in (
            ("With these settings", _SAME_SETTINGS, self._on_retrain_with_settings),
            ("From this model", _FROM_MODEL, self._on_retrain_from_model),
        ):
            ways.addAction(text, slot).setToolTip(tip)
        ways.setToolTipsVisible(True)
        reports.addAction("As HTML page…", self._on_save_html)
        reports.addAction("For TensorBoard…", self._on_save_tensorboard)

    def set_runs(self, runs: Sequence[RunSummary]) -> None:
        self._runs = runs
        self._refresh()

    @Slot()
    def export_model(self) -> bool:
        """Open the export dialog for the run's best model. Return False if not possible."""
        device = self._session.device_choice.device
        if not self.export.isEnabled() or device is None:
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
        for name, reason in _obstacles(self._runs, self._session).items():
            factory.set_enabled(self._buttons[name], reason)

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
        run, opened = self._runs[0], self._session.open_sprites
        if run.record is None:
            return
        self._prepare(partial(self._session.setup.use_settings, run.path, run.record))
        if opened.sprites is not None and opened.latest.paths != opened.paths:
            hint = "To train other sprites with these settings, open their folder."
            self._session.notify(f"The sprites of '{run.title}' replace the open sprites.", hint)

    @Slot()
    def _on_retrain_from_model(self) -> None:
        run = self._runs[0]
        if run.record is not None:
            self._prepare(partial(self._session.setup.start_from, run.path, run.record))

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
            paths = [run.path for run in self._runs if run.record is not None]
            self._session.runs.save_event_logs(paths, folder)

    @Slot()
    def _on_open_folder_clicked(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._runs[0].path)))

    @Slot()
    def _on_trash_clicked(self) -> None:
        self._session.run_trash.move([run.path for run in self._runs])

    @Slot(object)
    def _on_trash_missing(self, paths: Sequence[Path]) -> None:
        """Ask whether to delete the runs permanently instead."""
        title = self._session.runs.title_of
        what = f"'{title(paths[0])}'" if len(paths) == 1 else count(len(paths), "run")
        question = QMessageBox(QMessageBox.Icon.Warning, _DELETE, f"Delete {what} permanently?", parent=self)
        names = "" if len(paths) == 1 else f"\n{', '.join(map(title, paths[:_MAX_NAMES]))}"
        more = f" and {len(paths) - _MAX_NAMES} more" if len(paths) > _MAX_NAMES else ""
        question.setInformativeText(f"{_NO_TRASH}{names}{more}")
        delete = question.addButton(_DELETE, QMessageBox.ButtonRole.AcceptRole)
        cancel = question.addButton("Cancel", QMessageBox.ButtonRole.RejectRole)
        theme.set_role(delete, "danger")
        question.setDefaultButton(cancel)
        question.setEscapeButton(cancel)
        question.accepted.connect(self._on_delete_confirmed)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._doomed = paths
        question.open()

    @Slot()
    def _on_delete_confirmed(self) -> None:
        self._session.run_trash.delete(self._doomed)


def _obstacles(runs: Sequence[RunSummary], session: Session) -> dict[str, str]:
    """Return for each button why it is disabled for these selected runs; '' for an enabled button."""
    run = runs[0] if len(runs) == 1 else None
    standing, training, catalog = run.standing if run is not None else "", session.training, session.catalog
    not_one = "" if run is not None else "Select one run."
    damaged = "This run is damaged." if run is not None and run.record is None else ""
    unusable = not_one or damaged or ("" if catalog.devices else "Searching for devices…")
    unsaved = run is not None and run.record is not None and not run.saved_step
    no_model = "This run has no checkpoint yet." if unsaved else unusable
    busy = "Another run is training. Stop it first." if training.owns_run() else ""
    not_resumed = ("This run is training." if standing == "training" else busy) or unusable
    is_queued = any(each.standing == "queued" for each in runs)
    not_watched = "" if standing in _WATCHABLE else "Select one run that is training."
    if run is not None and training.owns_run() and training.path != run.path:
        not_watched = not_watched or "This window is training a run. Stop it to watch another."
    no_report = "" if any(each.record is not None for each in runs) else "This run is damaged."
    is_training = any(each.standing == "training" for each in runs)
    no_trash = "This run is training. Stop it first." if is_training else ""
    return {
        "resume": _COMPLETE if standing == "finished" else not_resumed,
        "watch": not_watched,
        "longer": _NOT_BEGUN if is_queued else not_resumed,
        "anew": unusable,
        "use": no_model,
        "export": no_model or ("" if catalog.exports else "Loading PyTorch…"),
        "report": no_report if 0 < len(runs) <= MAX_CURVES else f"Select up to {MAX_CURVES} runs.",
        "folder": not_one,
        "trash": no_trash if runs else "Select a run.",
    }
