"""Experiments that misbehave, importable by the process that they run in."""

from __future__ import annotations

import os

from studio.core.errors import TrainingError
from studio.core.events import Events, Progress
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome


class FakeExperiment(Experiment):
    """One that ends at once; it says on which sprites."""

    name, title, question, seconds = "toy", "Toy", "Does it work?", 1.0

    def run(self, context: ExperimentContext) -> Events:
        print("this must not get in between")  # noqa: T201
        yield Progress(1, 2, "things")
        yield Outcome(sentences=(f"{len(context.sprites)} sprites, seed {context.config.seed}.",))

    def code(self, context: ExperimentContext) -> str:
        return "pass"


class Dying(FakeExperiment):
    """Ends its process in the middle."""

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(1, 2, "things")
        os._exit(3)


class Refusing(FakeExperiment):
    """Can't do it with these sprites."""

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(0, 0, "things")
        raise TrainingError("These sprites won't do.", "Take others.")


class Broken(FakeExperiment):
    """Has a bug."""

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(1 // 0, 0, "never")
