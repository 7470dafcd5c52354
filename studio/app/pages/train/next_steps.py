"""The Train page's buttons for the model of the open or last run: use, export, resume, or train it longer."""

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QWidget

from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.train_longer import train_longer_button
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import SteadyWidth

_USES = {
    "sprites": ("Generate", "Generate sprites with this run's model."),
    "sets": ("Draw the rest…", "Give a view of a character; this run's model draws the rest."),
}
_PREDICT = ("Predict…", "Predict classes or numbers with this run's model.")


class NextSteps(QObject):
    """The buttons for the run's next steps, in the order that the training's advice recommends."""

    model_requested = Signal(object, str)  # run folder, checkpoint ('' for the default): use this run's model
    resumed = Signal()  # the user has resumed the run

    def __init__(self, session: Session, page: QWidget) -> None:
        super().__init__(page)
        self._session, self._page = session, page
        button = factory.button
        self.generate = button(*_USES["sprites"], "generate", slot=self._on_generate_clicked)
        SteadyWidth(self.generate, *(text for text, _ in (*_USES.values(), _PREDICT)))
        export = "Export the model for other programs. ({export})"
        self.export = button("Export…", export, "export", slot=self.export_model)
        resume = "Resume this run from its last checkpoint."
        self.resume = button("Resume", resume, "play", slot=self._on_resume_clicked)
        self.longer = train_longer_button(self._on_train_longer)

    def buttons(self) -> list[QPushButton]:
        """Return the buttons, the recommended next step first."""
        advice = self._session.training.advice
        further, use = [self.resume, self.longer], [self.generate, self.export]
        is_improving = advice is not None and advice.verdict == "improving"
        return [*further, *use] if is_improving else [*use, *further]

    def refresh(self) -> None:
        """Show and enable the buttons for the run's state."""
        training = self._session.training
        none_yet = "The run has no checkpoint yet." if training.watched else "No model yet. Press Start."
        if training.path is not None and not training.path.is_dir():
            none_yet = "The run's folder was moved or deleted."
        reason = "" if training.model() is not None else none_yet
        recipe = self._session.catalog.recipes.get(training.record.recipe) if training.record is not None else None
        text, tip = _USES.get(recipe.makes, _PREDICT) if recipe is not None else _USES["sprites"]
        factory.set_button_text(self.generate, text)
        factory.set_enabled(self.generate, reason, tip)
        factory.set_enabled(self.export, reason)
        is_resumable = not training.is_busy() and training.has_checkpoint
        is_finished = training.end is not None and training.end.reason == "finished"
        self.resume.setVisible(is_resumable and not is_finished)
        self.longer.setVisible(is_resumable)
        for each in (self.resume, self.longer):
            factory.set_enabled(each, reason)

    @Slot()
    def export_model(self) -> bool:
        """Open the export dialog for the live or watched model, or else the last trained model.

        Return False without a model.
        """
        training = self._session.training
        model, recipe = training.model(), training.record.recipe if training.record is not None else ""
        device = self._session.catalog.device(training.device.id) if training.device is not None else None
        device = device or self._session.device_choice.device  # the training's device may belong to another machine
        if model is None or device is None:
            return False
        ExportDialog(self._session, model, training.title, recipe, device, self._page).open()
        return True

    @Slot()
    def _on_resume_clicked(self) -> None:
        self._resume(0.0)

    @Slot(QAction)
    def _on_train_longer(self, chosen: QAction) -> None:
        self._resume(chosen.data())

    def _resume(self, more_min: float) -> None:
        """Resume the run that has ended, with `more_min` additional minutes."""
        if (path := self._session.training.path) is not None:
            self._session.resume_run(path, more_min)
            self.resumed.emit()

    @Slot()
    def _on_generate_clicked(self) -> None:
        training = self._session.training
        if training.path is not None:
            self.model_requested.emit(training.path, "last" if training.watched is not None else "")
