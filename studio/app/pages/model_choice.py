"""Combo boxes that choose a model (the live training or a run) and a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.background.job_events import RunCheckpoints
from studio.app.background.model_jobs import SavedModel
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.input import WheelNeedsFocus
from studio.core import formatting
from studio.engine.control.control import Control
from studio.engine.devices.types import Device

if TYPE_CHECKING:
    from studio.engine.runs.folder import RunRecord
    from studio.engine.runs.listing import RunSummary
    from studio.recipes.base import Recipe
    from studio.recipes.capabilities import Capability

_LIVE = "live"
_TITLES = {"best": "Best", "last": "Last"}


class ModelChoice(QWidget):
    """Combo boxes for a model and its checkpoint."""

    changed = Signal()  # another model or checkpoint was chosen, or the list was updated

    def __init__(
        self, session: Session, *, only_runs: bool = False, first: Capability | None = None, before: str = ""
    ) -> None:
        """Create the boxes. only_runs: omit the live training's model. before: path of the run to choose initially.

        first: list runs with this ability first.
        """
        super().__init__()
        self._before = before
        self._checkpoints: dict[str, str] = {}  # the user's choice for each run
        self._session, self._only_runs, self._first = session, only_runs, first
        self._quick: tuple[str, ...] = ()  # the run's checkpoints with a distilled network
        self._wanted = ""  # run path or _LIVE; empty until the user chooses
        self._wanted_checkpoint = ""  # chosen by `choose`, until the list has arrived
        what = ("Run", "A finished or stopped run.") if only_runs else ("Model", "The live training or a run.")
        self.models = factory.combo(*what)
        self.checkpoints = ComboBox()
        tip = "Choose a saved training step. Best has the best validation result."
        factory.set_name_and_tip(self.checkpoints, "Checkpoint", tip)
        for control in (self.models, self.checkpoints):
            WheelNeedsFocus(control)
        self._checkpoint_box = factory.panel(factory.labelled("Checkpoint", self.checkpoints))
        model = factory.labelled(what[0], self.models)
        self.setLayout((factory.row if only_runs else factory.column)(model, self._checkpoint_box))
        self.models.activated.connect(self._on_model_activated)
        self.models.currentIndexChanged.connect(self._on_model_changed)
        self.checkpoints.activated.connect(self._on_checkpoint_activated)
        self.checkpoints.currentIndexChanged.connect(self.changed)
        session.runs.listed.connect(self.refresh)
        session.catalog.ready.connect(self.refresh)
        session.training.state_changed.connect(self.refresh)
        session.inference.checkpoints_listed.connect(self._on_checkpoints_listed)
        self.refresh()

    def source(self) -> SavedModel | Control | None:
        """Return the chosen model; None if the list is empty."""
        chosen = self.models.currentData()
        if chosen == _LIVE:
            return self._session.training.control
        checkpoint = self.checkpoints.currentData() or self._checkpoints.get(chosen, "best")
        return SavedModel(Path(chosen), checkpoint) if chosen else None

    def is_known(self) -> bool:
        """Return whether the list of models is complete: runs are listed and recipes are loaded."""
        session = self._session
        return session.training.record is not None or (session.runs.are_known and bool(session.catalog.recipes))

    def run(self) -> Path | None:
        """Return the chosen model's run folder, also for the live model; None if the list is empty."""
        chosen = self.models.currentData()
        return self._session.training.path if chosen == _LIVE else Path(chosen) if chosen else None

    def name(self) -> str:
        return self._session.training.title if self.models.currentData() == _LIVE else self.models.currentText()

    def title(self) -> str:
        """Return the chosen model's name with its checkpoint: 'Items, Best' or 'Items, live'."""
        is_live = self.models.currentData() == _LIVE
        checkpoint = "live" if is_live else self.checkpoints.currentText()
        return f"{self.name()}, {checkpoint}" if checkpoint else self.name()

    def record(self) -> RunRecord | None:
        """Return the chosen model's run record; None if unknown."""
        chosen = self.models.currentData()
        if chosen == _LIVE:
            return self._session.training.record
        return next((run.record for run in self._session.runs.runs if str(run.path) == chosen), None)

    def device(self) -> Device | None:
        """Return the device that holds the live model, or else the device chosen for work."""
        if self.models.currentData() == _LIVE:
            return self._session.training.device
        return self._session.device_choice.device

    def recipe(self) -> Recipe | None:
        """Return the chosen model's recipe; None if unknown."""
        record = self.record()
        return self._session.catalog.recipes.get(record.recipe) if record else None

    def capabilities(self) -> frozenset[Capability]:
        """Return the abilities of the chosen model's recipe; empty if unknown."""
        recipe = self.recipe()
        return recipe.capabilities if recipe is not None else frozenset()

    def is_quick(self) -> bool:
        """Return whether the chosen checkpoint has a distilled network."""
        source = self.source()
        return isinstance(source, SavedModel) and source.checkpoint in self._quick

    def list_checkpoints(self) -> None:
        """List the chosen run's checkpoints again."""
        chosen = self.models.currentData()
        if chosen and chosen != _LIVE:
            self._session.inference.list_checkpoints(Path(chosen))

    def choose(self, path: Path, checkpoint: str = "") -> None:
        """Choose a run and, unless empty, a checkpoint by name."""
        self._wanted, self._wanted_checkpoint = str(path), checkpoint
        self.refresh()
        self.list_checkpoints()

    @Slot()
    def refresh(self) -> None:
        """List the models again and keep the user's choice. A live model whose training ended becomes a run."""
        training, before = self._session.training, self.models.currentData()
        # A stopping run stays until it is listed, so that the choice doesn't jump.
        stays = training.state == "stopping" and self._wanted == _LIVE
        live = not self._only_runs and training.record is not None and (training.is_live() or stays)
        if live and self._wanted in ("", str(training.path)):
            self._wanted = _LIVE
        elif not live and self._wanted == _LIVE and not training.is_busy():
            self._wanted = str(training.path or "")
        runs = sorted(filter(self._has_model, self._session.runs.runs), key=self._sort_key)
        models = [(f"{training.title} (live)", _LIVE)] if live else []
        models += [(run.title, str(run.path)) for run in runs]
        factory.fill_combo(self.models, models, self._wanted or (_LIVE if live else self._before))
        if self.models.currentData() != before:
            self._on_model_changed()
        else:
            self.changed.emit()

    def _has_model(self, run: RunSummary) -> bool:
        recipes = self._session.catalog.recipes
        return bool(run.record and run.record.recipe in recipes and run.saved_step)

    def _sort_key(self, run: RunSummary) -> bool:
        recipe = self._session.catalog.recipes.get(run.record.recipe) if run.record else None
        return self._first is not None and (recipe is None or self._first not in recipe.capabilities)

    @Slot()
    def _on_model_activated(self) -> None:
        self._wanted = self.models.currentData() or ""

    @Slot()
    def _on_checkpoint_activated(self) -> None:
        self._checkpoints[self.models.currentData()] = self.checkpoints.currentData()

    @Slot()
    def _on_model_changed(self) -> None:
        chosen = self.models.currentData()
        self.checkpoints.clear()
        self._quick = ()
        self._checkpoint_box.setVisible(bool(chosen) and chosen != _LIVE)
        self.list_checkpoints()
        self.changed.emit()

    @Slot(object)
    def _on_checkpoints_listed(self, listed: RunCheckpoints) -> None:
        if str(listed.run) != self.models.currentData():
            return
        self._quick = listed.quick
        names = tuple(self.checkpoints.itemData(index) for index in range(self.checkpoints.count()))
        if names != listed.names:
            titles = [_TITLES.get(name) or f"Step {formatting.number(int(name))}" for name in listed.names]
            wanted = self._checkpoints.get(str(listed.run), "best")
            factory.fill_combo(self.checkpoints, zip(titles, listed.names, strict=True), wanted)
        if self._wanted == str(listed.run) and self._wanted_checkpoint in listed.names:
            self.checkpoints.setCurrentIndex(self.checkpoints.findData(self._wanted_checkpoint))
            self._wanted_checkpoint = ""
        self.changed.emit()
