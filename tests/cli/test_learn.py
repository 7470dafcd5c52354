"""`studio learn`."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.lab import running
from tests.cli.tools import Studio
from tests.lab.tools import InProcess


def test_lessons_are_listed(studio: Studio) -> None:
    listed = studio("learn", "--json").objects()
    assert len(listed) >= 8 and [each["number"] for each in listed] == list(range(1, len(listed) + 1))
    assert [each["lesson"] for each in listed[:3]] == ["devices", "moving", "training-loop"]
    assert "Begin:  studio learn 1" in studio("learn").out


def test_a_lesson_from_prediction_to_table(
    studio: Studio, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    pages = tmp_path / "pages"
    words = ["learn", "moving", str(folder), "--answer", "7", "--name", "Ada", "--device", "cpu", "--out", str(pages)]
    said = studio(*words).out
    assert "You predicted 7 mistakes. Measured: 5 mistakes." in said and "PyTorch's own page" in said
    assert "Begin:  studio learn moving --exercise moving.py --name Ada\n" in said
    assert "Next lesson:  studio learn training-loop --name Ada\n" in said
    (listed,) = (each for each in studio("learn", "--name", "Ada", "--json").objects() if each["lesson"] == "moving")
    assert listed["measured"] == 1 and not listed["right"]
    words[words.index("7")] = "skip"
    assert "You predicted 7 mistakes." in studio(*words).out  # skip keeps the earlier prediction
    said = studio("learn", "--collect", str(pages), "--out", str(tmp_path / "class.csv")).out
    assert "good predictions" in said and "1 page collected" in said and "Ada" in (tmp_path / "class.csv").read_text()
    collected = studio("learn", "--collect", str(pages), "--json").objects()
    assert collected[0]["type"] == "HandIn" and collected[0]["learner"] == "Ada"


def test_usage_errors_come_before_the_measurement(studio: Studio, tmp_path: Path) -> None:
    assert "There is no lesson 'nonsense'" in studio("learn", "nonsense", code=2).err
    assert "Predict before the measurement" in studio("learn", "1", "--json", code=2).err
    assert "not one of the choices" in studio("learn", "loading", "--answer", "z", code=2).err
    assert "A page can't be saved" in studio("learn", "1", "--out", "page.pdf", code=2).err
    assert "not done a lesson yet" in studio("learn", "--out", str(tmp_path / "page.html"), code=2).err
    assert "not a folder" in studio("learn", "--collect", str(tmp_path / "none"), code=1).err
    assert "can't be read" in studio("learn", "--class", str(tmp_path / "none.toml"), code=1).err


def test_the_last_lesson_says_what_to_do_next(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    path = tmp_path / "class.toml"
    path.write_text('lessons = ["saving", "moving"]')
    words = ["learn", "2", "--answer", "5", "--device", "cpu", "--name", "Ada L", "--class", str(path)]
    said = studio(*words).out
    assert f"Save the page to hand in:  studio learn --out 'Ada L.html' --class {path} --name 'Ada L'\n" in said
    assert "studio help first-model" in said and "Next lesson" not in said
    path.write_text('lessons = ["saving", "moving"]\nhand_in = "pages"')
    said = studio(*words).out
    assert "The page to hand in is" in said and "Save the page" not in said


def test_paragraphs_wrap_on_a_terminal(studio: Studio, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    words = ["learn", "saving", str(folder), "--answer", "c", "--device", "cpu"]
    assert "Save the page to hand in" not in studio(*words).out
    assert max(map(len, studio(*words).out.splitlines())) > 150
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    said = studio(*words).out.splitlines()
    assert "The state_dict of a network is a list of names, each with a" in said


def test_an_exercise_is_written_once(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "exercise.py"
    assert "same command to check it" in studio("learn", "timing", "--exercise", str(path)).out
    assert "def time_step" in path.read_text()
    path.write_bytes(b"\xff\xfe")
    assert "not a text file" in studio("learn", "timing", "--exercise", str(path), code=1).err
