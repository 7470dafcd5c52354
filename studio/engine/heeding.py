"""A training says in its folder that it goes on, and does what other processes ask of it there. No torch here."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator

import msgspec

from studio.core.errors import UnwritableError
from studio.core.events import Event, Events, Halted, LossChunk, Notice, RunStarted
from studio.engine.control import Control
from studio.engine.runs.live import Asked, Live, fall_silent, read_asked, write_live

BEAT_S = 2.0
_LOOK_S = 0.25  # between two looks at what is asked


def heeding(events: Events, control: Control, *, can_pause: bool) -> Events:
    """Hand on the events of a training, say in its folder that it goes on, and do what it is asked there.

    can_pause: whether the process may wait in here while it is asked to.
    """
    with contextlib.closing(events), contextlib.ExitStack() as at_the_end:
        speaker: _Speaker | None = None
        for event in events:
            if isinstance(event, RunStarted):
                speaker = _Speaker(event, control, can_pause=can_pause)
                at_the_end.callback(speaker.close)
            if speaker is not None:
                speaker.note(event)  # first: whoever receives the event may not advance the training for hours
            yield event
            if speaker is not None:
                yield from speaker.follow()


class _Speaker:
    """Speaks for one training.

    A daemon thread writes the heartbeat while nothing advances the training, as when the window has paused it.
    """

    def __init__(self, started: RunStarted, control: Control, *, can_pause: bool) -> None:
        self._run, self._control = started.path, control
        self._live = Live(
            0, started.first_step, started.elapsed_s, started.train_count, started.heldout_count, can_pause,
            precision=started.precision,
        )  # fmt: skip
        self._done = Asked()
        self._waits = False  # in `follow`
        self._beats = 0
        self._looked_s = self._spoke_s = -math.inf
        self._lock = threading.Lock()  # two threads write live.json
        self._has_ended = threading.Event()
        fall_silent(self._run)  # what was asked of an earlier training of this run counts no more
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def note(self, event: Event) -> None:
        """Write what an event of the training says, if the next heartbeat is due; a halt at once."""
        if isinstance(event, LossChunk):
            eta_s = event.eta_s if math.isfinite(event.eta_s) else None
            self._live = msgspec.structs.replace(self._live, eta_s=eta_s, epoch=event.epoch, halted="")
        elif isinstance(event, Halted):
            self._live = msgspec.structs.replace(self._live, halted=event.title)
        self._speak(at_once=isinstance(event, Halted))

    def follow(self) -> Iterator[Notice]:
        """Read asked.json when a look is due, and wait while asked.json asks for a pause. Yields Notices."""
        self._listen()
        if self._is_to_wait():
            yield Notice("info", "Paused, as was asked in the run's folder.", "It goes on when that is asked.")
            self._wait(is_waiting=True)
            while self._is_to_wait():
                time.sleep(_LOOK_S)
                self._speak()
                self._listen()
            self._wait(is_waiting=False)
            if not self._control.stop:
                yield Notice("info", "It goes on.")

    def close(self) -> None:
        """End the heartbeat and remove the files."""
        with self._lock:
            self._has_ended.set()
        fall_silent(self._run)

    def _is_to_wait(self) -> bool:
        return self._live.can_pause and self._done.pause and not self._control.stop

    def _wait(self, *, is_waiting: bool) -> None:
        self._waits = is_waiting
        self._speak(at_once=True)

    def _beat(self) -> None:
        """Write the heartbeat until the training ends. Runs on the thread."""
        while not self._has_ended.wait(BEAT_S):
            self._speak()

    def _listen(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._heed(read_asked(self._run, self._done))

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
            with contextlib.suppress(UnwritableError):  # the training halts by itself where the disk can't be written
                write_live(self._run, live)

    def _heed(self, asked: Asked) -> None:
        control, done = self._control, self._done
        control.stop = control.stop or asked.stop
        control.checkpoint_now = control.checkpoint_now or asked.saves > done.saves
        control.sample_now = control.sample_now or asked.samples > done.samples
        self._done = asked
