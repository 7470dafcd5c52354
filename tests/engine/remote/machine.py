"""The other machine as tests see it."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from studio.core.events import Event, Events
from studio.core.versions import versions_line
from studio.engine.remote import ssh, training
from studio.engine.remote.ssh import RemoteTarget

E = TypeVar("E", bound=Event)
HERE = Path(__file__).parent
PLACE = RemoteTarget("me@far", "runs")
_LONGEST_S = 60.0


class FarMachine:
    """Its home folder is `home`, and runs go to `home/runs`; files beside it say what its programs are to do."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.runs = self.home / "runs"
        self.tools = folder / "bin"
        for made in (self.tools, self.runs / ".venv/bin"):
            made.mkdir(parents=True)
        _program(self.tools / "ssh", "sh", HERE / "ssh")
        _program(self.tools / "rsync", sys.executable, "-IS", HERE / "rsync.py")
        (self.home / ".profile").write_text(f"PATH={shlex.quote(str(self.tools))}:$PATH\n")
        self.has_studio(HERE / "training.py")
        self.tell("version", versions_line())

    def has_studio(self, *words: object) -> None:
        """What Python is to run there in place of the studio; the version is told at once."""
        studio = _program(self.runs / ".venv/bin/studio", sys.executable, *words)
        told = f'[ "$1" = --version ] && exec cat {shlex.quote(str(self.folder / "version"))}\n'
        studio.write_text(studio.read_text().replace("exec", f"{told}exec", 1))

    def refuses(self, words: str = "") -> None:
        """Nobody gets there any more, for what ssh says; without words, they do again."""
        (self.folder / "refuses").write_text(words)
        if not words:
            (self.folder / "refuses").unlink()

    def tell(self, name: str, text: str = "") -> None:
        """Make one of the files that the programs look for."""
        (self.folder / name).write_text(text)

    def forget(self, name: str) -> None:
        (self.folder / name).unlink()

    def hosts(self) -> set[str]:
        """Return the hosts as ssh and rsync were given them."""
        return set((self.folder / "hosts").read_text().split())

    def has_rsync(self, *words: object) -> None:
        """Put a program in front of rsync in the other machine's login shell."""
        (self.folder / "other").mkdir()
        _program(self.folder / "other/rsync", *words)
        with (self.home / ".profile").open("a") as profile:
            profile.write(f"PATH={shlex.quote(str(self.folder / 'other'))}:$PATH\n")

    def starts(self) -> list[str]:
        """The flags that each training there was started with."""
        told = self.folder / "starts"
        return told.read_text().splitlines() if told.exists() else []


def far_machine(folder: Path, patch: pytest.MonkeyPatch) -> FarMachine:
    """A machine that is there and idle; it is looked at often."""
    machine = FarMachine(folder)
    patch.setenv("FAR", str(folder))
    patch.setattr(ssh, "HOMEBREW_RSYNC", ())
    patch.setenv("PATH", os.pathsep.join((str(machine.tools), os.environ["PATH"])))
    for name in ("RETRY_S", "_REQUEST_POLL_S"):
        patch.setattr(training, name, 0.02)
    patch.setattr(training, "POLL_S", 0.1)  # each look starts ssh and rsync
    return machine


class Following(threading.Thread):
    """Goes through events while the test looks on."""

    def __init__(self, events: Events) -> None:
        super().__init__(daemon=True)
        self.seen: list[Event] = []
        self._error: Exception | None = None
        self._events = events
        self._is_to_leave = False
        self.start()

    def run(self) -> None:
        try:
            for event in self._events:
                self.seen.append(event)
                if self._is_to_leave:
                    self._events.close()
        except Exception as error:  # noqa: BLE001 - it is raised in the test
            self._error = error

    def until(self, kind: type[E], words: str = "", *, count: int = 1) -> E:
        """Wait for so many events of this kind that say this; returns the last."""
        self.until_true(lambda: len(self._found(kind, words)) >= count)
        return self._found(kind, words)[count - 1]

    def until_true(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, while the events go on."""
        wait_until(lambda: holds() or self._error is not None)
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """End as a process that is killed: nothing is tidied up but what the system does."""
        self._is_to_leave = True
        self.join(_LONGEST_S)
        assert not self.is_alive()

    def to_the_end(self) -> list[Event]:
        """All events; raises what has ended them."""
        self.join(_LONGEST_S)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error
        return self.seen

    def _found(self, kind: type[E], words: str) -> list[E]:
        return [event for event in list(self.seen) if isinstance(event, kind) and words in str(event)]


def names_in(folder: Path) -> set[str]:
    """What a folder holds."""
    return {path.name for path in folder.iterdir()}


def wait_until(holds: Callable[[], bool]) -> None:
    """Look again and again."""
    end_s = time.monotonic() + _LONGEST_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def _program(path: Path, *words: object) -> Path:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
    path.chmod(0o755)
    return path
