"""A training says in its folder that it goes on, and does what other processes ask of it there. No torch here."""

from __future__ import annotations

import contextlib
import math
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
                at_the_end.callback(fall_silent, event.path)
            yield event
            if speaker is not None:
                yield from speaker.follow(event)


class _Speaker:
    """Speaks for one training."""

    def __init__(self, started: RunStarted, control: Control, *, can_pause: bool) -> None:
        self._run, self._control = started.path, control
        self._live = Live(
            0, started.first_step, started.elapsed_s, started.train_count, started.heldout_count, can_pause,
            precision=started.precision,
        )  # fmt: skip
        self._done = Asked()
        self._looked_s = self._spoke_s = -math.inf
        fall_silent(self._run)  # what was asked of an earlier training of this run counts no more

    def follow(self, event: Event) -> Iterator[Notice]:
        """After an event of the training: speak and listen when that is due, and wait while a pause is asked for."""
        if isinstance(event, LossChunk):
            eta_s = event.eta_s if math.isfinite(event.eta_s) else None
            self._live = msgspec.structs.replace(self._live, eta_s=eta_s, epoch=event.epoch, halted="")
        elif isinstance(event, Halted):
            self._live = msgspec.structs.replace(self._live, halted=event.title)
        self._speak_and_listen()
        if self._is_to_wait():
            yield Notice("info", "Paused, as was asked in the run's folder.", "It goes on when that is asked.")
            self._change(is_paused=True)
            while self._is_to_wait():
                time.sleep(_LOOK_S)
                self._speak_and_listen()
            self._change(is_paused=False)
            if not self._control.stop:
                yield Notice("info", "It goes on.")

    def _is_to_wait(self) -> bool:
        return self._live.can_pause and self._done.pause and not self._control.stop

    def _change(self, *, is_paused: bool) -> None:
        """Say this at once."""
        self._live = msgspec.structs.replace(self._live, is_paused=is_paused)
        self._spoke_s = -math.inf
        self._speak_and_listen()

    def _speak_and_listen(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._heed(read_asked(self._run))
        if now_s - self._spoke_s >= BEAT_S:
            self._spoke_s = now_s
            self._live = msgspec.structs.replace(self._live, beat=self._live.beat + 1, is_stopping=self._control.stop)
            with contextlib.suppress(UnwritableError):  # the training halts by itself where the disk can't be written
                write_live(self._run, self._live)

    def _heed(self, asked: Asked) -> None:
        control, done = self._control, self._done
        control.stop = control.stop or asked.stop
        control.checkpoint_now = control.checkpoint_now or asked.saves > done.saves
        control.sample_now = control.sample_now or asked.samples > done.samples
        self._done = asked
