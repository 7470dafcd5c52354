"""The folder for new runs, and former folders."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from studio.core import paths
from tests.conftest import posix


def test_the_default_folder_lies_in_the_home() -> None:
    assert paths.runs() == paths.default_runs() == paths.home() / "runs" and paths.runs_folders() == [paths.runs()]


@posix
def test_the_same_folder_by_another_name_is_listed_once(tmp_path: Path) -> None:
    """A link stands for another case of letters: on macOS and Windows, 'Runs' and 'runs' are one folder."""
    first, again = tmp_path / "first", tmp_path / "First"
    for folder in (first, paths.default_runs()):
        (folder / "run").mkdir(parents=True)
        (folder / "run" / "run.json").touch()
    again.symlink_to(first)
    for folder in (first, again):
        paths.choose_runs_folder(folder)
    assert paths.runs_folders() == [again, paths.default_runs()]
    default = paths.home() / "RUNS"
    default.symlink_to(paths.default_runs())
    paths.choose_runs_folder(default)
    assert paths.runs_folders() == [paths.default_runs(), again]


def test_former_folders_stay_known_in_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "run").mkdir(parents=True)
        (folder / "run" / "run.json").touch()
    for folder in (first, second, first):
        paths.choose_runs_folder(folder)
    assert paths.runs_folders() == [first, second, paths.default_runs()]
    paths.choose_runs_folder(paths.default_runs())
    assert paths.runs() == paths.default_runs() and paths.runs_folders()[1:] == [first, second]


def test_former_folders_without_runs_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    unplugged = tmp_path / "drive" / "runs"
    for folder in (tmp_path / "empty", tmp_path / "never made", unplugged, tmp_path / "chosen"):
        paths.choose_runs_folder(folder)
    assert paths.runs_folders() == [tmp_path / "chosen", unplugged, paths.default_runs()]


def test_the_default_folder_moves_with_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.choose_runs_folder(tmp_path / "chosen")
    moved = paths.home().rename(tmp_path / "moved")
    monkeypatch.setenv("STUDIO_HOME", str(moved))
    assert paths.runs_folders() == [tmp_path / "chosen", moved / "runs"]


@pytest.mark.parametrize("text", ["", "{broken", "{}", '[1, null, "", "a\\u0000b"]', "[" * 100_000])
def test_a_damaged_file_counts_as_no_choice(text: str) -> None:
    paths.home().mkdir(parents=True, exist_ok=True)
    paths.runs_file().write_text(text)
    assert paths.runs_folders() == [paths.default_runs()]


def test_reasons_against_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not paths.why_unusable_for_runs(tmp_path / "new" / "runs") and not list(tmp_path.iterdir())
    assert "full path" in paths.why_unusable_for_runs(Path("runs"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    assert "is a run" in paths.why_unusable_for_runs(tmp_path / "run")
    (tmp_path / "file").touch()
    assert "not a folder" in paths.why_unusable_for_runs(tmp_path / "file" / "runs")

    def refuse(dir: Path) -> None:  # noqa: A002 - tempfile's name
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert paths.why_unusable_for_runs(tmp_path / "new") == f"{tmp_path} can't be written: Permission denied."
