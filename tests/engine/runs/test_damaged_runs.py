"""Runs that are not as the studio left them, or can't be read for now: what is sound is there, what is not is named."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from studio.cli.runs import _run_row
from studio.core import files, paths
from studio.core.errors import BusyRunError, DamagedError, RunError, RunGoneError, StudioError
from studio.core.events import Blocked, CheckpointSaved, Event, LossChunk, Notice, RunFinished, RunStarted, SamplesReady
from studio.core.metrics import ACCURACY
from studio.core.observers import observed
from studio.data.sprites import Sprites
from studio.engine.control import protocol, server
from studio.engine.control.control import Control
from studio.engine.models.loading import checkpoint_names, find_checkpoint, load_model
from studio.engine.remote import marker
from studio.engine.runs import checkpoints, queue
from studio.engine.runs.checkpoints import list_checkpoints
from studio.engine.runs.creating import new_run, remove_failed_starts
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import (
    RunsListed,
    RunSummary,
    list_runs,
    remember,
    remembered_runs,
    resume_hint,
    summarise,
)
from studio.engine.runs.maintenance.disk_use import Removable
from studio.engine.runs.maintenance.free_space import free_space
from studio.engine.runs.notes import change_notes
from studio.engine.runs.samples import read_samples, save_samples
from studio.engine.steps.streamed import StreamedSprites
from studio.engine.training.loop import train_resumed
from tests.conftest import make_sprites
from tests.core.test_errors import WindowsOSError
from tests.engine.tools import CPU, bare_run, of_kind, train_classifier, train_toy

ODD: tuple[Any, ...] = (None, 5, -5, 0, 10**30, "x", [None], {"a": []}, float("nan"), float("inf"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with three checkpoints; nobody changes it."""
    path, control = tmp_path_factory.mktemp("trained") / "run", Control()
    for event in train_classifier(path, make_sprites(), control, steps=9):
        control.checkpoint_now = isinstance(event, LossChunk)
    assert len(list_checkpoints(path / "checkpoints")) > 2
    return path


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoilt."""
    return shutil.copytree(trained, tmp_path / "spoilt")


def flip(path: Path) -> None:
    """Spoil one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def steps(run: Path) -> list[int]:
    return [info.step for _, info in list_checkpoints(run / "checkpoints")]


def titles(run: Path, control: Control | None = None) -> list[str]:
    """What is said while a run is resumed and goes on to its end, or is stopped at once."""
    return [notice.title for notice in of_kind(list(train_resumed(run, CPU, control or Control())), Notice)]


@contextlib.contextmanager
def unreadable(name: str, code: int) -> Iterator[None]:
    """For now the system refuses to read files or folders of that name."""

    def refusing(read: Callable[..., Any]) -> Callable[..., Any]:
        def read_or_refuse(path: Path, *arguments: Any, **named: Any) -> Any:
            if path.name == name:
                raise OSError(code, os.strerror(code), str(path))
            return read(path, *arguments, **named)

        return read_or_refuse

    with pytest.MonkeyPatch.context() as patch:
        for call in ("read_bytes", "read_text", "iterdir"):
            patch.setattr(Path, call, refusing(getattr(Path, call)))
        yield


def no_room(*arguments: Any, **named: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def tree(folder: Path) -> list[str]:
    """The files in a folder and below, without the lock."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def listed() -> dict[str, RunSummary]:
    (found,) = list_runs()
    assert isinstance(found, RunsListed)
    assert all(_run_row(run) for run in found.runs)
    return {run.path.name: run for run in found.runs}


@pytest.mark.parametrize("record", ["run.json", "state.json"])
def test_fault_34_a_wrong_field_damages_its_own_run_alone_and_is_named(trained: Path, record: str) -> None:
    kept = json.loads((trained / record).read_text())
    expected = {"good"}
    for number, field in enumerate(kept):
        for odd, value in enumerate(ODD):
            folder = paths.runs() / f"{number}-{odd}"
            folder.mkdir(parents=True)
            for name in ("run.json", "state.json"):
                shutil.copy(trained / name, folder / name)
            (folder / record).write_text(json.dumps({**kept, field: value}))
            expected.add(folder.name)
    good = shutil.copytree(trained, paths.runs() / "good")
    (good / record).write_text(json.dumps({**kept, "surprise": 5}))
    found = listed()
    assert found.keys() == expected and found["good"].standing == "finished"
    damaged = {name: run.problem for name, run in found.items() if run.standing == "damaged"}
    for number, field in enumerate(kept):
        named = [damaged.get(f"{number}-{odd}", "") for odd in range(len(ODD))]
        assert all(f"'{field}'" in problem or "newer version" in problem for problem in named if problem)
        assert sum(map(bool, named)) >= 3, field


OUT_OF_BOUNDS = (
    ("run.json", "size", 0), ("run.json", "size", 2**16), ("run.json", "data_count", -1), ("run.json", "format", 0),
    ("run.json", "parameters", -1), ("state.json", "step", -1), ("state.json", "elapsed_s", float("inf")),
    ("state.json", "setbacks", -4), ("state.json", "setbacks", 4), ("state.json", "pieces", 0),
    ("state.json", "pieces", -1),
)  # fmt: skip


@pytest.mark.parametrize(
    ("record", "field", "value", "said"),
    [
        ("run.json", "created", 5, "holds .*whole number"),  # the field of the issue
        ("run.json", "class_names", None, "holds .*nothing"),
        *((*wrong, "is out of range") for wrong in OUT_OF_BOUNDS),
    ],
)
def test_fault_34_a_wrong_field_is_named(run: Path, record: str, field: str, value: float | None, said: str) -> None:
    (run / record).write_text(json.dumps({**json.loads((run / record).read_text()), field: value}))
    with pytest.raises(DamagedError, match=f"'{field}' {said}"):
        RunDir(run).record(), RunDir(run).progress()


def test_a_record_that_is_none_or_of_another_version_is_refused(run: Path) -> None:
    kept = json.loads((run / "run.json").read_text())
    newer = json.dumps({**kept, "format": 99})
    older = json.dumps({name: value for name, value in kept.items() if name != "split"})
    for text, said in (("", "damaged"), ("[]", "damaged"), (newer, "newer version"), (older, "older version")):
        (run / "run.json").write_text(text)
        with pytest.raises(RunError, match=said):
            RunDir(run).record()


def test_fault_34_lines_of_curves_that_are_wrong_are_left_out(run: Path) -> None:
    before = read_history(run)
    kinds = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    odd: tuple[Any, ...] = (None, "x", [], {}, [None], -1.5)
    wrong: list[Any] = [{**line, field: value} for line in kinds for field in line for value in odd]
    wrong.append({"failed_step": 1})
    with (run / "metrics.jsonl").open("a") as lines:
        for line in [*wrong, [], 5]:
            lines.write(f"{json.dumps(line)}\n")
    after = read_history(run)  # lines whose figures alone are odd may stay
    assert set(after.series["loss"].steps.tolist()) == set(before.series["loss"].steps.tolist())
    assert len(after.series["loss"].steps) == len(after.series["grad_norm"].values)
    (run / "confusion.json").write_text(json.dumps({"step": 9, "counts": [[10**30]]}))
    assert read_history(run).confusion is None


def test_fault_34_a_checkpoint_with_a_wrong_record_is_passed_over(run: Path) -> None:
    newest, info = list_checkpoints(run / "checkpoints")[-1]
    wrong = json.dumps({**json.loads((newest / "checkpoint.json").read_text()), "sha256": []})
    for text in ("", "[]", '{"step": 1}', '{"surprise": 1}', wrong):
        (newest / "checkpoint.json").write_text(text)
        assert load_model(run, "last", CPU).step < info.step
        assert str(info.step) not in checkpoint_names(run)


@pytest.mark.parametrize("part", ["average.safetensors", "checkpoint.json"])
@pytest.mark.parametrize("name", ["best", "last"])
def test_fault_19_best_and_last_are_sound_ones(run: Path, name: str, part: str) -> None:
    path, info = find_checkpoint(run, name)
    flip(path / part)
    model = load_model(run, name, CPU)
    assert model.step in steps(run) and model.step != info.step
    assert [notice.title for notice in model.notices] == [f"Checkpoint {path.name} is damaged."]
    with pytest.raises(StudioError, match=rf"{info.step}"):  # nobody gets another one for that which was named
        load_model(run, str(info.step), CPU)


def test_checkpoint_deleted_while_loading_is_not_damaged(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone, _), load = list_checkpoints(run / "checkpoints")[-1], checkpoints.load_tensors

    def removed_before_it_is_read(path: Path, *arguments: Any) -> checkpoints.Tensors:
        files.remove(gone)
        return load(path, *arguments)

    monkeypatch.setattr(checkpoints, "load_tensors", removed_before_it_is_read)
    model = load_model(run, "last", CPU)
    assert model.step == steps(run)[-1] and model.notices == ()


def test_where_all_checkpoints_are_damaged_nothing_begins_anew(run: Path) -> None:
    for path, _ in list_checkpoints(run / "checkpoints"):
        flip(path / "checkpoint.json")
    before = tree(run)
    for job in (lambda: load_model(run, "best", CPU), lambda: titles(run)):
        with pytest.raises(RunError, match=r"All checkpoints of .* are damaged"):
            job()
    assert tree(run) == before


def test_damaged_checkpoint_is_reported_once_and_quarantined(run: Path) -> None:
    (run / "run.json").write_text((run / "run.json").read_text().replace('"steps": 9', '"steps": 12'))
    sound, (path, _) = steps(run)[:-1], list_checkpoints(run / "checkpoints")[-1]
    flip(path / "model.safetensors")
    assert titles(run, Control(stop=True)) == [f"Checkpoint {path.name} is damaged."]
    assert steps(run) == sound and (run / "checkpoints" / f"damaged-{path.name}").is_dir()
    assert titles(run, Control(stop=True)) == []
    checkpoints.rotate(run / "checkpoints", ACCURACY)
    assert steps(run)[-2:] == sound[-2:]  # the last two sound ones
    events = list(train_resumed(run, CPU, Control()))
    assert of_kind(events, RunStarted)[0].first_step == sound[-1] and not of_kind(events, Notice)
    assert steps(run)[-1] == 12 and not list((run / "checkpoints").glob("damaged-*"))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
@pytest.mark.parametrize("name", ["state.json", "checkpoint.json", "model.safetensors", "checkpoints"])
def test_what_can_not_be_read_for_now_begins_nothing_anew(run: Path, name: str, code: int) -> None:
    before = tree(run)
    with unreadable(name, code), pytest.raises(RunError, match=r"Can't read .*" + name) as caught:
        list(train_resumed(run, CPU, Control()))
    assert os.strerror(code) in caught.value.title and not RunDir(run).is_busy()
    assert tree(run) == before
    (started,) = of_kind(list(train_resumed(run, CPU, Control(stop=True))), RunStarted)
    assert started.first_step == 9


def test_a_run_that_can_not_be_read_for_now_is_listed_with_the_reason(trained: Path) -> None:
    for name in ("good", "bad"):
        shutil.copytree(trained, paths.runs() / name)
    stat = Path.stat

    def refused(path: Path, **named: Any) -> os.stat_result:
        if "bad" in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **named)

    with pytest.MonkeyPatch.context() as patch, unreadable("run.json", errno.EACCES):
        patch.setattr(Path, "stat", refused)
        patch.setattr(Path, "resolve", Path.absolute)
        assert all("Permission denied" in run.problem for run in listed().values())
    assert listed()["bad"].standing == "finished"
    with unreadable("runs", errno.EIO), pytest.raises(RunError, match="Can't read"):
        listed()


def test_runs_stay_listed_when_the_runs_folder_moves(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, paths.runs() / "before")
    for name in ("drive", "chosen"):
        paths.choose_runs_folder(tmp_path / name)
        shutil.copytree(trained, paths.runs() / f"on {name}")
    remember(tmp_path / "drive" / "on drive")
    assert set(listed()) == {"before", "on drive", "on chosen"} and remembered_runs() == []
    with unreadable("drive", errno.EIO):
        assert set(listed()) == {"before", "on chosen"}


def test_runs_elsewhere_are_not_forgotten_where_their_list_can_not_be_read(tmp_path: Path) -> None:
    remember(tmp_path / "first")
    with unreadable("known_runs.json", errno.EIO):
        assert remembered_runs() == []
        remember(tmp_path / "second")
    assert remembered_runs() == [tmp_path / "first"]
    for odd in ("{}", "[[5]]", "null", '["a\\u0000b"]', "[" * 100_000):
        (paths.home() / "known_runs.json").write_text(odd)
        assert remembered_runs() == []


@pytest.mark.parametrize(
    "failing",
    [
        *(f"training.create.{name}" for name in ("packed.link_or_save", "save_style", "_assemble", "RunDir.create")),
        "runs.folder.file_systems.acquire_lock",
    ],
)
def test_fault_21_a_start_that_fails_leaves_nothing(run_path: Path, sprites: Sprites, failing: str) -> None:
    def start_on_a_full_disk() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"studio.engine.{failing}", no_room)
            with pytest.raises((OSError, RunError), match=r"No space|Can't write"):
                list(train_toy(run_path, sprites, steps=1))

    start_on_a_full_disk()
    assert not run_path.exists() and run_path.parent.is_dir()
    run_path.mkdir()
    start_on_a_full_disk()
    assert run_path.is_dir() and tree(run_path) == []  # the folder was there before
    list(train_toy(run_path, sprites, Control(stop=True)))
    assert RunDir(run_path).progress().state == "stopped"


def test_a_start_that_fails_and_a_run_that_can_not_go_on_close_the_sprites_that_are_streamed(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = list[bool]()
    monkeypatch.setattr(StreamedSprites, "close", lambda streamed: closed.append(run_path.exists()))
    for failing in ("RunDir.create", "new_limitations"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"studio.engine.training.create.{failing}", no_room)
            with pytest.raises(OSError, match="No space"):
                list(train_classifier(run_path, sprites, data_on_device="no"))
    assert closed == [True, True]  # before the folder is removed: on Windows an open file can't be
    list(train_classifier(run_path, sprites, Control(stop=True), data_on_device="no"))
    closed.clear()
    for path, _ in list_checkpoints(run_path / "checkpoints"):
        flip(path / "checkpoint.json")
    with pytest.raises(RunError, match="are damaged"):
        titles(run_path)
    assert closed == [True]


def _make_start(folder: Path) -> None:
    """What a start leaves that is killed when it has written all but run.json."""
    kept = folder.with_name("kept")
    with contextlib.suppress(KeyboardInterrupt), new_run(RunDir(folder)):
        (folder / "data.safetensors").write_bytes(b"half")
        (folder / "state.json").write_bytes(b"half")
        (folder / ".tmp-0123456789ab.safetensors").write_bytes(b"half")
        shutil.copytree(folder, kept)
        raise KeyboardInterrupt
    kept.rename(folder)


def test_fault_21_a_start_that_was_killed_is_no_run_and_its_folder_is_used_again(sprites: Sprites) -> None:
    killed, other = paths.runs() / "killed", paths.runs() / "other"
    for folder in (killed, other):
        _make_start(folder)
    assert (killed / "data.safetensors").exists() and listed() == {}
    list(train_toy(killed, sprites, Control(stop=True)))
    assert listed()["killed"].standing == "stopped" and not (killed / ".tmp-0123456789ab.safetensors").exists()
    assert not other.exists()  # swept by the start beside it
    (checkpoint,) = (killed / "checkpoints").iterdir()  # to which figures are added later
    for folder in (killed, killed / "checkpoints", checkpoint, killed / "samples"):
        (folder / ".tmp-ba9876543210.json").write_bytes(b"half")
    list(train_resumed(killed, CPU, Control(stop=True)))
    assert not list(killed.rglob(".tmp-*"))


def test_a_path_too_long_for_checkpoints_on_windows_is_said_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / ("x" * (215 - len(str(tmp_path))))
    touch = Path.touch

    def refuse(path: Path) -> None:
        if len(str(path)) > 259:
            raise WindowsOSError(206, "The filename or extension is too long", str(path))
        touch(path)

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(RunError, match="too many for Windows"), new_run(RunDir(parent / "run")):
        pass
    assert tree(parent) == []
    with new_run(RunDir(tmp_path / "run")):
        assert tree(tmp_path / "run" / "checkpoints") == []


def test_starts_that_were_killed_are_swept_and_nobodys_files_with_them(tmp_path: Path) -> None:
    begun = ".run-being-made"
    killed, used, elsewhere = paths.runs() / "killed", paths.runs() / "used", tmp_path / "work" / "elsewhere"
    for folder in (killed, used, elsewhere):
        _make_start(folder)
    for folder in (used, elsewhere):
        (folder / "samples" / "kick.wav").write_bytes(b"mine")
    (used / ".tmp-mine").write_bytes(b"mine")
    others = [paths.runs() / "mygame", tmp_path / "work" / "mygame"]
    for number, game in enumerate(others):
        (game / "samples").mkdir(parents=True)
        for name in ("samples/kick.wav", "state.json"):
            (game / name).write_bytes(b"mine")
        for name in (".starting", begun):
            (game / name).write_bytes(b"mine" * number)
    before = [tree(folder) for folder in (*others, elsewhere)]
    remove_failed_starts()
    for folder in (killed, tmp_path / "work" / "new"):
        with new_run(RunDir(folder)):
            pass
    assert [tree(folder) for folder in (*others, elsewhere)] == before
    assert tree(killed) == []  # where nothing of the killed start is in the way
    assert tree(used) == [".tmp-mine", "samples/kick.wav"]
    for folder in (used, elsewhere, *others):
        with pytest.raises(RunError, match="not empty"), new_run(RunDir(folder)):
            pass
    assert [tree(folder) for folder in others] == before[:2]
    assert tree(used) == [".tmp-mine", "samples/kick.wav"] and tree(elsewhere) == ["samples/kick.wav"]


def test_a_start_that_was_killed_at_its_first_write_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".tmp-0123456789ab").write_bytes(b"Sprite")
    with new_run(RunDir(tmp_path)):
        assert not list(tmp_path.glob(".tmp-*"))


def test_unreadable_runs_folder_does_not_prevent_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", no_room)
    remove_failed_starts()


def test_checkpoints_and_samples_are_in_the_order_of_their_steps(run: Path) -> None:
    late = [99_999_999, 100_000_000, 1_000_000_000]
    path, info = list_checkpoints(run / "checkpoints")[-1]
    for number, step in enumerate(late, info.number + 1):
        target = shutil.copytree(path, checkpoints.checkpoint_path(run / "checkpoints", step))
        checkpoints._write_record(target, replace(info, step=step, number=number))
        save_samples(RunDir(run), SamplesReady(step, make_sprites().rgba[:1]))
    assert steps(run)[-3:] == late and checkpoint_names(run)[2] == "1000000000"
    assert [samples.step for samples in read_samples(run, 8)][-3:] == late
    assert load_model(run, "last", CPU).step == late[-1]
    checkpoints.rotate(run / "checkpoints", ACCURACY)
    assert steps(run)[-2:] == late[-2:]


def test_fault_22_a_runs_folder_that_can_not_be_made_is_said_before_training(run_path: Path, sprites: Sprites) -> None:
    run_path.parent.parent.mkdir(exist_ok=True)
    run_path.parent.write_text("a file is in the way")
    with pytest.raises(RunError, match="Can't write"):
        list(train_toy(run_path, sprites))


def _freed(run: Path) -> None:
    """Remove a checkpoint that was found in a run before the run was removed."""
    list(free_space([Removable("checkpoints", run, run / "checkpoints" / "step-00000001", 7)]))


def _resume(run: Path) -> None:
    list(train_resumed(run, CPU, Control()))


@pytest.mark.parametrize(
    "work",
    [
        lambda run: RunDir(run).acquire(),
        lambda run: protocol.write_heartbeat(run, protocol.Heartbeat(0, 0, 0.0, 1, 1)),
        lambda run: protocol.send_request(run, save=True),
        lambda run: marker.mark_remote(run, "a@b:c"),
        lambda run: queue.mark_failed(run, "It could not be begun."),
        lambda run: change_notes(run, starred=True),
        _freed,
        _resume,
    ],
    ids=["acquire", "live", "send_request", "mark", "give up", "notes", "free space", "resume"],
)
def test_no_write_brings_back_the_folder_of_a_removed_run(tmp_path: Path, work: Callable[[Path], object]) -> None:
    run = tmp_path / "gone"
    with contextlib.suppress(RunError):
        work(run)
    assert not run.exists()


def test_a_run_says_at_which_step_resume_will_start(run_path: Path, sprites: Sprites) -> None:
    for event in train_classifier(run_path, sprites, steps=9):
        if isinstance(event, LossChunk):
            break  # as if it were killed
    run = summarise(run_path)
    assert (run.standing, run.saved_step) == ("interrupted", 0)
    assert resume_hint(run.saved_step) == "No checkpoint was saved: Resume starts again from step 0."
    resumed, control = list[Event](), Control(checkpoint_now=True)
    for event in train_resumed(run_path, CPU, control):
        resumed.append(event)
        if isinstance(event, CheckpointSaved):
            break
    assert [notice.title for notice in of_kind(resumed, Notice)] == [
        "No checkpoint was saved. Training starts at step 0."
    ]
    run, saved = summarise(run_path), of_kind(resumed, CheckpointSaved)[0].step
    assert run.saved_step == saved > 0
    assert resume_hint(saved) == f"Resume continues from the checkpoint at step {saved}."


@pytest.mark.parametrize("leftover", [False, True], ids=["nothing left", "an empty folder left"])
def test_fault_22_a_file_is_not_written_into_a_folder_that_took_the_place_of_the_run_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leftover: bool
) -> None:
    run_path = tmp_path / "run"
    run, write = bare_run(run_path), Path.write_bytes
    before = sorted(path.name for path in run_path.iterdir())

    def unplug(path: Path, data: bytes) -> int:
        written = write(path, data)
        run_path.rename(run_path.with_name("unplugged"))
        if leftover:
            run_path.mkdir()
        return written

    monkeypatch.setattr(Path, "write_bytes", unplug)
    with pytest.raises(RunGoneError), run.wrap_write_errors():
        run.write_file("state.json", b"{}")
    assert run_path.exists() == leftover and not list(run_path.glob("*"))
    left = [path for path in run_path.with_name("unplugged").iterdir() if not files.is_temporary(path)]
    assert sorted(path.name for path in left) == before


@pytest.mark.skipif(os.name == "nt", reason="a folder with an open file in it can't be moved there")
@pytest.mark.parametrize("leftover", [False, True], ids=["nothing left", "an empty folder left"])
def test_fault_22_training_waits_for_a_folder_that_has_vanished(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, leftover: bool
) -> None:
    monkeypatch.setattr(server, "BEAT_S", 0.0)
    unplugged, halted, events = run_path.with_name("unplugged"), 0, list[Event]()
    control = Control()
    for event in observed(
        train_classifier(run_path, sprites, control, steps=6), [server.RunControlServer(control, can_pause=True)]
    ):
        events.append(event)
        if isinstance(event, LossChunk) and not halted:
            run_path.rename(unplugged)
            if leftover:
                run_path.mkdir()
            control.checkpoint_now = True
        elif isinstance(event, Blocked):
            assert "moved or removed" in event.hint and "Put the folder back" in event.hint
            found = [path for path in run_path.glob("*") if not files.is_temporary(path)]  # of the heartbeat's thread
            assert not found and run_path.exists() == leftover  # nothing is written in its place
            halted += 1
            if halted == 3:
                if leftover:
                    run_path.rmdir()
                unplugged.rename(run_path)
    assert halted == 3 and of_kind(events, RunFinished)[0].reason == "finished"
    assert read_history(run_path).series["loss"].steps.tolist() == list(range(6)) and steps(run_path)[-1] == 6


def test_a_run_that_ends_while_another_process_waits_for_its_lock_is_not_resumed(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(train_classifier(run_path, sprites, steps=2))
    acquire = RunDir.acquire

    def wait_and_acquire(run: RunDir, *arguments: Any, **options: Any) -> None:
        acquire(run, *arguments, **options)
        run.write_progress(msgspec.structs.replace(run.progress(), step=9))

    monkeypatch.setattr(RunDir, "acquire", wait_and_acquire)
    with pytest.raises(BusyRunError, match="Another process has trained trial meanwhile"):
        list(train_resumed(run_path, CPU, Control()))
    assert not RunDir(run_path).is_busy() and read_history(run_path).series["loss"].steps.tolist() == [0, 1]


def test_fault_35_a_file_system_that_lacks_much_trains_and_says_so_once(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    flush = os.fsync

    def files_alone(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(handle)

    def unknown(*arguments: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr("studio.core.file_systems._reported", set[int]())
    monkeypatch.setattr(os, "fsync", files_alone)
    monkeypatch.setattr(os, "link", unknown)
    monkeypatch.setattr(fcntl, "flock", unknown)
    events, seen = train_classifier(run_path, sprites, steps=2), list[Event]()
    while not of_kind(seen, RunStarted):
        seen.append(next(events))
    assert RunDir(run_path).is_busy()
    with pytest.raises(BusyRunError, match="trained elsewhere"):
        next(train_resumed(run_path, CPU, Control()))
    notices = of_kind([*seen, *events], Notice)
    assert len(notices) == 1 and "no file locks" in notices[0].hint and "no hard links" in notices[0].hint
    assert titles(run_path) == [] and not RunDir(run_path).is_busy()
    remember(run_path)
    assert remembered_runs() == [run_path]


def test_fault_27_a_run_waits_for_who_looks_whether_it_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks holds the lock for a moment; that `take_lock` waits so long is tested where it is."""
    held = Mock(return_value=None)
    monkeypatch.setattr("studio.engine.runs.folder.file_systems.acquire_lock", held)
    with pytest.raises(BusyRunError, match="trained elsewhere"):
        bare_run(tmp_path).acquire()
    held.assert_called_once_with(tmp_path / ".lock", 1.0)
