"""Attributes in the user data and the layer groups of Aseprite files."""

from __future__ import annotations

from pathlib import Path

from tests.data.ase_making import ase, cel, filled, frame, layer, palette, pictures, tags, user_data
from tests.data.making import imported, notes

RED, BLUE = (200, 0, 0, 255), (0, 0, 200, 255)


def test_user_data_of_sprite_tags_layers_and_cels(tmp_path: Path) -> None:
    first = frame(
        palette([RED]), user_data("kind=sword; rarity = rare\nno attribute"), tags((0, 0, "a"), (0, 1, "b")),
        user_data("element=fire"), user_data("element=ice,view=front"), layer(), user_data("rarity=epic"),
        layer(0), user_data("rarity=hidden"), cel(0, filled(RED)), user_data("kind=axe"), cel(1, filled(BLUE)),
    )  # fmt: skip
    one, two = pictures(ase(first, frame(cel(0, filled(BLUE)))), tmp_path)
    assert dict(one.attributes) == {"kind": "axe", "rarity": "epic", "element": "fire", "view": "front"}
    assert dict(two.attributes) == {"kind": "sword", "rarity": "epic", "element": "ice", "view": "front"}
    assert imported(tmp_path).sprites.attributes.to_json()["kind"] == ["axe", "sword"]


def test_a_group_of_layers_gives_its_visible_layer(tmp_path: Path) -> None:
    layers = [layer(kind=1, name="weapon"), layer(level=1, name="axe"), layer(level=1, name="bow"), layer(name="body")]
    frames = [frame(*layers, cel(1, filled(RED)), cel(3, filled(RED))), frame(cel(2, filled(BLUE)))]
    both = frame(cel(1, filled(RED, 2)), cel(2, filled(BLUE)), cel(3, filled(RED, 1)))
    pictures(ase(*frames, both), tmp_path)
    found = imported(tmp_path, attributes="layers").sprites.attributes
    assert found.to_json() == {"weapon": ["axe", "bow"]} and found.table.tolist() == [[0], [1], [-1]]
    assert not imported(tmp_path).sprites.attributes


def test_a_table_wins_over_a_contradicting_file(tmp_path: Path) -> None:
    pictures(ase(frame(palette([RED]), user_data("element=fire"), layer(), cel(0, filled(RED)))), tmp_path)
    (tmp_path / "labels.csv").write_text("file,class,element\nart,gem,ice\n")
    found = imported(tmp_path)
    assert found.sprites.attributes.of(0) == {"element": "ice"} and found.sprites.class_names == ("gem",)
    said = "element is 'ice' in the table and 'fire' in the file: the table counts"
    assert notes(found, "attributes") == {"art.aseprite": said}
