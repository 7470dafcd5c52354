"""Fault 21: a disk that takes nothing, once or for good, at any write of all that the studio writes.

Each of its works is done over and over, in a process of its own, with no room at one write after the other.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from studio.core.errors import StudioError
from studio.data.store import packed
from studio.engine.control.control import Control
from studio.engine.runs import checkpoints, listing
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import summarise
from tests.campaigns import tell, works
from tests.campaigns.apart import in_own_process
from tests.campaigns.file_calls import FileCalls
from tests.campaigns.works import KINDS, Say, Work, make_folder, plain, train_on

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process and has no limits of this kind"),
]

_STEPS = 2
_GIVES_UP_AFTER = 3  # waits for room
Files = dict[str, bytes]


def _remember(folder: Path, say: Say) -> None:
    listing.remember(folder / "run")


WORKS: dict[str, Work] = {
    **works.WORKS,
    **{f"train {kind}": partial(train_on, kind, _STEPS, 1) for kind in KINDS},
    "resume": partial(train_on, "classifier", _STEPS, 1),
    "remember": _remember,
}


class _Attempt:
    """One go at a work: what it said, and whether it was done or refused."""

    def __init__(self, work: Work, folder: Path) -> None:
        os.environ["STUDIO_HOME"] = str(folder / "home")
        self.said: dict[str, list[Any]] = defaultdict(list)
        try:
            work(folder, self._hear)
            self.done = self.said["exit code"] in ([], [0]) and len(self.said["halted"]) < _GIVES_UP_AFTER
        except StudioError as error:
            if "No space left" not in str(error):
                raise AssertionError("It does not say what is wrong.") from error
            self.done = False

    def _hear(self, word: str, value: Any) -> None:
        self.said[word].append(value)
        if word == "halted" and len(self.said[word]) == _GIVES_UP_AFTER:
            assert isinstance(value, Control)
            value.stop = value.give_up = True


def fill_up(name: str, place: Path) -> str:
    """Do it with each write failing, once and for good: afterwards all is as before or as after, and can be done."""
    first, work, check = place / "first", WORKS[name], _CHECKS[name.split(maxsplit=1)[0]]
    _prepare(name, first)
    calls = FileCalls(place, need_room=True)
    undisturbed = Path(shutil.copytree(first, place / "undisturbed"))
    calls.fail_at(())
    expected = _Attempt(work, undisturbed)
    assert expected.done
    writes, after = calls.count, _files(undisturbed)
    refused = 0
    for how in ("once", "for good"):
        for number in range(1, writes + 1):
            folder = Path(shutil.copytree(first, place / "at work"))
            before = _files(folder)
            calls.fail_at(range(number, number + 1 if how == "once" else 1 << 60))
            attempt = _Attempt(work, folder)
            failed_at = calls.names[number - 1] if number <= len(calls.names) else "none"
            calls.fail_at(())
            refused += not attempt.done
            try:
                assert not list(folder.rglob(".tmp-*")), "Something half-written is left."
                check(folder, attempt, before, after, expected)
                if not attempt.done:
                    again = _Attempt(work, folder)
                    assert again.done, "It can't be done when there is room."
                    check(folder, again, before, after, expected)
            except Exception as error:
                raise AssertionError(f"{name}: write {number} of {writes}, {failed_at}, fails {how}.") from error
            shutil.rmtree(folder)
    return f"{name}: each of {writes} writes failed once and for good; {refused} of {2 * writes} times it was refused"


def _prepare(name: str, folder: Path) -> None:
    os.environ["STUDIO_HOME"] = str(folder / "home")
    make_folder(name, folder)
    if name == "resume":
        with pytest.raises(_ClosedError):
            WORKS[name](folder, _close_at_the_last_step)
    if name == "remember":
        for number in range(3):
            listing.remember(folder / str(number))


class _ClosedError(Exception):
    """Closes a run at its last step, with a checkpoint of the one before."""


def _close_at_the_last_step(word: str, value: Any) -> None:
    if (word, value) == ("step", _STEPS):
        raise _ClosedError


def _files(folder: Path) -> Files:
    """Every file but those of the log and the locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".lock") and "logs" not in path.parts
    }


def _weights(files: Files) -> Files:
    """Of a training what is the same each time: the weights of its last checkpoint."""
    last = f"step-{_STEPS:08d}/"
    return {name: data for name, data in files.items() if last in name and name.endswith("safetensors")}


def _check_training(folder: Path, attempt: _Attempt, before: Files, after: Files, expected: _Attempt) -> None:
    run = folder / "run"
    if attempt.done:
        assert _weights(_files(folder)) == _weights(after) and summarise(run).standing == "finished"
        assert read_history(run).series["loss"].steps.tolist() == list(range(_STEPS))
    if not (run / "run.json").exists():
        assert not run.exists(), "A start that has failed leaves something."
        return
    assert summarise(run).standing in ("finished", "interrupted", "failed", "stopped")
    found, damaged = checkpoints.scan(run / "checkpoints")
    assert not damaged and all(checkpoints.load_tensors(*entry, part) for entry in found for part in checkpoints.PARTS)
    assert max([0, *attempt.said["checkpoint"]]) <= (found[-1][1].step if found else 0)
    assert all(before[name] == data for name, data in _files(folder).items() if name in before and "step-" in name)


def _check_import(folder: Path, attempt: _Attempt, before: Files, after: Files, expected: _Attempt) -> None:
    assert attempt.done, "A cache that can't be written stops an import."
    assert attempt.said["imported"] == expected.said["imported"]
    assert {name: data for name, data in _files(folder).items() if name in before} == before
    for entry in (folder / "cache").glob("import-*"):
        assert packed.load(entry).fingerprint == expected.said["imported"][0][0]


def _check_files(folder: Path, attempt: _Attempt, before: Files, after: Files, expected: _Attempt) -> None:
    """All or nothing; of single files those that were written by then are there, whole."""
    found, after = ({name: plain(name, data) for name, data in files.items()} for files in (_files(folder), after))
    if (folder / "out" / "sprites").exists():
        assert not attempt.done or found.items() >= after.items()
        assert set(found.values()) <= set(after.values())  # what a refused one had written stays beside the others
    else:
        assert found == (after if attempt.done else {name: plain(name, data) for name, data in before.items()})


def _check_remembered(folder: Path, attempt: _Attempt, before: Files, after: Files, expected: _Attempt) -> None:
    runs = [path.name for path in listing.remembered_runs()]
    assert runs in (["2", "1", "0"], ["run", "2", "1", "0"])


_CHECKS: dict[str, Callable[[Path, _Attempt, Files, Files, _Attempt], None]] = {
    "train": _check_training,
    "resume": _check_training,
    "import": _check_import,
    "export": _check_files,
    "generate": _check_files,
    "remember": _check_remembered,
}


def fill_up_settings(place: Path) -> str:
    """What the window remembers, on a disk that takes so many bytes of a file and no more."""
    import resource  # Windows has none

    from studio.app.state.settings import Settings

    place.mkdir()
    file = place / "window.ini"

    def keep(words: str) -> Settings:
        settings = Settings(file)
        settings.set_text("scheme", words)
        settings.set_values("forms", {"steps": 5, "name": words * 40})
        settings.sync()
        return settings

    keep("light")
    before, cut = file.read_bytes(), 0
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limits = range(0, len(before) + 200, 7)
    for limit in limits:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            settings = keep("dark")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        found = file.read_bytes()
        cut += found == before
        assert found == before or found.replace(b"dark", b"light") == before, limit
        settings.sync()
        assert file.read_bytes().replace(b"dark", b"light") == before and [*place.iterdir()] == [file]
        keep("light")
    assert 0 < cut < len(limits)
    return f"settings: of {len(limits)} limits of the file's size {cut} left what was there; all was written with room"


@pytest.mark.parametrize("name", WORKS)
def test_fault_21_every_write_fails(name: str, tmp_path: Path) -> None:
    tell(in_own_process(fill_up, name, tmp_path))


def test_fault_21_settings_of_the_window(tmp_path: Path) -> None:
    tell(in_own_process(fill_up_settings, tmp_path / "home"))
