"""All experiments by name."""

from functools import cache

import studio.lab.experiments
from studio.core.discovery import discover, find_plugin
from studio.lab.experiments.base import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """Return all experiments by name, sorted by their attribute `order`."""
    return discover(studio.lab.experiments, Experiment)  # type: ignore[type-abstract]


def experiment(name: str) -> Experiment:
    """Return the experiment with this name. Raises UsageError if the name is unknown."""
    return find_plugin(experiments(), name, "experiment")
