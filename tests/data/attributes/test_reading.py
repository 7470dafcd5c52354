"""Attributes from folders, file names and tables, and the proposal of folders or names."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from studio.core.errors import BadInputError
from studio.data.attributes.columns import MOST_VALUES, AttributeColumns
from studio.data.attributes.reading import parse_names
from studio.data.import_result import SpritesImported
from tests.data.making import imported, sprite, write

KINDS, ELEMENTS = ("shields", "swords"), ("fire", "ice")


def made(folder: Path, pattern: str = "{}/{}/{}.png") -> Path:
    """Two sprites of each kind and element."""
    for seed, (kind, element, number) in enumerate(product(KINDS, ELEMENTS, range(2))):
        write(folder / pattern.format(kind, element, number), sprite(seed))
    return folder


def values(found: SpritesImported) -> dict[str, dict[str, str]]:
    sprites = found.sprites
    return {name: sprites.attributes.of(index) for index, name in enumerate(sprites.names)}


def test_folder_levels_are_proposed_and_read(tmp_path: Path) -> None:
    folder = made(tmp_path / "set")
    plain = imported(folder, cache=tmp_path / "cache")
    assert not plain.sprites.attributes and plain.proposed_attributes is not None
    assert plain.proposed_attributes.describe() == "kind (shields, swords) and element (fire, ice)"
    again = imported(folder, cache=tmp_path / "cache")
    assert again.from_cache and again.proposed_attributes == plain.proposed_attributes
    found = imported(folder, attributes="folders")
    assert values(found)["swords/fire/1.png"] == {"kind": "swords", "element": "fire"}
    assert found.sprites.class_names == plain.sprites.class_names and found.proposed_attributes is None
    named = imported(folder, attributes="folders", attribute_names="-,magic")
    assert values(named)["swords/fire/1.png"] == {"magic": "fire"}
    assert imported(folder, attributes="off").proposed_attributes is None


def test_words_in_names_are_proposed_and_read(tmp_path: Path) -> None:
    folder = made(tmp_path / "set", "{}_{}_{:02}.png")
    plain = imported(folder)
    assert plain.proposed_attributes is not None and plain.proposed_attributes.source == "names"
    found = imported(folder, attributes="names", attribute_names="kind,element")
    assert values(found)["swords_ice_00.png"] == {"kind": "swords", "element": "ice"}


def test_levels_without_shared_values_are_not_proposed(tmp_path: Path) -> None:
    for seed, name in enumerate(("mon/orc", "mon/elf", "item/ring", "item/gem")):
        write(tmp_path / f"{name}/1.png", sprite(2 * seed))
        write(tmp_path / f"{name}/2.png", sprite(2 * seed + 1))
    assert imported(tmp_path).proposed_attributes is None


def test_columns_of_words_in_a_table(tmp_path: Path) -> None:
    folder = made(tmp_path / "set")
    rows = [f"swords/{element}/{number}.png" for element, number in product(ELEMENTS, range(2))]
    listed = "".join(
        f"{name},sword,{'rare' if number else ''},a text {number},{number}\n" for number, name in enumerate(rows)
    )
    (folder / "labels.csv").write_text("file,kind,rarity,remark,price\n" + listed)
    found = imported(folder, attributes="folders", attribute_names="kind,element")
    assert values(found)["swords/ice/1.png"] == {"kind": "sword", "element": "ice", "rarity": "rare"}
    assert values(found)["swords/fire/0.png"] == {"kind": "sword", "element": "fire"}
    assert values(found)["shields/fire/0.png"] == {"kind": "shields", "element": "fire"}
    assert "sword" in found.sprites.class_names and found.sprites.target_names == ("price",)
    assert any("its texts hardly repeat" in each.reason for each in found.note_groups["labels"])


def test_names_that_repeat_are_refused() -> None:
    assert parse_names(" kind, -,-") == ("kind", "-", "-") and parse_names("") == ()
    for text in ("kind,kind", "kind,", "a=b"):
        with pytest.raises(BadInputError, match="Names of attributes"):
            parse_names(text)


def test_an_attribute_with_too_many_values_is_left_out() -> None:
    columns = AttributeColumns()
    for row in range(MOST_VALUES + 1):
        columns.put(row, "name", f"{row}")
        columns.put(row, "kind", "axe" if row % 2 else "")
    found = columns.build(MOST_VALUES + 1)
    assert found.names == ("kind",) and list(columns.overfull) == ["name"] and found.counts()[0].tolist() == [500]
