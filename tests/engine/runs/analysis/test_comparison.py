"""Runs beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.core.events import SamplesReady
from studio.engine.runs.analysis.comparison import (
    ComparedRun,
    ComparisonRow,
    comparison_rows,
    differences,
    explain_best,
    shared_positions,
)
from studio.engine.runs.evaluation import CheckpointEvaluation
from studio.engine.runs.folder import RunProgress, RunRecord
from studio.engine.runs.history import HistoryRead, MetricCurve, RunHistory
from studio.engine.runs.listing import RunSummary
from studio.recipes.generator import GeneratorConfig

CONFIG = GeneratorConfig().to_json()


def _record(**config: Any) -> RunRecord:
    settings = {**CONFIG, **config}
    return RunRecord(
        "run", "generator", settings, 8, ("a",), "discs", 24, "f" * 64, "cpu", "CPU", "fp32", 100, "", {}, "group"
    )


def _curve(*points: tuple[int, float]) -> MetricCurve:
    return MetricCurve(np.array([step for step, _ in points], np.int64), np.array([value for _, value in points]))


def _run(
    record: RunRecord,
    *,
    loss: float = 1.0,
    kid: tuple[float, float] | None = None,
    evaluation: CheckpointEvaluation | None = None,
    steps: Sequence[int] = (),
    elapsed: Sequence[tuple[int, float]] = ((10, 1.0), (30, 5.0)),
) -> ComparedRun:
    history = RunHistory({"elapsed_s": _curve(*elapsed), "sprites_per_s": _curve((10, 50.0))})
    history.validation = {"loss": _curve((10, 9.0), (30, loss))}
    if kid is not None:
        of = {"kid": kid[0], "kid_error": kid[1], "kid_real": 0.001, "copies": 0.0, "copies_real": 0.05}
        history.quality = {name: _curve((20, value)) for name, value in of.items()}
    film = tuple(SamplesReady(step, np.zeros((1, 8, 8, 4), np.uint8)) for step in steps)
    read = HistoryRead(Path("run"), history, film, () if evaluation is None else (evaluation,))
    return ComparedRun(
        "run", record, RunSummary(Path("run"), record, RunProgress("stopped", 30, 5.0, {}), "stopped"), read
    )


def _evaluated(count: int = 64, **figures_: float) -> CheckpointEvaluation:
    return CheckpointEvaluation(30, "", figures_, {"class_agreement": 0.9}, 20, 80, count)


def _row(rows: Sequence[ComparisonRow], title: str) -> ComparisonRow:
    return next(row for row in rows if row.title == title)


def test_only_what_differs_is_told_also_of_runs_that_are_older_than_a_setting() -> None:
    older = {name: value for name, value in CONFIG.items() if name not in ("epochs", "optimizer")}
    old = replace(_record(), config={**older, "batch_size": 32})
    rows = differences([_record(batch_size=64, optimizer="adamw", flip=True), old])
    assert {row.title: row.texts for row in rows} == {
        "Batch size": ("64 sprites", "32 sprites"),
        "Mirror": ("yes", "no"),
    }
    assert not differences([_record(), _record()])
    other = replace(_record(), data_title="rings", device_name="GPU")
    assert [row.title for row in differences([_record(), other])] == ["Sprites", "Device"]


@pytest.mark.parametrize(
    ("config", "other", "marked"),
    [
        ({}, {"batch_size": 32}, {0}),  # a lower loss of the same kind
        ({}, {"colours": 0}, set()),  # the loss is another one
        ({}, {"holdout": 0.5}, set()),  # other sprites were held out
        ({"seed": 1}, {"seed": 2}, set()),
    ],
)
def test_losses_of_different_recipes_have_no_best(
    config: Mapping[str, Any], other: Mapping[str, Any], marked: set[int]
) -> None:
    runs = [_run(_record(**config), loss=0.5), _run(_record(**other), loss=0.75)]
    row = _row(comparison_rows(runs), "Validation loss")
    assert (row.texts, row.better, set(row.best)) == (("0.5", "0.75"), "lower is better", marked)
    assert row.marked()[0] == ("best 0.5" if marked else "0.5")
    assert ("Only the best speed" in explain_best(runs)) == ("holdout" in other or "seed" in other)


def test_differences_within_chance_share_the_best_mark() -> None:
    runs = [_run(_record(), kid=kid) for kid in ((0.20, 0.01), (0.05, 0.01), (0.06, 0.01))]
    row = _row(comparison_rows([*runs, _run(_record())]), "KID while training")
    assert row.best == {1, 2} and row.texts[-1] == ""
    assert _row(comparison_rows(runs[1:]), "KID while training").best == set()  # all of them: nothing to tell apart


def test_evaluations_compare_by_equal_numbers_and_by_what_real_sprites_give() -> None:
    found = [_evaluated(class_agreement=share, recall=share) for share in (0.95, 0.5, 1.0)]
    rows = comparison_rows([_run(_record(), evaluation=one) for one in found])
    assert _row(rows, "Recall").best == {2} and _row(rows, "Class match").best == {0}
    assert _row(rows, "Class match").texts[1] == "50 % (real 90 %)"
    assert _row(rows, "New sprites judged").texts == ("64", "64", "64")
    unequal = [found[0], _evaluated(32, recall=0.5)]
    assert _row(comparison_rows([_run(_record(), evaluation=one) for one in unequal]), "Recall").best == set()
    heldout = [CheckpointEvaluation(30, "", {"accuracy": share}, {}, 20, 80) for share in (0.5, 0.75)]
    rows = comparison_rows([_run(_record(), evaluation=one) for one in heldout])
    assert _row(rows, "Validation accuracy, evaluated").marked() == ("50 %", "best 75 %")
    assert not any(row.title in ("Recall", "New sprites judged") for row in rows)
    rows = comparison_rows([_run(_record(), evaluation=one) for one in (*found, heldout[0])])
    assert _row(rows, "Recall").best == {2} and _row(rows, "Recall").texts[-1] == ""


def test_figures_of_sets_have_their_baselines_beside_them() -> None:
    record = replace(_record(), noun="character", set_count=7)
    figures, beside = {"exact up": 0.5, "surprisal": 1.25}, {"exact up": 0.25, "surprisal": 1.0}
    found = CheckpointEvaluation(30, "", figures, beside, 20, 80)
    rows = comparison_rows([_run(record, evaluation=found)])
    assert _row(rows, "Validation exact pixels up, evaluated").texts == ("50 % (copied 25 %)",)
    assert _row(rows, "Validation patch surprisal in bits, evaluated").texts == ("1.25 (real 1)",)
    assert _row(rows, "Speed").texts == ("50 characters/s",)


def test_samples_of_the_same_step_or_time_are_found() -> None:
    quick = _run(_record(), steps=(0, 10, 30))
    slow = _run(_record(), steps=(0, 8, 20), elapsed=((10, 20.0), (20, 40.0)))
    none = _run(_record())
    films = [run.film for run in (quick, slow, none)]
    assert slow.film.positions("time").tolist() == [0.0, 16.0, 40.0]
    assert shared_positions(films, "step") == [0, 8, 10, 20]
    assert shared_positions(films, "time") == [0.0, 1.0, 5.0]
    assert [film.nearest(10, "step") for film in films[:2]] == [1, 1]
    assert [film.nearest(5.0, "time") for film in films[:2]] == [2, 0]
    assert shared_positions([none.film], "step") == []
