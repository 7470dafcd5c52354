"""The Lab's reasons against an experiment, for the recipe that the experiment trains."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from studio.app.state.lab import Lab
from studio.app.state.session import Session
from studio.core.config import TrainingConfig
from studio.core.errors import StudioError
from studio.engine import catalog
from studio.lab import running
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.recipes.base import Recipe
from tests.app.conftest import LONG_MS, open_sprites
from tests.lab.fake_experiments import FakeExperiment
from tests.lab.tools import InProcess


class FakeClassifier(FakeExperiment):
    """Trains a classifier with settings of its own."""

    name, title = "toy-classifier", "Toy classifier"

    def choose_recipe(self, recipe: Recipe, config: TrainingConfig) -> tuple[Recipe, TrainingConfig]:
        own = catalog.recipe("classifier")
        return own, own.Config()


class FakeForSets(FakeExperiment):
    """Works with every recipe."""

    sets_obstacle = ""


class Accepting(InProcess):
    """A process that runs the toy instead of the started experiment."""

    def __init__(self, experiment: Experiment, context: ExperimentContext) -> None:
        super().__init__(FakeExperiment(), context)


@pytest.fixture
def lab(qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The Lab with 24 sprites that form no sets, and the recipe of sets chosen."""
    monkeypatch.setattr(running, "_Process", InProcess)
    open_sprites(qtbot, ready, sprite_folder)
    ready.setup.choose_recipe("sets")
    return ready.lab


def test_an_experiment_with_its_own_recipe_ignores_the_chosen_one(qtbot: QtBot, ready: Session, lab: Lab) -> None:
    experiment = FakeClassifier()
    assert ready.setup.problem() and not lab.problem(experiment)
    ready.setup.set_invalid("Batch size must be at least 1, not 0.")
    assert not lab.problem(experiment)
    with qtbot.waitSignal(lab.done, timeout=LONG_MS) as done:
        lab.start(experiment)
    assert done.args[0].recipe == "classifier" and done.args[0].data_count == 24


def test_experiments_on_the_chosen_recipe_name_its_problems(ready: Session, lab: Lab) -> None:
    unsupported = "This experiment needs a model of single sprites. Choose another recipe."
    assert lab.problem(FakeExperiment()) == unsupported
    assert lab.problem(FakeForSets()) == ready.setup.problem() != ""
    ready.setup.choose_recipe("generator")
    assert not lab.problem(FakeExperiment())
    ready.setup.set_invalid("Batch size must be at least 1, not 0.")
    assert lab.problem(FakeExperiment()) == "Batch size must be at least 1, not 0."


def test_no_experiment_starts_without_sprites(ready: Session) -> None:
    assert ready.lab.problem(FakeClassifier()) == "Open a folder of sprites first."


def test_problems_before_the_start_are_the_refusals_after_it(
    ready: Session, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_Process", Accepting)
    found = [experiment for experiment in ready.catalog.experiments.values() if experiment.subject == "sprites"]
    problems = {experiment.name: bool(lab.problem(experiment)) for experiment in found}
    assert problems == {experiment.name: _is_refused(experiment, ready) for experiment in found}
    assert set(problems.values()) == {True, False}


def _is_refused(experiment: Experiment, session: Session) -> bool:
    """Return whether an experiment on the open sprites fails at its start."""
    setup, sprites, device = session.setup, session.open_sprites.sprites, session.device_choice.device
    assert setup.recipe is not None and setup.config is not None and sprites is not None and device is not None
    try:
        context = experiment.context(setup.recipe, setup.config, sprites, device, 1.0)
        list(running.measure(experiment, context))
    except StudioError:
        return True
    return False
