"""A learner's code: what it prints and raises, in this process and in its own."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from studio.core import paths
from studio.core.errors import UsageError
from studio.core.events import Event, Events
from studio.lab.learn import cards, running
from studio.lab.learn.cards import card_sentences
from studio.lab.learn.catalog import lesson, lessons
from studio.lab.learn.code_child import CodeDone, CodePrinted, run
from studio.lab.learn.records import load_record
from studio.lab.learn.running import check_exercise, run_code
from studio.lab.lessons.base import Prediction

_LIMIT_S = 3.0


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print(1)", ""),
        ("x = 1\nraise ValueError('no')", "Line 2: raise ValueError('no')\nValueError: no"),
        ("x = (", "Line 1: x = (\nSyntaxError: '(' was never closed"),
        ("def f():\n    return y\nf()", "Line 2: return y\nNameError: name 'y' is not defined"),
        ("exit(3)", "Line 1: exit(3)\nSystemExit: 3"),
        ("def f(): f()\nf()", "Line 1: def f(): f()\nRecursionError: maximum recursion depth exceeded"),
        ("'\0'", "SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_errors_name_the_line(code: str, error: str) -> None:
    assert run(code, None, io.StringIO()).error == error


def test_predictions_are_read_as_people_type_them() -> None:
    number, choice = Prediction(unit="steps/s", low=1, high=1e5), Prediction(choices=("faster", "slower"))
    assert [number.read(text) for text in ("1,200", " 1200 Steps/s", "1e3")] == [1200.0, 1200.0, 1000.0]
    assert [choice.read(text) for text in ("b", "Slower ", "A")] == ["slower", "slower", "faster"]
    for prediction, text in ((number, "nan"), (number, "0"), (number, "many"), (choice, "c"), (choice, "")):
        with pytest.raises(UsageError):
            prediction.read(text)
    assert number.compare(100.0, 400.0) == "You predicted 100 steps/s. Measured: 400 steps/s: more by a factor of 4."
    assert "good prediction" in number.compare(100.0, 110.0)
    assert choice.compare("faster", "slower") == "You predicted 'faster'. Measured: 'slower'."


def test_figures_of_a_card_become_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = lesson("devices")
    assert all(text.endswith(".") for each in lessons().values() for text in card_sentences(each))
    figures = {"devices": {"steps_per_s": 1234.0, "batch": 32.0}}
    card = {"name": "A card", "date": "2026-11-28", "torch": "2", "lessons": figures}
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "cards.json").write_text(json.dumps([card]))
    monkeypatch.setattr(paths, "assets", lambda: tmp_path)
    monkeypatch.setattr(cards, "cards", cards.cards.__wrapped__)
    (said,) = card_sentences(devices)
    assert said.startswith("A card, measured on 2026-11-28 with PyTorch 2: 1,234 steps/s")
    assert card_sentences(lesson("saving")) == ()


def test_a_failing_check_keeps_the_solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_code(code: str, *_: object) -> Events:
        yield CodeDone("" if code == "good" else "Failed.", is_checked=True)

    monkeypatch.setenv("STUDIO_HOME", str(tmp_path))
    monkeypatch.setattr(running, "run_code", run_code)
    for code in ("bad", "good", "worse"):
        list(check_exercise(lesson("devices"), code, "Ada"))
    record = load_record("Ada", "devices")
    assert record.passed and record.code == "good" and record.tries == 3


def _events(code: str, limit_s: float = 60.0) -> list[Event]:
    return [event for event in run_code(code, limit_s) if isinstance(event, CodePrinted | CodeDone)]


@pytest.mark.slow
def test_code_runs_in_a_process_of_its_own_for_a_limited_time() -> None:
    assert len(_events("open('here.txt', 'w').close()")) == 1 and not Path("here.txt").exists()
    *printed, done = _events("for number in range(100_000): print('x' * 99)")
    assert isinstance(done, CodeDone) and not done.error
    text = "".join(event.text for event in printed if isinstance(event, CodePrinted))
    assert 20_000 < len(text) < 20_200 and text.endswith("(more output is not shown)\n")
    *printed, done = _events("print('begun', flush=True)\nwhile True: pass", _LIMIT_S)
    assert printed == [CodePrinted("begun"), CodePrinted("\n")]
    assert isinstance(done, CodeDone) and "the time limit" in done.error
    assert isinstance(done := _events("import os; os._exit(3)")[-1], CodeDone) and "ended unexpectedly" in done.error
