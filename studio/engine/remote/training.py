"""Train a run on another machine: create the run here, send its folder, train with `studio resume`, copy results back.

The remote run folder `folder/NAME` holds the files of every run, and

    elsewhere.pid, elsewhere.exit   process id of the training, and exit code after its end
    elsewhere.log                   output of the training

The remote training doesn't depend on this process: the connection may break and this process may die. Other windows and
commands watch and control the run through the local folder, like any other run.
"""

import contextlib
import dataclasses
import re
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Self

import msgspec

from studio.core import files, records
from studio.core.errors import RunError, TrainingError, UnwritableError
from studio.core.events import Blocked, Event, Events, Notice, RunFinished, RunStarted
from studio.core.shell import command_line
from studio.engine.control import protocol
from studio.engine.control.control import Control
from studio.engine.control.protocol import ControlRequest, Heartbeat, clear_control_files
from studio.engine.control.watcher import RunWatcher, TrainingLost, TrainingSeen
from studio.engine.remote import marker
from studio.engine.remote.ssh import FIND_STUDIO, RENAME_LAST, ConnectionLostError, RemoteTarget, SshConnection, connect
from studio.engine.runs import evaluation, folder
from studio.engine.runs.folder import HEARTBEAT_FILE, RECORD_FILE, REQUEST_FILE, RunDir
from studio.engine.runs.history import HistoryRead
from studio.engine.runs.samples import thin_samples

POLL_S = 3.0  # between two synchronisations
RETRY_S = 5.0  # after a lost connection
_REQUEST_POLL_S = 0.25  # between checks for local control requests
_EXIT_DONE, _EXIT_STOPPED, _EXIT_KILLED = 0, 130, 137  # exit codes of `studio resume`

# Filter rules for rsync: don't copy the user's own files or local processes' files.
_FOLDERS = ("/samples/", "/samples/*.png", "/checkpoints/", "/checkpoints/step-*/", "/checkpoints/step-*/*")
_SEND_RULES = [
    *(f"--exclude=/{name}" for name in (RECORD_FILE, HEARTBEAT_FILE, REQUEST_FILE, "elsewhere.*", "notes.json")),
    "--exclude=.tmp-*",
    *(f"--include={name}" for name in ("/*.json", "/*.jsonl", "/*.safetensors", *_FOLDERS)),
    "--exclude=*",
]
_SEND_LAST_RULES = [f"--include=/{RECORD_FILE}", "--exclude=*"]  # last: run.json makes the folder a run
# Without --delete: an emptied folder on the other machine would empty the local folder. `_rotate` removes files here.
_FETCH_RULES = [
    RENAME_LAST, "--exclude=.tmp-*",
    *(f"--include={name}" for name in ("/state.json", "/confusion.json", *_FOLDERS)),
    "--exclude=*",
]  # fmt: skip
# In place: watchers continue to read at their position.
_FETCH_LAST_RULES = ["--inplace", f"--include=/{folder.METRICS_FILE}", "--exclude=*"]

_MAKE_FOLDER_SCRIPT = 'mkdir -p "$1/$2"'
_START_SCRIPT = f"""\
{FIND_STUDIO}
run="$1/$2"; shift 2
rm -f "$run/{HEARTBEAT_FILE}" "$run/{REQUEST_FILE}" "$run/elsewhere.exit"
nohup sh -c '"$@" >"$0/elsewhere.log" 2>&1; echo $? >"$0/elsewhere.exit"' \\
  "$run" "$studio" resume "$run" "$@" </dev/null >/dev/null 2>&1 &
echo $! >"$run/elsewhere.pid"
"""
# After a restart, the process id may belong to another program, and a dead process may still appear as a zombie. /proc
# tells both, if the system has /proc. During exec, a process has an empty command line.
_STATE_SCRIPT = f"""\
cd "$1/$2" 2>/dev/null || {{ echo "missing"; exit 0; }}
pid=$(cat elsewhere.pid 2>/dev/null)
is_there() {{
  kill -0 "$pid" 2>/dev/null || return 1
  [ -d /proc/self ] || return 0
  ! grep -q "^State:.Z" "/proc/$pid/status" || return 1
  words=$(tr "\\0" " " <"/proc/$pid/cmdline")
  case $words in ""|*resume*) ;; *) return 1;; esac
}}
if [ -s elsewhere.exit ]; then echo "ended $(cat elsewhere.exit)"
elif [ -z "$pid" ]; then echo "untrained"
elif is_there; then echo "trains"
elif [ -s elsewhere.exit ]; then echo "ended $(cat elsewhere.exit)"  # just now
else echo "ended {_EXIT_KILLED}"
fi
echo checkpoints/* samples/*
cat {HEARTBEAT_FILE} 2>/dev/null
exit 0
"""
_PUT_REQUEST_SCRIPT = f'printf %s "$3" >"$1/$2/.asked" && mv "$1/$2/.asked" "$1/$2/{REQUEST_FILE}"'
_CHECKPOINT_PATH = re.compile(r"(?<!\S)checkpoints/step-(\d+)(?!\S)")
_SAMPLE_PATH = re.compile(r"(?<!\S)samples/(\d+)\.png(?!\S)")
_READ_FILE_SCRIPT = 'cat "$1/$2/$3" 2>/dev/null || true'
_LOG_TAIL_SCRIPT = 'tail -n 3 "$1/$2/elsewhere.log" 2>/dev/null || true'


def check_remote(target: RemoteTarget) -> None:
    """Raise RunError unless a run can train on the target machine."""
    with connect(target) as connection:
        connection.check()


def train_remotely(
    path: Path, target: RemoteTarget, control: Control, *, device: str = "auto", more_min: float = 0.0
) -> Events:
    """Train a local run on another machine, until the training has ended and the files are back.

    Follows a training that already runs on the machine. Yields the training's events, from RunStarted to RunFinished.
    device, more_min: options for the remote `studio resume`. `control.stop` stops the training. Retries a lost
    connection forever; yields Blocked while copying fails, for example on a full disk. Raises RunError, TrainingError.
    """
    if marker.remote_target_of(path) != str(target):
        marker.raise_if_remote(path)
    run = RunDir(path)
    with run.held(), connect(target) as connection:
        connection.check()
        training = RemoteTraining(run, connection, control)
        if (yield from training.begin(device, more_min)):
            yield from training.follow()
        yield training.end()


class _RemoteState(msgspec.Struct, frozen=True):
    """The state printed by _STATE_SCRIPT. exit_code: of an ended training. steps, samples: steps of remote files."""

    has_folder: bool = False
    trains: bool = False
    exit_code: int | None = None
    steps: frozenset[int] = frozenset()
    samples: frozenset[int] = frozenset()
    live: Heartbeat | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the remote folder of a started run was deleted or emptied."""
        return not self.trains and self.exit_code is None

    @classmethod
    def parse(cls, output: bytes) -> Self:
        """Parse the output of the shell script that reports the state of a remote training."""
        state, names, record = (*output.split(b"\n", 2), b"", b"")[:3]
        word, _, code = state.decode(errors="replace").partition(" ")
        listed = names.decode(errors="replace")
        live: Heartbeat | None = None
        with contextlib.suppress(ValueError):  # a missing or damaged live.json is soon rewritten
            live = records.parse(record, Heartbeat)
        exit_code = int(code) if code.isdecimal() else None
        steps, samples = (frozenset(map(int, pattern.findall(listed))) for pattern in (_CHECKPOINT_PATH, _SAMPLE_PATH))
        return cls(word != "missing", word == "trains", exit_code, steps, samples, live)


class RemoteTraining:
    """Sends a run to another machine, trains the run there, copies results back. The caller holds the local lock."""

    def __init__(self, run: RunDir, connection: SshConnection, control: Control) -> None:
        self._run, self._connection, self._control = run, connection, control
        self._name, self._target = run.path.name, str(connection.target)
        self._watcher = RunWatcher(run.path)
        self._sent_request = ControlRequest()  # the newest sent request
        self._can_request = False  # True while the remote training has a heartbeat
        self._exit_code: int | None = None
        self._last_words = ""
        self._blocked_reason = ""  # as last reported; '' while the run trains
        self._is_disconnected = False

    def begin(self, device: str, more_min: float) -> Generator[Event, None, bool]:
        """Send the run to the remote machine and start training, unless it already trains there or is finished.

        more_min: minutes to train beyond the run's budget. Returns whether a training runs there.
        """
        path, is_remote = self._run.path, bool(marker.remote_target_of(self._run.path))
        there = self._connection.run(_READ_FILE_SCRIPT, self._name, RECORD_FILE)
        with folder.wrap_read_errors(path / RECORD_FILE):
            here = (path / RECORD_FILE).read_bytes()
        if there not in (b"", here):
            title = f"{self._target} has a different run named {self._name}."
            raise RunError(title, "The run was not sent. Choose another remote folder.")
        found = self._read_state()
        with folder.wrap_write_errors(path):
            files.remove(path / HEARTBEAT_FILE)  # left by a killed process that followed the run
        list(self._watcher.poll())  # skip the events in the local files
        if found.trains:
            self._require_followable(more_min, is_remote=is_remote)
            yield Notice("info", f"{self._name} is being trained on {self._target}.", "This command now follows it.")
            return True
        if is_remote and found.has_folder:
            yield Notice("info", f"Copying {self._name} from {self._target}.")
            self._fetch(found)
            if self._run.progress().state == "finished" and not more_min:
                self._exit_code = _EXIT_DONE
                return False
        yield Notice("info", f"Sending {self._name} to {self._target}.", f"The local copy is {path}.")
        self._connection.run(_MAKE_FOLDER_SCRIPT, self._name)
        self._connection.send(path, _SEND_RULES)
        self._connection.send(path, _SEND_LAST_RULES)
        clear_control_files(path)
        if self._control.stop:  # requested while sending
            self._run.write_progress(msgspec.structs.replace(self._run.progress(), state="stopped"))
            self._exit_code = _EXIT_STOPPED
            return False
        marker.mark_remote(path, self._target)
        more = ("--more-minutes", f"{more_min:g}") if more_min else ()
        self._connection.run(_START_SCRIPT, self._name, "--device", device, *more, login=True)
        return True

    def follow(self) -> Events:
        """Copy files here and forward requests until the training ends; yields the events. Raises RunError."""
        while self._exit_code is None:
            try:
                found = self._sync_once()
            except ConnectionLostError as lost:
                yield from self._warn_connection_lost(lost)
                self._wait(RETRY_S)
                continue
            except RunError as error:
                hint = f"{error.hint} The remote training continues; its files are copied once this is fixed."
                yield Blocked("error", error.title, hint.strip())
                continue
            if found.is_gone:
                raise self._gone_error()
            if self._is_disconnected:
                self._is_disconnected = False
                yield Notice("info", f"Connected to {self._connection.target.host} again.")
            yield from self._new_events(found)
            if found.exit_code is None:
                self._wait(POLL_S)
            self._exit_code = found.exit_code

    def end(self) -> RunFinished:
        """Unmark the run after the remote training; return RunFinished. Raises RunError, TrainingError if it failed."""
        path, progress = self._run.path, self._run.progress()
        clear_control_files(path)
        marker.unmark_remote(path)
        match progress.state:
            case "finished" | "stopped" as reason if self._exit_code in (_EXIT_DONE, _EXIT_STOPPED):
                return RunFinished(reason, progress.step, progress.elapsed_s, path)
            case "failed":
                raise TrainingError(f"{self._name} failed on {self._target}.", progress.message)
        title = f"{self._name} ended unexpectedly on {self._target}."
        if self._exit_code == _EXIT_KILLED:
            raise RunError(title, "Its process was killed or the machine restarted. Resume from the last checkpoint.")
        raise RunError(title, self._last_words)

    def _gone_error(self) -> RunError:
        """Return the error for a deleted remote folder. Keeps elsewhere.json: an unplugged drive may come back."""
        path = self._run.path
        clear_control_files(path)
        again = command_line("studio", "resume", str(path), "--on", self._target)
        title = f"The folder of {self._name} on {self._target} is gone."
        hint = f"Steps up to {self._run.progress().step:,} are here. Send them again with: {again}. To train here, "
        return RunError(title, f"{hint}delete {folder.REMOTE_FILE} from the run folder first.")

    def _require_followable(self, more_min: float, *, is_remote: bool) -> None:
        if not is_remote:
            title = f"{self._name} is training on {self._target}, but was not sent from here."
            raise RunError(title, "Stop the training on that machine first.")
        if more_min:
            title = f"{self._name} is still training on {self._target}."
            raise RunError(title, "Add time after this training has ended.")

    def _read_state(self) -> _RemoteState:
        return _RemoteState.parse(self._connection.run(_STATE_SCRIPT, self._name))

    def _fetch(self, found: _RemoteState) -> None:
        """Copy new files here, metrics.jsonl last, because its lines refer to other files."""
        self._connection.fetch(self._run.path, _FETCH_RULES)
        self._rotate(found)
        self._connection.fetch(self._run.path, _FETCH_LAST_RULES)

    def _rotate(self, found: _RemoteState) -> None:
        """Delete old local checkpoints and sample images, as a local training would.

        found: the remote state. Keeps files that still exist on the other machine, because rsync would copy them again.
        """
        from studio.engine import catalog  # imports torch, which commands that only watch a run don't need
        from studio.engine.runs import checkpoints

        best_by = catalog.recipe(self._run.record().recipe).best_by
        with self._run.wrap_write_errors():
            checkpoints.rotate(self._run.checkpoints, best_by, in_use=found.steps)
            thin_samples(self._run, in_use=found.samples)

    def _sync_once(self) -> _RemoteState:
        """Forward requests and copy new files here; return the remote state before the copy."""
        found = self._read_state()
        self._can_request = found.live is not None
        if found.is_gone:
            return found
        if self._can_request and (wanted := self._local_request()) != self._sent_request:
            self._connection.run(_PUT_REQUEST_SCRIPT, self._name, msgspec.json.encode(wanted).decode())
            self._sent_request = wanted
        self._fetch(found)
        if found.live is not None and found.exit_code is None:
            with contextlib.suppress(UnwritableError):  # only delays the displayed progress; the next round retries
                protocol.write_heartbeat(self._run.path, found.live)
        if found.exit_code not in (None, _EXIT_DONE, _EXIT_STOPPED):
            self._last_words = self._connection.run(_LOG_TAIL_SCRIPT, self._name).decode(errors="replace").strip()
        return found

    def _local_request(self) -> ControlRequest:
        asked = protocol.read_requests(self._run.path, self._sent_request)
        return msgspec.structs.replace(asked, stop=asked.stop or self._control.stop)

    def _new_events(self, found: _RemoteState) -> Events:
        """Yield the remote training's new events, and a Notice for a blocked training, for example by a full disk."""
        for event in self._watcher.poll():
            if isinstance(event, RunStarted):
                with contextlib.suppress(RunError):  # evaluations of later checkpoints stay listed
                    evaluation.remove_evaluations_after(self._run, event.first_step)
                yield dataclasses.replace(event, device=self._target)
            elif not isinstance(event, HistoryRead | TrainingSeen | TrainingLost | RunFinished):
                yield event
        blocked = "" if found.live is None else found.live.halted
        if blocked and blocked != self._blocked_reason:
            yield Notice("error", f"{self._target}: {blocked}", "The remote training continues after you fix this.")
        self._blocked_reason = blocked

    def _warn_connection_lost(self, lost: ConnectionLostError) -> Iterator[Notice]:
        self._can_request = False
        if not self._is_disconnected:
            self._is_disconnected = True
            title = f"Lost the connection to {self._connection.target.host}."
            yield Notice("warning", title, f"{lost} The remote training continues. Reconnecting…")

    def _wait(self, seconds: float) -> None:
        """Wait some seconds, or less if a request such as Stop arrives in the local run folder."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not (self._can_request and self._local_request() != self._sent_request):
            time.sleep(_REQUEST_POLL_S)
