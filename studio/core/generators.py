"""Run generators. Imports nothing heavy: benchmarks import this module before torch."""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic, TypeVar

T = TypeVar("T")
Y = TypeVar("Y")


class Steps(Generic[Y, T]):
    """Iterates over a generator once, and then holds its return value in `result`."""

    result: T

    def __init__(self, work: Generator[Y, None, T]) -> None:
        self._work = work

    def __iter__(self) -> Generator[Y, None, None]:
        self.result = yield from self._work


def run_to_end(generator: Generator[object, None, T]) -> T:
    """Run a generator to its end and return its return value."""
    steps = Steps(generator)
    for _ in steps:
        pass
    return steps.result
