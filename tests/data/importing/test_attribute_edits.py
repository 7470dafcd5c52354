"""The user gives sprites attributes, which are kept beside the class moves."""

from __future__ import annotations

from pathlib import Path

from studio.core import paths
from studio.core.generators import run_to_end
from studio.data.edits import read_edits, save_edits
from studio.data.import_result import SpritesImported
from studio.data.importing.attribute_edits import AttributeChange, AttributeRenaming
from studio.data.importing.class_moves import load_edits
from studio.data.importing.importing import import_sprites
from studio.data.options import ImportOptions
from tests.data.making import notes, sprite, write


def opened(folder: Path) -> SpritesImported:
    chosen = ImportOptions(attributes="folders")
    *_, last = import_sprites([folder], chosen, paths.cache(), load_edits([folder], chosen))
    assert isinstance(last, SpritesImported)
    return last


def change(found: SpritesImported, values: dict[str, str], *names: str) -> None:
    indices = list(map(found.sprites.names.index, names))
    edited = AttributeChange(found.edits, found.read, indices, values)
    save_edits(found.edits, run_to_end(edited.resolve()))


def test_values_are_kept_and_return_to_the_files(tmp_path: Path) -> None:
    for number, name in enumerate(("a/0.png", "a/1.png", "b/2.png", "b/3.png")):
        write(tmp_path / name, sprite(number))
    first = opened(tmp_path)
    change(first, {"element": "fire", "kind": "b"}, "a/0.png", "b/2.png")
    found = opened(tmp_path)
    attributes = found.sprites.attributes
    assert attributes.of(0) == {"kind": "b", "element": "fire"} == attributes.of(2) and attributes.of(3) == {
        "kind": "b"
    }
    assert found.sprites.class_names == ("a", "b") and found.sprites.labels.tolist() == [0, 0, 1, 1]
    assert notes(found, "attributed") == {"a/0.png": "element fire, kind b", "b/2.png": "element fire"}
    assert found.sprites.fingerprint != first.sprites.fingerprint
    change(found, {"element": ""}, "a/0.png", "b/2.png")
    change(opened(tmp_path), {"kind": "a"}, "a/0.png")
    assert not list(paths.edits().iterdir())  # as in the files
    change(opened(tmp_path), {"kind": ""}, "a/0.png", "a/1.png", "b/2.png", "b/3.png")
    assert not opened(tmp_path).sprites.attributes


def rename(found: SpritesImported, name: str, new: str, value: str = "") -> SpritesImported:
    renaming = AttributeRenaming(found.edits, found.read, name, new, value)
    save_edits(found.edits, run_to_end(renaming.resolve()))
    return opened(found.edits[0].folder)


def test_new_names_of_attributes_and_values_are_one_edit(tmp_path: Path) -> None:
    for number, name in enumerate(("a/0.png", "a/1.png", "b/2.png", "b/3.png")):
        write(tmp_path / name, sprite(number))
    found = opened(tmp_path)
    (name,) = found.sprites.attributes.names
    found = rename(rename(found, name, "sort"), "sort", "axes", "a")
    assert [found.sprites.attributes.of(index) for index in (0, 2)] == [{"sort": "axes"}, {"sort": "b"}]
    assert list(read_edits(tmp_path)) == [f"@{name}"]
    change(found, {"sort": "b"}, "a/0.png")
    change(opened(tmp_path), {"sort": "axes"}, "a/1.png")  # as renamed: no edit of the sprite
    found = rename(rename(opened(tmp_path), "sort", "bows", "b"), "sort", "axes", "bows")  # joins both values
    assert found.sprites.attributes.values == (("axes",),) and len(read_edits(tmp_path)) == 2
    assert not notes(found, "lost moves")
    found = rename(found, "sort", "")  # removes it
    assert not found.sprites.attributes
    write(tmp_path / "c/4.png", sprite(4))
    assert not opened(tmp_path).sprites.attributes


def test_a_name_as_in_the_files_is_no_edit(tmp_path: Path) -> None:
    for number, name in enumerate(("a/0.png", "a/1.png", "b/2.png", "b/3.png")):
        write(tmp_path / name, sprite(number))
    found = opened(tmp_path)
    (name,) = found.sprites.attributes.names
    found = rename(rename(found, name, "kinds"), "kinds", "", "b")
    assert found.sprites.attributes.of(0) == {"kinds": "a"} and found.sprites.attributes.of(2) == {}
    found = rename(found, "kinds", name)
    assert found.edits[0].sprites[f"@{name}"].renamed == {"b": ""}
    (written,) = paths.edits().iterdir()
    written.unlink()
    rename(rename(opened(tmp_path), name, "c", "b"), name, "b", "c")
    assert not list(paths.edits().iterdir())


def test_edits_of_redrawn_sprites_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "a.png", sprite(0))
    change(opened(tmp_path), {"element": "fire"}, "a.png")
    write(tmp_path / "a.png", sprite(1))
    assert "given attributes" in notes(opened(tmp_path), "lost moves")["a.png"]
