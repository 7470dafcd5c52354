"""What is held out is not learnt from, nor is anything that tells of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core.errors import RunError
from studio.core.events import Evaluated, Notice, RunStarted, Validated
from studio.core.generators import run_to_end
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.models.loading import load_model
from studio.engine.quality.evaluate import EvaluateSettings, evaluate
from studio.engine.runs.folder import RunDir, RunRecord
from studio.engine.runs.split import Split, shuffle_by_group, split_by_group, split_in_halves, split_sprites
from studio.recipes.classifier import ClassifierConfig
from tests.conftest import make_sprites
from tests.data.making import imported
from tests.engine.tools import CPU, of_kind, train_classifier


def _parts(split: Split) -> list[int]:
    return sorted([*split.training, *split.validation, *(split.report if split.is_report_apart else ())])


@pytest.mark.parametrize("count_per_class", [1, 3, 40])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.3, 0.5])
def test_sprites_that_stand_alone_are_parted_class_by_class(count_per_class: int, share: float) -> None:
    sprites = make_sprites(per_class=count_per_class, classes=3)
    split = split_by_group(sprites, share, seed=1)
    assert _parts(split) == list(range(len(sprites)))
    assert set(sprites.labels[split.training]) == {0, 1, 2}
    if count_per_class > 1:
        counts = np.bincount(sprites.labels[split.validation], minlength=3)
        assert counts.sum() == int(len(sprites) * share)
        assert np.abs(counts - count_per_class * share).max() <= 1
    assert np.array_equal(split_by_group(sprites, share, seed=1).validation, split.validation)


def test_fault_37_no_group_is_on_both_sides() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), rng.integers(1, 9, 400))
    sprites = dataclasses.replace(make_sprites(len(groups), classes=1), groups=groups[rng.permutation(len(groups))])
    heldout_of_size: list[float] = []
    for seed in range(8):
        split = split_by_group(sprites, 0.1, seed)
        assert not set(sprites.groups[split.training]) & set(sprites.groups[split.validation])
        assert len(split.validation) == pytest.approx(0.1 * len(sprites), rel=0.1)
        sizes = np.bincount(sprites.groups)
        heldout_of_size.append(float(sizes[np.unique(sprites.groups[split.validation])].mean()))
    assert np.mean(heldout_of_size) == pytest.approx(np.bincount(sprites.groups).mean(), rel=0.05)  # large ones, too


def test_no_class_is_held_out_entirely() -> None:
    groups, labels = np.repeat(np.arange(30), [6, 6] + [1] * 28), np.repeat([0, 1, 2], [6, 6, 28])
    sprites = dataclasses.replace(make_sprites(20), groups=groups, labels=labels, class_names=("a", "b", "c"))
    for seed in range(20):
        assert set(labels[split_by_group(sprites, 0.5, seed).training]) == {0, 1, 2}


def test_where_many_are_held_out_a_third_is_for_the_report_alone() -> None:
    sprites = make_sprites(per_class=500, classes=2)
    few, many = split_by_group(sprites, 0.39, 0), split_by_group(sprites, 0.4, 0)
    assert not few.is_report_apart and len(few.report) == 390
    assert many.is_report_apart and _parts(many) == list(range(1000))
    assert (len(many.validation), len(many.report)) == (267, 133)
    assert np.abs(np.bincount(sprites.labels[many.report]) - 66.5).max() < 2


def test_a_test_set_of_the_data_is_the_report_and_is_not_learnt_from() -> None:
    sprites = make_sprites(per_class=50, classes=2)
    is_test = np.zeros(100, np.bool_)
    is_test[::4] = True
    marked = dataclasses.replace(sprites, is_test=is_test)
    split = split_by_group(marked, 0.2, 1)
    assert _parts(split) == list(range(100)) and np.array_equal(split.report, np.flatnonzero(is_test))
    assert len(split.validation) == 15 and split.is_report_apart
    without = split_by_group(marked, 0.0, 1)
    assert len(without.training) == 75 and without.validation is without.report and len(without.report) == 25
    alone = split_by_group(dataclasses.replace(sprites, is_test=np.ones(100, np.bool_)), 0.2, 1)
    assert np.array_equal(alone.training, split_by_group(sprites, 0.2, 1).training)  # there is nothing else


@pytest.mark.parametrize("sizes", [[416] * 12, [3, 400] * 3, [100] * 20])
def test_neither_report_nor_validation_is_left_with_next_to_nothing(sizes: list[int]) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    sprites = dataclasses.replace(make_sprites(len(groups), size=4, classes=1), groups=groups)
    for seed in range(10):
        split = split_by_group(sprites, 0.3, seed)
        assert len(split.report) >= 100 and len(split.validation) >= len(split.report)
        assert split.is_report_apart == (not set(split.report) & set(split.validation))


def test_real_sprites_are_halved_by_group() -> None:
    groups = np.repeat(np.arange(15), 8)
    for places in (split_in_halves(groups), np.split(shuffle_by_group(groups, 0), [56])):
        assert sorted(np.concatenate(places)) == list(range(120))
        assert not set(groups[places[0]]) & set(groups[places[1]])
    one = split_in_halves(np.zeros(9, np.int64))
    assert [len(half) for half in one] == [5, 4]  # a single group: every second sprite


def test_a_rule_that_is_not_known_is_that_of_a_newer_version() -> None:
    record = RunRecord(
        "late", "classifier", {}, 8, ("a",), "discs", 4, "", "cpu", "CPU", "fp32", 9, "2030-01-01", {}, split="by moon"
    )
    with pytest.raises(RunError, match=r"late was made by a newer version"):
        split_sprites(record, ClassifierConfig(), make_sprites(4))


@pytest.mark.slow
def test_fault_37_frames_learnt_by_heart_raise_no_accuracy(tmp_path: Path) -> None:
    """60 animations of noise in classes that mean nothing: held-out accuracy tells what was learnt by heart."""
    sprites = _animations(tmp_path / "art", 60, 6)
    events = list(train_classifier(tmp_path / "run", sprites, steps=150, holdout=0.2, flip=False, shift_px=0))
    last = of_kind(events, Validated)[-1]
    assert last.metrics["accuracy"] < 0.7  # it was 0.94 while frames were on both sides


def test_fault_37_frames_of_an_animation_are_held_out_together(tmp_path: Path) -> None:
    sprites = _animations(tmp_path / "art", 20, 4)
    assert len(np.unique(sprites.groups)) == 20 and len(sprites) > 75
    events = list(train_classifier(tmp_path / "run", sprites, steps=1, holdout=0.2))
    kept = packed.load(RunDir(tmp_path / "run").data)
    split = split_sprites(RunDir(tmp_path / "run").record(), ClassifierConfig(holdout=0.2), kept)
    animation = np.array([name.partition("#")[0] for name in kept.names])
    assert not set(animation[split.training]) & set(animation[split.validation])
    (started,) = of_kind(events, RunStarted)
    assert (started.train_count, started.heldout_count) == (len(split.training), len(split.validation))


def test_who_chose_best_and_judges_says_so(run_path: Path) -> None:
    list(train_classifier(run_path, make_sprites(30), steps=1))
    notice, found = evaluate(load_model(run_path, "last", CPU), run_path, EvaluateSettings())
    assert isinstance(notice, Notice) and "selected the best" in notice.title
    assert isinstance(found, Validated) and found.confusion is not None and found.confusion.sum() == 12
    assert found.metrics["accuracy"] == pytest.approx(np.trace(found.confusion) / 12)
    apart = run_path.with_name("apart")
    list(train_classifier(apart, make_sprites(500), steps=1, holdout=0.42))
    events = list(evaluate(load_model(apart, "last", CPU), apart, EvaluateSettings()))
    (found,) = of_kind(events, Validated)
    assert not of_kind(events, Notice) and not of_kind(events, Evaluated)
    assert found.confusion is not None and found.confusion.sum() == pytest.approx(140, abs=5)


def test_where_each_class_is_one_animation_nothing_is_held_out_and_that_is_said(run_path: Path) -> None:
    sprites = dataclasses.replace(make_sprites(12), groups=np.repeat([0, 12], 12))
    events = list(train_classifier(run_path, sprites, steps=1, holdout=0.2))
    (notice,) = of_kind(events, Notice)
    assert "No sprites are left for validation" in notice.title and not of_kind(events, Validated)


def _animations(folder: Path, count: int, frames: int) -> Sprites:
    """GIFs of noise, of which each frame changes a tenth, as they are imported; in two classes by chance."""
    rng = np.random.default_rng(0)
    for number in range(count):
        path = folder / str(rng.integers(2)) / f"{number}.gif"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame = rng.integers(0, 16, (8, 8), dtype=np.uint8) * 17
        pictures = []
        for _ in range(frames):
            frame = np.where(rng.random((8, 8)) < 0.1, rng.integers(0, 16, (8, 8)) * 17, frame).astype(np.uint8)
            pictures.append(Image.fromarray(frame))
        pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=100, disposal=2)
    return run_to_end(group_near_duplicates(imported(folder).sprites, None))


def test_a_test_set_judges_even_where_nothing_else_is_held_out(run_path: Path) -> None:
    sprites = make_sprites(30)
    marked = dataclasses.replace(sprites, is_test=np.arange(60) % 3 == 0)
    started = of_kind(list(train_classifier(run_path, marked, steps=1, holdout=0.0)), RunStarted)[0]
    assert (started.train_count, started.heldout_count) == (40, 20)
    notice, found = evaluate(load_model(run_path, "last", CPU), run_path, EvaluateSettings())
    assert isinstance(notice, Notice) and "a share of the other sprites for validation" in notice.hint
    assert isinstance(found, Validated) and found.confusion is not None and found.confusion.sum() == 20
