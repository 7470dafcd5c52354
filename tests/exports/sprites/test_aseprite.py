"""Aseprite files, taken apart field by field as the specification says, by nothing of the studio's."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import ExportError
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from studio.exports.sprites.formats import sprite_exports
from tests.data.making import imported
from tests.exports.sprites.making import BLUE, GREEN, RED, many_coloured, notes, of_colours, written

LAYER, CEL, PROFILE, TAGS, PALETTE, USER_DATA = 0x2004, 0x2005, 0x2007, 0x2018, 0x2019, 0x2020
CLASSES = ("item/sword", "cup", "", "item/sword", "cup", "item/sword")
Chunks = list[tuple[int, bytes]]


def frames_of(data: bytes) -> Iterator[tuple[int, Chunks]]:
    """Milliseconds and chunks of each frame; all sizes and counts must fit."""
    size, magic, count = struct.unpack_from("<IHH", data)
    assert (size, magic) == (len(data), 0xA5E0)
    start = 128
    for _ in range(count):
        length, magic, old, duration_ms, new = struct.unpack_from("<IHHHxxI", data, start)
        assert magic == 0xF1FA and old == new
        chunks, place = [], start + 16
        for _ in range(new):
            inside, kind = struct.unpack_from("<IH", data, place)
            chunks.append((kind, data[place + 6 : place + inside]))
            place += inside
        start += length
        assert place == start
        yield duration_ms, chunks
    assert start == len(data)


def pixels_of(chunks: Chunks) -> bytes:
    (cel,) = (body for kind, body in chunks if kind == CEL)
    assert struct.unpack_from("<HhhBHh", cel) == (0, 0, 0, 255, 2, 0)
    return zlib.decompress(cel[20:])


def tags_of(chunks: Chunks) -> list[tuple[int, int, str]]:
    (body,) = (body for kind, body in chunks if kind == TAGS)
    found, place = [], 10
    for _ in range(struct.unpack_from("<H", body)[0]):
        first, last, direction, repeat = struct.unpack_from("<HHBH", body, place)
        (length,) = struct.unpack_from("<H", body, place + 17)
        assert direction == repeat == 0  # forward, for ever
        found.append((first, last, body[place + 19 : place + 19 + length].decode()))
        place += 19 + length
    assert place == len(body)
    return found


def colours_of(chunks: Chunks) -> list[tuple[int, ...]]:
    (body,) = (body for kind, body in chunks if kind == PALETTE)
    count, first, last = struct.unpack_from("<III", body)
    assert (first, last) == (0, count - 1) and len(body) == 20 + 6 * count
    return [struct.unpack_from("<H4B", body, 20 + 6 * number)[1:] for number in range(count)]


def test_few_colours_are_indexed(tmp_path: Path) -> None:
    sprites = of_colours(RED, GREEN, BLUE, RED, GREEN, BLUE)
    palette = np.array([GREEN, (5, 5, 5), RED], np.uint8)
    given = SpriteSet(sprites, classes=CLASSES, palette=palette, duration_ms=80, about={"seed": 7})
    data = written("aseprite", given, tmp_path).read_bytes()
    assert struct.unpack_from("<HHHHIH", data, 6) == (6, 6, 6, 8, 1, 80)
    assert data[28] == 0 and struct.unpack_from("<HBB", data, 32) == (5, 1, 1)  # transparent, colours, square pixels
    frames = list(frames_of(data))
    assert [kind for kind, _ in frames[0][1]] == [PROFILE, PALETTE, USER_DATA, LAYER, TAGS, CEL]
    assert all([kind for kind, _ in chunks] == [CEL] for _, chunks in frames[1:])
    table = colours_of(frames[0][1])
    assert table == [(0, 0, 0, 0), (*GREEN, 255), (5, 5, 5, 255), (*RED, 255), (*BLUE, 255)]
    order = [0, 3, 5, 1, 4, 2]  # class by class
    for place, (duration_ms, chunks) in zip(order, frames, strict=True):
        numbers = np.frombuffer(pixels_of(chunks), np.uint8).reshape(6, 6)
        assert duration_ms == 80 and np.array_equal(np.array(table, np.uint8)[numbers], sprites[place])
    assert tags_of(frames[0][1]) == [(0, 2, "item/sword"), (3, 4, "cup")]


@pytest.mark.parametrize("soft", [True, False])
def test_soft_alpha_and_many_colours_are_rgba(soft: bool, tmp_path: Path) -> None:
    sprites = of_colours((*RED, 90), GREEN) if soft else many_coloured(2, 16)
    given = SpriteSet(sprites, classes=["a", ""])
    data = written("aseprite", given, tmp_path).read_bytes()
    assert struct.unpack_from("<H", data, 12) == (32,)
    frames = list(frames_of(data))
    assert [pixels_of(chunks) for _, chunks in frames] == [sprite.tobytes() for sprite in sprites]
    assert len(colours_of(frames[0][1])) == (3 if soft else 256) and tags_of(frames[0][1]) == [(0, 0, "a")]
    why = "16 semi-transparent pixels" if soft else "512 colours"
    assert why in notes("aseprite", given)


@pytest.mark.parametrize(("classes", "tag"), [((), "animation"), (["cup"] * 3, "cup"), (["a", "b", "a"], "animation")])
def test_an_animation_has_one_tag_and_keeps_its_order(classes: list[str], tag: str, tmp_path: Path) -> None:
    sprites = of_colours(RED, GREEN, BLUE)
    given = SpriteSet(sprites, classes=classes, is_animation=True, duration_ms=40, hold_ms=960)
    frames = list(frames_of(written("aseprite", given, tmp_path).read_bytes()))
    assert [duration_ms for duration_ms, _ in frames] == [40, 40, 1000]
    assert tags_of(frames[0][1]) == [(0, 2, tag)]
    first, *_ = (np.frombuffer(pixels_of(chunks), np.uint8).reshape(6, 6)[2, 2] for _, chunks in frames)
    assert colours_of(frames[0][1])[first][:3] == RED


def test_the_sprite_has_a_note_on_its_origin(tmp_path: Path) -> None:
    given = SpriteSet(of_colours(RED), about={"model": "naïve 剣", "long": "剣" * 30_000})
    ((_, chunks),) = frames_of(written("aseprite", given, tmp_path).read_bytes())
    (about,) = (body for kind, body in chunks if kind == USER_DATA)
    flags, length = struct.unpack_from("<IH", about)
    assert flags == 1 and length == len(about) - 6
    assert about[6:].decode().startswith("Sprite Training Studio\nmodel: naïve 剣\nlong: 剣剣")


def test_too_many_frames_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="not 65,536"):
        written("aseprite", SpriteSet(np.zeros((1 << 16, 1, 1, 4), np.uint8)), tmp_path)


WALK = ("down/1", "down/2", "down/3", "up-left/1", "up-left/2")


def test_cells_have_a_tag_per_row_and_an_empty_frame_for_a_gap(tmp_path: Path) -> None:
    sprites = of_colours(RED, GREEN, BLUE)
    cells = Cells(WALK, np.array([[0, GAP, 1, 2, GAP]], np.int32))
    given = SpriteSet(sprites, cells=cells, duration_ms=90, own_durations_ms=[70, 80, 100])
    data = written("aseprite", given, tmp_path).read_bytes()
    frames = list(frames_of(data))
    assert tags_of(frames[0][1]) == [(0, 2, "down"), (3, 3, "up-left")]
    assert [duration_ms for duration_ms, _ in frames] == [70, 90, 80, 100] and frames[1][1] == []
    table = np.array(colours_of(frames[0][1]), np.uint8)
    drawn = [np.frombuffer(pixels_of(frames[place][1]), np.uint8).reshape(6, 6) for place in (0, 2, 3)]
    assert all(np.array_equal(table[indices], sprite) for indices, sprite in zip(drawn, sprites, strict=True))


def test_an_import_restores_exported_sets(tmp_path: Path) -> None:
    sprites = many_coloured(11, 8)  # 704 colours, at most 256 in each of the last two sets
    table = np.array([[0, 1, 0, 2, 3], [4, GAP, 5, 6, GAP], [7, 8, 9, GAP, 10]], np.int32)
    given = SpriteSet(sprites, cells=Cells(WALK, table, ("orc", "elf", "big imp")))
    paths = sprite_exports()["aseprite"].write(given, tmp_path / "art")
    assert [path.name for path in paths] == ["art-orc.aseprite", "art-elf.aseprite", "art-big-imp.aseprite"]
    assert "256 colours" in notes("aseprite", given)
    found = imported(tmp_path, size=8).sprites
    assert found.sets.sets == ("art-big-imp", "art-elf", "art-orc") and found.sets.cells == WALK
    for own, expected in zip(found.sets.table, table[[2, 1, 0]], strict=True):
        assert (own == GAP).tolist() == (expected == GAP).tolist()
        assert np.array_equal(found.rgba[own[own != GAP]], sprites[expected[expected != GAP]])
