from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch

from studio.core.events import Blocked, CheckpointSaved, Event, LossChunk, Notice, QualityMeasured, Validated
from studio.core.generators import run_to_end
from studio.core.metrics import Quality
from studio.data.store import packed
from studio.engine.control.control import Control
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality import copies, features
from studio.engine.quality.features import learn_features
from studio.engine.quality.scores import kid
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.split import split_sprites
from studio.engine.sampling.generate import draw
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps import batches, timing
from studio.engine.training import loop, saving
from studio.engine.training import meter as quality
from studio.engine.training.meter import QualityMeter
from tests.conftest import make_sprites
from tests.engine.tools import CPU, TOY, nearest_training_sprites, of_kind, train_classifier, train_toy

SPRITES = make_sprites(60)  # of two classes: 24 are held out


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    _make_quick(monkeypatch)


def _make_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of learning to see, few sprites, and a slice after each step."""
    monkeypatch.setattr(loop, "TICK_S", 0.0)
    monkeypatch.setattr(features, "_STEPS", 3)
    monkeypatch.setattr(quality, "MIN_SPRITES", 20)
    monkeypatch.setattr(quality, "QUALITY_SPRITES", 24)
    monkeypatch.setattr(quality, "FINAL_SPRITES", 24)
    monkeypatch.setattr(copies, "_MAX_SHIFT_PX", 0)
    monkeypatch.setattr(quality, "TIME_SHARE", 1e6)
    monkeypatch.setattr(quality, "FEATURE_SHARE", 1e6)
    monkeypatch.setattr(timing, "SIDE_SHARE", 1e6)


def trained(path: Path, **changes: Any) -> list[Event]:
    return list(train_toy(path, SPRITES, **{"steps": 30, **changes}))


def figures_kept(run: Path) -> dict[int, Mapping[str, float]]:
    """The figures of each checkpoint by its step."""
    return {info.step: info.metrics for _, info in checkpoints.list_checkpoints(run / "checkpoints")}


@pytest.fixture(scope="module")
def measured_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[QualityMeasured]]:
    """A run that nobody changes, and its measurements."""
    path = tmp_path_factory.mktemp("runs") / "measured"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        _make_quick(patch)
        return path, of_kind(trained(path), QualityMeasured)


def test_measurements_are_saved_with_the_run(
    measured_run: tuple[Path, list[QualityMeasured]],
) -> None:
    path, measured = measured_run
    steps = [event.step for event in measured]
    assert len(steps) >= 2 and steps == sorted(set(steps)) and 0 < steps[0] < 30
    assert steps[-1] == 30  # the model that the run ends with
    curve = read_history(path).quality["kid"]
    assert curve.steps.tolist() == steps
    assert curve.values.tolist() == [event.quality.kid for event in measured]
    assert figures_kept(path)[30].items() >= vars(measured[-1].quality).items()


def test_measured_checkpoint_is_not_rotated_away(run_path: Path) -> None:
    control, measured = Control(), None
    for event in train_toy(run_path, SPRITES, control, steps=30):
        control.checkpoint_now = isinstance(event, LossChunk)  # a checkpoint a step, while measuring takes many
        if isinstance(event, QualityMeasured):
            measured, control.stop = event, True
    assert measured is not None
    assert figures_kept(run_path)[measured.step].items() >= vars(measured.quality).items()


@pytest.mark.slow
def test_expensive_checkpoints_are_not_saved_for_measuring(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SIDE_SHARE", 1e-9)
    first, last = of_kind(trained(run_path), CheckpointSaved)  # before the first, its cost is not known
    assert first.step < last.step == 30
    monkeypatch.setattr(quality, "CHECKPOINT_SHARE", 1e6)
    (last,) = of_kind(trained(run_path.with_name("apart")), CheckpointSaved)
    assert last.step == 30


def test_measurement_uses_the_weights_of_its_step(run_path: Path) -> None:
    first = of_kind(trained(run_path, lr_decay_share=0.0), QualityMeasured)[0]
    until_then = run_path.with_name("until then")
    trained(until_then, steps=first.step, lr_decay_share=0.0)
    sprites = packed.load(RunDir(run_path).data)
    split = split_sprites(RunDir(run_path).record(), TOY.Config(holdout=0.2), sprites)
    training, heldout = sprites.take(split.training), sprites.take(split.validation)
    seen = run_to_end(learn_features(training, torch.device("cpu"), "fp32"))
    labels = training.labels[np.random.default_rng(0).integers(len(training), size=24)]
    new = run_to_end(draw(load_model(until_then, "last", CPU), labels, GenerateSettings()))
    expected = kid(seen.of(heldout.rgba), seen.of(new))
    real = kid(seen.of(heldout.rgba), seen.of(training.rgba[::4]))  # 24 of 96
    copied, by_chance = (
        nearest_training_sprites(some, training, None, torch.device("cpu")).is_copy.mean()
        for some in (new, heldout.rgba)
    )
    assert first.against == "held-out"
    kept = Quality(expected.value, expected.error, real.value, float(copied), float(by_chance))
    assert vars(first.quality) == pytest.approx(vars(kept), rel=0.01)


@pytest.mark.slow
def test_few_held_out_sprites_are_replaced_by_training_sprites(run_path: Path) -> None:
    first = of_kind(trained(run_path, holdout=0.05), QualityMeasured)[0]
    assert first.against == "training"


def test_short_run_skips_measuring(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_STEPS", 100_000)
    monkeypatch.setattr(quality, "TIME_SHARE", 0.05)
    with patch.object(features, "corrupt", wraps=features.corrupt) as looks:
        assert not of_kind(trained(run_path), QualityMeasured)
    assert 0 < looks.call_count <= 30


def test_short_run_counts_copies_at_its_end(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its newest model copies, and so does the one before; older ones are not looked at once one does not."""

    def rising(model: TrainedModel, *_: object) -> Validated:
        return Validated(model.step, {"loss": 1.0 + model.step})

    monkeypatch.setattr(saving, "evaluate_heldout", rising)
    shares = iter([0.05, 0.6, 0.4, 0.0])  # of real sprites, then of the models, the newest first

    def copies(*_: object) -> Generator[Event, None, float]:
        yield from ()
        return next(shares)

    monkeypatch.setattr(features, "_STEPS", 100_000)
    monkeypatch.setattr(quality, "TIME_SHARE", 0.05)
    monkeypatch.setattr(quality, "FINAL_SHARE", 1e6)
    monkeypatch.setattr(quality, "_copies", copies)
    control, events = Control(), list[Event]()
    for event in train_toy(run_path, SPRITES, control, steps=8):
        control.checkpoint_now = isinstance(event, LossChunk)
        events.append(event)
    warned = [event for event in of_kind(events, Notice) if event.level == "warning"]
    assert "60 %" in warned[0].title and len(warned) == 1
    steps = [step for step, kept in sorted(figures_kept(run_path).items()) if "copies" in kept]
    assert len(steps) == 3 and steps[-1] == 8 and next(shares, None) is None
    assert load_model(run_path, "best", CPU).step == steps[0] < load_model(run_path, "last", CPU).step


@pytest.mark.slow
def test_slow_drawing_skips_the_copy_count(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_STEPS", 100_000)
    monkeypatch.setattr(quality, "TIME_SHARE", 0.05)
    monkeypatch.setattr(quality, "FINAL_SHARE", 1e-6)
    assert not any("copies" in figures for figures in (trained(run_path), figures_kept(run_path))[1].values())


@pytest.mark.slow
def test_slow_first_slices_do_not_end_measuring(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes leave 30 s for it: these forty slices take 6 s, of which the first five take 5."""
    now_s, advance, corrupt = 0.0, QualityMeter.advance, features.corrupt
    slices = itertools.count()

    def step(meter: QualityMeter) -> Iterator[Event]:
        nonlocal now_s
        now_s += 0.5
        return advance(meter)

    def look(*args: Any) -> Any:
        nonlocal now_s
        now_s += 1 if next(slices) < 5 else 0.02
        return corrupt(*args)

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now_s))
    monkeypatch.setattr(QualityMeter, "advance", step)
    monkeypatch.setattr(features, "corrupt", look)
    monkeypatch.setattr(features, "_STEPS", 40)
    monkeypatch.setattr(quality, "TIME_SHARE", 0.05)
    monkeypatch.setattr(quality, "FEATURE_SHARE", 0.2)
    events = train_toy(run_path, SPRITES, steps=0, minutes=10.0)
    assert any(isinstance(event, QualityMeasured) for event in events)
    events.close()


def test_measuring_does_not_change_training(
    measured_run: tuple[Path, list[QualityMeasured]], run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, figures = measured_run
    assert figures
    monkeypatch.setattr(quality, "MIN_SPRITES", 1000)  # sprites that it takes to measure at all
    assert not of_kind(trained(run_path), QualityMeasured)
    measured, unmeasured = (load_model(run, "last", CPU).network.state_dict() for run in (path, run_path))
    assert all(torch.equal(measured[name], unmeasured[name]) for name in measured)


@pytest.mark.slow
def test_copies_are_searched_in_parts_of_the_training_set(
    run_path: Path, measured_run: tuple[Path, list[QualityMeasured]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measured_run[1][0].quality
    monkeypatch.setattr(copies, "_MAX_BYTES", 10 * 4 * 4 * 8 * 8)  # ten sprites
    monkeypatch.setattr(batches, "_MAX_SAMPLED", 40)  # of which all other figures are
    in_parts = of_kind(trained(run_path, steps=45), QualityMeasured)[0].quality
    assert in_parts.copies_real == whole.copies_real


def test_classifier_is_not_measured(run_path: Path) -> None:
    assert not of_kind(list(train_classifier(run_path, SPRITES, steps=20)), QualityMeasured)


def test_failed_measurement_write_is_retried(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(quality, "add_metrics", Mock(side_effect=itertools.chain([full, full], itertools.repeat(None))))
    kinds = [type(event) for event in trained(run_path)]
    at = kinds.index(Blocked)
    assert kinds[at : at + 3] == [Blocked, Blocked, QualityMeasured] and kinds.count(Blocked) == 2
