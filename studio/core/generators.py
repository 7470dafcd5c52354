"""Run generators. Imports nothing heavy: benchmarks import this module before torch."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def run_to_end(generator: Generator[object, None, T]) -> T:
    """Run a generator to its end and return its return value."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
