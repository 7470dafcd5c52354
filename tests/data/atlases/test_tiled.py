"""Tile sets of Tiled, written by hand, and compared with what pytiled-parser reads in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pytiled_parser import parse_tileset

from tests.data.making import Pixels, imported, notes, reasons, sprite, write

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
TILES = """\
<tileset version="1.10" tiledversion="1.10.2" name="land" tilewidth="8" tileheight="8" {spacing} {count}>
 <image source="{source}" {size}/>
 <tile id="1" type="chest"/>
 <tile id="2"><properties><property name="Name" value="well"/><property name="class" value="prop"/></properties></tile>
 <wangsets>
  <wangset name="land" type="corner" tile="-1">
   <wangcolor name="grass" color="#00ff00" tile="-1" probability="1"/>
   <wangcolor name="water" color="#0000ff" tile="-1" probability="1"/>
   <wangtile tileid="3" wangid="0,2,0,2,0,2,0,2"/>
   <wangtile tileid="4" wangid="0,2,0,1,0,1,0,2"/>
  </wangset>
 </wangsets>
</tileset>
"""
NAMES = ("s.png#tile 0", "s.png#chest/tile 1", "s.png#prop/well", "s.png#water/tile 3", "s.png#grass + water/tile 4")
CLASSES = ["s", "chest", "prop", "water", "grass + water"]


def tile_set(source: str = "s.png", size: str = "", spacing: str = 'margin="2" spacing="1"', count: str = "") -> str:
    return HEAD + TILES.format(source=source, size=size, spacing=spacing, count=count)


def sheet(margin: int = 2, spacing: int = 1) -> Pixels:
    """Three columns and two rows; the last tile is empty."""
    rgba = np.zeros((2 * margin + 16 + spacing, 2 * margin + 24 + 2 * spacing, 4), np.uint8)
    for number in range(5):
        x, y = (margin + place * (8 + spacing) for place in (number % 3, number // 3))
        rgba[y : y + 8, x : x + 8] = sprite(number)
    return rgba


@pytest.mark.parametrize("name", ["s.tsx", "any name.tsx", "map.tmx"])
@pytest.mark.parametrize("size", ["", 'width="30" height="21"', 'width="30" height="12"'])
def test_tiles_with_margin_spacing_classes_and_terrains(tmp_path: Path, name: str, size: str) -> None:
    folder = tmp_path / "set"
    write(folder / "s.png", sheet())
    write(folder / "plain.png", sprite(9))
    text = tile_set("../art/s.png", size)
    if name.endswith(".tmx"):
        tiles = text.removeprefix(HEAD).replace("<tileset", '<tileset firstgid="7"')
        layer = '<layer id="1"><data><tile gid="7"/><chunk><tile gid="2147483656"/></chunk></data></layer>'
        text = f'{HEAD}<map version="1.10"><tileset firstgid="1" source="other.tsx"/>{tiles}{layer}</map>'
    (folder / name).write_text(text)
    event = imported(folder)
    assert event.sprites.names == ("plain.png", *NAMES) and not event.quarantine and not event.notes
    assert (event.sprites.rgba[1:] == [sprite(number) for number in range(5)]).all()
    assert [event.sprites.class_names[label] for label in event.sprites.labels[1:]] == CLASSES


def test_flips_in_a_map_and_probabilities_change_no_sprite(tmp_path: Path) -> None:
    write(tmp_path / "set" / "s.png", sheet())
    path = tmp_path / "set" / "map.tmx"
    flags = (0, 0x80000000, 0x40000000, 0x20000000, 0xE0000000)  # across, down, diagonally
    cells = ",".join(str(flag | 2) for flag in flags)
    tiles = tile_set().removeprefix(HEAD).replace("<tileset", '<tileset firstgid="1"')
    for old, new in (('id="1" type', 'id="1" probability="0.25" type'), ('id="2">', 'id="2" probability="0">')):
        tiles = tiles.replace(old, new)
    tiles = tiles.replace('probability="1"/>', 'probability="0.5"/>')
    layer = f'<layer id="1" name="l" width="5" height="1"><data encoding="csv">{cells}</data></layer>'
    head = '<map version="1.10" orientation="orthogonal" width="5" height="1" tilewidth="8" tileheight="8" infinite="0"'
    path.write_text(f"{HEAD}{head}>{tiles}{layer}</map>")
    event = imported(path.parent)
    assert event.sprites.names == NAMES and not event.quarantine and not event.notes
    assert (event.sprites.rgba == [sprite(number) for number in range(5)]).all()
    assert [event.sprites.class_names[label] for label in event.sprites.labels] == CLASSES


def test_pytiled_parser_reads_the_same_tiles(tmp_path: Path) -> None:
    path = tmp_path / "set" / "s.tsx"
    pixels = sheet()
    write(path.with_name("s.png"), pixels)
    path.write_text(tile_set(size='width="30" height="21"', count='tilecount="6" columns="3"'))
    theirs, ours = parse_tileset(path), imported(path.parent).sprites
    assert theirs.tiles is not None and theirs.wang_sets
    colours = [each.name for each in theirs.wang_sets[0].wang_colors]
    for index, rgba in enumerate(ours.rgba):
        row, column = divmod(index, theirs.columns)
        x, y = (theirs.margin + place * (8 + theirs.spacing) for place in (column, row))
        assert (rgba == pixels[y : y + theirs.tile_height, x : x + theirs.tile_width]).all()
        if found := theirs.wang_sets[0].wang_tiles.get(index):
            terrains = sorted({colours[each - 1] for each in found.wang_id if each})
            assert ours.class_names[ours.labels[index]] == " + ".join(terrains)
    assert theirs.tiles[1].class_ == ours.class_names[ours.labels[1]] == "chest"


def test_properties_are_attributes(tmp_path: Path) -> None:
    path = tmp_path / "set" / "s.tsx"
    write(path.with_name("s.png"), sheet())
    properties = (
        '<property name="element" value="fire"/><property name="solid" type="bool" value="true"/>'
        '<property name="a,b=c" value=" x "/><property name="note">two lines</property>'
    )
    text = tile_set(size='width="30" height="21"', count='tilecount="6" columns="3"')
    tile = f'<tile id="0"><properties>{properties}</properties></tile>'
    path.write_text(text.replace(' <tile id="1"', f' {tile}<tile id="1"'))
    theirs, attributes = parse_tileset(path), imported(path.parent).sprites.attributes
    assert theirs.tiles is not None and theirs.tiles[0].properties is not None
    assert attributes.of(0) == {"element": "fire", "solid": "true", "a b c": "x"} and attributes.of(2) == {}
    assert {"element", "solid"} <= theirs.tiles[0].properties.keys()


def test_old_terrains_and_a_transparent_colour(tmp_path: Path) -> None:
    pixels = np.concatenate([sprite(0), sprite(1)], axis=1)
    pixels[pixels[..., 3] == 0] = (255, 0, 255, 255)
    write(tmp_path / "set" / "s.png", pixels)
    (tmp_path / "set" / "old.tmx").write_text(
        '<!DOCTYPE map SYSTEM "http://mapeditor.org/dtd/1.0/map.dtd"><map>'
        '<tileset firstgid="1" tilewidth="8" tileheight="8"><image source="s.png" trans="ff00ff"/>'
        '<terraintypes><terrain name="mud" tile="0"/><terrain name="sand" tile="1"/></terraintypes>'
        '<tile id="0" terrain="1,0,,"/></tileset></map>'
    )
    sprites = imported(tmp_path / "set").sprites
    assert sprites.names == ("s.png#mud + sand/tile 0", "s.png#tile 1")
    assert (sprites.rgba == [sprite(0), sprite(1)]).all()


def test_an_image_collection_gives_each_image_a_class(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for number, name in enumerate(("tree.png", "rock.png", "other.png")):
        write(folder / name, sprite(number, 16, 8) if name == "rock.png" else sprite(number))
    (folder / "things.tsx").write_text(
        '<tileset name="things"><grid orientation="orthogonal" width="1" height="1"/>'
        '<tile id="0" class="plant"><image source="tree.png" width="8" height="8"/></tile>'
        '<tile id="1" type="stone" x="8" y="0" width="8" height="8"><image source="rock.png"/></tile>'
        '<tile><image source="other.png"/></tile></tileset>'
    )
    event = imported(folder)
    assert event.sprites.names == ("other.png", "rock.png#stone/tile 1", "tree.png")
    assert event.sprites.class_names == ("plant", "set", "stone")
    assert (event.sprites.rgba[1] == sprite(1, 16, 8)[:, 8:]).all()


def test_a_tile_set_scaled_up_after_it_was_saved(tmp_path: Path) -> None:
    write(tmp_path / "set" / "s.png", sheet(0, 0).repeat(2, 0).repeat(2, 1))
    (tmp_path / "set" / "s.tsx").write_text(tile_set(size='width="24" height="16"', spacing=""))
    event = imported(tmp_path / "set", shrink=2)
    assert (event.sprites.rgba == [sprite(number) for number in range(5)]).all()
    assert "scaled by 2" in notes(event, "description")["s.png"]


BAD = {
    "not valid XML": "<tileset",
    "declares XML entities": '<!DOCTYPE tileset [<!ENTITY a "aaaa">]>' + TILES,
    "an impossible tile size": '<tileset tilewidth="0" tileheight="8"><image source="s.png"/></tileset>',
    "possible tile size": '<tileset tilewidth="8" tileheight="8" spacing="-8"><image source="s.png"/></tileset>',
    "no usable sprite": '<tileset tilewidth="8" tileheight="8"><image source="s.png"/></tileset>',
    "lists no sprites": '<tileset tilewidth="99" tileheight="8"><image source="s.png"/></tileset>',
}


@pytest.mark.parametrize("reason", BAD)
def test_an_unusable_tile_set_keeps_its_picture(tmp_path: Path, reason: str) -> None:
    write(tmp_path / "set" / "good.png", sprite(0))
    pixels = np.zeros((16, 16, 4), np.uint8)
    pixels[0, 0] = 255
    write(tmp_path / "set" / "s.png", pixels)
    text = BAD[reason].replace('spacing="0"', "")
    if reason == "no usable sprite":
        text = text.replace('tilewidth="8"', 'tilewidth="8" margin="4"')
    (tmp_path / "set" / "s.tsx").write_text(text)
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("good.png", "s.png") and reasons(event).keys() <= {"s.tsx"}
    assert reason in notes(event, "description")["s.png"]


def test_too_many_tiles(tmp_path: Path) -> None:
    write(tmp_path / "set" / "good.png", sprite(0))
    write(tmp_path / "set" / "s.png", sprite(1, 200))
    (tmp_path / "set" / "s.tsx").write_text('<tileset tilewidth="1" tileheight="1"><image source="s.png"/></tileset>')
    assert "40,000 tiles" in notes(imported(tmp_path / "set", size=200), "description")["s.png"]


@pytest.mark.parametrize("text", ["import React from 'react'", '<tileset name="no image"/>', "<map/>", "export T"])
def test_typescript_and_files_without_tiles_are_ignored(tmp_path: Path, text: str) -> None:
    write(tmp_path / "set" / "s.png", sprite(0))
    (tmp_path / "set" / "s.tsx").write_text(text)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png",) and not event.notes and not event.quarantine
