"""Tile sets whose pictures are in other folders."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.atlases import base, picture_list
from studio.data.atlases.picture_list import TileGrid
from studio.data.atlases.tiled import TiledTileSet
from studio.data.files.source_files import SourceFile
from studio.data.reading.finding import locate_sprites
from tests.data.making import Pixels, found, imported, notes, reasons, sprite, write

TSX = '<tileset tilewidth="8" tileheight="8"><image source="{}"/><tile id="0" class="gem"/></tileset>'


def two_tiles(seed: int = 0) -> Pixels:
    return np.concatenate([sprite(seed), sprite(seed + 1)], axis=1)


def project(folder: Path, description: str, path: str) -> Path:
    """Write 'art/s.png' and a picture of equal name in another folder, and a tile set."""
    write(folder / "art" / "s.png", two_tiles())
    write(folder / "more" / "s.png", two_tiles(2))
    (folder / description).parent.mkdir(exist_ok=True)
    (folder / description).write_text(TSX.format(path))
    return folder


GODOT = (
    '[gd_resource type="TileSet" format=3]\n\n[ext_resource type="Texture2D" path="res://pics/s.png" id="1"]\n\n'
    '[sub_resource type="TileSetAtlasSource" id="a"]\ntexture = ExtResource("1")\n'
    "texture_region_size = Vector2i(8, 8)\n0:0/0 = 0\n1:0/0 = 0\n1:0/1 = 1\n1:0/1/flip_h = true\n"
)
TILES = ("art/s.png#gem/tile 0", "art/s.png#tile 1")


@pytest.mark.parametrize(
    ("description", "path"),
    [("maps/a.tsx", "../art/s.png"), ("a.tsx", "art/S.png"), ("maps/a.tsx", "..\\art\\x\\..\\s.png")],
)
def test_a_tile_set_in_another_folder(tmp_path: Path, description: str, path: str) -> None:
    folder = project(tmp_path / "set", description, path)
    event = imported(folder, size=16)
    assert event.sprites.names == (*TILES, "more/s.png") and not event.quarantine
    assert event.sprites.class_names == ("art/gem", "art/s", "more")
    packed = imported(Path(shutil.make_archive(str(folder), "zip", folder)), size=16)
    assert packed.sprites.names == event.sprites.names
    several = imported(folder / "art", folder / description if "/" not in description else folder / "maps", size=16)
    assert several.sprites.names == TILES


@pytest.mark.parametrize("path", ["../art/t.png", "/art/s.png", "C:/art/s.png", "../../art/s.png", "", "..", "s.png"])
def test_paths_to_other_pictures(tmp_path: Path, path: str) -> None:
    event = imported(project(tmp_path / "set", "maps/a.tsx", path), size=16)
    assert event.sprites.names == ("art/s.png", "more/s.png")


LDTK = {"__cWid": 2, "pxWid": 16, "pxHei": 8, "tileGridSize": 8, "relPath": "../art/s.png"}


@pytest.mark.parametrize(
    ("name", "text", "picture"),
    [
        ("a.tsx", TSX.format("../art/s.png"), "art/s.png"),
        ("a.tmx", '<map><tileset firstgid="1" source="../sets/b.tsx"/></map>', "art/s.png"),
        ("a.ldtk", json.dumps({"jsonVersion": "1.5.3", "defs": {"tilesets": [LDTK]}}), "art/s.png"),
        ("a.tres", GODOT, "s.png"),
    ],
)
def test_a_tile_set_alone_opens_with_its_pictures(tmp_path: Path, name: str, text: str, picture: str) -> None:
    folder = project(tmp_path / "set", "sets/b.tsx", "../art/s.png")
    main = folder / "maps" / name
    main.parent.mkdir()
    main.write_text(text)
    shutil.copy(folder / "art" / "s.png", folder / "maps" / "s.png")
    event = imported(main, size=16)
    assert len(event.sprites.names) == 2 and all(each.startswith(f"{picture}#") for each in event.sprites.names)
    assert not event.quarantine
    assert locate_sprites([main], event.sprites.names) == [(folder if "/" in picture else folder / "maps") / picture]
    (folder / picture if "/" in picture else folder / "maps" / picture).unlink()
    (folder / "secret.txt").write_text("no picture")
    main.write_text(text.replace("s.png", "../secret.txt"))
    with pytest.raises(BadInputError):
        imported(main, size=16)


def test_the_remark_names_the_tile_set_elsewhere(tmp_path: Path) -> None:
    folder = project(tmp_path / "set", "maps/a.tsx", "../art/s.png")
    sheet = np.zeros((15, 16, 4), np.uint8)
    sheet[:8], sheet[8:] = two_tiles(), 255
    write(folder / "art" / "s.png", sheet)
    (reason,) = notes(imported(folder, size=16), "partly described").values()
    assert "2 sprites described in ../maps/a.tsx: " in reason


def test_each_tile_set_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tsx").write_text(TSX.format("7.png"))
    files = [found(write(tmp_path / f"{number}.png", sprite(number))) for number in range(10)]
    shared = found(tmp_path / "0.png").siblings
    read = []

    def counted(file: SourceFile, name: str) -> bytes:
        read.append(name)
        return base.read_description(file, name)

    monkeypatch.setattr(picture_list, "read_description", counted)
    form = TiledTileSet()
    atlases = [form.read(replace(file, siblings=shared)) for file in files]
    assert [number for number, atlas in enumerate(atlases) if atlas] == [7] and read == ["a.tsx"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.tsx", TSX.format("../../s.png"), "'../../s.png' lies outside the imported folder"),
        ("a.tsx", TSX.format("/home/me/s.png"), "'/home/me/s.png' lies outside the imported folder"),
        ("a.tmx", f"<map>{TSX.format('gone.png')}</map>", "'gone.png' is missing"),
        ("a.tsx", "<tileset", "a.tsx is not valid XML"),
        ("a.tsx", "<!DOCTYPE a [<!ENTITY b 'c'>]><tileset/>", "a.tsx declares XML entities"),
        ("a.ldtk", '{"jsonVersion": "2.0.0"}', "a.ldtk is from LDtk 2.0.0"),
        ("a.ldtk", " " * ((8 << 20) + 1), "a.ldtk is larger than 8 MB"),
        ("a.tsx", TSX.format("../art/S.png"), ""),
        ("a.tsx", TSX.format("plain.png"), ""),
        ("a.tsx", "export const a = 1", ""),
    ],
)
def test_an_unusable_tile_set_is_listed(tmp_path: Path, name: str, text: str, reason: str) -> None:
    write(tmp_path / "set" / "art" / "s.png", two_tiles())
    write(tmp_path / "set" / "maps" / "plain.png", sprite(5))
    (tmp_path / "set" / "maps" / name).write_text(text)
    event = imported(tmp_path / "set", size=16)
    assert list(reasons(event)) == ([f"maps/{name}"] if reason else []) and len(event.sprites) >= 2
    assert reason in "".join(reasons(event).values())


def test_a_claim_of_billions_of_columns_takes_no_time() -> None:
    tiles = TileGrid("meadow.ldtk", (8, 8), columns=1 << 60).regions(16, 16)
    assert [tile.box for tile in tiles] == [base.Box(x, y, 8, 8) for y in (0, 8) for x in (0, 8)]
