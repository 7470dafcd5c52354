"""What people say of a run: kept beside it, in nobody's way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studio.core.errors import DamagedError, UnwritableError, UsageError
from studio.engine.runs.listing import runs_by_name, summarise
from studio.engine.runs.notes import RunNotes, change_notes, display_name, read_notes, split_tags
from tests.engine.tools import bare_run


def test_changed_notes_keep_the_other_fields(tmp_path: Path) -> None:
    assert read_notes(bare_run(tmp_path).path) == RunNotes()
    change_notes(tmp_path, name="  My \n bosses ", tags=["Boss", "dark, boss"])
    change_notes(tmp_path, note=" Width 64 was\ntoo slow. 剣\n", starred=True)
    assert read_notes(tmp_path) == RunNotes("My bosses", "Width 64 was\ntoo slow. 剣", True, ("Boss", "dark"))
    change_notes(tmp_path, name=tmp_path.name, tags=[])
    assert read_notes(tmp_path) == RunNotes("", "Width 64 was\ntoo slow. 剣", True)
    assert summarise(tmp_path).title == tmp_path.name and summarise(tmp_path).notes.starred


def test_it_is_written_while_the_run_is_being_trained(tmp_path: Path) -> None:
    training = bare_run(tmp_path)
    training.acquire()
    try:
        change_notes(tmp_path, starred=True)
    finally:
        training.release()
    assert read_notes(tmp_path).starred


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 7}', '{"tags": [""]}', '{"note": null}'])
def test_fault_34_a_damaged_note_hides_nothing_and_is_not_written_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(text)
    assert read_notes(tmp_path) == RunNotes()
    with pytest.raises(DamagedError, match=r"notes\.json"):
        change_notes(tmp_path, starred=True)
    assert path.read_text() == text


def test_a_newer_file_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text(json.dumps({"name": "bosses", "mood": "blue"}))
    assert read_notes(tmp_path) == RunNotes("bosses")


def test_too_long_notes_are_refused(tmp_path: Path) -> None:
    for wrong in ({"name": "x" * 81}, {"note": "x" * 10_001}, {"tags": ["x" * 33]}, {"tags": map(str, range(17))}):
        with pytest.raises(UsageError, match="at most"):
            change_notes(bare_run(tmp_path).path, **wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    change_notes(tmp_path, name="x" * 80, note="x" * 10_000, tags=map(str, range(16)))
    assert read_notes(tmp_path).name == "x" * 80


def test_deleted_run_is_not_started_again(tmp_path: Path) -> None:
    with pytest.raises(UnwritableError):
        change_notes(tmp_path / "gone", starred=True)
    assert not (tmp_path / "gone").exists()


def test_tags_are_unique_words() -> None:
    assert split_tags("boss, dark #wip Boss;DARK") == ("boss", "dark", "wip")
    assert split_tags(" ,# ") == ()


def test_runs_of_equal_names_get_their_parent_folder(tmp_path: Path) -> None:
    runs = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for run in runs:
        bare_run(run)
    for run in runs[:2]:
        change_notes(run, name="bosses")
    change_notes(runs[2], name="dragons")
    assert runs_by_name([*runs, runs[0]]) == {
        f"{tmp_path.name}/a": runs[0], f"{tmp_path.name}/b": runs[1], "dragons": runs[2],
    }  # fmt: skip


def test_linked_run_has_the_name_of_its_folder_everywhere(tmp_path: Path) -> None:
    run, link = bare_run(tmp_path / "bosses").path, tmp_path / "link"
    link.symlink_to(run)
    assert summarise(link).title == display_name(link) == "bosses" and [*runs_by_name([link])] == ["bosses"]
    change_notes(link, name="Fire & ice")
    assert summarise(link).title == display_name(link) == display_name(run) == "Fire & ice"
    change_notes(link, name="bosses")
    assert read_notes(run).name == "" and summarise(link).title == "bosses"
