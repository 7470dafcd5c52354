"""Sprites that are streamed: the same batches as of those on the device, and faults of the drive in words."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from studio.core.errors import TrainingError
from studio.core.events import Evaluated, Event, LossChunk, Notice, Progress
from studio.data import scratch
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine import batches, devices, streamed
from studio.engine.batches import DeviceSprites, TrainSet, sampled
from studio.engine.control import Control
from studio.engine.generate import load_model
from studio.engine.quality import evaluate
from studio.engine.quality.evaluate import EvaluateSettings
from studio.engine.streamed import StreamedSprites, make_train_set
from studio.engine.train import train_resumed
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind, small_generator, train_classifier, train_generator

TORCH_CPU = torch.device("cpu")
INDICES = np.array([0, 1, 2, 3, 5, 7, 8, 9, 11, 12, 13, 17, 20])


@pytest.fixture
def mapped(sprites: Sprites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sprites:
    """The sprites in a file, as if they were very many."""
    monkeypatch.setattr(scratch, "IN_MEMORY", 100)
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
def test_every_step_has_the_same_batch(sprites: Sprites, mapped: Sprites, size: int, augmented: dict[str, Any]) -> None:
    resident = DeviceSprites(sprites, TORCH_CPU, 3, INDICES)
    others = [StreamedSprites(some, TORCH_CPU, 3, INDICES) for some in (sprites, mapped)]
    steps = 3 * len(INDICES) // size + 2
    for other in others:
        assert len(other) == len(INDICES) and (other.labels_host == sprites.labels[INDICES]).all()
        for step in (*range(steps), 1, 7, 8, 2):  # of which the last ones are out of their turn
            assert alike(batch_of(resident, step, size, **augmented), batch_of(other, step, size, **augmented))
        assert alike(batch_of(resident, 3, 5), batch_of(other, 3, 5))
        other.close()
    assert not alike(batch_of(resident, 0, size), batch_of(DeviceSprites(sprites, TORCH_CPU, 4, INDICES), 0, size))


def test_batches_that_were_handed_out_stay_as_they_are(mapped: Sprites) -> None:
    data = StreamedSprites(mapped, TORCH_CPU)
    first = batch_of(data, 0, 4)
    before = [part.clone() for part in first]
    for step in range(1, 12):
        batch_of(data, step, 4)
    assert alike(first, before)
    data.close()


def checkpoints_of(run: Path, step: int) -> dict[str, torch.Tensor]:
    folder = run / "checkpoints" / f"step-{step:08d}"
    return {
        f"{part} {name}": tensor
        for part in ("model", "average", "optimizer")
        for name, tensor in load_file(folder / f"{part}.safetensors").items()
    }


@pytest.mark.parametrize("train", [train_generator, train_classifier])
def test_the_same_is_learnt_bit_for_bit(tmp_path: Path, sprites: Sprites, mapped: Sprites, train: Any) -> None:
    changes = {"steps": 9, "flip": True, "shift_px": 1}
    list(train(tmp_path / "resident", sprites, **changes, data_on_device="yes"))
    control, streamed_run = Control(), tmp_path / "streamed"
    for event in train(streamed_run, mapped, control, **changes, data_on_device="no"):
        control.stop = control.stop or (isinstance(event, LossChunk) and event.first_step + len(event.losses) >= 4)
    list(train_resumed(streamed_run, CPU, Control()))
    expected, found = (checkpoints_of(run, 9) for run in (tmp_path / "resident", streamed_run))
    assert expected and expected.keys() == found.keys()
    assert all(torch.equal(tensor, found[name]) for name, tensor in expected.items())
    assert (streamed_run / "data.safetensors").samefile(tmp_path / "cache.safetensors")  # and was not copied


def test_where_the_sprites_are_is_said_when_they_are_streamed(run_path: Path, mapped: Sprites) -> None:
    for setting, said in (("no", 1), ("auto", 0)):
        events = list(train_generator(run_path.with_name(setting), mapped, steps=2, data_on_device=setting))
        assert len([event for event in of_kind(events, Notice) if "loaded in the background" in event.title]) == said


def test_sprites_that_leave_the_device_no_room_are_streamed(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    config, needed = small_generator(), sprites.rgba[INDICES].nbytes
    for free, expected in ((4 * needed, DeviceSprites), (4 * needed - 1, StreamedSprites)):
        monkeypatch.setattr(devices, "memory_free", lambda _, free=free: free)
        data, notices = make_train_set(sprites, INDICES, TORCH_CPU, config)
        assert type(data) is expected and len(notices) == (expected is StreamedSprites)
        assert (
            type(make_train_set(sprites, INDICES, TORCH_CPU, config.replace(data_on_device="yes"))[0]) is DeviceSprites
        )


def test_a_classifier_that_leaves_some_out_trains_from_the_disk_too(run_path: Path, mapped: Sprites) -> None:
    labels = mapped.labels.copy()
    labels[0] = 2
    lone = replace(mapped, labels=labels, class_names=(*mapped.class_names, "lone"))
    events = list(train_classifier(run_path, lone, steps=3, data_on_device="no"))
    assert any("Left out" in notice.title for notice in of_kind(events, Notice))
    kept = packed.load(run_path / "data.safetensors")
    assert (kept.rgba == mapped.rgba[1:]).all() and kept.stored is not None


def test_a_file_that_vanishes_is_no_loss(run_path: Path, mapped: Sprites) -> None:
    events = train_generator(run_path, mapped, steps=20, data_on_device="no", holdout=0.0)
    seen: list[Event] = []
    for event in events:
        if isinstance(event, LossChunk) and not of_kind(seen, LossChunk) and os.name != "nt":
            (run_path / "data.safetensors").unlink()  # Windows would not allow it
        seen.append(event)
    assert sum(len(chunk.losses) for chunk in of_kind(seen, LossChunk)) == 20


@pytest.mark.skipif(os.name == "nt", reason="Windows shortens no file that is in use")
def test_a_file_that_can_not_be_read_ends_the_run_in_words(run_path: Path, mapped: Sprites) -> None:
    events = train_generator(run_path, mapped, steps=500, data_on_device="no", holdout=0.0)
    while not isinstance(next(events), LossChunk):
        pass
    os.truncate(run_path / "data.safetensors", 2000)
    with pytest.raises(TrainingError, match=r"can't be read any more: their file has become shorter.*resume"):
        list(events)


def test_a_drive_that_hangs_is_not_waited_for_for_ever(mapped: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "_PATIENCE_S", 0.02)
    monkeypatch.setattr(streamed, "_JOIN_S", 0.02)
    woken = threading.Event()
    monkeypatch.setattr(streamed._Rows, "read", lambda *_: woken.wait(30))
    data = StreamedSprites(mapped, TORCH_CPU)
    with pytest.raises(TrainingError, match="stopped answering"):
        batch_of(data, 0, 4)
    data.close()
    (waiting,) = (thread for thread in threading.enumerate() if thread.name == "streaming")
    assert waiting.daemon  # it can't keep the program from ending
    woken.set()
    waiting.join(5)


def test_closing_a_training_ends_its_thread(run_path: Path, sprites: Sprites) -> None:
    events = train_generator(run_path, sprites, steps=500, data_on_device="no")
    while not isinstance(next(events), LossChunk):
        pass
    assert [thread for thread in threading.enumerate() if thread.name == "streaming"]
    events.close()


def test_of_very_many_a_choice_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    sprites, indices = make_sprites(per_class=50), np.arange(10, 90)
    assert (sampled(sprites, indices).rgba == sprites.rgba[indices]).all()
    monkeypatch.setattr(batches, "_MOST_SAMPLED", 30)
    some = sampled(sprites, indices)
    assert len(set(some.names)) == 30 and set(some.names) < {sprites.names[index] for index in indices}
    assert some.names == sampled(sprites, indices).names and min(some.class_counts()) > 5
    monkeypatch.setattr(batches, "_MOST_SAMPLED_BYTES", 256 * 7)
    assert len(sampled(sprites, indices)) == 7


def test_of_very_many_a_choice_is_judged_and_copies_are_looked_for_among_all(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprites = make_sprites(per_class=60)
    monkeypatch.setattr("studio.engine.quality.features._STEPS", 3)
    list(train_generator(run_path, sprites, steps=2, holdout=0.5))
    model = load_model(run_path, "last", CPU)
    settings = EvaluateSettings(count=20, steps=2)
    whole = list(evaluate.evaluate(model, run_path, settings))[-1]
    monkeypatch.setattr(batches, "_MOST_SAMPLED", 40)
    monkeypatch.setattr(evaluate, "MOST_HELDOUT", 30)
    monkeypatch.setattr(evaluate, "MOST_TRAINING", 25)
    *progress, few = evaluate.evaluate(model, run_path, settings)
    assert isinstance(whole, Evaluated) and isinstance(few, Evaluated)
    assert (few.training_count, few.heldout_count) == (40, 30) and of_kind(progress, Progress)
    for name in ("new", "real", "cheat"):
        assert few.figures[name].keys() == whole.figures[name].keys()
    assert few.figures["cheat"]["copies"] > 0.9
