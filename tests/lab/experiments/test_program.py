"""The tutorials' programs beside the studio's trainings: both stop in time on a slow computer."""

from __future__ import annotations

import pytest

from studio.core.events import Progress
from studio.lab.catalog import experiments
from studio.lab.experiments.program import Program
from studio.lab.outcome import Outcome
from studio.lab.report import page_of
from studio.lab.running import result_of
from tests.lab.tools import context_for


@pytest.mark.parametrize("name", [name for name, each in experiments().items() if isinstance(each, Program)])
def test_without_time_both_trainings_take_a_step(name: str) -> None:
    program = experiments()[name]
    events = list(program.run(context_for(program, seconds=0)))
    outcome = events[-1]
    assert isinstance(outcome, Outcome)
    assert [row[1] for row in outcome.tables[0].rows] == ["1", "1"]
    assert "the program took 1 step, the studio 1 step" in outcome.sentences[0]
    told = [event.what for event in events if isinstance(event, Progress)]
    assert "training with the tutorial's program, for at most 0 s" in told


def test_regression_names_the_predicted_number() -> None:
    program = experiments()["program-regression"]
    (outcome,) = [event for event in program.run(context_for(program, seconds=0)) if isinstance(event, Outcome)]
    assert outcome.sentences[1] == "The predicted number: opaque pixels in %."


def test_the_result_names_the_trained_recipe_and_settings() -> None:
    program = experiments()["program-generator"]
    result = result_of(program, context_for(program), Outcome(), 1.0)
    assert (result.recipe, result.settings["precision"]) == ("generator", "fp32")
    assert (result.settings["batch_size"], result.settings["epochs"]) == (64, 5)
    page = page_of([result])
    assert "<td>generator</td>" in page and "batch size 64" in page
