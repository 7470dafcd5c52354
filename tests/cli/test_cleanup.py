"""`studio note`, `studio runs` with its choices, `studio free`: runs are kept in order."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import pytest

from studio.cli.messages import WRONG_USAGE
from studio.core import paths
from studio.engine.runs.listing import remember
from tests.cli.tools import Studio


@pytest.fixture
def runs(generator_run: Path) -> list[Path]:
    """Two runs among the studio's own."""
    return [shutil.copytree(generator_run, paths.runs() / name) for name in ("first", "second")]


def _listed(studio: Studio, *words: str) -> list[str]:
    return sorted(Path(each["path"]).name for each in studio("runs", *words, "--json").objects())


def test_a_run_gets_a_name_a_note_a_star_and_tags(runs: list[Path], studio: Studio) -> None:
    said = studio("note", "first", "--name", "Fire & ice", "--note", "too wide", "--tag", "boss,dark", "--star").out
    assert all(word in said for word in ("★ Fire & ice", "boss, dark", "too wide", str(runs[0])))
    studio("note", "Fire & ice", "--untag", "Boss", "--tag", "wip")
    (told,) = studio("note", "Fire & ice", "--json").objects()
    assert told == {
        "type": "RunNotes", "path": str(runs[0]), "name": "Fire & ice", "note": "too wide", "starred": True,
        "tags": ["dark", "wip"],
    }  # fmt: skip
    assert "★ Fire & ice" in studio("runs").out
    assert _listed(studio, "--tag", "DARK", "--tag", "wip", "--starred") == ["first"]
    assert _listed(studio) == ["first", "second"] and _listed(studio, "--tag", "boss") == []
    assert studio("note", "Fire & ice", "--name", "", "--no-star").out.startswith("first")


def test_an_ambiguous_display_name_is_an_error(runs: list[Path], studio: Studio, tmp_path: Path) -> None:
    for run in runs:
        studio("note", run, "--name", "bosses")
    err = studio("film", "bosses", code=WRONG_USAGE).err
    assert "2 runs are called 'bosses'" in err and str(runs[0]) in err
    studio("report", *runs, "--out", tmp_path / "report.html")
    assert "runs/first" in (tmp_path / "report.html").read_text()
    studio("note", runs[1], "--name", "dragons")
    studio("report", *runs, "--out", tmp_path / "other.html")
    page = (tmp_path / "other.html").read_text()
    assert "bosses, step" in page and "dragons, step" in page


def test_linked_run_is_found_by_its_listed_name(runs: list[Path], studio: Studio, tmp_path: Path) -> None:
    real = runs[0].rename(tmp_path / "bosses")
    runs[0].symlink_to(real)
    assert "bosses" in studio("runs").out
    assert studio("note", "bosses", "--star").out == studio("note", "first").out == "★ bosses\n"


def test_an_ambiguous_folder_name_is_an_error(runs: list[Path], studio: Studio, tmp_path: Path) -> None:
    other = shutil.copytree(runs[0], tmp_path / "elsewhere" / "first")
    remember(other)
    err = studio("note", "first", code=WRONG_USAGE).err
    assert "2 runs are called 'first'" in err and str(runs[0]) in err and str(other) in err
    assert studio("note", other, "--star").out.startswith("★ first")


def test_a_run_is_found_by_either_spelling_of_an_accent(runs: list[Path], studio: Studio) -> None:
    as_macos_writes = unicodedata.normalize("NFD", "épées")
    runs[0].rename(runs[0].with_name(as_macos_writes))
    assert studio("note", "épées").out.startswith("épées")
    studio("note", "second", "--name", unicodedata.normalize("NFD", "Drachenkämpfe"))
    assert studio("note", "Drachenkämpfe").out.startswith("Drachenkämpfe")


def test_runs_prints_disk_use(runs: list[Path], studio: Studio) -> None:
    sizes = {Path(each["path"]): each["size_bytes"] for each in studio("runs", "--disk", "--json").objects()}
    for run in runs:
        assert sizes[run] == sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert "2 runs: " in studio("runs", "--disk").out


def test_space_is_freed_only_on_request(runs: list[Path], studio: Studio) -> None:
    exported = [run / "exports" / "model.onnx" for run in runs]
    for path in exported:
        path.parent.mkdir()
        path.write_bytes(b"x" * 2048)
    text = studio("free", "first", "--also", "exports").out
    assert "exports" in text and "--yes deletes" in text and exported[0].exists()
    objects = studio("free", "first", "--also", "exports", "--keep", "checkpoints", "--yes", "--json").objects()
    assert objects[-1] == {"type": "SpaceFreed", "size_bytes": 2048}
    assert not exported[0].exists() and exported[1].exists()
    assert "Unknown kind of files: 'export'" in studio("free", "--also", "export", code=WRONG_USAGE).err
    assert "Nothing to delete." in studio("free", "second", "--keep", "checkpoints").out
