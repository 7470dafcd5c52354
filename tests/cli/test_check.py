"""`studio check`: findings as text and as JSON, and its exit code."""

from __future__ import annotations

import pytest

from studio.cli import check
from studio.core.events import Events, Progress
from studio.engine.check.findings import BuildChosen, CheckDone, Finding
from tests.cli.tools import Studio

FIELDS = {"type", "check", "title", "state", "text", "advice", "prevents_training", "changes_build"}


def _checked(*, can_train: bool) -> Events:
    yield Progress(0, 0, "PyTorch")
    yield BuildChosen("cpu", "cu132")
    yield Finding("pytorch", "PyTorch", "good", "2.15.0.")
    yield Finding("x", "Card", "problem", "It is not used.", "Change the build.", not can_train, changes_build=True)
    yield CheckDone(can_train, 1, 0)


def test_findings_and_the_commands_for_another_build(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "check_system", lambda: _checked(can_train=True))
    said = studio("check").out
    assert "good    PyTorch: 2.15.0.\nPROBLEM Card: It is not used.\n        -> Change the build.\n" in said
    assert "Training works, with 1 problem." in said and "pip install" in said


def test_json_and_the_exit_code_if_training_cannot_work(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "check_system", lambda: _checked(can_train=False))
    objects = studio("check", "--json", code=1).objects()
    assert [each["type"] for each in objects] == ["Progress", "BuildChosen", "Finding", "Finding", "CheckDone"]
    assert all(set(each) == FIELDS and each["state"] in ("good", "problem") for each in objects[2:4])
    assert objects[1] == {"type": "BuildChosen", "suggested": "cpu", "installed": "cu132"}
    assert objects[-1] == {"type": "CheckDone", "can_train": False, "problems": 1, "notices": 0}
