"""What every experiment must do, whatever it is: measure something within its time, say it in numbers, and be kept."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from studio.core import records
from studio.core.errors import UsageError
from studio.core.events import Event, Progress
from studio.core.generators import run_to_end
from studio.engine.devices.types import Device
from studio.lab.catalog import experiments
from studio.lab.experiments.base import MOST_S, Experiment, ExperimentContext
from studio.lab.outcome import Outcome
from studio.lab.report import page_of
from studio.lab.running import result_of, run_experiment
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import train_classifier, train_generator, train_regression
from tests.environment import THREADS
from tests.lab.tools import context_for, context_of_run

Runs = Mapping[str, Path]  # small ones, by recipe
Outcomes = Callable[[Experiment], list[tuple[ExperimentContext, list[Event]]]]

_SECONDS = 0.6  # for what may last: fewer, and one of them might end without being told
SLOW = {  # they take long, however small the network is; or another default test takes the same way
    "compile", "cuda-graph", "program-classifier", "program-generator", "program-regression",
}  # fmt: skip
EXPERIMENTS = [
    pytest.param(experiment, marks=[pytest.mark.slow] * (name in SLOW), id=name)
    for name, experiment in experiments().items()
]

pytestmark = pytest.mark.parametrize("experiment", EXPERIMENTS)


def test_it_introduces_itself(experiment: Experiment) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", experiment.name) and experiment.title
    assert experiment.question.endswith("?") and 0 < experiment.seconds <= MOST_S
    title, address = experiment.read_on
    assert not address or (title and re.match(r"https://(docs\.)?pytorch\.org/", address))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One of a generator, one of a classifier and one of a regression, of a few steps, which watched their layers."""
    folder, sprites = tmp_path_factory.mktemp("inside"), with_numbers(make_sprites(size=16))
    made = {"generator": train_generator, "classifier": train_classifier, "regression": train_regression}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        for name, train in made.items():
            run_to_end(train(folder / name, sprites, log_layer_stats=True))
    return {name: folder / name for name in made}


@pytest.fixture(scope="module")
def of_runs(runs: Runs) -> list[ExperimentContext]:
    """To look into each of the runs."""
    return [context_of_run(run, seconds=_SECONDS) for run in runs.values()]


def _contexts(experiment: Experiment, of_runs: list[ExperimentContext]) -> list[ExperimentContext]:
    """What it is tried with: sprites, or each run that it can be done with."""
    if experiment.subject == "sprites":
        return [context_for(experiment, _SECONDS)]
    return [context for context in of_runs if not experiment.unsupported_reason(context.recipe)]


@pytest.fixture(scope="module")
def outcomes(of_runs: list[ExperimentContext]) -> Outcomes:
    """The events of an experiment of a second with each of its benches, which is done once."""

    @functools.cache
    def once(experiment: Experiment) -> list[tuple[ExperimentContext, list[Event]]]:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("studio.lab.experiments.threads._LEAST_ROUNDS", 1)
                patch.setattr("studio.lab.experiments.moving_data._TURNS", 1)
                patch.setattr("studio.lab.experiments.moving_data._WORKERS", (1,))  # each is a process
                return [(context, list(experiment.run(context))) for context in _contexts(experiment, of_runs)]
        finally:
            torch.set_num_threads(THREADS)

    return once


def test_it_measures_and_says_so(experiment: Experiment, outcomes: Outcomes) -> None:
    assert outcomes(experiment)
    for context, events in outcomes(experiment):
        assert any(isinstance(event, Progress) and event.done for event in events)
        outcome = events[-1]
        assert isinstance(outcome, Outcome)
        assert outcome.sentences and all(re.search(r"[.!]$", sentence) for sentence in outcome.sentences)
        assert any(re.search(r"\d", sentence) for sentence in outcome.sentences)
        _check(outcome)
        context.config.replace(**outcome.suggests)  # they are settings, within their bounds
        assert (outcome.step is None) == (experiment.subject == "sprites")
        assert pickle.loads(pickle.dumps(outcome)) == outcome  # as it comes from its process
        assert records.parse(json.dumps(dataclasses.asdict(outcome)), Outcome) == outcome  # as it is kept


def test_examined_run_is_unchanged(
    experiment: Experiment, runs: Runs, of_runs: list[ExperimentContext], outcomes: Outcomes
) -> None:
    for context in _contexts(experiment, of_runs):
        asked = pickle.loads(pickle.dumps((experiment, context)))[1]  # as its process is asked
        assert (asked.run, asked.checkpoint, len(asked.sprites)) == (
            context.run,
            context.checkpoint,
            len(context.sprites),
        )
    before = {run: _contents(run) for run in runs.values()}
    outcomes(experiment)
    assert before == {run: _contents(run) for run in runs.values()}


def _contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of each file."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {str(path): (about.st_size, about.st_mtime_ns) for path, about in found.items()}


def test_unsuitable_run_is_refused_with_a_sentence(experiment: Experiment, of_runs: list[ExperimentContext]) -> None:
    for context in of_runs:
        if (problem := experiment.unsupported_reason(context.recipe)) and experiment.subject == "run":
            assert problem.endswith(".")
            with pytest.raises(UsageError, match=re.escape(problem)):
                next(run_experiment(experiment, context))


def _check(outcome: Outcome) -> None:
    """There is something to look at, in its order."""
    assert outcome.plots or outcome.tables
    for plot in outcome.plots:
        assert plot.title and plot.x.title and plot.y.title and plot.lines and all(mark.words for mark in plot.marks)
        assert all(line.x and list(line.x) == sorted(line.x) for line in plot.lines)
    assert all(table.rows for table in outcome.tables)
    assert all(picture.title and picture.about.endswith(".") for picture in outcome.pictures)
    assert all(picture.pixels().size for picture in outcome.pictures)


def test_its_plain_code_runs(
    experiment: Experiment, of_runs: list[ExperimentContext], capsys: pytest.CaptureFixture[str]
) -> None:
    code = experiment.code(_contexts(experiment, of_runs)[0])
    lines = [line for line in code.splitlines() if not line.startswith("folder = ")]  # the learner's own path
    assert "import torch" in lines and "studio" not in "\n".join(lines) and max(map(len, lines)) <= 100
    try:
        exec(compile(code, f"{experiment.name}.py", "exec"), {"__name__": "__main__"})
    finally:
        torch.set_num_threads(THREADS)
    assert re.search(r"\d", capsys.readouterr().out)


def test_other_devices_are_offered_or_refused_in_a_sentence(experiment: Experiment) -> None:
    for kind in ("cuda", "mps", "xpu", "cpu"):
        obstacle = experiment.obstacle(Device(kind, kind, "A device", 1, 1))
        assert not obstacle or obstacle.endswith(".")


def test_its_report_needs_nothing_else(experiment: Experiment, outcomes: Outcomes) -> None:
    context, (*_, outcome) = outcomes(experiment)[0]
    assert isinstance(outcome, Outcome)
    result = result_of(experiment, context, outcome, 1.0)
    page = page_of([result])
    assert page.count("<img ") == len(outcome.plots) + len(outcome.pictures)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(source.startswith("data:") or source == experiment.read_on[1] for source in sources)
    assert all(html.escape(sentence) in page for sentence in outcome.sentences)
    assert result.examined() in page
