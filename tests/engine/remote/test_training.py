"""Training on another machine: sent, started, followed, brought home; and what goes wrong on the way."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from studio.core.errors import RunError, StudioError, TrainingError, UsageError
from studio.core.events import Blocked, Event, LossChunk, Notice, Progress, RunFinished, RunStarted
from studio.core.versions import versions_in, versions_line
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.control.protocol import read_heartbeat, send_request
from studio.engine.remote import marker
from studio.engine.remote import ssh as far_module
from studio.engine.remote.ssh import RemoteTarget
from studio.engine.remote.training import check_remote, train_remotely
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import CheckpointInfo
from studio.engine.runs.folder import HEARTBEAT_FILE, REMOTE_FILE, REQUEST_FILE, RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import summarise
from studio.engine.runs.notes import change_notes
from studio.engine.training.create import NewRun, create_run
from studio.engine.training.loop import train_resumed
from studio.recipes.classifier import Classifier
from tests.conftest import posix
from tests.engine.remote.machine import PLACE, FarMachine, Following, far_machine, names_in, wait_until
from tests.engine.tools import CPU, of_kind, small_classifier

pytestmark = posix


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarMachine:
    return far_machine(tmp_path / "far machine", monkeypatch)


@pytest.fixture
def run(run_path: Path, sprites: Sprites) -> Path:
    """A run that was made and never trained."""
    made = create_run(NewRun(run_path, sprites, Classifier(), small_classifier(), CPU))
    assert all(isinstance(event, Progress) for event in made)  # which a busy machine has time to tell
    assert summarise(run_path).standing == "stopped"
    return run_path


def begin(run: Path, control: Control | None = None, **how: float) -> Following:
    return Following(train_remotely(run, PLACE, control or Control(), **how))  # type: ignore[arg-type]


def losses_in(events: list[Event]) -> list[float]:
    return [float(f"{loss:.7g}") for chunk in of_kind(events, LossChunk) for loss in chunk.losses]


def test_run_is_sent_trained_and_copied_back(run: Path, far: FarMachine) -> None:
    change_notes(run, name="dragons")
    (run / "learning.gif").write_bytes(b"mine")
    following = begin(run)
    started = following.until(RunStarted)
    assert (started.device, started.precision, started.path) == ("me@far:runs", "bf16", run)
    following.until(LossChunk, count=12)
    assert summarise(run).standing == "training" and marker.remote_target_of(run) == "me@far:runs"
    assert read_heartbeat(run) is not None
    far.tell("enough")
    events = following.to_the_end()
    there, end = far.runs / "trial", events[-1]
    assert end == RunFinished("finished", RunDir(run).progress().step, RunDir(run).progress().elapsed_s, run)
    for name in ("metrics.jsonl", "state.json"):
        assert (run / name).read_bytes() == (there / name).read_bytes()
    for folder in ("checkpoints", "samples"):
        assert names_in(run / folder) >= names_in(there / folder)
    assert losses_in(events) == read_history(run).series["loss"].values.tolist()  # each once, in their order
    assert not {HEARTBEAT_FILE, REQUEST_FILE, REMOTE_FILE} & names_in(run) and not RunDir(run).is_busy()
    assert not {"notes.json", "learning.gif", REMOTE_FILE} & names_in(there)
    assert (run / "notes.json").exists() and (run / "learning.gif").exists()
    assert far.starts() == ["--device auto"]


def test_lost_connection_loses_no_data(run: Path, far: FarMachine) -> None:
    following = begin(run)
    following.until(LossChunk)
    far.refuses("ssh: connect to host far port 22: Connection timed out")
    lost = following.until(Notice, "Lost the connection")
    assert (
        lost.title == "Lost the connection to me@far."
        and "Connection timed out. The remote training continues." in lost.hint
    )
    far.tell("enough")
    wait_until((far.runs / "trial/elsewhere.exit").exists)  # it ends while nobody sees it
    assert marker.remote_target_of(run) and RunDir(run).is_busy()
    far.refuses()
    events = following.to_the_end()
    assert [notice.title for notice in of_kind(events, Notice)[1:]] == [
        "Lost the connection to me@far.", "Connected to me@far again.",
    ]  # fmt: skip
    assert isinstance(events[-1], RunFinished)
    assert losses_in(events) == read_history(run).series["loss"].values.tolist()


def test_stop_and_pause_reach_it(run: Path, far: FarMachine) -> None:
    control = Control()
    following = begin(run, control)
    following.until(LossChunk)
    send_request(run, pause=True)
    following.until_true(lambda: (live := read_heartbeat(run)) is not None and live.is_paused)
    send_request(run, pause=False)
    seen = len(following.seen)
    following.until_true(lambda: bool(of_kind(following.seen[seen:], LossChunk)))
    control.stop = True
    *_, end = following.to_the_end()
    assert isinstance(end, RunFinished) and end.reason == "stopped"
    assert summarise(run).standing == "stopped" and not (run / REQUEST_FILE).exists()


@pytest.mark.slow
def test_another_process_follows_after_a_local_kill(run: Path, far: FarMachine) -> None:
    following = begin(run)
    following.until(LossChunk)
    following.leave()
    assert (run / HEARTBEAT_FILE).exists() and not RunDir(run).is_busy()
    with pytest.raises(RunError, match="is being trained on me@far:runs") as refused:
        list(train_resumed(run, CPU, Control()))
    assert f"studio resume {run} --on me@far:runs." in refused.value.hint and REMOTE_FILE in refused.value.hint
    with pytest.raises(RunError, match="is being trained on me@far:runs"):
        list(train_remotely(run, RemoteTarget.parse("me@far:other"), Control()))
    with pytest.raises(RunError, match="is still training"):
        list(train_remotely(run, PLACE, Control(), more_min=1.0))
    known = len(read_history(run).series["loss"].steps)
    again = begin(run)
    assert again.until(RunStarted).first_step == 0 and again.until(LossChunk).first_step >= known
    again.leave()
    mark = (run / REMOTE_FILE).read_bytes()
    marker.unmark_remote(run)  # as for a machine that is gone for good
    with pytest.raises(RunError, match="was not sent from here"):
        list(train_remotely(run, PLACE, Control()))
    (run / REMOTE_FILE).write_bytes(mark)
    far.tell("enough")
    wait_until((far.runs / "trial/elsewhere.exit").exists)
    *_, end = list(train_remotely(run, PLACE, Control()))  # it had ended while nobody followed
    assert isinstance(end, RunFinished) and end.reason == "finished" and far.starts() == ["--device auto"]
    assert (run / "metrics.jsonl").read_bytes() == (far.runs / "trial/metrics.jsonl").read_bytes()


def test_killed_remote_training_can_be_resumed(run: Path, far: FarMachine) -> None:
    following = begin(run)
    following.until(LossChunk, count=12)
    os.kill(_child_of(int((far.runs / "trial/elsewhere.pid").read_text())), signal.SIGKILL)
    with pytest.raises(RunError, match="ended unexpectedly on me@far:runs") as told:
        following.to_the_end()
    assert "killed" in told.value.hint
    assert (
        not marker.remote_target_of(run)
        and summarise(run).standing == "interrupted"
        and not (run / HEARTBEAT_FILE).exists()
    )
    saved = RunDir(run).progress().step
    assert saved > 0
    again = begin(run, more_min=2.5)
    assert again.until(LossChunk).first_step == saved
    far.tell("enough")
    again.to_the_end()
    assert far.starts() == ["--device auto", "--device auto --more-minutes 2.5"]


def _child_of(pid: int) -> int:
    import psutil

    (child,) = psutil.Process(pid).children()
    return child.pid


def test_stop_while_sending_prevents_the_start(run: Path, far: FarMachine) -> None:
    control = Control(stop=True)
    *_, end = train_remotely(run, PLACE, control)
    assert end == RunFinished("stopped", 0, 0.0, run) and not marker.remote_target_of(run) and far.starts() == []


def test_remote_start_errors_are_raised(run: Path, far: FarMachine) -> None:
    far.tell("fails")
    with pytest.raises(RunError) as told:
        list(train_remotely(run, PLACE, Control()))
    assert "No device works." in told.value.hint and not marker.remote_target_of(run) and not RunDir(run).is_busy()


def test_full_disks(run: Path, far: FarMachine) -> None:
    far.tell("full")
    with pytest.raises(RunError, match="The disk of me@far is full"):
        list(train_remotely(run, PLACE, Control()))
    far.forget("full")
    following = begin(run)
    following.until(LossChunk)
    far.tell("full")
    halted = following.until(Blocked)
    assert halted.title == f"Can't write to {run}." and "No space left on device" in halted.hint
    far.forget("full")
    far.tell("halts")
    assert following.until(Notice, "Can't write to there.").title == "me@far:runs: Can't write to there."
    far.forget("halts")
    far.tell("enough")
    assert isinstance(following.to_the_end()[-1], RunFinished)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def test_checkpoints_lost_there_stay_here_and_rotate_by_the_rules(run: Path, far: FarMachine) -> None:
    for number in range(1, 8):
        info = CheckpointInfo(number, number, 0.0, {}, {})
        checkpoints.save(run / "checkpoints", info, {part: {} for part in checkpoints.PARTS})
    following, there = begin(run), far.runs / "trial/checkpoints"
    following.until(LossChunk)
    wait_until(lambda: min(map(_step, there.glob("step-*")), default=0) > 7)  # the machine keeps two
    far.tell("enough")
    following.to_the_end()
    assert [info.number for _, info in checkpoints.list_checkpoints(run / "checkpoints")] == [1, 2, 4, 6, 7]


@pytest.mark.parametrize("what", ["trial", "trial/elsewhere.pid"])
def test_deleted_remote_folder_ends_the_training(what: str, run: Path, far: FarMachine) -> None:
    following = begin(run)
    following.until(LossChunk)
    (far.runs / what).rename(far.folder / "trash")
    with pytest.raises(RunError, match="The folder of trial on me@far:runs is gone") as told:
        following.to_the_end()
    assert f"studio resume {run} --on me@far:runs." in told.value.hint and REMOTE_FILE in told.value.hint
    assert (
        marker.remote_target_of(run) == "me@far:runs"
        and not (run / HEARTBEAT_FILE).exists()
        and not RunDir(run).is_busy()
    )
    far.tell("enough")
    if what == "trial":
        *_, end = list(train_remotely(run, PLACE, Control()))
        assert isinstance(end, RunFinished) and (far.runs / "trial/run.json").exists()
    else:
        wait_until((far.runs / "trial/elsewhere.exit").exists)


def test_an_ipv6_address_is_in_brackets_for_rsync_alone(run: Path, far: FarMachine) -> None:
    *_, end = train_remotely(run, RemoteTarget.parse("me@[fe80::1%eth0]:runs"), Control(stop=True))
    assert isinstance(end, RunFinished)  # after the run was sent
    assert far.hosts() == {"me@fe80::1%eth0", "me@[fe80::1%eth0]"}


OLD_RSYNC = ("sh", "-c", 'case "$*" in --version) echo "openrsync: protocol version 29" ;; *) exit 1 ;; esac', "rsync")


def test_the_error_for_an_old_rsync_names_its_machine(far: FarMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    far.has_rsync(*OLD_RSYNC)
    with pytest.raises(RunError, match=r"me@far has no rsync 3\.1\.3 or newer") as told:
        check_remote(PLACE)
    assert "Install it there" in told.value.hint and "Found: openrsync: protocol version 29." in told.value.hint
    monkeypatch.setattr(far_module, "HOMEBREW_RSYNC", (str(far.tools / "rsync"),))
    check_remote(PLACE)
    monkeypatch.setenv("PATH", os.pathsep.join((str(far.folder / "other"), os.environ["PATH"])))
    with pytest.raises(RunError, match=r"This machine has no rsync 3\.1\.3 or newer") as told:
        check_remote(PLACE)
    assert "openrsync" in told.value.hint


def test_a_login_shell_that_prints_text_is_an_error(far: FarMachine) -> None:
    far.tell("greeting", "Welcome to far!\n")
    with pytest.raises(RunError, match="The login shell on me@far prints extra text") as told:
        check_remote(PLACE)
    assert "Welcome to far!" in told.value.hint


@pytest.mark.parametrize(
    ("said", "title", "hint"),
    [
        ("ssh: Could not resolve hostname far: Name or service not known", "There is no machine named me@far.", "name"),
        ("Host key verification failed.", "The identity of me@far is unknown", "fingerprint"),
        ("me@far: Permission denied (publickey,password).", "me@far denied access.", "ssh-add"),
        ("ssh: connect to host far port 22: No route to host", "me@far can't be reached.", "No route to host"),
    ],
)
def test_failed_connection_has_a_title_and_a_hint(said: str, title: str, hint: str, far: FarMachine) -> None:
    far.refuses(said)
    with pytest.raises(RunError) as told:
        check_remote(PLACE)
    assert told.value.title.startswith(title) and hint in told.value.hint


def test_nothing_is_sent_to_a_machine_that_can_t_train_it(
    run: Path, far: FarMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(words: str) -> StudioError:
        with pytest.raises(StudioError, match=words) as told:
            list(train_remotely(run, PLACE, Control()))
        assert not (far.runs / "trial").exists() and not marker.remote_target_of(run) and not RunDir(run).is_busy()
        return told.value

    own = versions_in(versions_line())
    assert own is not None
    far.tell("version", f"Sprite Training Studio {own.studio} with torch 1.0.0+cu118")
    assert f"has studio {own.studio} with torch 1.0.0; this machine has {own}." in refused("me@far has studio").title
    far.tell("version", "Sprite Training Studio 0.1.0")  # as before it named torch
    refused("does not report its torch version")
    far.tell("version", f"Welcome!\nSprite Training Studio {own.studio} with torch {own.torch}+cu130")
    check_remote(PLACE)
    (far.tools / "rsync").rename(far.tools / "kept")
    if os.system("PATH=/usr/local/bin:/usr/bin:/bin command -v rsync >/dev/null") != 0:
        refused("needs rsync")
    (far.tools / "kept").rename(far.tools / "rsync")
    (far.runs / ".venv/bin/studio").unlink()
    refused("The studio is not installed on me@far")
    monkeypatch.setenv("PATH", str(far.folder))
    assert "ssh and rsync" in refused("needs ssh and rsync").title


def test_another_remote_run_of_the_same_name_is_kept(run: Path, far: FarMachine) -> None:
    (far.runs / "trial").mkdir()
    (far.runs / "trial/run.json").write_text("{}")
    with pytest.raises(RunError, match="has a different run named trial"):
        list(train_remotely(run, PLACE, Control()))
    assert names_in(far.runs / "trial") == {"run.json"}


def test_remote_failure_is_raised_here(run: Path, far: FarMachine) -> None:
    following = begin(run)
    following.until(LossChunk)
    far.tell("breaks")
    with pytest.raises(TrainingError, match="trial failed on me@far:runs") as told:
        following.to_the_end()
    assert told.value.hint == "The card is gone."
    assert summarise(run).standing == "failed" and not marker.remote_target_of(run)


def test_damaged_marker_file_is_an_error(run: Path) -> None:
    (run / REMOTE_FILE).write_text("{")
    with pytest.raises(RunError, match=r"elsewhere.json of trial is damaged"):
        list(train_resumed(run, CPU, Control()))
    marker.unmark_remote(run)
    marker.raise_if_remote(run)


@pytest.mark.parametrize(
    ("text", "host", "folder"),
    [
        ("me@far:runs/mine/", "me@far", "runs/mine"),
        ("far:~/runs", "far", "runs"),
        ("far:/srv/runs", "far", "/srv/runs"),
        ("far:/", "far", "/"),
        ("far", "far", "."),
        ("far:~", "far", "."),
        ("far:-x", "far", "./-x"),
        ("far:a:b", "far", "a:b"),
        ("me@[2001:db8::1]:runs", "me@2001:db8::1", "runs"),
        ("[::1]", "::1", "."),
    ],
)
def test_remote_target_is_parsed(text: str, host: str, folder: str) -> None:
    assert RemoteTarget.parse(text) == RemoteTarget(host, folder) == RemoteTarget.parse(str(RemoteTarget(host, folder)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":runs",
        "-oProxyCommand=x:runs",
        "me@-oProxyCommand=x:runs",
        "me at far:runs",
        "me@:runs",
        "me@fe80::1:runs",
        "::1",
        "2001:db8:0:0:0:0:0:1",
        "[far]:runs",
        "[::1",
        "[::1]runs",
    ],
)
def test_invalid_target_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a folder on another machine"):
        RemoteTarget.parse(text)
