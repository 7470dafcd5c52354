from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from studio.core.events import Advised, Event, QualityMeasured, RunFinished, Validated
from studio.engine.runs.advice import Adviser, Measurement, advice, advice_by_figure, advice_on, best_step, measurements
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import History, read_history


def measured(
    kids: Iterable[float], copies: Iterable[float] = (), error: float = 0.01, real: float = 0.0
) -> list[Measurement]:
    """Measurements at steps 100, 200, ..., beside real sprites at a KID of `real` and 5 % of copies."""
    kids = list(kids)
    shares = [*copies] or [0.0] * len(kids)
    return [
        Measurement(
            100 * number,
            {"kid": kid, "kid_error": error, "kid_real": real, "copies": share, "copies_real": 0.05},
        )
        for number, (kid, share) in enumerate(zip(kids, shares, strict=True), 1)
    ]


@pytest.mark.parametrize(
    ("kids", "copies", "verdict", "best"),
    [
        ([0.5, 0.4, 0.3], [], "improving", 300),
        ([0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2], [], "improving", 700),
        ([0.3, 0.1, 0.005], [], "improving", 300),
        ([0.3, 0.005, 0.008], [], "good enough", 300),  # as near as real sprites, and that twice
        ([0.3, 0.2, 0.21, 0.2, 0.22], [], "improving", 400),
        ([0.3, 0.2, 0.21, 0.2, 0.22, 0.21], [], "good enough", 600),  # as good as the best, as far as can be told
        ([0.3, 0.2, 0.1], [0.0, 0.1, 0.3], "improving", 200),
        ([0.3, 0.2, 0.1, 0.001], [0.0, 0.1, 0.3, 0.4], "copying", 200),
    ],
)
def test_what_is_said_of_a_training(kids: list[float], copies: list[float], verdict: str, best: int) -> None:
    found = advice(measured(kids, copies))
    assert found is not None and (found.verdict, found.best_step) == (verdict, best)
    words = {"copying": ("40 %", "5 %"), "good enough": ("step 200",) if len(kids) > 3 else ()}.get(verdict, ())
    assert all(word in found.why for word in words)


def test_nothing_is_said_of_two_measurements_or_none() -> None:
    assert advice(measured([0.5, 0.4])) is None
    assert measurements(History()) == [] and advice_on(History()) is None
    figures = {"kid": 0.3, "kid_error": 0.01, "kid_real": 0.0}  # of sprites that were not looked through for copies
    found = advice([Measurement(step, figures) for step in (1, 2, 3)])
    assert found is not None and found.verdict == "improving"


def test_real_sprites_that_are_like_each_other_are_no_nearer_than_they_are() -> None:
    """Figures of 819 sprites of figures with little difference, of which 1 in 10 was held out."""
    nearing = [0.047, -0.02, -0.066, -0.088, -0.111]
    for count in range(3, 6):
        found = advice(measured(nearing[:count], error=0.05, real=-0.166))
        assert found is not None and found.verdict == "improving"
    there = advice(measured([*nearing, -0.12, -0.13], error=0.05, real=-0.166))
    assert there is not None and there.verdict == "good enough" and there.best_step == 700


def test_where_all_but_mush_copy_the_one_that_copies_least_is_the_best() -> None:
    """Figures of 60 sprites that were learnt by heart before they were first measured."""
    kids, copies = [6.8, 0.42, 0.42, 0.46], [0.0, 0.23, 0.57, 0.58]
    assert [best_step(measured(kids[:count], copies[:count])) for count in (1, 2, 3, 4)] == [100, 200, 200, 200]
    assert best_step(measured([0.3, 0.2, 0.1], [0.9, 0.9, 0.9])) == 100  # where all copy alike


def test_news_is_told_once_and_events_are_handed_on() -> None:
    figures = [one.figures for one in measured([0.5, 0.4, 0.3, 0.2, 0.001, 0.002])]
    events: list[Event] = [QualityMeasured(100 * number, values) for number, values in enumerate(figures, 1)]
    events.append(RunFinished("finished", 600, 1.0, Path()))
    told = list(Adviser(History()).follow(event for event in events))
    assert [event for event in told if not isinstance(event, Advised)] == events
    assert [(event.step, event.verdict) for event in told if isinstance(event, Advised)] == [
        (300, "improving"),
        (600, "good enough"),
    ]


def test_a_resumed_run_remembers_what_was_measured(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    before = measured([0.5, 0.4, 0.3])
    for one in before:
        run.append(QualityMeasured(one.step, one.figures))
    past = read_history(tmp_path)
    assert measurements(past) == before
    event = QualityMeasured(400, measured([0.2])[0].figures)
    assert list(Adviser(past).follow(event for event in [event])) == [event]  # improving was said before


def test_an_accuracy_that_has_not_risen_for_long_is_good_enough() -> None:
    rising = [(100, 0.5), (200, 0.6), (300, 0.7)]
    assert advice_by_figure("accuracy", rising[:2]) is None
    found = advice_by_figure("accuracy", rising)
    assert found is not None and found.verdict == "improving"
    soon = [*rising, *((300 + number, 0.65) for number in range(1, 6))]
    found = advice_by_figure("accuracy", soon)
    assert found is not None and found.verdict == "improving"
    found = advice_by_figure("accuracy", [*soon, (450, 0.7)])
    assert found is not None and (found.verdict, found.best_step) == ("good enough", 300)
    assert "70 % of step 300" in found.why


def test_a_regression_is_told_by_how_near_it_comes() -> None:
    events: list[Event] = [
        Validated(100 * n, {"loss": 1.0, "r2": r2}) for n, r2 in enumerate([0.1, 0.5, 0.8] + [0.7] * 6)
    ]
    told = [event for event in Adviser(History()).follow(event for event in events) if isinstance(event, Advised)]
    assert [(event.step, event.verdict, event.best_step) for event in told] == [
        (200, "improving", 200), (600, "good enough", 200),
    ]  # fmt: skip
    assert "come no nearer to their true numbers since step 200" in told[1].why


def test_a_classifier_is_told_by_its_accuracy(tmp_path: Path) -> None:
    events: list[Event] = [Validated(step, {"loss": 1.0, "accuracy": 0.5}) for step in range(100, 700, 100)]
    told = [event for event in Adviser(History()).follow(event for event in events) if isinstance(event, Advised)]
    assert [(event.step, event.verdict) for event in told] == [(300, "improving"), (500, "good enough")]
    run = RunDir(tmp_path)
    for event in events:
        assert isinstance(event, Validated)
        run.append(event)
    found = advice_on(read_history(tmp_path))
    assert found is not None and found.verdict == "good enough"
