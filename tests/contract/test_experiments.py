"""What every experiment must do, whatever it is: measure something within its time, say it in numbers, and be kept."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import pickle
import re
from collections.abc import Callable

import pytest
import torch

from studio.core import records
from studio.core.events import Event, Progress
from studio.engine.types import Device
from studio.lab.catalog import experiments
from studio.lab.experiments.base import MOST_S, Experiment
from studio.lab.outcome import Outcome
from studio.lab.report import page_of
from studio.lab.running import result_of
from tests.conftest import THREADS
from tests.lab.tools import small_bench

Run = Callable[[Experiment], list[Event]]

SLOW = {"compile"}  # which takes a minute, however small the network is
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
def run() -> Run:
    """The events of an experiment of a second, which is done once."""

    @functools.cache
    def once(experiment: Experiment) -> list[Event]:
        try:
            return list(experiment.run(small_bench(seconds=1.0)))
        finally:
            torch.set_num_threads(THREADS)

    return once


def test_it_measures_and_says_so(experiment: Experiment, run: Run) -> None:
    events = run(experiment)
    assert any(isinstance(event, Progress) and event.done for event in events)
    outcome, config = events[-1], small_bench().config
    assert isinstance(outcome, Outcome)
    assert outcome.sentences and all(re.search(r"[.!]$", sentence) for sentence in outcome.sentences)
    assert any(re.search(r"\d", sentence) for sentence in outcome.sentences)
    _check(outcome)
    config.replace(**outcome.suggests)  # they are settings, within their bounds
    assert pickle.loads(pickle.dumps(outcome)) == outcome  # as it comes from its process
    assert records.parse(json.dumps(dataclasses.asdict(outcome)), Outcome) == outcome  # as it is kept


def _check(outcome: Outcome) -> None:
    """There is something to look at, in its order."""
    assert outcome.plots or outcome.tables
    for plot in outcome.plots:
        assert plot.title and plot.x.title and plot.y.title and plot.lines and all(mark.words for mark in plot.marks)
        assert all(line.x and list(line.x) == sorted(line.x) for line in plot.lines)
    assert all(table.rows for table in outcome.tables)
    assert all(picture.title and picture.pixels().size for picture in outcome.pictures)


def test_its_plain_code_runs(experiment: Experiment, capsys: pytest.CaptureFixture[str]) -> None:
    code = experiment.code(small_bench())
    assert "import torch\n" in code and "studio" not in code and max(map(len, code.splitlines())) <= 100
    try:
        exec(compile(code, f"{experiment.name}.py", "exec"), {"__name__": "__main__"})
    finally:
        torch.set_num_threads(THREADS)
    assert re.search(r"\d", capsys.readouterr().out)


def test_other_devices_are_offered_or_refused_in_a_sentence(experiment: Experiment) -> None:
    for kind in ("cuda", "mps", "xpu", "cpu"):
        obstacle = experiment.obstacle(Device(kind, kind, "A device", 1, 1))
        assert not obstacle or obstacle.endswith(".")


def test_its_report_needs_nothing_else(experiment: Experiment, run: Run) -> None:
    outcome = run(experiment)[-1]
    assert isinstance(outcome, Outcome)
    page = page_of([result_of(experiment, small_bench(), outcome, 1.0)])
    assert page.count("<img ") == len(outcome.plots) + len(outcome.pictures)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(source.startswith("data:") or source == experiment.read_on[1] for source in sources)
    assert all(html.escape(sentence) in page for sentence in outcome.sentences)
