"""Class files: lessons, sprites and time by file, never code."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.core.errors import BadInputError, UsageError
from studio.lab.learn.class_settings import read_class


def test_a_class_chooses_lessons_sprites_and_time(tmp_path: Path) -> None:
    path = tmp_path / "class.toml"
    path.write_text('lessons = ["saving", "1"]\nsprites = "ours"\nseconds = 5\nhand_in = "pages"\n')
    found = read_class(path)
    assert [(number, lesson.name) for number, lesson in found.lessons()] == [(1, "saving"), (2, "devices")]
    assert (found.sprites, found.seconds, found.hand_in) == (tmp_path / "ours", 5.0, tmp_path / "pages")
    assert found.lesson("2").name == "devices"
    with pytest.raises(UsageError, match="no lesson 'timing'"):
        found.lesson("timing")
    assert len(read_class(None).lessons()) >= 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('code = "import os"', "unknown field 'code'"),
        ('lessons = "devices"', "'lessons' holds"),
        ("seconds = 1e9", "'seconds' is out of range"),
        ("seconds = ", "Invalid value"),
        ("a = " + "[" * 30_000, "."),
        ("#" * 70_000, "too large"),
    ],
)
def test_a_wrong_class_file_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "class.toml"
    path.write_text(text)
    with pytest.raises(BadInputError) as caught:
        read_class(path)
    assert said in caught.value.hint and caught.value.hint.endswith(".")


def test_unknown_lessons_and_missing_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "class.toml").write_text('lessons = ["nonsense"]')
    with pytest.raises(UsageError, match="no lesson named 'nonsense'"):
        read_class(tmp_path / "class.toml")
    with pytest.raises(BadInputError, match="can't be read"):
        read_class(tmp_path / "none.toml")
