"""The queue from the command line: what was added in the evening is there in the morning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from studio.cli.messages import FAILED, INTERRUPTED, WRONG_USAGE
from studio.core import paths
from studio.core.events import Events
from studio.engine.control.control import Control
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import RunsListed, list_runs, remembered_runs, summarise
from tests.cli.tools import TINY, Studio
from tests.engine.runs.test_damaged_runs import flip

SMALL = ["--recipe", "classifier", "--shift-px", "0", "--width", "16", *TINY]


@pytest.fixture
def art(folder: Path, tmp_path: Path) -> Path:
    """Sprites that may be removed."""
    return shutil.copytree(folder, tmp_path / "art")


def add(studio: Studio, art: Path, *names: str, steps: int = 2) -> list[Path]:
    for name in names:
        studio("queue", "add", art, "--name", name, "--steps", steps, *SMALL)
    return [paths.runs() / name for name in names]


def standings() -> dict[str, str]:
    (listed,) = list_runs()
    assert isinstance(listed, RunsListed)
    return {run.path.name: run.standing for run in listed.runs}


def test_queued_runs_are_trained_in_order_with_their_settings(art: Path, studio: Studio) -> None:
    assert "The queue is empty." in studio("queue").out and "The queue is empty." in studio("queue", "run").out
    said = studio("queue", "add", art, "--name", "a", "--steps", 2, *SMALL)
    assert "Queued a at position 1 of 1" in said.out and "studio queue run" in said.out
    (queued,) = [each for each in studio("queue", "add", art, "--name", "b", *SMALL, "--steps", 3, "--json").objects()
                 if each["type"] == "RunQueued"]  # fmt: skip
    assert queued["path"] == str(paths.runs() / "b")
    add(studio, art, "c")
    shutil.rmtree(art)
    lines = studio("queue", "move", "c", 1).out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["1", "c"], ["2", "a"], ["3", "b"]]
    found = studio("queue", "list", "--json").objects()
    assert [(each["place"], each["record"]["name"], each["standing"]) for each in found] == [
        (1, "c", "queued"), (2, "a", "queued"), (3, "b", "queued"),
    ]  # fmt: skip
    assert "queued" in studio("runs").out
    out = studio("queue", "run").out
    assert out.index("queue: c") < out.index("queue: a") < out.index("queue: b") and "3 runs trained, 0 failed." in out
    assert standings() == {"a": "finished", "b": "finished", "c": "finished"}
    assert RunDir(paths.runs() / "b").progress().step == 3
    assert "The queue is empty." in studio("queue").out


def test_runs_in_other_folders_are_queued_and_kept_when_removed(art: Path, tmp_path: Path, studio: Studio) -> None:
    far = tmp_path / "far away"
    studio("queue", "add", art, "--out", far, "--steps", 2, *SMALL)
    assert remembered_runs() == [far]
    assert f"studio resume '{far}'" in studio("queue", "remove", far).out
    assert summarise(far).standing == "stopped" and "The queue is empty." in studio("queue").out
    assert "is not in the queue" in studio("queue", "remove", far, code=WRONG_USAGE).err
    studio("resume", far)
    assert summarise(far).standing == "finished"
    add(studio, art, "near")
    assert "There is no position 2: the queue has 1 run." in studio("queue", "move", "near", 2, code=WRONG_USAGE).err
    studio("resume", "near")  # out of its turn
    assert "The queue is empty." in studio("queue").out


def test_the_queue_goes_on_after_a_failure(art: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.recipes.classifier import Classifier

    spoilt, broken, _ = add(studio, art, "spoilt", "broken", "good")
    flip(spoilt / "data.safetensors")
    evaluate = Classifier.evaluate

    def evaluate_or_fail(recipe: Any, *arguments: Any) -> Any:
        if RunDir(broken).is_busy():
            raise ZeroDivisionError("a bug in a plug-in")
        return evaluate(recipe, *arguments)

    monkeypatch.setattr(Classifier, "evaluate", evaluate_or_fail)
    out, err = studio("queue", "run", code=FAILED)
    assert "1 run trained, 2 failed: spoilt, broken." in out and "Traceback" not in err
    assert standings() == {"spoilt": "failed", "broken": "failed", "good": "finished"}
    assert "damaged" in RunDir(spoilt).progress().message and "a bug" in RunDir(broken).progress().message
    assert "spoilt has failed" in err and "The queue is empty." in studio("queue").out
    assert studio("queue", "run", "--json").objects()[-1]["type"] == "QueueEnded"


def test_ctrl_c_saves_the_run_at_its_position(art: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    add(studio, art, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr("studio.cli.queue.Control", partial(Control, stop=True))
        out = studio("queue", "run", code=INTERRUPTED).out
    assert "the queue: b" not in out and "2 runs left in the queue. Continue:  studio queue run" in out
    assert standings() == {"a": "stopped", "b": "queued"}
    out = studio("queue", "run").out
    assert out.index("queue: a") < out.index("queue: b") and standings() == {"a": "finished", "b": "finished"}


def test_queue_skips_runs_of_another_process(art: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes want one entry: the second takes the next, and says at the end what the other has."""
    first, _ = add(studio, art, "a", "b")
    other = RunDir(first)
    from studio.engine.training import loop

    resumed = loop.train_resumed

    def taken_meanwhile(path: Path, *arguments: Any, **changes: Any) -> Events:
        if path == first:
            other.acquire()
        yield from resumed(path, *arguments, **changes)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_resumed", taken_meanwhile)
        patch.setattr(RunDir.acquire, "__defaults__", (0.0,))  # nobody waits for a lock that is held for good
        out, err = studio("queue", "run")
    assert "Skipped a: another process trains it or has trained it." in err and "1 run trained, 0 failed." in out
    assert "1 run in training by another window or command." in out
    assert "1 run in training" in studio("queue", "run").out
    other.release()
    assert standings() == {"a": "queued", "b": "finished"}


def test_queue_replaces_a_missing_device(art: Path, studio: Studio) -> None:
    (run,) = add(studio, art, "a")
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "device": "cuda:3", "device_name": "A card"}))
    assert "A card is not available. Using test CPU." in studio("queue", "run").err
    assert standings() == {"a": "finished"}


def test_a_queued_run_has_no_model(art: Path, tmp_path: Path, studio: Studio) -> None:
    add(studio, art, "a", "b")
    for words in (["predict", "a", art], ["export", "a"], ["evaluate", "a"], ["map", "a", "--out", tmp_path / "m.png"]):
        assert "a has no checkpoint yet." in studio(*words, code=FAILED).err
    studio("report", "a", "b", "--out", tmp_path / "report.html")
    assert "queued" in (tmp_path / "report.html").read_text()
    assert "Traceback" not in studio("plot", "a", "--out", tmp_path / "plot.png", code=FAILED).err
    assert "Traceback" not in studio("film", "a", "--out", tmp_path / "film.gif", code=FAILED).err


def _runner(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "studio", "queue", "run", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})


def _objects_until(process: subprocess.Popen[str], kind: str, times: int) -> None:
    assert process.stdout is not None
    for text in process.stdout:
        times -= json.loads(text)["type"] == kind
        if not times:
            return
    raise AssertionError(f"It ended before: {process.communicate()[1]}")


@pytest.mark.slow
def test_fault_20_five_runs_of_the_evening_are_there_in_the_morning_though_one_was_killed(
    art: Path, studio: Studio
) -> None:
    runs = add(studio, art, *"abcde", steps=40)
    shutil.rmtree(art)
    process = _runner("--json")
    _objects_until(process, "RunStarted", 3)
    _objects_until(process, "LossChunk", 2)
    process.kill()
    process.communicate()
    assert standings() == {"a": "finished", "b": "finished", "c": "interrupted", "d": "queued", "e": "queued"}
    process = _runner()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and "3 runs trained, 0 failed." in out, err
    assert set(standings().values()) == {"finished"}
    assert [len(read_history(run).series["loss"].values) for run in runs] == [40] * 5


@pytest.mark.slow
def test_fault_27_two_processes_never_train_one_run(art: Path, studio: Studio) -> None:
    runs = add(studio, art, *"abcd", steps=40)
    processes = [_runner("--json") for _ in range(2)]
    ends = [json.loads(process.communicate(timeout=300)[0].splitlines()[-1]) for process in processes]
    trained = [path for end in ends for path in end["trained"]]
    assert sorted(trained) == sorted(map(str, runs)) and not any(end["failed"] for end in ends)
    assert [len(read_history(run).series["loss"].values) for run in runs] == [40] * 4
    assert not any('"resumed"' in (run / "metrics.jsonl").read_text() for run in runs)
