"""What tests of experiments share."""

from __future__ import annotations

from studio.core.config import Value
from studio.lab.experiments.base import Bench
from studio.recipes.classifier import Classifier
from tests.conftest import make_sprites
from tests.engine.tools import CPU, small_classifier


def small_bench(seconds: float = 1.0, **changes: Value) -> Bench:
    """A classifier whose step takes milliseconds."""
    return Bench.of(Classifier(), small_classifier(**changes), make_sprites(), CPU, seconds)
