"""Strokes compared with Pillow, undo and redo, and saved edits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from studio.core.arrays import Rgba
from studio.data.pixels.editing import (
    EditedSprite,
    EditHistory,
    SavedEdit,
    flood_fill_mask,
    line_mask,
    rectangle_mask,
    same_colour_mask,
)
from tests.conftest import make_sprites

SPRITE = make_sprites(1, size=16).rgba[0]


def _blocks(size: int, colours: int, seed: int) -> Rgba:
    """Return patches in a few colours, some transparent in several colours."""
    rng = np.random.default_rng(seed)
    rgba = rng.integers(0, 256, (colours, 4), np.uint8)[rng.integers(0, colours, (size, size))]
    rgba[..., 3] = np.where(rgba[..., 3] > 100, 255, 0)
    return rgba


@pytest.mark.parametrize("seed", range(8))
def test_flood_fill_equals_pillows(seed: int) -> None:
    size = 12 + seed
    rgba = _blocks(size, 3, seed)
    picture = rgba.copy()
    picture[picture[..., 3] == 0] = 0
    for x, y in ((0, 0), (size - 1, 3), (5, size // 2)):
        filled = Image.fromarray(picture).copy()  # a writable copy
        ImageDraw.floodfill(filled, (x, y), (1, 2, 3, 4))
        expected = (np.asarray(filled) == [1, 2, 3, 4]).all(-1)
        np.testing.assert_array_equal(flood_fill_mask(rgba, (x, y)), expected)
        np.testing.assert_array_equal(same_colour_mask(rgba, (x, y)), (picture == picture[y, x]).all(-1))


def test_flood_fill_follows_a_spiral() -> None:
    size, rgba = 31, np.zeros((31, 31, 4), np.uint8)
    rgba[...] = [9, 9, 9, 255]
    x = y = 0
    turn, length = [(1, 0), (0, 1), (-1, 0), (0, -1)], size - 1
    places = [(0, 0)]
    for side in range(26):
        for _ in range(length):
            x, y = x + turn[side % 4][0], y + turn[side % 4][1]
            places.append((x, y))
        length -= 2 * (side % 2) if side else 0
    for place in places:
        rgba[place[1], place[0]] = [200, 0, 0, 255]
    assert flood_fill_mask(rgba, (0, 0))[y, x]
    np.testing.assert_array_equal(flood_fill_mask(rgba, (0, 0)), same_colour_mask(rgba, (0, 0)))


@pytest.mark.parametrize(("start", "end"), [((1, 1), (1, 1)), ((0, 3), (15, 3)), ((2, 14), (2, 0)), ((0, 0), (15, 15))])
def test_straight_lines_equal_pillows(start: tuple[int, int], end: tuple[int, int]) -> None:
    picture = Image.new("1", (16, 16))
    ImageDraw.Draw(picture).line([start, end], 1)
    np.testing.assert_array_equal(line_mask(start, end, 16), np.asarray(picture))


@pytest.mark.parametrize("end", [(13, 4), (3, 15), (-6, 9), (40, -3)])
def test_lines_have_no_gaps(end: tuple[int, int]) -> None:
    found = line_mask((7, 7), end, 64 + 16)
    ys, xs = np.nonzero(found)
    assert found[7, 7] and len(xs) <= max(abs(end[0] - 7), abs(end[1] - 7)) + 1
    if min(end) >= 0:
        assert found[end[1], end[0]] and len(xs) == max(abs(end[0] - 7), abs(end[1] - 7)) + 1
    order = np.argsort(xs if abs(end[0] - 7) > abs(end[1] - 7) else ys)
    assert (np.abs(np.diff(xs[order])) <= 1).all() and (np.abs(np.diff(ys[order])) <= 1).all()


@pytest.mark.parametrize("brush", [1, 2, 5, 8])
def test_brush_is_a_centred_square(brush: int) -> None:
    found = line_mask((8, 8), (8, 8), 20, brush)
    ys, xs = np.nonzero(found)
    assert found.sum() == brush**2 and found[8, 8]
    assert xs.max() - xs.min() == ys.max() - ys.min() == brush - 1
    assert line_mask((0, 0), (0, 0), 20, brush).sum() == (brush // 2 + 1) ** 2  # clipped to the sprite


def test_rectangle_includes_corners_and_is_clipped() -> None:
    picture = Image.new("1", (16, 16))
    ImageDraw.Draw(picture).rectangle((3, 5, 9, 12), 1)
    for start, end in (((3, 5), (9, 12)), ((9, 5), (3, 12)), ((9, 12), (3, 5))):
        np.testing.assert_array_equal(rectangle_mask(start, end, 16), np.asarray(picture))
    assert rectangle_mask((-5, -5), (2, 0), 16).sum() == 3 and rectangle_mask((-5, -5), (-1, 30), 16).sum() == 0


def test_undo_and_redo() -> None:
    first = EditedSprite.of(SPRITE)
    history = EditHistory(SavedEdit(first, "gem"))
    hidden = first.with_keep(rectangle_mask((0, 0), (7, 7), 16), stays=False)
    assert hidden.keep.sum() == 16 * 16 - 64 and history.push(hidden)
    red = hidden.paint(line_mask((0, 0), (3, 0), 16), np.array([255, 0, 0, 255], np.uint8))
    assert history.push(red) and not history.push(EditedSprite(red.sprite.copy(), red.keep.copy()))
    assert (red.sprite[0, :4] == [255, 0, 0, 255]).all() and np.array_equal(red.sprite[1:], SPRITE[1:])
    history.undo()
    assert history.now.edit is hidden
    history.redo()
    assert history.now.edit is red
    for _ in range(3):
        history.undo()
    assert history.now.edit is first
    history.redo()
    assert history.now.edit is hidden
    history.push(first)
    pushed = history.now
    history.redo()
    assert history.now is pushed
    for step in range(150):
        history.push(first.with_keep(line_mask((step % 16, step // 16), (step % 16, step // 16), 16), stays=False))
    undone = set()
    for _ in range(150):
        history.undo()
        undone.add(id(history.now))
    assert len(undone) == 100


def test_switching_sprites_can_be_undone() -> None:
    history = EditHistory(SavedEdit(EditedSprite.of(SPRITE), "gem", "item/gem"))
    history.push(EditedSprite.of(SPRITE).with_keep(rectangle_mask((0, 0), (7, 7), 16), stays=False))
    edited, other = history.now, SavedEdit(EditedSprite.of(make_sprites(1, size=8).rgba[0]), "sword")
    history.open(other)
    assert not other.is_same_sprite(edited) and history.now is other
    history.undo()
    assert history.now is edited and history.now.is_same_sprite(SavedEdit(EditedSprite.of(SPRITE), "gem", "item/gem"))
    history.redo()
    assert history.now is other


def test_edit_survives_json_and_damage_is_reported() -> None:
    edit = EditedSprite.of(SPRITE).with_keep(_blocks(16, 2, 0)[..., 3] > 0, stays=False)
    kept = SavedEdit.from_json(SavedEdit(edit, "gem “1”", "item/gem").to_json())
    assert kept.edit.equals(edit) and (kept.name, kept.class_name) == ("gem “1”", "item/gem")
    good = json.loads(kept.to_json())
    for name, value in (("size", 15), ("size", -1), ("sprite", "zz"), ("sprite", "00"), ("keep", ""), ("name", 3)):
        with pytest.raises(ValueError, match=r"\S"):
            SavedEdit.from_json(json.dumps({**good, name: value}).encode())
    for text in (b"", b"[]", b"\xff", b"{}"):
        with pytest.raises(ValueError, match=r"\S"):
            SavedEdit.from_json(text)
