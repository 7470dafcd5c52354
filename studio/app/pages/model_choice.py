"""Which model to use: the one that trains, or any run at any of its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QWidget

from studio.app import parts
from studio.app.answers import CheckpointsListed
from studio.app.jobs import SavedModel
from studio.app.session import Session
from studio.core import wording

if TYPE_CHECKING:
    from studio.engine.devices import Device
    from studio.engine.model import Control
    from studio.engine.rundir import RunRecord

_LIVE = "live"
_WORDS = {"best": "Best", "last": "Last"}


class ModelChoice(QWidget):
    """changed: another model, or another checkpoint of it."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.models = QComboBox()
        parts.describe(self.models, "Model", "The model that trains now, or one of your runs.")
        self.models.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.models.setMinimumContentsLength(20)
        self.checkpoints = QComboBox()
        parts.describe(self.checkpoints, "Checkpoint", "How far the training was; best is best on held-out sprites.")
        self._checkpoint_box = parts.panel(parts.labelled("Checkpoint", self.checkpoints))
        self.setLayout(parts.column(parts.labelled("Model", self.models), self._checkpoint_box))
        self.models.currentIndexChanged.connect(self._model_chosen)
        self.checkpoints.currentIndexChanged.connect(self._checkpoint_chosen)
        session.library.listed.connect(self.refresh)
        session.workshop.ready.connect(self.refresh)
        session.training.state_changed.connect(self.refresh)
        session.models.checkpoints_listed.connect(self._show_checkpoints)
        self.refresh()

    def source(self) -> SavedModel | Control | None:
        """The chosen model; None when there is none."""
        chosen = self.models.currentData()
        if chosen == _LIVE:
            return self._session.training.control
        checkpoint = self.checkpoints.currentData() or "best"
        return SavedModel(Path(chosen), checkpoint) if chosen else None

    def record(self) -> RunRecord | None:
        """What is known of the chosen model."""
        chosen = self.models.currentData()
        if chosen == _LIVE:
            return self._session.training.record
        return next((run.record for run in self._session.library.runs if str(run.path) == chosen), None)

    def device(self) -> Device | None:
        """Where the chosen model is, or is to be."""
        if self.models.currentData() == _LIVE:
            return self._session.training.device
        return self._session.workshop.device(self._session.workshop.fastest)

    def makes(self) -> str:
        """'sprites', 'labels', or an empty text when there is no model."""
        record = self.record()
        recipe = self._session.workshop.recipes.get(record.recipe) if record else None
        return recipe.makes if recipe else ""

    def choose(self, path: Path) -> None:
        """Choose a run."""
        self.models.setCurrentIndex(max(0, self.models.findData(str(path))))

    @Slot()
    def refresh(self) -> None:
        """List the models that there are now; the choice stays if it can, and moves on with a training that ends."""
        training, recipes = self._session.training, self._session.workshop.recipes
        before = self.models.currentData()
        if before == _LIVE and not training.is_live() and training.path is not None:
            before = str(training.path)
        elif training.is_live() and before == str(training.path):
            before = _LIVE
        self.models.blockSignals(True)
        self.models.clear()
        if training.is_live() and training.record is not None:
            self.models.addItem(f"{training.title} (live)", _LIVE)
        for run in self._session.library.runs:
            has_work = run.record is not None and run.progress is not None and run.progress.step > 0
            if has_work and run.record.recipe in recipes:  # type: ignore[union-attr]
                self.models.addItem(run.path.name, str(run.path))
        self.models.setCurrentIndex(max(0, self.models.findData(before)))
        self.models.blockSignals(False)
        if self.models.currentData() != before or before is None:
            self._model_chosen()
        else:
            self.changed.emit()

    @Slot()
    def _model_chosen(self) -> None:
        chosen = self.models.currentData()
        self.checkpoints.clear()
        self._checkpoint_box.setVisible(bool(chosen) and chosen != _LIVE)
        if chosen and chosen != _LIVE:
            self._session.models.list_checkpoints(Path(chosen))
        self.changed.emit()

    @Slot(object)
    def _show_checkpoints(self, listed: CheckpointsListed) -> None:
        if str(listed.path) != self.models.currentData():
            return
        self.checkpoints.blockSignals(True)
        self.checkpoints.clear()
        for name in listed.names:
            self.checkpoints.addItem(_WORDS.get(name) or f"Step {wording.number(int(name))}", name)
        self.checkpoints.blockSignals(False)
        self.changed.emit()

    @Slot()
    def _checkpoint_chosen(self) -> None:
        self.changed.emit()
