"""Find experiments by name."""

from functools import cache

import studio.lab.experiments
from studio.core.discovery import discover, find_plugin
from studio.lab.experiments.base import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """Return the experiments by name, sorted by the attribute `order`."""
    return discover(studio.lab.experiments, Experiment)  # type: ignore[type-abstract]


def experiment(name: str) -> Experiment:
    """Return the named experiment. Raises UsageError for an unknown name."""
    return find_plugin(experiments(), name, "experiment")
