"""Sprites that hardly differ are found; others are not."""

from __future__ import annotations

import numpy as np
import pytest

from studio.core.events import Progress
from studio.core.generators import returned
from studio.data.similar import Similar, centred, find_similar
from tests.data.making import Pixels


def drawings(count: int, size: int = 16) -> Pixels:
    """Figures of noise in blocks of two pixels, inside a border of two: uint8 [count, size, size, 4]."""
    made = np.zeros((count, size, size, 4), np.uint8)
    for number in range(count):
        rng = np.random.default_rng(number)
        blocks = rng.integers(0, 256, (size // 2 - 2, size // 2 - 2, 3), dtype=np.uint8)
        inner = made[number, 2:-2, 2:-2]
        inner[..., :3] = blocks.repeat(2, 0).repeat(2, 1)
        inner[..., 3] = 255
    return made


def found_in(sprites: Pixels) -> dict[int, tuple[int, bool, int]]:
    similar: Similar = returned(find_similar(sprites)).earliest()
    rows = zip(similar.second, similar.first, similar.mirrored, similar.changed, strict=True)
    return {int(second): (int(first), bool(mirrored), int(changed)) for second, first, mirrored, changed in rows}


def test_different_drawings_are_not_alike() -> None:
    assert found_in(drawings(60)) == {}


def test_a_moved_a_mirrored_and_a_retouched_copy() -> None:
    known = drawings(20)
    moved = np.roll(known[3], (1, -2), (0, 1))
    mirrored = known[5][:, ::-1]
    retouched = known[7].copy()
    retouched[6, 6:9, :3] = 255 - retouched[6, 6:9, :3]
    both = np.roll(known[9][:, ::-1], (2, 0), (0, 1)).copy()
    both[5, 5, :3] ^= 128
    found = found_in(np.concatenate([known, np.stack([moved, mirrored, retouched, both])]))
    assert found == {20: (3, False, 0), 21: (5, True, 0), 22: (7, False, 3), 23: (9, True, 1)}


def test_a_stray_pixel_at_the_border_moves_nothing() -> None:
    y, x = np.mgrid[:32, :32]
    disc = np.zeros((32, 32, 4), np.uint8)
    disc[..., :3] = (8 * x + 4 * y)[..., None] % 256 // 64 * 60
    disc[..., 3] = np.where((y - 14) ** 2 + (x - 16) ** 2 < 130, 255, 0)
    stray = disc.copy()
    stray[27, 16] = 255  # what can be seen reaches one row further
    assert found_in(np.stack([disc, stray])) == {1: (0, False, 1)}


def test_too_many_changes_make_another_drawing() -> None:
    known = drawings(4)
    other = known[2].copy()
    other[2:5, 2:8, :3] = 255 - other[2:5, 2:8, :3]
    assert found_in(np.concatenate([known, other[None]])) == {}


def test_of_several_the_first_is_named_and_each_is_said_once() -> None:
    known = drawings(3)
    found = found_in(np.concatenate([known, known[1:2], known[1:2, :, ::-1]]))
    assert found == {3: (1, False, 0), 4: (1, True, 0)}
    pairs = returned(find_similar(np.concatenate([known, known[1:2], known[1:2, :, ::-1]])))
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(1, 3), (1, 4), (3, 4)]


@pytest.mark.parametrize("size", [1, 5, 8, 24, 33])
def test_every_canvas_is_looked_at(size: int) -> None:
    sprites = np.random.default_rng(0).integers(0, 256, (3, size, size, 4), dtype=np.uint8)
    events = list(find_similar(sprites))
    assert events and all(isinstance(event, Progress) for event in events)


def test_nothing_and_clear_sprites() -> None:
    assert found_in(np.zeros((0, 8, 8, 4), np.uint8)) == {}
    assert centred(np.zeros((2, 8, 8, 4), np.uint8)).sum() == 0


def test_centring_keeps_every_pixel() -> None:
    one = np.zeros((1, 9, 9, 4), np.uint8)
    one[0, 0:3, 5:9] = np.arange(48, dtype=np.uint8).reshape(3, 4, 4) + 1
    middle = centred(one)
    assert (middle[0, 3:6, 2:6] == one[0, 0:3, 5:9]).all() and (middle > 0).sum() == (one > 0).sum()


def test_words() -> None:
    similar = Similar(np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([False, True, False]), np.array([2, 0, 0]))
    words = [similar.words(pair, "a.png") for pair in range(3)]
    assert words == ["like a.png but for 2 pixels", "like a.png, mirrored", "like a.png, moved"]
