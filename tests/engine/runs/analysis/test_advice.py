from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from studio.core.events import Advised, CheckpointSaved, Event, QualityMeasured, RunFinished, Validated
from studio.core.metrics import Quality
from studio.engine.runs.analysis.advice import (
    Adviser,
    Measurement,
    advice_by_quality,
    advice_for,
    best_step,
    measurements,
)
from studio.engine.runs.history import RunHistory, read_history
from tests.engine.tools import bare_run, of_kind


def measured(
    kids: Iterable[float], copies: Iterable[float] = (), error: float = 0.01, real: float = 0.0
) -> list[QualityMeasured]:
    """Measurements at steps 100, 200, ..., beside real sprites at a KID of `real` and 5 % of copies."""
    kids = list(kids)
    shares = [*copies] or [0.0] * len(kids)
    return [
        QualityMeasured(100 * number, Quality(kid, error, real, share, 0.05))
        for number, (kid, share) in enumerate(zip(kids, shares, strict=True), 1)
    ]


def known(events: Iterable[QualityMeasured]) -> list[Measurement]:
    return [Measurement(event.step, event.quality) for event in events]


def told(events: Sequence[Event], past: RunHistory | None = None) -> list[Event]:
    return list(adviser(past).follow(event for event in events))


def adviser(past: RunHistory | None = None, used_up: float = 1.0) -> Adviser:
    return Adviser(past or RunHistory(), lambda: used_up)


def news(events: Sequence[Event]) -> list[tuple[int, str, int]]:
    """Step, verdict and best step of each advice."""
    return [(one.step, one.verdict, one.best_step) for one in of_kind(told(events), Advised)]


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
def test_advice_on_a_training(kids: list[float], copies: list[float], verdict: str, best: int) -> None:
    found = advice_by_quality(known(measured(kids, copies)))
    assert found is not None and (found.verdict, found.best_step) == (verdict, best)
    words = {"copying": ("40 %", "5 %"), "good enough": ("step 200",) if len(kids) > 3 else ()}.get(verdict, ())
    assert all(word in found.why for word in words)


def test_no_advice_before_three_measurements() -> None:
    assert advice_by_quality(known(measured([0.5, 0.4]))) is None
    assert measurements(RunHistory()) == [] and advice_for(RunHistory(), 1.0) is None


@pytest.mark.parametrize(
    ("kids", "copies", "ends_at", "verdict"),
    [
        ([0.5 - 0.05 * number for number in range(10)], [], None, ""),
        ([0.3, 0.2, 0.1, *[0.005] * 3], [], None, ""),  # as near as real sprites, but that thrice only
        ([0.3, 0.2, 0.1, *[0.005] * 4], [], 700, "good enough"),
        ([0.3, 0.2, *[0.005] * 3, 0.1, *[0.005] * 3], [], None, ""),  # chance has come between
        ([0.3, *[0.2] * 8], [], None, ""),
        ([0.3, 0.2, *[0.2] * 8], [], 1000, "good enough"),
        ([0.2] * 6, [0.0, *[0.4] * 5], 600, "copying"),  # not before there are six
        ([0.2] * 6, [0.0, 0.4, 0.4, 0.0, 0.4, 0.4], None, ""),
    ],
)
def test_a_training_ends_only_on_advice_that_has_stood(
    kids: list[float], copies: list[float], ends_at: int | None, verdict: str
) -> None:
    followed, ended = adviser(), list[tuple[int, str]]()
    for event in measured(kids, copies):
        list(followed.follow(one for one in [event]))
        if followed.stop_advice is not None:
            ended.append((event.step, followed.stop_advice.verdict))
    assert ended[:1] == ([] if ends_at is None else [(ends_at, verdict)])


def test_a_resumed_training_ends_on_what_was_measured_before_and_none_ends_by_its_loss(tmp_path: Path) -> None:
    for event in measured([0.3, 0.2, *[0.2] * 8]):
        bare_run(tmp_path).append(event)
    found = adviser(read_history(tmp_path)).stop_advice
    assert found is not None and (found.step, found.verdict) == (1000, "good enough")
    followed = adviser()
    rising = [Validated(100 * number, {"loss": 0.1 * number}) for number in range(1, 30)]
    assert of_kind(list(followed.follow(event for event in rising)), Advised)[-1].verdict == "good enough"
    assert followed.stop_advice is None


def test_real_sprites_that_are_like_each_other_are_no_nearer_than_they_are() -> None:
    """Figures of 819 sprites of figures with little difference, of which 1 in 10 was held out."""
    nearing = [0.047, -0.02, -0.066, -0.088, -0.111, -0.12, -0.13]
    assert news(measured(nearing, error=0.05, real=-0.166)) == [(300, "improving", 300), (700, "good enough", 700)]


def test_fewest_copies_win_if_all_real_looking_models_copy() -> None:
    """Figures of 60 sprites that were learnt by heart before they were first measured."""
    found = known(measured([6.8, 0.42, 0.42, 0.46], [0.0, 0.23, 0.57, 0.58]))
    assert [best_step(found[:count]) for count in (1, 2, 3, 4)] == [100, 200, 200, 200]
    assert best_step(known(measured([0.3, 0.2, 0.1], [0.9, 0.9, 0.9]))) == 100  # where all copy alike


def test_changed_advice_is_yielded_once() -> None:
    events = [*measured([0.5, 0.4, 0.3, 0.2, 0.001, 0.002]), RunFinished("finished", 600, 1.0, Path())]
    assert [event for event in told(events) if not isinstance(event, Advised)] == events
    assert news(events) == [(300, "improving", 300), (600, "good enough", 600)]


def test_a_resumed_run_remembers_what_was_measured(tmp_path: Path) -> None:
    *before, after = measured([0.5, 0.4, 0.3, 0.2])
    for event in before:
        bare_run(tmp_path).append(event)
    past = read_history(tmp_path)
    assert measurements(past) == known(before)
    assert told([after], past) == [after]  # improving was said before


@pytest.mark.parametrize(
    ("figure", "values", "expected", "why"),
    [
        (
            "accuracy",
            {100: 0.5, 200: 0.6, 300: 0.7, **dict.fromkeys(range(301, 306), 0.65), 450: 0.7},
            [(300, "improving", 200), (450, "good enough", 300)],
            "above 70 % since step 300",
        ),
        (
            "r2",
            {0: 0.1, 100: 0.5, 200: 0.8, **dict.fromkeys(range(300, 900, 100), 0.7)},
            [(200, "improving", 100), (600, "good enough", 200)],
            "have not improved since step 200",
        ),
    ],
)
def test_flat_validation_metric_is_good_enough(
    tmp_path: Path, figure: str, values: dict[int, float], expected: list[tuple[int, str, int]], why: str
) -> None:
    events = list[Event]()
    for step, value in values.items():
        events += [Validated(step, {"loss": 1.0, figure: value}), CheckpointSaved(step, tmp_path)]
    assert news(events) == expected
    for event in events:
        if isinstance(event, Validated):
            bare_run(tmp_path).append(event)
    found = advice_for(read_history(tmp_path), 1.0)
    assert found is not None and found.verdict == "good enough" and why in found.why


def validated(losses: Sequence[float], accuracies: Sequence[float]) -> list[Event]:
    """Validations at steps 1, 2, ..."""
    pairs = enumerate(zip(losses, accuracies, strict=True), 1)
    return [Validated(step, {"loss": loss, "accuracy": accuracy}) for step, (loss, accuracy) in pairs]


def test_an_accuracy_that_stands_still_while_the_loss_falls_is_not_good_enough() -> None:
    falling, flat = [1.4, 1.2, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5], [1.4, 1.2, *[1.0] * 6]
    chance = [0.5, 0.65, *[0.6] * 6]  # 0.65 by chance: the model names few sprites right yet
    assert news(validated(falling, chance)) == [(3, "improving", 3)]
    assert [verdict for _, verdict, _ in news(validated(flat, chance))] == ["improving", "good enough"]
    perfect = [0.5, *[1.0] * 7]  # which can't rise
    assert [verdict for _, verdict, _ in news(validated(falling, perfect))] == ["improving", "good enough"]


def test_nothing_is_good_enough_in_the_first_tenth_of_the_budget() -> None:
    events = validated([1.0] * 8, [0.5, 0.6, *[0.55] * 6])
    early = list(adviser(used_up=0.05).follow(event for event in events))
    assert [one.verdict for one in of_kind(early, Advised)] == ["improving"]
    later = list(adviser(used_up=0.1).follow(event for event in events))
    assert [one.verdict for one in of_kind(later, Advised)] == ["improving", "good enough"]


def test_the_best_step_has_a_checkpoint(tmp_path: Path) -> None:
    """The accuracy was highest at step 2, which was not saved; of the saved ones it was at step 4."""
    events, saved = validated([1.0] * 9, [0.5, 0.8, 0.6, 0.7, *[0.6] * 5]), {3, 4, 6, 8}
    followed = list[Event]()
    for event in events:
        assert isinstance(event, Validated)
        followed += [event, *([CheckpointSaved(event.step, tmp_path)] if event.step in saved else [])]
        bare_run(tmp_path).append(event)
        if event.step in saved:
            bare_run(tmp_path).append({"checkpoint": event.step})
    assert news(followed)[-1][1:] == ("good enough", 4)
    found = advice_for(read_history(tmp_path), 1.0)
    assert found is not None and (found.verdict, found.best_step) == ("good enough", 4)


def test_rising_validation_loss_keeps_the_newest_model_best(tmp_path: Path) -> None:
    losses = {100: 0.5, 200: 0.3, 300: 0.31, 400: 0.34, 500: 0.36, 600: 0.43, 700: 0.53}
    events = list[Event]()
    for step, loss in losses.items():
        events += [Validated(step, {"loss": loss}), CheckpointSaved(step, tmp_path)]
        bare_run(tmp_path).append(Validated(step, {"loss": loss}))
        bare_run(tmp_path).append({"checkpoint": step})
    assert news(events) == [(300, "improving", 200), (600, "good enough", 500)]
    found = advice_for(read_history(tmp_path), 1.0)
    assert found is not None and (found.verdict, found.best_step) == ("good enough", 700)
    after = measured([0.3, 0.2, 0.1])  # new sprites are looked at themselves: their figures count
    assert news([*events, *after])[-1] == (300, "improving", 700)
    bare_run(tmp_path).append(after[0])  # a single one says nothing yet
    assert advice_for(read_history(tmp_path), 1.0) == found
    assert news([*events, after[0]])[-1] == (600, "good enough", 500)
    assert news([*after, *events]) == [(300, "improving", 300)]
