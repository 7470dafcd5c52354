"""Colours of a set and their counts, compared with counting one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.events import Progress
from studio.core.generators import run_to_end
from studio.data.colour import palette
from studio.data.colour.colour_counts import colours_per_sprite, count_colours, find_sprites_with_colour
from studio.data.colour.palette import display_order, dominant_colours, extract_palette, farthest_colours, to_oklab
from studio.data.images import canvas


def drawn(*counts: tuple[tuple[int, int, int, int], int]) -> Rgba:
    """Return an 8 x 8 sprite with this number of pixels per colour, otherwise transparent."""
    flat = np.zeros((64, 4), np.uint8)
    start = 0
    for colour, count in counts:
        flat[start : start + count] = colour
        start += count
    return flat.reshape(1, 8, 8, 4)


def test_most_used_first_and_only_opaque_ones() -> None:
    rgba = np.concatenate(
        [drawn(((1, 2, 3, 255), 5), ((9, 9, 9, 254), 30)), drawn(((7, 0, 0, 255), 9), ((1, 2, 3, 255), 6))]
    )
    colours, counts = extract_palette(rgba, 10)
    assert colours.tolist() == [[1, 2, 3, 255], [7, 0, 0, 255]] and counts.tolist() == [11, 9]
    assert colours.dtype == np.uint8 and counts.dtype == np.int64
    assert extract_palette(rgba, 1)[0].tolist() == [[1, 2, 3, 255]]
    rgba = drawn(((3, 0, 0, 255), 4), ((1, 0, 0, 255), 4), ((2, 0, 0, 255), 4))
    for view in (rgba, rgba[:, ::-1, ::-1]):  # equal counts
        assert extract_palette(view, 8)[0][:, 0].tolist() == [1, 2, 3]
    for nothing in (rgba[:0], np.zeros_like(rgba)):
        colours, counts = extract_palette(nothing, 4)
        assert colours.shape == (0, 4) and counts.shape == (0,) and display_order(colours).shape == (0,)


def test_display_order_groups_hues() -> None:
    names = ["white", "red", "black", "blue", "dark red", "grey", "dark blue"]
    values = [(255,) * 3, (255, 0, 0), (0,) * 3, (0, 0, 255), (90, 0, 0), (128,) * 3, (0, 0, 90)]
    colours = np.array([(*value, 255) for value in values], np.uint8)
    order = [names[index] for index in display_order(colours)]
    assert order[:3] == ["black", "grey", "white"]
    assert order.index("red") == order.index("dark red") + 1 and order.index("blue") == order.index("dark blue") + 1
    assert sorted(order) == sorted(names)


def test_oklab_equals_published_values() -> None:
    expected = {
        (255, 255, 255): [1, 0, 0],
        (128, 128, 128): [0.59987, 0, 0],
        (10, 10, 10): [0.14478, 0, 0],  # dark: on the linear part of sRGB
        (0, 0, 0): [0, 0, 0],
        (255, 0, 0): [0.62796, 0.22486, 0.12585],
        (0, 255, 0): [0.86644, -0.23389, 0.17950],
        (0, 0, 255): [0.45201, -0.03246, -0.31153],
    }
    assert np.abs(to_oklab(np.array(list(expected), np.uint8)) - list(expected.values())).max() < 1e-4


def test_dominant_colours_are_the_most_used_of_each_cluster() -> None:
    red, blue, like_red, like_blue = (200, 0, 0, 255), (0, 0, 200, 255), (204, 2, 0, 255), (0, 4, 204, 255)
    sprite = drawn((red, 30), (blue, 10), (like_red, 2), (like_blue, 1), ((0, 255, 0, 128), 14))
    assert sorted(map(tuple, dominant_colours(sprite, 4).tolist())) == [blue, like_blue, red, like_red]
    assert sorted(map(tuple, dominant_colours(sprite, 2).tolist())) == [blue, red]
    assert dominant_colours(sprite, 1).tolist() == [list(red)]
    assert dominant_colours(sprite[:0], 4).shape == (0, 4)


def test_dominant_colours_of_many_have_the_requested_count() -> None:
    rgba = np.random.default_rng(6).integers(0, 256, (40, 16, 16, 4), np.uint8)
    rgba[:20, ..., 3] = 255
    for count in (5, 32, 256):
        found = dominant_colours(rgba, count)
        assert len(found) <= count < 2 * len(found)
        opaque = {tuple(colour) for colour in rgba[rgba[..., 3] == 255].tolist()}
        assert {tuple(colour) for colour in found.tolist()} <= opaque


def few_colours(count: int = 50, size: int = 6) -> Rgba:
    """Return random pixels in twelve colours, some semi-transparent or transparent."""
    rng = np.random.default_rng(3)
    colours = rng.integers(0, 256, (12, 4), dtype=np.uint8)
    colours[:9, 3] = 255
    return np.asarray(colours[rng.integers(0, 12, (count, size, size)) * rng.integers(0, 2, (count, 1, 1))])


def counted(rgba: Rgba) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """Count opaque pixels, and sprites, by colour."""
    sprites = [[tuple(pixel) for pixel in sprite.reshape(-1, 4).tolist() if pixel[3] == 255] for sprite in rgba]
    return Counter(pixel for sprite in sprites for pixel in sprite), Counter(p for sprite in sprites for p in {*sprite})


@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_pixels_and_sprites_of_each_colour(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(canvas, "_PIXELS_AT_ONCE", at_once)
    rgba = np.asfortranarray(few_colours())
    pixels, sprites = counted(rgba)
    for limit in (256, 4):
        use = count_colours(rgba, limit)
        listed = [tuple(colour) for colour in use.colours.tolist()]
        assert len(listed) == min(limit, len(pixels)) and (use.total, use.step) == (len(pixels), 1)
        assert [pixels[colour] for colour in listed] == use.pixels.tolist()
        assert use.pixels.tolist() == sorted(pixels.values(), reverse=True)[:limit]
        assert [sprites[colour] for colour in listed] == use.sprites.tolist()
        for colour in use.colours:
            with_it = run_to_end(find_sprites_with_colour(rgba, colour)).tolist()
            assert with_it == [n for n, sprite in enumerate(rgba) if (sprite == colour).all(-1).any()]
            assert [*find_sprites_with_colour(rgba, colour)][-1] == Progress(len(rgba), len(rgba), "sprites searched")


def test_large_sets_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palette, "_MOST_PIXELS", 100)
    one = np.zeros((1, 5, 5, 4), np.uint8)
    one[0, :2] = [9, 8, 7, 255]
    use = count_colours(np.broadcast_to(one, (40, 5, 5, 4)))
    assert (use.step, use.total, use.pixels.tolist(), use.sprites.tolist()) == (10, 1, [400], [40])


def test_transparent_and_empty_sets() -> None:
    for rgba in (np.zeros((3, 4, 4, 4), np.uint8), np.zeros((0, 4, 4, 4), np.uint8)):
        use = count_colours(rgba)
        assert (len(use.colours), len(use.pixels), len(use.sprites), use.total) == (0, 0, 0, 0)
        assert not len(run_to_end(find_sprites_with_colour(rgba[:0], np.zeros(4, np.uint8))))


def test_colour_counts_ignore_alpha() -> None:
    rgba = np.random.default_rng(1).integers(0, 3, (6, 8, 8, 4), dtype=np.uint8) * 100
    rgba[rgba[..., 3] == 0] = 0
    expected = [len({tuple(p[:3]) for p in one.reshape(-1, 4).tolist() if p[3]}) for one in rgba]
    assert colours_per_sprite(rgba).tolist() == expected


def test_farthest_colours_are_within_twice_the_optimum() -> None:
    """Gonzalez 1985: no colour is farther from the selected ones than they are from each other; their order is kept."""
    colours = np.random.default_rng(3).integers(0, 256, (300, 4), np.uint8)
    few = farthest_colours(colours, 20)
    places = [int(np.flatnonzero((colours == one).all(1))[0]) for one in few]
    assert places == sorted(places) and places[0] == 0 and len(set(places)) == 20
    between = np.linalg.norm(to_oklab(few[:, None, :3]) - to_oklab(few[:, :3]), axis=2)
    farthest = np.linalg.norm(to_oklab(colours[:, None, :3]) - to_oklab(few[:, :3]), axis=2).min(1).max()
    assert farthest <= between[~np.eye(20, dtype=bool)].min()
    assert farthest_colours(colours, 300) is colours
