"""Publish a training's heartbeat in the run folder, and execute requests from other processes."""

import contextlib
import math
import threading
import time
from pathlib import Path

import msgspec

from studio.core.errors import UnwritableError
from studio.core.events import Blocked, Event, Events, LossChunk, Notice, RunStarted
from studio.core.observers import Observer
from studio.engine.control import protocol
from studio.engine.control.control import Control
from studio.engine.control.protocol import ControlRequest, Heartbeat, clear_control_files

BEAT_S = 2.0  # between two heartbeats
POLL_S = 0.25  # between two reads of asked.json


class RunControlServer(Observer):
    """Publishes a training's heartbeat in the run folder and executes the requests in asked.json.

    A daemon thread does both while the training stands still. can_pause: whether a pause may block the process in
    `after`.
    """

    def __init__(self, control: Control, *, can_pause: bool) -> None:
        self._control, self._can_pause = control, can_pause
        self._run: Path | None = None  # None before RunStarted
        self._heartbeat: Heartbeat
        self._done = ControlRequest()  # requests executed so far
        self._is_pausing = False  # on request
        self._beats = 0
        self._polled_s = self._beat_s = -math.inf
        self._lock = threading.Lock()  # two threads write live.json and read asked.json
        self._has_ended = threading.Event()  # ends the daemon thread

    def before(self, event: Event) -> None:
        """Update the heartbeat before the event is yielded, because its receiver may pause for hours."""
        if isinstance(event, RunStarted):
            self._start(event)
        if self._run is None:
            return
        if isinstance(event, LossChunk):
            eta_s = event.eta_s if math.isfinite(event.eta_s) else None
            self._heartbeat = msgspec.structs.replace(self._heartbeat, eta_s=eta_s, epoch=event.epoch, halted="")
        elif isinstance(event, Blocked):
            self._heartbeat = msgspec.structs.replace(self._heartbeat, halted=event.title)
        self._write_heartbeat(at_once=isinstance(event, Blocked))

    def after(self, event: Event) -> Events:
        """Execute requests, and wait while a pause is requested; yields a Notice before and after the pause."""
        if self._run is None:
            return
        self._poll_requests()
        if self._must_pause():
            yield Notice("info", "Paused on request.", "Another process can resume the training.")
            self._set_pausing(True)
            while self._must_pause():
                time.sleep(POLL_S)
                self._write_heartbeat()
                self._poll_requests()
            self._set_pausing(False)
            if not self._control.stop:
                yield Notice("info", "Training resumed.")

    def close(self) -> None:
        """Stop the heartbeat, and remove live.json and asked.json from the run folder."""
        with self._lock:
            self._has_ended.set()
        if self._run is not None:
            clear_control_files(self._run)

    def _start(self, started: RunStarted) -> None:
        """Start the heartbeat of a training; after a rollback, start it again."""
        with self._lock:
            is_first, self._run, self._done = self._run is None, started.path, ControlRequest()
            self._heartbeat = Heartbeat(
                0, started.first_step, started.elapsed_s, started.train_count, started.heldout_count, self._can_pause,
                precision=started.precision,
            )  # fmt: skip
            clear_control_files(self._run)  # old requests to this run
        if is_first:
            threading.Thread(target=self._serve, name="heartbeat", daemon=True).start()

    def _must_pause(self) -> bool:
        return self._can_pause and self._done.pause and not self._control.stop

    def _set_pausing(self, pausing: bool) -> None:
        self._is_pausing = pausing
        self._write_heartbeat(at_once=True)

    def _serve(self) -> None:
        """Read asked.json and write heartbeats until the training ends. Runs in the daemon thread."""
        while not self._has_ended.wait(BEAT_S):
            self._poll_requests()
            self._write_heartbeat()

    def _poll_requests(self) -> None:
        """Read asked.json, if POLL_S have passed since the last time, and execute new requests."""
        with self._lock:
            now_s = time.monotonic()
            if self._run is not None and not self._has_ended.is_set() and now_s - self._polled_s >= POLL_S:
                self._polled_s = now_s
                self.apply_requests(protocol.read_requests(self._run, self._done))

    def _write_heartbeat(self, *, at_once: bool = False) -> None:
        """Write live.json, if `at_once` or if BEAT_S have passed since the last time."""
        with self._lock:
            now_s = time.monotonic()
            if self._run is None or self._has_ended.is_set() or not (at_once or now_s - self._beat_s >= BEAT_S):
                return
            self._beat_s, control = now_s, self._control
            self._beats += 1
            heartbeat = msgspec.structs.replace(
                self._heartbeat, beat=self._beats, is_stopping=control.stop,
                is_paused=self._is_pausing or control.is_paused,
            )  # fmt: skip
            with contextlib.suppress(UnwritableError):  # an unwritable disk halts the training itself
                protocol.write_heartbeat(self._run, heartbeat)

    def apply_requests(self, asked: ControlRequest) -> None:
        """Set the training's control flags for requests that are new since the last call."""
        control, done = self._control, self._done
        control.stop = control.stop or asked.stop
        control.checkpoint_now = control.checkpoint_now or asked.saves > done.saves  # the training resets this flag
        control.sample_now = control.sample_now or asked.samples > done.samples
        self._done = asked
