"""What use sprites make of colours, against counting one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from studio.core.events import Progress, Rgba
from studio.data.colour import palette, usage
from studio.data.colour.usage import colours_used, sprites_with
from studio.data.images import canvas
from tests.conftest import make_sprites


def few_colours(count: int = 50, size: int = 6) -> Rgba:
    """Random pixels of twelve colours, some half transparent or not there at all."""
    rng = np.random.default_rng(3)
    colours = rng.integers(0, 256, (12, 4), dtype=np.uint8)
    colours[:9, 3] = 255
    return np.asarray(colours[rng.integers(0, 12, (count, size, size)) * rng.integers(0, 2, (count, 1, 1))])


def counted(rgba: Rgba) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """Opaque pixels, and sprites with such a pixel, of each colour."""
    sprites = [[tuple(pixel) for pixel in sprite.reshape(-1, 4).tolist() if pixel[3] == 255] for sprite in rgba]
    return Counter(pixel for sprite in sprites for pixel in sprite), Counter(p for sprite in sprites for p in {*sprite})


@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_pixels_and_sprites_of_each_colour(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(canvas, "_PIXELS_AT_ONCE", at_once)
    rgba = few_colours()
    pixels, sprites = counted(rgba)
    for limit in (256, 4):
        use = usage.colour_use(rgba, limit)
        listed = [tuple(colour) for colour in use.colours.tolist()]
        assert len(listed) == min(limit, len(pixels)) and (use.total, use.step) == (len(pixels), 1)
        assert [pixels[colour] for colour in listed] == use.pixels.tolist()
        assert use.pixels.tolist() == sorted(pixels.values(), reverse=True)[:limit]
        assert [sprites[colour] for colour in listed] == use.sprites.tolist()


@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_the_sprites_that_use_a_colour(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(canvas, "_PIXELS_AT_ONCE", at_once)
    rgba = np.asfortranarray(few_colours())
    for colour in usage.colour_use(rgba).colours:
        search, said = sprites_with(rgba, colour), []
        try:
            while True:
                said.append(next(search))
        except StopIteration as end:
            found = end.value
        assert found.tolist() == [n for n, sprite in enumerate(rgba) if (sprite == colour).all(-1).any()]
        assert said[-1] == Progress(len(rgba), len(rgba), "sprites looked at")


def test_large_sets_are_estimated_from_every_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palette, "_MOST_PIXELS", 100)
    one = np.zeros((1, 5, 5, 4), np.uint8)
    one[0, :2] = [9, 8, 7, 255]
    use = usage.colour_use(np.broadcast_to(one, (40, 5, 5, 4)))
    assert (use.step, use.total, use.pixels.tolist(), use.sprites.tolist()) == (10, 1, [400], [40])


def test_nothing_to_see_and_no_sprites() -> None:
    for rgba in (np.zeros((3, 4, 4, 4), np.uint8), np.zeros((0, 4, 4, 4), np.uint8)):
        use = usage.colour_use(rgba)
        assert (len(use.colours), len(use.pixels), len(use.sprites), use.total) == (0, 0, 0, 0)
    with pytest.raises(StopIteration) as end:
        next(sprites_with(make_sprites().rgba[:0], np.zeros(4, np.uint8)))
    assert end.value.value.tolist() == []


def test_colours_are_counted_as_they_are_seen() -> None:
    rgba = np.random.default_rng(1).integers(0, 3, (6, 8, 8, 4), dtype=np.uint8) * 100
    rgba[rgba[..., 3] == 0] = 0
    expected = [len({tuple(p[:3]) for p in one.reshape(-1, 4).tolist() if p[3]}) for one in rgba]
    assert colours_used(rgba).tolist() == expected
