"""Sprites are moved to other classes, and the moves survive renamed files and other import options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core import paths
from studio.core.generators import run_to_end
from studio.data.edits import save_edits
from studio.data.import_result import SpritesImported
from studio.data.importing.class_moves import ClassMove, load_edits, notices_on_unfollowed
from studio.data.importing.importing import import_sprites
from studio.data.options import ImportOptions
from tests.data.making import notes, png_of, reasons, sprite, write, zipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sprites each in 'a' and 'b'."""
    for number, name in enumerate(("a/0.png", "a/1.png", "b/2.png", "b/3.png")):
        write(tmp_path / "set" / name, sprite(number))
    return tmp_path / "set"


def opened(*sources: Path, **options: object) -> SpritesImported:
    """Import with the saved edits."""
    chosen = ImportOptions(**options)  # type: ignore[arg-type]
    *_, last = import_sprites(sources, chosen, paths.cache(), load_edits(sources, chosen))
    assert isinstance(last, SpritesImported)
    return last


def move(found: SpritesImported, class_name: str, *names: str) -> None:
    """Move sprites to a class and save the edits."""
    indices = tuple(map(found.sprites.names.index, names))
    save_edits(found.edits, run_to_end(ClassMove(found.edits, found.read, indices, class_name).resolve()))


def classes(found: SpritesImported) -> dict[str, str]:
    sprites = found.sprites
    return {name: sprites.class_names[label] for name, label in zip(sprites.names, sprites.labels, strict=True)}


def test_moved_sprites_change_class_and_are_noted(folder: Path) -> None:
    before = opened(folder)
    stamps = {path: path.stat() for path in folder.rglob("*")}
    move(before, "b", "a/0.png")
    move(opened(folder), "c/new", "b/2.png", "b/3.png")
    found = opened(folder)
    assert classes(found) == {"a/0.png": "b", "a/1.png": "a", "b/2.png": "c/new", "b/3.png": "c/new"}
    assert found.sprites.class_names == ("a", "b", "c/new") and found.from_cache
    assert notes(found, "moved")["a/0.png"] == "class 'b' instead of 'a'"
    assert found.sprites.fingerprint != before.sprites.fingerprint
    moved = found.sprites.origin["edits"]["moved"]
    assert moved == {"b": ["a/0.png"], "c/new": ["b/2.png", "b/3.png"]}
    assert {path: path.stat() for path in folder.rglob("*")} == stamps


def test_edits_off_uses_the_files_as_they_are(folder: Path) -> None:
    before = opened(folder)
    move(before, "b", "a/0.png")
    off = opened(folder, edits="off")
    assert classes(off) == classes(before) and not notes(off, "moved")
    assert off.sprites.origin["options"] == {"edits": "off"} and "edits" not in off.sprites.origin


def test_moving_back_and_emptying_a_class(folder: Path) -> None:
    move(opened(folder), "b", "a/0.png", "a/1.png")
    found = opened(folder)
    assert found.sprites.class_names == ("b",) and set(classes(found).values()) == {"b"}
    move(found, "a", "a/0.png", "a/1.png")
    assert opened(folder).sprites.class_names == ("a", "b") and not list(paths.edits().iterdir())


def test_moves_survive_renamed_files_and_other_options(folder: Path) -> None:
    write(folder / "a/large.png", np.kron(sprite(9), np.ones((4, 4, 1), np.uint8)))
    move(opened(folder, size=32), "c", "a/0.png", "a/large.png")
    (folder / "a/0.png").rename(folder / "a/renamed.png")
    for options in ({}, {"size": 64}, {"shrink": 0}, {"colours_each": 2}, {"class_minimum": 2}):
        found = classes(opened(folder, **{"size": 32, **options}))
        assert found["a/renamed.png"] == found["a/large.png"] == "c", options
    assert found.keys() == {"a/renamed.png", "a/large.png", "b/2.png", "b/3.png"}  # a/1.png is alone in its class


def test_duplicates_follow_the_kept_sprite(folder: Path) -> None:
    write(folder / "b/copy.png", sprite(0))
    assert "instead of" in reasons(opened(folder))["b/copy.png"]
    move(opened(folder), "c", "a/0.png")
    found = opened(folder)
    assert classes(found)["a/0.png"] == "c" and reasons(found)["b/copy.png"] == "duplicate of a/0.png"
    assert classes(opened(folder, leave_out="a/0.png"))["b/copy.png"] == "c"
    kept = classes(opened(folder, duplicates="keep"))
    assert kept["a/0.png"] == kept["b/copy.png"] == "c"


def test_move_without_a_sprite_is_noted_only_for_whole_folders(folder: Path) -> None:
    move(opened(folder), "b", "a/0.png")
    write(folder / "a/0.png", sprite(77))  # redrawn
    found = opened(folder)
    assert classes(found)["a/0.png"] == "a"
    assert notes(found, "lost moves") == {"a/0.png": "moved to class 'b', but no sprite has these pixels"}


def test_files_and_folders_opened_together_keep_their_own_edits(folder: Path, tmp_path: Path) -> None:
    single, archive = write(tmp_path / "other" / "one.png", sprite(5)), tmp_path / "pack.zip"
    zipped(archive, {"x/two.png": png_of(sprite(6))})
    found = opened(folder, single, archive)
    names = {name.rpartition("/")[2]: name for name in found.sprites.names}
    move(found, "moved", names["0.png"], names["one.png"], names["two.png"])
    assert len(list(paths.edits().iterdir())) == 3
    for source in (folder, single, archive):
        assert list(classes(opened(source)).values()).count("moved") == 1
    alone = opened(tmp_path / "other")
    assert set(classes(alone).values()) == {"moved"} and not notes(opened(single), "lost moves")


def test_moves_of_a_parent_or_a_sub_folder_are_named(folder: Path) -> None:
    move(opened(folder), "c", "a/0.png", "a/1.png", "b/2.png")
    on = ImportOptions()

    def said(*sources: Path, options: ImportOptions = on) -> list[str]:
        return [each.title for each in notices_on_unfollowed(load_edits(sources, options), options)]

    (notice,) = notices_on_unfollowed(load_edits([folder / "a"], on), on)
    assert notice.title == "2 edits in 'set' are not followed." and str(folder) in notice.hint
    assert said(folder.parent) == ["3 edits in 'set' are not followed."] and said(folder) == []
    assert said(folder / "a", options=ImportOptions(edits="off")) == []
    move(opened(folder / "a"), "d", "0.png")
    assert said(folder / "a") == ["1 edit in 'set' is not followed."]
    assert said(folder) == []  # its own move comes first
