"""What tests of experiments share."""

from __future__ import annotations

from pathlib import Path

from studio.core.config import Value
from studio.core.generators import run_to_end
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.recipes.base import Recipe
from studio.recipes.classifier import Classifier
from tests.conftest import make_sprites
from tests.engine.tools import CPU, small_classifier


def small_context(seconds: float = 1.0, recipe: Recipe | None = None, **changes: Value) -> ExperimentContext:
    """A classifier whose step takes milliseconds, or a small model of that recipe."""
    config = small_classifier(**changes) if recipe is None else recipe.small.replace(**changes)
    return ExperimentContext.of(recipe or Classifier(), config, make_sprites(), CPU, seconds)


def context_for(experiment: Experiment, seconds: float = 1.0) -> ExperimentContext:
    """Return the inputs of an experiment on sprites, with a small classifier as the user's choice."""
    return experiment.context(Classifier(), small_classifier(), make_sprites(), CPU, seconds)


def context_of_run(run: Path, checkpoint: str = "best", seconds: float = 1.0) -> ExperimentContext:
    """To look into a run."""
    return run_to_end(ExperimentContext.of_run(run, checkpoint, CPU, seconds))


class InProcess:
    """An experiment in this process."""

    def __init__(self, experiment: Experiment, context: ExperimentContext) -> None:
        self.events = lambda: experiment.run(context)

    def close(self) -> None:
        """Nothing is left behind."""
