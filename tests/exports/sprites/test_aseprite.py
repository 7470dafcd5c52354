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


def test_the_whole_sprite_says_what_made_it(tmp_path: Path) -> None:
    given = SpriteSet(of_colours(RED), about={"model": "naïve 剣", "long": "剣" * 30_000})
    ((_, chunks),) = frames_of(written("aseprite", given, tmp_path).read_bytes())
    (about,) = (body for kind, body in chunks if kind == USER_DATA)
    flags, length = struct.unpack_from("<IH", about)
    assert flags == 1 and length == len(about) - 6
    assert about[6:].decode().startswith("Sprite Training Studio\nmodel: naïve 剣\nlong: 剣剣")


def test_too_many_frames_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="not 65,536"):
        written("aseprite", SpriteSet(np.zeros((1 << 16, 1, 1, 4), np.uint8)), tmp_path)
