"""The tutorials' programs beside the studio's trainings: both stop in time on a slow computer."""

from __future__ import annotations

import pytest

from studio.core.events import Progress
from studio.lab.catalog import experiments
from studio.lab.experiments.program import Program
from studio.lab.outcome import Outcome
from tests.lab.tools import small_context


@pytest.mark.parametrize("name", [name for name, each in experiments().items() if isinstance(each, Program)])
def test_without_time_both_trainings_take_a_step(name: str) -> None:
    events = list(experiments()[name].run(small_context(seconds=0)))
    outcome = events[-1]
    assert isinstance(outcome, Outcome)
    assert [row[1] for row in outcome.tables[0].rows] == ["1", "1"]
    assert "the program took 1 step, the studio 1 step" in outcome.sentences[0]
    told = [event.what for event in events if isinstance(event, Progress)]
    assert "training with the tutorial's program, for at most 0 s" in told


def test_regression_names_the_predicted_number() -> None:
    (outcome,) = [
        event
        for event in experiments()["program-regression"].run(small_context(seconds=0))
        if isinstance(event, Outcome)
    ]
    assert outcome.sentences[1] == "Both predict a number of each sprite: opaque pixels in %."
