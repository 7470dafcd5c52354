"""Batches from sprites on the device and from streamed sprites: both are equal, and drive errors become messages."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from studio.core import files
from studio.core.errors import TrainingError
from studio.core.events import Evaluated, LossChunk, Notice, Progress, RunFinished
from studio.data.files import scratch
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.devices import detection
from studio.engine.models.loading import load_model
from studio.engine.quality import evaluate
from studio.engine.quality.evaluate import EvaluateSettings
from studio.engine.steps import batches, streamed
from studio.engine.steps.batches import DeviceSprites, TrainSet, shift, stride_subsample, subsample, to_input, to_rgba
from studio.engine.steps.streamed import StreamedSprites, make_train_set
from tests.conftest import make_sprites
from tests.engine.tools import (
    CPU,
    learnt,
    of_kind,
    small_generator,
    train_classifier,
    train_in_two_pieces,
    train_toy,
)

TORCH_CPU = torch.device("cpu")
INDICES = np.array([0, 1, 2, 3, 5, 7, 8, 9, 11, 12, 13, 17, 20])


def test_each_epoch_has_every_sprite_once() -> None:
    sprites = make_sprites(per_class=5, classes=2)
    data = DeviceSprites(sprites, TORCH_CPU)
    for size in (1, 3, 10, 23):
        stream = torch.cat([data._order_slice(step * size, size) for step in range(60 // size + 1)])
        for start in range(0, 50, 10):
            assert sorted(stream[start : start + 10].tolist()) == list(range(10))
    assert not torch.equal(data._order_slice(0, 10), data._order_slice(10, 10))
    assert not torch.equal(data._order_slice(0, 10), DeviceSprites(sprites, TORCH_CPU, seed=1)._order_slice(0, 10))


def test_epoch_order_is_uploaded_asynchronously(monkeypatch: pytest.MonkeyPatch) -> None:
    data, card, pinned = DeviceSprites(make_sprites(), TORCH_CPU), torch.device("cuda:0"), list[torch.Tensor]()
    expected, sent = data._order_slice(24, 8), []

    def pin(values: torch.Tensor) -> torch.Tensor:
        pinned.append(values.clone())
        return pinned[-1]

    def to(values: torch.Tensor, device: torch.device, *, non_blocking: bool = False) -> torch.Tensor:
        sent.append((values is pinned[-1], device, non_blocking))
        return values

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    data._epoch, data.device = -1, card
    for offset in (0, 8, 16):
        chosen = data._order_slice(24 + offset, 8)
        assert offset or torch.equal(chosen, expected)
    assert sent == [(True, card, True)]


def test_premultiplied_pixels_round_trip() -> None:
    x = to_input(torch.tensor([[200], [100], [50], [51]], dtype=torch.uint8).reshape(1, 4, 1, 1))
    assert torch.allclose(x.flatten(), torch.tensor([200 / 255 * 0.2, 100 / 255 * 0.2, 50 / 255 * 0.2, 0.2]) * 2 - 1)
    rng = np.random.default_rng(0)
    rgba = rng.integers(0, 256, (20, 8, 8, 4), dtype=np.uint8)
    rgba[..., 3] = np.where(rng.random((20, 8, 8)) < 0.5, 255, 0)
    rgba[rgba[..., 3] == 0] = 0
    x = to_input(torch.from_numpy(rgba).permute(0, 3, 1, 2))
    assert float(x.min()) == -1 and float(x.max()) == 1
    assert np.array_equal(to_rgba(x).numpy(), rgba)


def test_flips_set_the_augment_labels() -> None:
    sprites = make_sprites(per_class=20)
    data = DeviceSprites(sprites, TORCH_CPU)
    batch = data.batch(0, 40, flip=True, shift_px=0, rng=torch.Generator().manual_seed(0))
    plain = to_input(data.rgba[data._order_slice(0, 40)])
    told, flipped = batch.augment_labels, batch.augment_labels[:, 0] == 1
    assert 5 < int(flipped.sum()) < 35 and not told[~flipped].any() and not told[:, 1:].any()
    expected = torch.where(flipped[:, None, None, None], plain.flip(-1), plain)
    torch.testing.assert_close(batch.x, expected)


def test_shifts_move_whole_pixels_and_set_the_augment_labels() -> None:
    rgba = torch.from_numpy(make_sprites(per_class=50).rgba).permute(0, 3, 1, 2)
    offset = torch.randint(0, 5, (2, len(rgba), 1), generator=torch.Generator().manual_seed(3))
    moved, told = shift(rgba, 2, offset)
    seen = set()
    for before, after, (right, down) in zip(rgba.numpy(), moved.numpy(), told.tolist(), strict=True):
        padded = np.pad(before, ((0, 0), (2, 2), (2, 2)))
        fits = [
            (dy, dx) for dy in range(5) for dx in range(5) if np.array_equal(padded[:, dy : dy + 8, dx : dx + 8], after)
        ]
        assert (2 - 8 * down, 2 - 8 * right) in fits
        seen.update(fits)
    assert len(seen) > 15


def test_stride_subsample_is_spread_and_limited() -> None:
    for count in range(1, 60):
        found = stride_subsample(np.arange(count), 10)
        gaps = np.diff([*found, count])
        assert len(found) == count if count <= 10 else 5 < len(found) <= 10
        assert len(set(gaps[:-1])) <= 1 and gaps[-1] <= gaps[0]
    assert len(stride_subsample(np.arange(0), 10)) == 0


def test_plain_batches_wrap_around(sprites: Sprites) -> None:
    few = DeviceSprites(sprites.take(np.arange(3)), TORCH_CPU)
    batches = list(few.plain_batches(4, 7))
    assert [len(batch.x) for batch in batches] == [4, 3]
    assert torch.equal(torch.cat([batch.x for batch in batches]), to_input(few.rgba[[0, 1, 2, 0, 1, 2, 0]]))


def test_random_rows_equal_the_whole_batch(sprites: Sprites) -> None:
    batch = next(DeviceSprites(sprites, TORCH_CPU).plain_batches(10, 10))
    whole = torch.Generator().manual_seed(1)
    times, noise = torch.randn(10, generator=whole), torch.rand(10, 4, 8, 8, generator=whole)
    for count in (1, 2, 4, 20):
        parts = list(batch.micro_batches(count, torch.Generator().manual_seed(1)))
        assert len(parts) == min(count, 10)
        drawn = [(rng.randn(), rng.rand(4, 8, 8)) for _, rng in parts]
        assert torch.equal(torch.cat([one for one, _ in drawn]), times)
        assert torch.equal(torch.cat([one for _, one in drawn]), noise)
        assert torch.equal(torch.cat([part.x for part, _ in parts]), batch.x)


@pytest.fixture
def mapped(sprites: Sprites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sprites:
    """The sprites in a file, as if they were very many."""
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", 100)
    packed.save(sprites, tmp_path / "cache.safetensors")
    return packed.load(tmp_path / "cache.safetensors")


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "streaming"]


def batch_of(data: TrainSet, step: int, size: int, **augmented: Any) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(step)
    batch = data.batch(step, size, **{"flip": False, "shift_px": 0, **augmented}, rng=rng)
    return [batch.x, batch.y, batch.augment_labels]


def alike(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("size", [1, 4, 13, 30])
@pytest.mark.parametrize("augmented", [{}, {"flip": True, "shift_px": 2}])
def test_all_train_sets_give_equal_batches(
    sprites: Sprites, mapped: Sprites, size: int, augmented: dict[str, Any]
) -> None:
    resident = DeviceSprites(sprites, TORCH_CPU, 3, INDICES)
    others = [StreamedSprites(some, TORCH_CPU, 3, INDICES) for some in (sprites, mapped)]
    steps = 3 * len(INDICES) // size + 2
    for other in others:
        assert len(other) == len(INDICES) and (other.labels_host == sprites.labels[INDICES]).all()
        for step in (*range(steps), 1, 7, 8, 2):  # the last steps are out of order
            assert alike(batch_of(resident, step, size, **augmented), batch_of(other, step, size, **augmented))
        assert alike(batch_of(resident, 3, 5), batch_of(other, 3, 5))
        other.close()
    assert not alike(batch_of(resident, 0, size), batch_of(DeviceSprites(sprites, TORCH_CPU, 4, INDICES), 0, size))


@pytest.mark.parametrize("data_is", [DeviceSprites, StreamedSprites])
def test_rows_equal_those_of_the_whole_batch(
    sprites: Sprites, mapped: Sprites, data_is: Callable[..., TrainSet]
) -> None:
    def taken(data: TrainSet, step: int, rows: slice | None, count: int) -> Iterator[list[torch.Tensor]]:
        rng = torch.Generator().manual_seed(step)
        batch = data.batch(step, 7, flip=True, shift_px=2, rng=rng, rows=rows)
        for part, numbers in batch.micro_batches(count, rng):
            yield [part.x, part.y, part.augment_labels, part.targets, numbers.randn(3), numbers.rand()]

    whole, shared = DeviceSprites(sprites, TORCH_CPU, 3), [data_is(mapped, TORCH_CPU, 3) for _ in range(2)]
    for step in (0, 1, 2, 9):
        (expected,) = taken(whole, step, None, 1)
        parts = [*taken(shared[0], step, slice(0, 3), 1), *taken(shared[1], step, slice(3, 7), 2)]
        assert len(parts) == 3
        for one, others in zip(expected, zip(*parts, strict=True), strict=True):
            assert torch.equal(torch.cat(others), one)
    for data in shared:
        data.close()


def test_yielded_batches_do_not_change(mapped: Sprites) -> None:
    data = StreamedSprites(mapped, TORCH_CPU)
    first = batch_of(data, 0, 4)
    before = [part.clone() for part in first]
    for step in range(1, 12):
        batch_of(data, step, 4)
    assert alike(first, before)
    data.close()


@pytest.mark.parametrize("train", [train_toy, train_classifier])
def test_streamed_training_is_bit_identical(tmp_path: Path, sprites: Sprites, mapped: Sprites, train: Any) -> None:
    changes = {"steps": 9, "flip": True, "shift_px": 1}
    assert not of_kind(list(train(tmp_path / "resident", sprites, **changes, data_on_device="auto")), Notice)
    events = train_in_two_pieces(train, tmp_path / "streamed", mapped, **changes, data_on_device="no")
    assert ["loaded in the background" in notice.title for notice in of_kind(events, Notice)] == [True, True]
    torch.testing.assert_close(learnt(tmp_path / "streamed"), learnt(tmp_path / "resident"), rtol=0, atol=0)
    data = tmp_path / "streamed" / "data.safetensors"
    assert data.samefile(tmp_path / "cache.safetensors")  # and was not copied


def test_sprites_too_large_for_the_device_are_streamed(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    config, needed = small_generator(), sprites.rgba[INDICES].nbytes
    for free, expected in ((4 * needed, DeviceSprites), (4 * needed - 1, StreamedSprites)):
        monkeypatch.setattr(detection, "memory_free", lambda _, free=free: free)
        data, notices = make_train_set(sprites, INDICES, TORCH_CPU, config)
        assert type(data) is expected and len(notices) == (expected is StreamedSprites)
        data, _ = make_train_set(sprites, INDICES, TORCH_CPU, config.replace(data_on_device="yes"))
        assert type(data) is DeviceSprites


def test_classifier_with_skipped_classes_streams_from_disk(run_path: Path, mapped: Sprites) -> None:
    labels = mapped.labels.copy()
    labels[0] = 2
    lone = replace(mapped, labels=labels, class_names=(*mapped.class_names, "lone"))
    events = list(train_classifier(run_path, lone, steps=3, data_on_device="no"))
    assert any("Left out" in notice.title for notice in of_kind(events, Notice))
    kept = packed.load(run_path / "data.safetensors")
    assert (kept.rgba == mapped.rgba[1:]).all() and kept.stored is not None


def test_deleted_file_is_read_through_its_map(run_path: Path, mapped: Sprites) -> None:
    events = train_toy(run_path, mapped, steps=20, data_on_device="no", holdout=0.0)
    next(event for event in events if isinstance(event, LossChunk))
    if os.name != "nt":
        (run_path / "data.safetensors").unlink()  # Windows would not allow it
    assert of_kind(list(events), RunFinished)[0].step == 20


@pytest.mark.skipif(os.name == "nt", reason="Windows shortens no file that is in use")
def test_unreadable_file_raises_training_error(
    run_path: Path, mapped: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_RETRY_S", 0.02)
    events = train_toy(run_path, mapped, steps=500, data_on_device="no", holdout=0.0)
    next(event for event in events if isinstance(event, LossChunk))
    os.truncate(run_path / "data.safetensors", 2000)
    with pytest.raises(TrainingError, match=r"can't be read: the file became shorter.*resume"):
        list(events)


def test_short_read_is_repeated(mapped: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    class Short(io.FileIO):
        def readinto(self, out: memoryview) -> int:  # type: ignore[override]
            return super().readinto(out.cast("B")[:100])

    whole = StreamedSprites(mapped, TORCH_CPU)
    expected = batch_of(whole, 0, 8)
    whole.close()
    monkeypatch.setattr(Path, "open", lambda path, *_, **named: Short(path))
    short = StreamedSprites(mapped, TORCH_CPU)
    assert alike(batch_of(short, 0, 8), expected)
    short.close()


def test_hanging_drive_times_out(mapped: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "_TIMEOUT_S", 0.02)
    monkeypatch.setattr(streamed, "_JOIN_S", 0.02)
    woken = threading.Event()
    monkeypatch.setattr(streamed._SpriteReader, "read", lambda *_: woken.wait(30))
    data = StreamedSprites(mapped, TORCH_CPU)
    with pytest.raises(TrainingError, match="does not respond"):
        batch_of(data, 0, 4)
    data.close()
    (waiting,) = (thread for thread in threading.enumerate() if thread.name == "streaming")
    assert waiting.daemon  # it can't keep the program from ending
    woken.set()
    waiting.join(5)


def test_close_ends_the_reader_thread(run_path: Path, sprites: Sprites) -> None:
    events = train_toy(run_path, sprites, steps=500, data_on_device="no")
    next(event for event in events if isinstance(event, LossChunk))
    assert [thread for thread in threading.enumerate() if thread.name == "streaming"]
    events.close()


def test_very_large_sets_are_subsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    sprites, indices = make_sprites(per_class=50), np.arange(10, 90)
    assert (subsample(sprites, indices).rgba == sprites.rgba[indices]).all()
    monkeypatch.setattr(batches, "_MAX_SAMPLED", 30)
    some = subsample(sprites, indices)
    assert len(set(some.names)) == 30 and set(some.names) < {sprites.names[index] for index in indices}
    assert some.names == subsample(sprites, indices).names and min(some.class_counts()) > 5
    monkeypatch.setattr(batches, "_MAX_SAMPLED_BYTES", 256 * 7)
    assert len(subsample(sprites, indices)) == 7


@pytest.mark.slow
def test_evaluation_subsamples_but_searches_all_for_copies(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sprites = make_sprites(per_class=60)
    monkeypatch.setattr("studio.engine.quality.features._STEPS", 3)
    list(train_toy(run_path, sprites, steps=2, holdout=0.5))
    model = load_model(run_path, "last", CPU)
    settings = EvaluateSettings(count=20, steps=2)
    whole = list(evaluate.evaluate(model, run_path, settings))[-1]
    monkeypatch.setattr(batches, "_MAX_SAMPLED", 40)
    monkeypatch.setattr(evaluate, "MAX_HELDOUT", 30)
    monkeypatch.setattr(evaluate, "MAX_TRAINING", 25)
    *progress, few = evaluate.evaluate(model, run_path, settings)
    assert isinstance(whole, Evaluated) and isinstance(few, Evaluated)
    assert (few.training_count, few.heldout_count) == (40, 30) and of_kind(progress, Progress)
    for name in ("new", "real", "cheat"):
        assert few.figures[name].keys() == whole.figures[name].keys()
    assert few.figures["cheat"]["copies"] > 0.9
