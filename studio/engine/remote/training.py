"""Training a run on another machine: it is made here, sent, trained there by `studio resume`, and comes home by and by.

The run's folder there is `folder/NAME`, and beside what every run has it holds

    elsewhere.pid, elsewhere.exit   the process that trains it, and its exit code once it has ended
    elsewhere.log                   what it says

The training there depends on nobody here: the link may be cut, and this process killed. Whoever watches or steers the
run does so by its folder here, as for any other. No torch here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import msgspec

from studio.core import files, records
from studio.core.errors import RunError, TrainingError, UnwritableError
from studio.core.events import Blocked, Event, Events, Notice, RunFinished, RunStarted
from studio.core.shell import command_line
from studio.engine.control.control import Control
from studio.engine.control.protocol import (
    ControlRequest,
    Heartbeat,
    clear_control_files,
    read_requests,
    write_heartbeat,
)
from studio.engine.control.watcher import RunWatcher, TrainingLost, TrainingSeen
from studio.engine.remote import marker
from studio.engine.remote.ssh import FIND_STUDIO, RENAME_LAST, ConnectionLostError, RemoteTarget, SshConnection, connect
from studio.engine.runs import evaluation
from studio.engine.runs.folder import (
    HEARTBEAT_FILE,
    METRICS_FILE,
    RECORD_FILE,
    REMOTE_FILE,
    REQUEST_FILE,
    RunDir,
    wrap_read_errors,
    wrap_write_errors,
)
from studio.engine.runs.history import HistoryRead
from studio.engine.runs.samples import thin_samples

POLL_S = 3.0  # from one look at the other machine to the next
RETRY_S = 5.0  # where the link is lost
_REQUEST_POLL_S = 0.25  # between looks at what is asked here
_EXIT_DONE, _EXIT_STOPPED, _EXIT_KILLED = 0, 130, 137  # exit codes of `studio resume`

# Of rsync. What people have added to a run's folder, and what belongs to processes, is neither sent nor brought home.
_FOLDERS = ("/samples/", "/samples/*.png", "/checkpoints/", "/checkpoints/step-*/", "/checkpoints/step-*/*")
_SEND_RULES = [
    *(f"--exclude=/{name}" for name in (RECORD_FILE, HEARTBEAT_FILE, REQUEST_FILE, "elsewhere.*", "notes.json")),
    "--exclude=.tmp-*",
    *(f"--include={name}" for name in ("/*.json", "/*.jsonl", "/*.safetensors", *_FOLDERS)),
    "--exclude=*",
]
_SEND_LAST_RULES = [f"--include=/{RECORD_FILE}", "--exclude=*"]  # it makes the folder a run
# Without --delete: an emptied folder on the other machine would empty the local folder. `_rotate` removes files here.
_FETCH_RULES = [
    RENAME_LAST, "--exclude=.tmp-*",
    *(f"--include={name}" for name in ("/state.json", "/confusion.json", *_FOLDERS)),
    "--exclude=*",
]  # fmt: skip
_FETCH_LAST_RULES = [
    "--inplace",
    f"--include=/{METRICS_FILE}",
    "--exclude=*",
]  # in place: who watches reads on where he was

_MAKE_FOLDER_SCRIPT = 'mkdir -p "$1/$2"'
_START_SCRIPT = f"""\
{FIND_STUDIO}
run="$1/$2"; shift 2
rm -f "$run/{HEARTBEAT_FILE}" "$run/{REQUEST_FILE}" "$run/elsewhere.exit"
nohup sh -c '"$@" >"$0/elsewhere.log" 2>&1; echo $? >"$0/elsewhere.exit"' \\
  "$run" "$studio" resume "$run" "$@" </dev/null >/dev/null 2>&1 &
echo $! >"$run/elsewhere.pid"
"""
# A process id may be another's by now, after a restart of the machine, or still be that of one that has died: where
# there is /proc it tells. A process that is just becoming another program has no words there.
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
_CHECKPOINT_PATH, _SAMPLE_PATH = re.compile(r"checkpoints/step-(\d+)"), re.compile(r"samples/(\d+)\.png")
_READ_FILE_SCRIPT = 'cat "$1/$2/$3" 2>/dev/null || true'
_LOG_TAIL_SCRIPT = 'tail -n 3 "$1/$2/elsewhere.log" 2>/dev/null || true'


def check_remote(place: RemoteTarget) -> None:
    """Raise RunError unless a run can be trained there."""
    with connect(place) as link:
        link.check()


def train_remotely(
    path: Path, place: RemoteTarget, control: Control, *, device: str = "auto", more_min: float = 0.0
) -> Events:
    """Train a run of this machine on another one, or follow it where it still trains there, until it has ended and is
    home: the events of the training, from RunStarted to RunFinished.

    device, more_min: for `studio resume` there. `control.stop` stops it there. While the link is lost it is tried again
    for ever, and Halted says that the disk here is full. Raises RunError, TrainingError.
    """
    if marker.remote_target_of(path) != str(place):
        marker.raise_if_remote(path)
    run = RunDir(path)
    run.acquire()
    try:
        with connect(place) as link:
            link.check()
            training = RemoteTraining(run, link, control)
            if (yield from training.begin(device, more_min)):
                yield from training.follow()
            yield training.end()
    finally:
        run.release()


class _RemoteState(msgspec.Struct, frozen=True):
    """State of the run on the other machine, as _LOOK prints it.

    exit_code: of the process that trained the run; None during a training and before the first training.
    steps, samples: steps of the checkpoints and of the sample pictures on the other machine.
    """

    has_folder: bool = False
    trains: bool = False
    exit_code: int | None = None
    steps: frozenset[int] = frozenset()
    samples: frozenset[int] = frozenset()
    live: Heartbeat | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the folder of a started run is missing on the other machine, or was emptied."""
        return not self.trains and self.exit_code is None

    @classmethod
    def parse(cls, said: bytes) -> _RemoteState:
        """Parse the output of _LOOK."""
        state, _, rest = said.partition(b"\n")
        names, _, record = rest.partition(b"\n")
        word, _, code = state.decode(errors="replace").partition(" ")
        found = names.decode(errors="replace").split()
        live: Heartbeat | None = None
        with contextlib.suppress(ValueError):  # a missing or damaged live.json is soon written again
            live = records.parse(record, Heartbeat)
        return cls(
            has_folder=word != "missing",
            trains=word == "trains",
            exit_code=int(code) if code.isdecimal() else None,
            steps=_steps_in(found, _CHECKPOINT_PATH),
            samples=_steps_in(found, _SAMPLE_PATH),
            live=live,
        )


def _steps_in(names: Iterable[str], pattern: re.Pattern[str]) -> frozenset[int]:
    return frozenset(int(found[1]) for name in names if (found := pattern.fullmatch(name)))


class RemoteTraining:
    """One training of a run on another machine; its lock is held here."""

    def __init__(self, run: RunDir, link: SshConnection, control: Control) -> None:
        self._run, self._link, self._control = run, link, control
        self._name, self._place = run.path.name, str(link.place)
        self._watcher = RunWatcher(run.path)
        self._asked = ControlRequest()  # as far as it was asked there
        self._can_ask = False  # whether the training there listens, as far as is known
        self._exit_code: int | None = None
        self._last_words = ""
        self._halted = ""  # why it can't go on there, as it was said last
        self._is_cut = False

    def begin(self, device: str, more_min: float) -> Generator[Event, None, bool]:
        """Send the run and start it, unless it trains there already or turns out to have come to its end.

        Returns whether it is to be followed.
        """
        path, is_out = self._run.path, bool(marker.remote_target_of(self._run.path))
        self._raise_unless_ours()
        found = self._look()
        with wrap_write_errors(path):
            files.remove(path / HEARTBEAT_FILE)  # of a process that has followed it before and was killed
        list(self._watcher.poll())  # what is here already is known
        if found.trains:
            self._raise_unless_to_follow(more_min, is_out=is_out)
            yield Notice("info", f"{self._name} is being trained on {self._place}.", "It is followed from here on.")
            return True
        if is_out and found.has_folder:
            yield Notice("info", f"{self._name} comes home from {self._place}.")
            self._fetch(found)
            if self._run.progress().state == "finished" and not more_min:
                self._exit_code = _EXIT_DONE
                return False
        yield Notice("info", f"{self._name} is sent to {self._place}.", f"Here it is in {path}.")
        self._send()
        clear_control_files(path)
        if self._control.stop:  # meanwhile
            self._run.write_progress(msgspec.structs.replace(self._run.progress(), state="stopped"))
            self._exit_code = _EXIT_STOPPED
            return False
        marker.mark_remote(path, self._place)
        more = ("--more-minutes", f"{more_min:g}") if more_min else ()
        self._link.run(_START_SCRIPT, self._name, "--device", device, *more, login=True)
        return True

    def follow(self) -> Events:
        """Copy new files here and pass requests on, until the training has ended and its last files are here.

        Raises RunError if the run's folder on the other machine is gone.
        """
        while self._exit_code is None:
            try:
                found = self._exchange()
            except ConnectionLostError as lost:
                yield from self._say_cut(lost)
                self._wait(RETRY_S)
                continue
            except RunError as error:
                hint = f"{error.hint} The training goes on there, and comes home once that is mended."
                yield Blocked("error", error.title, hint.strip())
                continue
            if found.is_gone:
                raise self._gone_error()
            if self._is_cut:
                self._is_cut = False
                yield Notice("info", f"The link to {self._link.place.host} is back.")
            yield from self._news(found)
            if found.exit_code is None:
                self._wait(POLL_S)
            self._exit_code = found.exit_code

    def end(self) -> RunFinished:
        """How it has ended: the run is home again. Raises TrainingError, RunError."""
        path, progress = self._run.path, self._run.progress()
        clear_control_files(path)
        marker.unmark_remote(path)
        match progress.state:
            case "finished" | "stopped" as reason if self._exit_code in (_EXIT_DONE, _EXIT_STOPPED):
                return RunFinished(reason, progress.step, progress.elapsed_s, path)
            case "failed":
                raise TrainingError(f"{self._name} has failed on {self._place}.", progress.message)
        title = f"{self._name} has ended on {self._place} before its time."
        if self._exit_code == _EXIT_KILLED:
            raise RunError(title, "It was killed, or the machine was restarted. What it saved last is here: resume it.")
        raise RunError(title, self._last_words)

    def _gone_error(self) -> RunError:
        """Return the error for a run's folder that was deleted on the other machine.

        elsewhere.json stays in the local folder: a lost drive of the other machine may come back.
        """
        path = self._run.path
        clear_control_files(path)
        again = command_line("studio", "resume", str(path), "--on", self._place)
        title = f"The folder of {self._name} on {self._place} is gone."
        hint = f"Steps up to {self._run.progress().step:,} are here. Send them there again: {again}. To train here, "
        return RunError(title, f"{hint}remove {REMOTE_FILE} from the run's folder first.")

    def _raise_unless_ours(self) -> None:
        """Raise RunError where another run is in its place."""
        there = self._link.run(_READ_FILE_SCRIPT, self._name, RECORD_FILE)
        with wrap_read_errors(self._run.path / RECORD_FILE):
            here = (self._run.path / RECORD_FILE).read_bytes()
        if there not in (b"", here):
            title = f"{self._place} has another run that is called {self._name}."
            raise RunError(title, "Nothing was sent. Choose another folder there.")

    def _raise_unless_to_follow(self, more_min: float, *, is_out: bool) -> None:
        """Raise RunError where following the training there is not what is meant."""
        if not is_out:
            title = f"{self._name} is being trained on {self._place}, but was not sent there from here."
            raise RunError(title, "Stop it there first.")
        if more_min:
            title = f"{self._name} is still being trained on {self._place}."
            raise RunError(title, "It can be given more time when it has ended.")

    def _look(self) -> _RemoteState:
        return _RemoteState.parse(self._link.run(_STATE_SCRIPT, self._name))

    def _send(self) -> None:
        self._link.run(_MAKE_FOLDER_SCRIPT, self._name)
        self._link.send(self._run.path, _SEND_RULES)
        self._link.send(self._run.path, _SEND_LAST_RULES)

    def _fetch(self, found: _RemoteState) -> None:
        """Copy new files here; metrics.jsonl comes last, because its lines name the other files."""
        self._link.fetch(self._run.path, _FETCH_RULES)
        self._rotate(found)
        self._link.fetch(self._run.path, _FETCH_LAST_RULES)

    def _rotate(self, found: _RemoteState) -> None:
        """Rotate the local checkpoints and sample pictures as a local training would.

        Keep those that the other machine still has: the next round would copy them again.
        """
        from studio.engine import catalog  # both import torch; commands that only watch a run start without torch
        from studio.engine.runs import checkpoints

        best_by = catalog.recipe(self._run.record().recipe).best_by
        with self._run.wrap_write_errors():
            checkpoints.rotate(self._run.checkpoints, best_by, in_use=found.steps)
            thin_samples(self._run, in_use=found.samples)

    def _exchange(self) -> _RemoteState:
        """Read the state of the run on the other machine, pass requests on, and copy new files here.

        The state is read first: a training that had ended by then has written all its files.
        """
        found = self._look()
        self._can_ask = found.live is not None
        if found.is_gone:
            return found
        if self._can_ask and (wanted := self._wanted()) != self._asked:
            self._link.run(_PUT_REQUEST_SCRIPT, self._name, msgspec.json.encode(wanted).decode())
            self._asked = wanted
        self._fetch(found)
        if found.live is not None and found.exit_code is None:
            with contextlib.suppress(UnwritableError):  # the progress on show is late; the next round tries again
                write_heartbeat(self._run.path, found.live)
        if found.exit_code not in (None, _EXIT_DONE, _EXIT_STOPPED):
            self._last_words = self._link.run(_LOG_TAIL_SCRIPT, self._name).decode(errors="replace").strip()
        return found

    def _wanted(self) -> ControlRequest:
        """What is asked here: in the run's folder, and by Ctrl+C."""
        asked = read_requests(self._run.path, self._asked)
        return msgspec.structs.replace(asked, stop=asked.stop or self._control.stop)

    def _news(self, found: _RemoteState) -> Events:
        """The training's events since the last time, and why it can't go on there."""
        for event in self._watcher.poll():
            if isinstance(event, RunStarted):
                with contextlib.suppress(RunError):  # figures of later checkpoints stay listed
                    evaluation.remove_evaluations_after(self._run, event.first_step)
                yield dataclasses.replace(event, device=self._place)
            elif not isinstance(event, HistoryRead | TrainingSeen | TrainingLost | RunFinished):
                yield event
        halted = "" if found.live is None else found.live.halted
        if halted and halted != self._halted:
            yield Notice("error", f"{self._place}: {halted}", "It goes on there once that is mended.")
        self._halted = halted

    def _say_cut(self, lost: ConnectionLostError) -> Iterator[Notice]:
        """Once for each time."""
        self._can_ask = False
        if not self._is_cut:
            self._is_cut = True
            title = f"The link to {self._link.place.host} is lost."
            yield Notice("warning", title, f"{lost} The training goes on there; the link is tried until it is back.")

    def _wait(self, seconds: float) -> None:
        """Until the next round, or until something is asked here that can be handed on."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not (self._can_ask and self._wanted() != self._asked):
            time.sleep(_REQUEST_POLL_S)
