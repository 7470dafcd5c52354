from __future__ import annotations

import dataclasses
import io
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from studio.core import paths
from studio.core.events import CheckpointSaved, LossChunk, RunStarted, SamplesReady
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.runs import history
from studio.engine.runs.folder import RunDir, RunProgress
from studio.engine.runs.history import HistoryRead, RunReader, read_history
from studio.engine.runs.listing import RunsListed, list_runs, summarise
from studio.engine.runs.samples import read_samples, sample_paths, save_samples, thin_steps
from studio.engine.training.loop import train_resumed
from tests.engine.tools import CPU, bare_run, bomb_png, of_kind, train_classifier, train_toy


def _read(path: Path, reader: RunReader | None = None) -> HistoryRead:
    return (reader or RunReader()).read(path)


def _save_samples(run: RunDir, steps: Iterable[int], captions: tuple[str, ...] = ()) -> None:
    """Two sprites at each of these steps, whose pixels are the number of the step."""
    for step in steps:
        save_samples(run, SamplesReady(step, np.full((2, 8, 8, 4), step % 256, np.uint8), captions))


def test_curves_are_what_was_trained(run_path: Path, sprites: Sprites) -> None:
    events = list(train_toy(run_path, sprites, steps=12))
    read = _read(run_path)
    loss = read.history.series["loss"]
    assert loss.steps.tolist() == list(range(12))
    assert np.allclose(loss.values, np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)]), rtol=1e-6)
    assert read.history.checkpoints == [12]
    assert read.history.validation["loss"].steps[-1] == 12
    shown = of_kind(events, SamplesReady)
    assert [samples.step for samples in read.samples] == [event.step for event in shown]
    assert np.array_equal(read.samples[-1].sprites, shown[-1].sprites)
    assert read.samples[-1].captions == shown[-1].captions


def test_a_run_tells_how_much_of_its_budget_it_has_used(run_path: Path, sprites: Sprites) -> None:
    list(train_classifier(run_path, sprites, steps=4))
    assert _read(run_path).used_up == 1.0
    record = RunDir(run_path).record()

    def used(**settings: Any) -> float:
        changed = dataclasses.replace(record, config={**record.config, "steps": 0, **settings})
        return history.budget_used(changed, 10, 30.0)

    assert (used(minutes=5.0), used(minutes=0.1), used(steps=40)) == (0.1, 1.0, 0.25)
    assert used(epochs=2, batch_size=1) == 10 / (2 * record.data_count)
    assert used(minutes="soon") == 1.0


def test_replaced_run_folder_is_read_again(run_path: Path, sprites: Sprites) -> None:
    list(train_toy(run_path, sprites, steps=2))
    reader = RunReader()
    _read(run_path, reader)
    metrics, record = run_path / "metrics.jsonl", run_path / "run.json"
    about = metrics.stat()
    with metrics.open("r+") as lines:  # the number of a file that was removed is given to another one
        text = lines.read().replace('"loss":[', '"loss":[5.25,').replace('"grad_norm":[', '"grad_norm":[1.5,')
        lines.seek(0)
        lines.write(text)
    record.write_text(json.dumps({**json.loads(record.read_text()), "created": "2030-01-01T00:00:00+00:00"}))
    assert metrics.stat().st_ino == about.st_ino and metrics.stat().st_size > about.st_size
    assert _read(run_path, reader).history.series["loss"].values[0] == 5.25


def test_confusion_matrix_round_trip(run_path: Path, sprites: Sprites) -> None:
    list(train_classifier(run_path, sprites))
    confusion = read_history(run_path).confusion
    assert confusion is not None and confusion.counts.shape == (2, 2) and confusion.counts.sum() == 4
    assert "confusion" not in (run_path / "metrics.jsonl").read_text()  # there, they would add up


def _write_lines(folder: Path, *lines: object) -> None:
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_outdated_or_damaged_confusion_matrix_is_ignored(tmp_path: Path) -> None:
    _write_lines(tmp_path, {"step": 10, "metrics": {"loss": 1.0}})
    for text in ('{"step": 20, "counts": [[3]]}', '{"step": 10, "counts": [["x"]]}', '{"step": 10', "[]", "{}"):
        (tmp_path / "confusion.json").write_text(text)
        assert read_history(tmp_path).confusion is None
    (tmp_path / "confusion.json").write_text('{"step": 10, "counts": [[3]]}')
    confusion = read_history(tmp_path).confusion
    assert confusion is not None and confusion.counts.tolist() == [[3]]
    _write_lines(tmp_path, {"step": 10, "metrics": {"loss": 1.0}}, {"resumed": 5})
    assert read_history(tmp_path).confusion is None


def test_samples_beyond_the_limit_are_thinned_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save_samples(bare_run(tmp_path), range(0, 120, 10), ("a", "b"))
    assert len(list(read_samples(tmp_path, 8))) == 12
    monkeypatch.setattr("studio.engine.runs.samples.MAX_SAMPLE_IMAGES", 5)
    found = list(read_samples(tmp_path, 8))
    assert [samples.step for samples in found] == [0, 40, 70, 90, 110]
    assert all((samples.sprites == np.uint8(samples.step)).all() for samples in found)


def test_samples_with_too_many_pixels_are_left_out(tmp_path: Path) -> None:
    run = bare_run(tmp_path)
    _save_samples(run, [0, 10, 20])
    sample_paths(run)[10].write_bytes(bomb_png())
    Image.new("RGBA", (8, 9000)).save(sample_paths(run)[20])
    assert [samples.step for samples in read_samples(tmp_path, 8)] == [0]


def test_of_a_long_run_few_samples_are_kept_evenly_over_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.runs.samples.MAX_SAMPLE_IMAGES", 6)
    flushed = list[int]()
    monkeypatch.setattr("os.fsync", flushed.append)
    run = bare_run(tmp_path)
    for step in range(0, 1000, 10):
        _save_samples(run, [step])
        assert len(list(run.samples.iterdir())) <= 6
    kept = list(sample_paths(run))
    assert kept[0] == 0 and kept[-1] == 990 and not flushed
    gaps = np.diff(kept)
    assert gaps[:-1].max() <= 2 * gaps[:-1].min()


def test_steps_are_spread_evenly_while_they_come() -> None:
    kept = list[int]()
    for step in range(0, 30_000, 3):
        kept = thin_steps([*kept, step], 64)
        gaps = np.diff(kept)
        assert len(kept) <= 64 and kept[0] == 0 and kept[-1] == step
        assert len(kept) < 64 or gaps[:-1].max() <= 3 * gaps[:-1].min()
    many = thin_steps(range(1_000_000), 512)  # of a run by an older version, which kept all
    assert len(many) == 512 and many[-1] == 999_999 and np.diff(many).max() < 3 * np.diff(many).min()


class _Counted(io.BufferedReader):
    """A file whose bytes are counted as they are read line by line."""

    counts: ClassVar[list[int]] = []

    def __next__(self) -> bytes:
        line = super().__next__()
        self.counts.append(len(line))
        return line


def test_second_read_parses_only_new_lines(run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    list(train_toy(run_path, sprites, steps=6))
    open_file, metrics, reader = Path.open, run_path / "metrics.jsonl", RunReader()

    def opened(path: Path, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        is_read = path == metrics and mode == "rb"
        return _Counted(io.FileIO(path)) if is_read else open_file(path, mode, *arguments, **named)

    monkeypatch.setattr(Path, "open", opened)

    def look() -> tuple[HistoryRead, int, int]:
        _Counted.counts.clear()
        with patch.object(Image, "open", wraps=Image.open) as decoded:
            read = _read(run_path, reader)
        return read, sum(_Counted.counts), decoded.call_count

    first, all_bytes, pictures = look()
    assert all_bytes == metrics.stat().st_size and pictures == len(first.samples) == 2
    again, no_bytes, none = look()
    assert (no_bytes, none) == (0, 0) and len(again.samples) == 2
    tick: dict[str, Any] = {"step": 6, "loss": [0.5], "grad_norm": [1.0], "lr": 0.1, "sprites_per_s": 1}
    tick |= {"elapsed_s": 9, "memory_bytes": 0}
    line = f"{json.dumps(tick)}\n"
    with metrics.open("a") as lines:
        lines.write(line + line[:9])  # and a line that is being written
    save_samples(RunDir(run_path), SamplesReady(7, sprites.rgba[:4]))
    grown, new_bytes, new_pictures = look()
    assert new_bytes == len(line) + 9 and new_pictures == 1
    assert grown.history.series["loss"].steps.tolist() == list(range(7))
    assert first.history.series["loss"].steps.tolist() == list(range(6))  # who got it keeps it as it was
    assert [samples.step for samples in grown.samples] == [0, 6, 7]
    with metrics.open("a") as lines:
        lines.write(line[9:] + '{"resumed": 4}\n')
    assert look()[0].history.series["loss"].steps.tolist() == list(range(4))
    metrics.write_text(line)  # another file
    assert look()[0].history.series["loss"].steps.tolist() == [6]
    list(list_runs([run_path]))
    assert sum(_Counted.counts) == len(line)  # the list of runs does not look into it


@pytest.mark.parametrize(
    "text",
    ["", "[", '"words"', "{}", "null", json.dumps(["too", "many"] * 5), "[" * 100_000],
    ids=lambda text: text[:9],
)
def test_samples_with_a_text_of_another_kind_have_no_captions(tmp_path: Path, text: str) -> None:
    _save_samples(bare_run(tmp_path), [0], ("a", "b"))
    path, chunk = sample_paths(RunDir(tmp_path))[0], PngInfo()
    chunk.add_text("Captions", text)
    with Image.open(path) as picture:
        picture.load()
    picture.save(path, pnginfo=chunk)
    (samples,) = read_samples(tmp_path, 8)
    assert samples.captions == () and len(samples.sprites) == 8


def test_a_long_run_is_read_without_holding_its_text(tmp_path: Path) -> None:
    values = (np.random.default_rng(0).random(200).round(7)).tolist()
    rest = {"lr": 1e-3, "sprites_per_s": 1.0, "elapsed_s": 1.0, "memory_bytes": 0}
    ticks = [{"step": step, "loss": values, "grad_norm": values, **rest} for step in range(0, 40_000, 200)]
    _write_lines(tmp_path, *ticks)
    tracemalloc.start()
    found = read_history(tmp_path)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(found.series["loss"].values, np.tile(values, 200))
    assert most_bytes < 2.5 * found.series["loss"].steps.nbytes * 3  # losses, norms and steps, and their copies


@pytest.mark.slow
def test_lines_after_the_resumed_step_are_ignored(run_path: Path, sprites: Sprites) -> None:
    control = Control(checkpoint_now=True)
    training = train_toy(run_path, sprites, control, steps=40)
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


def test_a_training_that_begins_or_ends_while_one_looks_was_not_interrupted(
    sprites: Sprites, run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(train_toy(run_path, sprites))
    ended, under_way = RunDir(run_path).progress(), RunProgress("training", 3, 1.0, {})

    def ends(run: RunDir) -> bool:
        run.write_progress(ended)
        return False

    RunDir(run_path).write_progress(under_way)
    monkeypatch.setattr(RunDir, "is_busy", ends)
    assert summarise(run_path).standing == "finished"
    RunDir(run_path).write_progress(under_way)
    looks = iter([False, True])
    monkeypatch.setattr(RunDir, "is_busy", lambda run: next(looks))
    assert summarise(run_path).standing == "training"


def test_all_runs_are_listed_with_their_state(sprites: Sprites, tmp_path: Path) -> None:
    list(train_toy(paths.runs() / "done", sprites))
    running = train_toy(paths.runs() / "running", sprites)
    stopped = train_toy(tmp_path / "elsewhere", sprites)
    for events in (running, stopped):
        assert any(isinstance(event, RunStarted) for event in events)  # and no further
    stopped.close()
    (paths.runs() / "broken").mkdir()
    (paths.runs() / "broken" / "run.json").write_text("{")
    (paths.runs() / "no run").mkdir()
    (listed,) = list_runs([tmp_path / "elsewhere", tmp_path / "gone"])
    assert isinstance(listed, RunsListed)
    standings = {run.path.name: run.standing for run in listed.runs}
    assert standings == {"done": "finished", "running": "training", "elsewhere": "interrupted", "broken": "damaged"}
    assert next(run for run in listed.runs if run.standing == "damaged").problem
    running.close()
