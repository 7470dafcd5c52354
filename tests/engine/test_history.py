from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from studio.core import places
from studio.core.errors import RunError
from studio.core.events import CheckpointSaved, LossChunk, SamplesReady
from studio.data.sprites import Sprites
from studio.engine.history import HistoryRead, RunsListed, list_runs, read_history, read_run
from studio.engine.model import Control
from studio.engine.rundir import RunDir
from studio.engine.train import train_resumed
from tests.engine.tools import CPU, of_kind, train_classifier, train_generator


def test_curves_are_what_was_trained(run_path: Path, sprites: Sprites) -> None:
    events = list(train_generator(run_path, sprites, steps=12))
    (read,) = read_run(run_path)
    assert isinstance(read, HistoryRead)
    loss = read.history.series["loss"]
    assert loss.steps.tolist() == list(range(12))
    assert np.allclose(loss.values, np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)]), rtol=1e-6)
    assert read.history.checkpoints == [12]
    assert read.history.validation["loss"].steps[-1] == 12
    shown = of_kind(events, SamplesReady)
    assert [step for step, _ in read.samples] == [event.step for event in shown]
    assert np.array_equal(read.samples[-1][1], shown[-1].sprites)


def test_a_confusion_matrix_comes_back(run_path: Path, sprites: Sprites) -> None:
    list(train_classifier(run_path, sprites))
    confusion = read_history(run_path).confusion
    assert confusion is not None and confusion.shape == (2, 2) and confusion.sum() == 4


def test_what_a_resume_overtakes_is_left_out(run_path: Path, sprites: Sprites) -> None:
    control = Control(checkpoint_now=True)
    training = train_generator(run_path, sprites, control, steps=40)
    saved = 0
    for event in training:
        if isinstance(event, CheckpointSaved):
            saved = event.step
        if isinstance(event, LossChunk) and saved and event.first_step > saved:
            training.close()  # as if the power had failed some steps after the checkpoint
    with (run_path / "metrics.jsonl").open("a") as lines:
        lines.write('{"step": 999, "loss": [0.1')  # and in the middle of a line
    list(train_resumed(run_path, CPU, Control()))
    assert read_history(run_path).series["loss"].steps.tolist() == list(range(40))


def test_all_runs_are_listed_with_their_standing(sprites: Sprites, tmp_path: Path) -> None:
    list(train_generator(places.runs() / "done", sprites))
    running = train_generator(places.runs() / "running", sprites)
    next(running)
    stopped = train_generator(tmp_path / "elsewhere", sprites)
    next(stopped)
    stopped.close()
    (places.runs() / "broken").mkdir()
    (places.runs() / "broken" / "run.json").write_text("{")
    (places.runs() / "no run").mkdir()
    (listed,) = list_runs([tmp_path / "elsewhere", tmp_path / "gone"])
    assert isinstance(listed, RunsListed)
    standings = {run.path.name: run.standing for run in listed.runs}
    assert standings == {"done": "finished", "running": "training", "elsewhere": "interrupted", "broken": "damaged"}
    assert next(run for run in listed.runs if run.standing == "damaged").problem
    running.close()


def test_a_newer_version_is_named_as_the_reason(run_path: Path, sprites: Sprites) -> None:
    list(train_generator(run_path, sprites))
    record = json.loads((run_path / "run.json").read_text())
    (run_path / "run.json").write_text(json.dumps({**record, "format": 99}))
    with pytest.raises(RunError, match="newer version"):
        RunDir(run_path).record()


def test_a_record_goes_there_and_back(run_path: Path, sprites: Sprites) -> None:
    list(train_generator(run_path, sprites))
    record = RunDir(run_path).record()
    assert record.class_names == sprites.class_names and record.data_count == len(sprites)
    assert record == dataclasses.replace(record)
    for damage in ("", "[]", '{"format": 1}'):
        (run_path / "run.json").write_text(damage)
        with pytest.raises(RunError):
            RunDir(run_path).record()
