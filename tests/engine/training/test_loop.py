"""The training loop: its events, its files, and stopping without a loss."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from studio.core.errors import BusyRunError, RunError, TrainingError
from studio.core.events import (
    CheckpointSaved,
    Event,
    Events,
    LossChunk,
    Notice,
    Progress,
    RunFinished,
    RunStarted,
    SamplesReady,
    SamplesSpaced,
    Validated,
)
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.control.control import Control
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.steps import timing
from studio.engine.training import loop, maintenance, saving
from studio.engine.training.loop import train_resumed
from studio.recipes.base import Batch, BatchRng, Recipe
from tests.conftest import make_sprites
from tests.data.making import sprite, write
from tests.engine.tools import (
    CPU,
    TOY,
    SavingAlways,
    learnt,
    of_kind,
    own_clock,
    train_classifier,
    train_generator,
    train_in_two_pieces,
    train_regression,
    train_toy,
)


def test_events_of_a_run_come_in_order(run_path: Path, sprites: Sprites) -> None:
    events = [event for event in train_toy(run_path, sprites) if not isinstance(event, Progress)]
    assert isinstance(events[0], RunStarted)
    assert events[0].train_count == 20 and events[0].heldout_count == 4
    assert isinstance(events[1], SamplesReady) and events[1].step == 0
    assert isinstance(events[-1], RunFinished) and events[-1].reason == "finished" and events[-1].step == 8
    losses = np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)])
    assert losses.shape == (8,) and np.isfinite(losses).all()
    assert next(chunk.first_step for chunk in of_kind(events, LossChunk)) == 0
    assert of_kind(events, Validated)[-1].step == 8
    assert of_kind(events, CheckpointSaved)[-1].step == 8
    assert of_kind(events, SamplesReady)[-1].sprites.shape == (4, 8, 8, 4)


def test_the_run_folder_is_the_record(run_path: Path, sprites: Sprites) -> None:
    origin = {"paths": ["discs"], "options": {"alpha_threshold": 128}}
    list(train_toy(run_path, sprites.with_origin(origin)))
    record = json.loads((run_path / "run.json").read_text())
    assert record["recipe"] == "vae" and record["config"]["steps"] == 8 and record["data_origin"] == origin
    assert record["data_fingerprint"] == sprites.fingerprint
    state = json.loads((run_path / "state.json").read_text())
    assert state["state"] == "finished" and (state["setbacks"], state["pieces"]) == (0, 1)
    assert sorted(path.name for path in (run_path / "samples").iterdir()) == ["00000000.png", "00000008.png"]
    lines = [json.loads(line) for line in (run_path / "metrics.jsonl").read_text().splitlines()]
    assert sum(len(line.get("loss", ())) for line in lines) == 8
    assert not list(run_path.rglob("*.pkl")) + list(run_path.rglob("*.pt"))


@pytest.mark.parametrize(
    ("train", "precision"),
    [
        (train_generator, "fp32"), (train_toy, "bf16"), (train_classifier, "fp16"),
        pytest.param(train_classifier, "fp32", marks=pytest.mark.slow),
        pytest.param(train_generator, "fp16", marks=pytest.mark.slow),
        pytest.param(train_generator, "bf16", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_stop_and_resume_is_bit_identical_to_never_stopping(
    tmp_path: Path, sprites: Sprites, train: Any, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"steps": 7, "flip": True, "shift_px": 1, "precision": precision}
    monkeypatch.setattr(loop, "TICK_S", 0.0)
    monkeypatch.setattr("studio.engine.devices.precision._SCALE_GROWTH_INTERVAL", 3)  # which resuming must not forget
    list(train(tmp_path / "whole", sprites, **changes))
    train_in_two_pieces(train, tmp_path / "parts", sprites, **changes)
    torch.testing.assert_close(learnt(tmp_path / "parts"), learnt(tmp_path / "whole"), rtol=0, atol=0)


def test_resumed_run_keeps_its_precision(run_path: Path, sprites: Sprites) -> None:
    """'auto' is decided once: a busy moment in a later probe must not turn it into another run."""
    list(train_toy(run_path, sprites, Control(stop=True), precision="auto"))
    for device, precision in ((CPU, "fp32"), (replace(CPU, name="another CPU"), "bf16")):
        now = replace(device, precision="bf16")
        assert load_model(run_path, "last", now).precision == precision
        started = of_kind(list(train_resumed(run_path, now, Control(stop=True))), RunStarted)[0]
        assert started.precision == precision


def test_slow_samples_yield_their_interval(run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = own_clock(monkeypatch)

    def slow_samples(*_: object) -> Events:
        clock.now_s += 2.0
        yield SamplesReady(0, sprites.rgba[:1])

    monkeypatch.setattr(loop, "live_samples", slow_samples)
    monkeypatch.setattr(maintenance, "live_samples", slow_samples)
    events = list(train_toy(run_path, sprites, sample_every_s=0.1))
    (spaced,) = of_kind(events, SamplesSpaced)  # after the first step: the samples before it put off nothing
    assert spaced.asked_s == 0.1 and 2 <= spaced.drawing_s < 3
    assert spaced.actual_s == pytest.approx(spaced.drawing_s / timing.SIDE_SHARE)
    assert len(of_kind(events, SamplesReady)) == 3


def test_stop_ends_after_a_tick_and_saves(run_path: Path, sprites: Sprites) -> None:
    control, events, last_step = Control(), [], 0
    for event in train_toy(run_path, sprites, control, steps=100_000):
        events.append(event)
        if isinstance(event, LossChunk) and not control.stop:
            control.stop, last_step = True, event.first_step + len(event.losses)
    finished = of_kind(events, RunFinished)[0]
    assert finished.reason == "stopped" and finished.step == last_step
    assert (run_path / f"checkpoints/step-{last_step:08d}/average.safetensors").is_file()
    assert RunDir(run_path).progress().state == "stopped"


def test_epochs_end_a_run_and_adam_state_is_restored(tmp_path: Path, sprites: Sprites) -> None:
    changes: dict[str, Any] = {"steps": 0, "epochs": 5, "batch_size": 7, "optimizer": "adam"}
    events = list(train_classifier(tmp_path / "whole", sprites, **changes))
    (started,), (finished,) = of_kind(events, RunStarted), of_kind(events, RunFinished)
    assert finished.reason == "finished" and finished.step == math.ceil(5 * started.train_count / 7)
    assert of_kind(events, LossChunk)[-1].epoch == pytest.approx(5, abs=7 / started.train_count)
    train_in_two_pieces(train_classifier, tmp_path / "parts", sprites, **changes)
    torch.testing.assert_close(learnt(tmp_path / "parts"), learnt(tmp_path / "whole"), rtol=0, atol=0)


class _CountReadBacks(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to leave its own frames out, torch would import its compiler: a second

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("train", "precision"), [(train_generator, "fp32"), (train_generator, "fp16"), (train_classifier, "fp32")]
)
def test_no_step_reads_back_from_the_device(run_path: Path, sprites: Sprites, train: Any, precision: str) -> None:
    events = train(run_path, sprites, steps=60, holdout=0.0, precision=precision)
    assert any(isinstance(event, SamplesReady) for event in events)  # which come before the first step
    with _CountReadBacks() as read_backs:
        assert isinstance(next(events), LossChunk)
        torch.ones(()).item()
    assert read_backs.count == 1  # the one above: the counter counts
    events.close()


def test_disk_error_is_recorded_in_state(run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    unplugged = OSError(5, "Input/output error")
    monkeypatch.setattr("studio.engine.steps.batches.DeviceSprites.raw_batch", Mock(side_effect=unplugged))
    with pytest.raises(OSError, match="Input/output"):
        list(train_toy(run_path, sprites))
    progress = RunDir(run_path).progress()
    assert progress.state == "failed" and "Input/output" in progress.message


def test_minutes_end_a_run_without_counting_pauses(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, events = own_clock(monkeypatch), []
    for event in train_toy(run_path, sprites, steps=0, minutes=0.05, holdout=0.0):
        clock.now_s += 1000.0  # paused after every event
        events.append(event)
    chunks, (finished,) = of_kind(events, LossChunk), of_kind(events, RunFinished)
    assert len(chunks) > 1 and all(0 <= chunk.eta_s <= 3 for chunk in chunks)
    assert finished.reason == "finished" and 3 <= finished.elapsed_s < 30


@pytest.mark.parametrize("budget", [{"steps": 1000}, {"steps": 0, "minutes": 0.5}])
def test_fault_26_clock_jump_gives_no_negative_eta(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, budget: dict[str, Any]
) -> None:
    real_clock, jumps_s = time.time, itertools.cycle((0.0, 1e6, -1e6))
    monkeypatch.setattr(time, "time", lambda: real_clock() + next(jumps_s))
    control, chunks = Control(), list[LossChunk]()
    for event in train_toy(run_path, sprites, control, holdout=0.0, **budget):
        chunks += of_kind([event], LossChunk)
        control.stop = len(chunks) == 8
    assert all(0 <= chunk.eta_s < math.inf for chunk in chunks)
    elapsed_s = [0.0, *(chunk.elapsed_s for chunk in chunks), RunDir(run_path).progress().elapsed_s]
    assert elapsed_s == sorted(elapsed_s) and elapsed_s[-1] < 1000


def test_fault_27_locked_or_nonempty_folder_is_refused(run_path: Path, sprites: Sprites) -> None:
    events = train_toy(run_path, sprites)
    next(event for event in events if isinstance(event, RunStarted))
    with pytest.raises(BusyRunError, match="trained elsewhere"):
        list(train_resumed(run_path, CPU, Control()))
    events.close()
    with pytest.raises(RunError, match="not empty"):
        list(train_toy(run_path, sprites))


def test_immediate_stop_after_resume_changes_nothing(run_path: Path, sprites: Sprites) -> None:
    list(train_toy(run_path, sprites, Control(stop=True)))
    figure = RunDir(run_path).progress().headline
    (saved,) = (run_path / "checkpoints").iterdir()
    before = saved.stat().st_ino, saved.stat().st_mtime_ns
    events = list(train_resumed(run_path, CPU, Control(stop=True)))
    assert of_kind(events, RunFinished)[0].reason == "stopped" and not of_kind(events, CheckpointSaved)
    assert (saved.stat().st_ino, saved.stat().st_mtime_ns) == before
    assert figure and RunDir(run_path).progress().headline == figure


def test_new_best_validation_saves_a_checkpoint(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_clock(monkeypatch)
    monkeypatch.setattr(timing, "SIDE_SHARE", 1e9)  # validation and checkpoints may take as long as they like
    monkeypatch.setattr(maintenance, "MIN_BEST_SPACING", 0.0)
    accuracies = {1: 0.5, 2: 0.6, 3: 0.55, 4: 0.7, 5: 0.7, 6: 0.6, 7: 0.65}

    def figures(model: TrainedModel, *rest: object) -> Validated:
        return Validated(model.step, {"loss": 1.0, "accuracy": accuracies[model.step]})

    monkeypatch.setattr(saving, "evaluate_heldout", figures)
    saved = of_kind(list(train_classifier(run_path, sprites, steps=7, batch_size=20)), CheckpointSaved)  # 20 an epoch
    assert [event.step for event in saved] == [1, 2, 4, 7]
    assert load_model(run_path, "best", CPU).step == 4
    toy = run_path.with_name("toy")
    saved = of_kind(list(train_toy(toy, sprites, steps=7, batch_size=20)), CheckpointSaved)
    assert [event.step for event in saved] == [7]  # no metric selects the best model that draws sprites


def test_first_checkpoint_comes_early(run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    own_clock(monkeypatch, look_s=1 / 16)  # adds up without rounding
    monkeypatch.setattr(maintenance, "FIRST_CHECKPOINT_S", 1.0)
    first, last = of_kind(list(train_toy(run_path, sprites, steps=20)), CheckpointSaved)
    assert 1 < first.step < last.step == 20
    assert 1.0 <= checkpoints.list_checkpoints(run_path / "checkpoints")[0][1].elapsed_s < 2.0
    resumed = of_kind(list(train_resumed(run_path, CPU, Control(), 0.1)), CheckpointSaved)
    assert len(resumed) == 1  # at the end: a checkpoint was there


def test_fault_19_damaged_checkpoint_falls_back_to_previous(run_path: Path, sprites: Sprites) -> None:
    list(train_toy(run_path, sprites, SavingAlways(), steps=12))
    saved = sorted((run_path / "checkpoints").iterdir())
    newest = saved[-1] / "model.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    events = list(train_resumed(run_path, CPU, Control()))
    assert of_kind(events, RunStarted)[0].first_step == int(saved[-2].name[5:])
    assert "damaged" in of_kind(events, Notice)[0].title


def test_classifier_reports_skipped_classes(run_path: Path) -> None:
    sprites = make_sprites(per_class=10, classes=3)
    few = sprites.take([*range(20), 20, 21])
    events = list(train_classifier(run_path, few))
    assert "class2 (2)" in of_kind(events, Notice)[0].title
    confusion = of_kind(events, Validated)[-1].confusion
    assert confusion is not None and confusion.shape == (2, 2)
    assert confusion.sum() == of_kind(events, RunStarted)[0].heldout_count


def test_randomness_follows_from_seed_and_step(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, loss = [], type(TOY).loss

    def watched(recipe: Recipe, network: Any, batch: Batch, config: Any, rng: BatchRng) -> Any:
        drawn.append(rng.rand()[0].item())
        return loss(recipe, network, batch, config, rng)

    monkeypatch.setattr(type(TOY), "loss", watched)
    for number, seed in enumerate((0, 1, 0)):
        list(train_toy(tmp_path / str(number), sprites, steps=3, seed=seed))
    assert len(set(drawn)) == 6 and drawn[:3] == drawn[6:]


def _lopsided() -> Sprites:
    """A thousand sprites of a class, and one of another."""
    rgba = np.random.default_rng(0).integers(0, 256, (1001, 8, 8, 4), dtype=np.uint8)
    rgba[rgba[..., 3] == 0] = 0
    labels = np.array([0] * 1000 + [1], np.int64)
    return Sprites(rgba, labels, ("many", "one"), tuple(f"{number}.png" for number in range(1001)), "lopsided")


@pytest.mark.parametrize("odd", [make_sprites(1, classes=1), make_sprites(6, classes=1), _lopsided()])
def test_generator_trains_on_any_set(run_path: Path, odd: Sprites) -> None:
    events = list(train_generator(run_path, odd, steps=2))
    assert of_kind(events, RunFinished)[0].step == 2 and bool(of_kind(events, Validated)) == (len(odd) > 1)


@pytest.mark.parametrize(
    ("train", "odd", "title", "hint"),
    [
        (train_classifier, make_sprites(6, classes=1), "at least two classes", "sub-folders are the classes"),
        (train_classifier, _lopsided(), "at least two classes with enough sprites", ""),
        (train_regression, make_sprites(), "needs numbers", "labels.csv"),
    ],
)
def test_unusable_set_raises_training_error(run_path: Path, train: Any, odd: Sprites, title: str, hint: str) -> None:
    with pytest.raises(TrainingError, match=title) as caught:
        list(train(run_path, odd))
    assert hint in caught.value.hint


def test_training_needs_no_source_files(run_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for seed in range(12):
        write(folder / "abc"[seed % 2] / f"{seed}.png", sprite(seed))
    (folder / "empty").mkdir()
    *_, found = import_sprites([folder], ImportOptions())
    assert isinstance(found, SpritesImported) and found.sprites.class_names == ("a", "b")
    for event in train_toy(run_path, found.sprites, steps=6):
        if isinstance(event, LossChunk) and folder.exists():
            (folder / "a" / "0.png").write_bytes(b"changed")
            shutil.rmtree(folder)
    list(train_resumed(run_path, CPU, Control(stop=True)))
    assert not folder.exists()
    assert packed.load(run_path / "data.safetensors").fingerprint == found.sprites.fingerprint


@pytest.mark.parametrize(
    ("decay_share", "said", "fallen"), [(0.5, "back at its peak", 0.0), (1.0, "and falls from there", 0.05)]
)
def test_more_minutes_extend_a_finished_run(run_path: Path, decay_share: float, said: str, fallen: float) -> None:
    list(train_toy(run_path, make_sprites(), steps=6, lr_decay_share=decay_share))
    assert RunDir(run_path).progress().state == "finished"

    def a_little_more(more_min: float) -> list[Event]:
        control, events = Control(), list[Event]()
        for event in train_resumed(run_path, CPU, control, more_min):
            events.append(event)
            control.stop = control.stop or isinstance(event, LossChunk)
        return events

    ended_s = RunDir(run_path).progress().elapsed_s
    events = a_little_more(20.0)
    (chunk, *_), record = of_kind(events, LossChunk), RunDir(run_path).record()
    assert chunk.first_step == 6 and chunk.lr == pytest.approx(record.config["learning_rate"], rel=fallen, abs=0)
    assert any(said in notice.hint for notice in of_kind(events, Notice))
    assert chunk.eta_s == pytest.approx(20 * 60, rel=0.05)
    progress = RunDir(run_path).progress()
    assert progress.state == "stopped" and progress.minutes == pytest.approx(20 + ended_s / 60)
    (again, *_) = of_kind(a_little_more(0.0), LossChunk)  # the rest of the twenty minutes
    assert again.first_step == progress.step and again.eta_s < chunk.eta_s
    assert RunDir(run_path).progress().minutes == progress.minutes
    assert np.array_equal(read_history(run_path).series["loss"].steps, np.arange(again.first_step + len(again.losses)))


def test_a_run_record_has_an_nfc_name(tmp_path: Path) -> None:
    path = tmp_path / "e\u0301pe\u0301es"
    list(train_toy(path, make_sprites(), steps=1))
    assert RunDir(path).record().name == "\u00e9p\u00e9es"
