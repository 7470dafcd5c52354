"""Publish a training's heartbeat in the run folder, and execute the requests that other processes write there."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator

import msgspec

from studio.core.errors import UnwritableError
from studio.core.events import Blocked, Event, Events, LossChunk, Notice, RunStarted
from studio.engine.control.control import Control
from studio.engine.control.protocol import ControlRequest, Heartbeat, clear_control_files, read_asked, write_live

BEAT_S = 2.0
_LOOK_S = 0.25  # between two looks at what is asked


def with_run_control(events: Events, control: Control, *, can_pause: bool) -> Events:
    """Forward the events of a training, write its heartbeat, and execute the requests in asked.json.

    can_pause: whether a requested pause may block the process in this generator.
    """
    with contextlib.closing(events), contextlib.ExitStack() as at_the_end:
        speaker: RunControlServer | None = None
        for event in events:
            if isinstance(event, RunStarted):
                speaker = RunControlServer(event, control, can_pause=can_pause)
                at_the_end.callback(speaker.close)
            if speaker is not None:
                speaker.record(event)  # before the yield: the receiver may pause the training for hours
            yield event
            if speaker is not None:
                yield from speaker.follow()


class RunControlServer:
    """Writes one training's heartbeat and executes its requests.

    A daemon thread writes the heartbeat and reads asked.json while nothing advances the training, for example during
    the window's pause.
    """

    def __init__(self, started: RunStarted, control: Control, *, can_pause: bool) -> None:
        self._run, self._control = started.path, control
        self._live = Heartbeat(
            0, started.first_step, started.elapsed_s, started.train_count, started.heldout_count, can_pause,
            precision=started.precision,
        )  # fmt: skip
        self._done = ControlRequest()
        self._waits = False  # for the end of a requested pause
        self._beats = 0
        self._looked_s = self._spoke_s = -math.inf
        self._lock = threading.Lock()  # two threads write live.json and read asked.json
        self._has_ended = threading.Event()
        clear_control_files(self._run)  # what was asked of an earlier training of this run counts no more
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def record(self, event: Event) -> None:
        """Take an event into the heartbeat, and write the heartbeat if due; after Halted at once."""
        if isinstance(event, LossChunk):
            eta_s = event.eta_s if math.isfinite(event.eta_s) else None
            self._live = msgspec.structs.replace(self._live, eta_s=eta_s, epoch=event.epoch, halted="")
        elif isinstance(event, Blocked):
            self._live = msgspec.structs.replace(self._live, halted=event.title)
        self._speak(at_once=isinstance(event, Blocked))

    def follow(self) -> Iterator[Notice]:
        """Read asked.json if due, and wait during a requested pause. Yields a Notice before and after the pause."""
        self._listen()
        if self._is_to_wait():
            yield Notice("info", "Paused, as was asked in the run's folder.", "It goes on when that is asked.")
            self._set_waiting(True)
            while self._is_to_wait():
                time.sleep(_LOOK_S)
                self._speak()
                self._listen()
            self._set_waiting(False)
            if not self._control.stop:
                yield Notice("info", "It goes on.")

    def close(self) -> None:
        """End the heartbeat and remove the files."""
        with self._lock:
            self._has_ended.set()
        clear_control_files(self._run)

    def _is_to_wait(self) -> bool:
        return self._live.can_pause and self._done.pause and not self._control.stop

    def _set_waiting(self, waits: bool) -> None:
        self._waits = waits
        self._speak(at_once=True)

    def _beat(self) -> None:
        """Read asked.json and write heartbeats until the training ends. Runs in the daemon thread."""
        while not self._has_ended.wait(BEAT_S):
            self._listen()
            self._speak()

    def _listen(self) -> None:
        """Read asked.json, if a look is due, and set the flags of the control."""
        with self._lock:
            now_s = time.monotonic()
            if not self._has_ended.is_set() and now_s - self._looked_s >= _LOOK_S:
                self._looked_s = now_s
                self.apply_requests(read_asked(self._run, self._done))

    def _speak(self, *, at_once: bool = False) -> None:
        """Write live.json, if the next heartbeat is due or `at_once`."""
        with self._lock:
            now_s = time.monotonic()
            if self._has_ended.is_set() or not (at_once or now_s - self._spoke_s >= BEAT_S):
                return
            self._spoke_s, control = now_s, self._control
            self._beats += 1
            live = msgspec.structs.replace(
                self._live, beat=self._beats, is_stopping=control.stop, is_paused=self._waits or control.is_paused
            )
            with contextlib.suppress(UnwritableError):  # an unwritable disk halts the training itself
                write_live(self._run, live)

    def apply_requests(self, asked: ControlRequest) -> None:
        control, done = self._control, self._done
        control.stop = control.stop or asked.stop
        control.checkpoint_now = control.checkpoint_now or asked.saves > done.saves
        control.sample_now = control.sample_now or asked.samples > done.samples
        self._done = asked
