"""The user gives sprites attributes, which are kept beside the class moves."""

from __future__ import annotations

from pathlib import Path

from studio.core import paths
from studio.core.generators import run_to_end
from studio.data.edits import save_edits
from studio.data.import_result import SpritesImported
from studio.data.importing.attribute_edits import AttributeChange
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
    edited = AttributeChange(found.edits, found.read, indices, lambda index: values)
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


def test_edits_of_redrawn_sprites_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "a.png", sprite(0))
    change(opened(tmp_path), {"element": "fire"}, "a.png")
    write(tmp_path / "a.png", sprite(1))
    assert "given attributes" in notes(opened(tmp_path), "lost moves")["a.png"]
