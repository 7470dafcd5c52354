"""The files of the user's edits: read, merged, refused when damaged, never overwritten then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from studio.core import files, paths
from studio.core.errors import UsageError
from studio.data.edits import (
    Edits,
    EditsError,
    FolderEdits,
    SpriteEdit,
    checked_class_name,
    edits_path,
    read_edits,
    save_edits,
    with_edits,
)
from tests.conftest import posix

A, B = SpriteEdit("a.png", "sword"), SpriteEdit("b.png", "potion")


def edits_of(folder: Path, **sprites: SpriteEdit) -> Edits:
    return (FolderEdits(folder, ("",), sprites),)


def test_edits_are_one_file_per_folder_in_the_home(tmp_path: Path) -> None:
    folder = tmp_path / "my sprites"
    assert read_edits(folder) == {}
    save_edits(edits_of(folder), edits_of(folder, k1=A, k2=B))
    (path,) = paths.edits().iterdir()
    assert path == edits_path(folder) and path.name.startswith("my sprites-") and path.suffix == ".json"
    assert read_edits(folder) == {"k1": A, "k2": B} and read_edits(tmp_path) == {}
    assert json.loads(path.read_text())["folder"] == str(folder)
    save_edits(edits_of(folder, k1=A, k2=B), edits_of(folder))
    assert not path.exists() and not folder.exists()


def test_saving_keeps_the_edits_of_another_window(tmp_path: Path) -> None:
    save_edits(edits_of(tmp_path), edits_of(tmp_path, mine=A))
    save_edits(edits_of(tmp_path), edits_of(tmp_path, other=B))
    save_edits(edits_of(tmp_path, mine=A), edits_of(tmp_path))  # undone
    assert read_edits(tmp_path) == {"other": B}


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        (b"\xff\xfe\x00", "is damaged"),
        ('{"version": 3, "folder": "", "sprites": {}, "cells": []}', "newer version"),
        ('{"version": 1, "folder": "", "sprites": {"k": {"class": 3}}}', "'sprites' holds a whole number"),
        ('{"version": 1, "folder": "", "sprites": {"k": {"clas": "x"}}}', "unknown field 'clas'"),
        ('{"version": 2, "folder": "", "sprites": {"k": {"colours": {"bf0201": "red"}}}}', "'red' is no colour"),
        ('{"version": 2, "folder": "", "sprites": {"k": {"colours": {"BF0201": "000000"}}}}', "'BF0201' is no colour"),
        ('{"version": 1, "folder": "", "sprites": {}, "cells": []}', "unknown field 'cells'"),
        ('{"version": 1, "folder": "", "sprites": {"k": {"class": "a//b"}}}', "'a//b' is no class name"),
        ('{"version": 1, "folder": "", "sprites": {"k": {"class": "a\\n"}}}', "'a\\x0a' is no class name"),
    ],
)
def test_damaged_file_is_refused_and_not_overwritten(tmp_path: Path, contents: str | bytes, reason: str) -> None:
    path = edits_path(tmp_path)
    data = contents if isinstance(contents, bytes) else contents.encode()
    files.write_atomic(path, data)
    for work in (lambda: read_edits(tmp_path), lambda: save_edits(edits_of(tmp_path), edits_of(tmp_path, k=A))):
        with pytest.raises(EditsError) as caught:
            work()
        assert reason in caught.value.hint and str(path) in caught.value.hint
    assert path.read_bytes() == data


def test_renamed_folder_keeps_its_edits(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "a.png").touch()
    (old / "b.png").touch()
    save_edits(edits_of(old), edits_of(old, k1=A, k2=B))
    shutil.copytree(old, tmp_path / "copy")
    assert read_edits(tmp_path / "copy") == {}  # while the first folder exists
    old.rename(new)
    assert read_edits(new) == {"k1": A, "k2": B} == read_edits(old)
    save_edits(edits_of(new, k1=A, k2=B), edits_of(new))
    assert read_edits(new) == {}
    (tmp_path / "other").mkdir()
    assert read_edits(tmp_path / "other") == {}


@posix
def test_link_to_a_folder_has_the_edits_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_edits(edits_of(tmp_path / "link"), edits_of(tmp_path / "link", k=A))
    assert edits_path(tmp_path / "real").name.endswith(edits_path(tmp_path / "link").name.rpartition("-")[2])


def test_full_disk_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_atomic", full)
    with pytest.raises(EditsError, match="No space left"):
        save_edits(edits_of(tmp_path), edits_of(tmp_path, k=A))


def test_empty_edits_are_removed(tmp_path: Path) -> None:
    (changed,) = with_edits(edits_of(tmp_path, k1=A, k2=B), [{"k1": SpriteEdit("a.png"), "k3": B}])
    assert changed.sprites == {"k2": B, "k3": B}


def test_folder_of_a_sprite_name() -> None:
    pack = FolderEdits(Path("x"), ("a/pack", "hero.png"), {})
    assert pack.holds("a/pack/one.png") and pack.holds("hero.png") and pack.holds("hero.png#3")
    assert not pack.holds("a/pack2/one.png") and not pack.holds("hero.png2")


def test_class_names_are_trimmed_and_checked() -> None:
    assert checked_class_name(" item / magic sword ") == "item/magic sword"
    for text in ("", "  ", "/", "a//b", "a/", "x" * 300):
        with pytest.raises(UsageError):
            checked_class_name(text)
