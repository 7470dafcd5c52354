"""Mapping to a palette, dithering, and merging of similar colours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.core.generators import run_to_end
from studio.data.colour import palette as palette_module
from studio.data.colour.palette import Palette, to_oklab
from studio.data.colour.quantizing import BAYER, DITHERS, NO_DITHER, map_to_palette, merge_near_colours, oklab_with_toe
from studio.data.images import canvas
from tests.data.making import Pixels

GREYS = Palette(np.array([[value] * 3 + [255] for value in (0, 90, 160, 255)], np.uint8))
BLUE_TO_RED = Palette(np.array([[0, 0, 255, 255], [140, 20, 140, 255], [255, 0, 0, 255]], np.uint8))


def noise(seed: int, count: int = 3, size: int = 6) -> Pixels:
    """Any colours, with every alpha from clear to opaque."""
    rng = np.random.default_rng(seed)
    rgba = rng.integers(0, 256, (count, size, size, 4), np.uint8)
    rgba[..., 3] = rng.choice([0, 1, 128, 255], (count, size, size))
    return rgba


def test_each_pixel_takes_the_nearest_colour() -> None:
    rgba, palette = noise(0), Palette(noise(1)[0, :2].reshape(-1, 4))
    assert {0, 255} <= set(palette.colours[:, 3].tolist())  # transparent colours are not used
    targets = palette.colours[palette.colours[:, 3] > 0, :3]
    apart = np.linalg.norm(to_oklab(rgba[..., None, :3]) - to_oklab(targets), axis=-1)
    expected = np.concatenate([targets[apart.argmin(-1)], rgba[..., 3:]], axis=-1)
    expected[rgba[..., 3] == 0] = 0
    found = map_to_palette(rgba, palette)
    assert found.dtype == np.uint8 and np.array_equal(found, expected)


@pytest.mark.parametrize("dither", DITHERS)
def test_batch_size_changes_nothing(monkeypatch: pytest.MonkeyPatch, dither: str) -> None:
    rgba, palette = noise(2, 9), Palette(noise(3)[0].reshape(-1, 4) | np.uint8(1))
    whole, before = map_to_palette(rgba, palette, dither), rgba.copy()
    monkeypatch.setattr(canvas, "_PIXELS_AT_ONCE", 70)
    monkeypatch.setattr(palette_module, "_AT_ONCE", 100)
    assert np.array_equal(map_to_palette(rgba, palette, dither), whole)
    assert np.array_equal(map_to_palette(rgba[:, ::-1], palette)[:, ::-1], map_to_palette(rgba, palette))
    assert np.array_equal(rgba, before)


@pytest.mark.parametrize("dither", DITHERS)
def test_palette_colours_are_unchanged(dither: str) -> None:
    colours = noise(4, 1, 8).reshape(-1, 4)
    colours[:, 3] = 255
    flat = colours.repeat(36, axis=0).reshape(-1, 6, 6, 4)
    assert np.array_equal(map_to_palette(flat, Palette(colours), dither), flat)
    assert np.array_equal(map_to_palette(flat, Palette(np.concatenate([colours, colours])), dither), flat)


def local_means(rgba: Pixels) -> NDArray[np.float64]:
    """Return the OKLab mean of each block of 4 x 4 pixels; the side is a multiple of four."""
    size = rgba.shape[1]
    return np.asarray(to_oklab(rgba[0, ..., :3]).reshape(size // 4, 4, size // 4, 4, 3).mean((1, 3)))


@pytest.mark.parametrize(
    ("start", "end", "palette"), [((0, 0, 0), (255, 255, 255), GREYS), ((0, 0, 255), (255, 0, 0), BLUE_TO_RED)]
)
def test_dither_keeps_the_mean_of_a_gradient(start: tuple[int, ...], end: tuple[int, ...], palette: Palette) -> None:
    gradient = np.full((1, 64, 64, 4), 255, np.uint8)
    gradient[..., :3] = np.linspace(start, end, 64).astype(np.uint8)[:, None]
    plain, dithered = (map_to_palette(gradient, palette, dither) for dither in (NO_DITHER, BAYER))
    exact = local_means(gradient)
    errors = [np.sqrt(((local_means(found) - exact) ** 2).sum(-1)).mean() for found in (plain, dithered)]
    assert errors[1] < 0.65 * errors[0]
    used = {tuple(colour) for colour in dithered.reshape(-1, 4).tolist()}
    assert used <= {tuple(colour) for colour in palette.colours.tolist()}


def test_dither_mixes_only_neighbours_without_seams() -> None:
    greys = np.arange(256, dtype=np.uint8)
    ramp = np.full((256, 4, 4, 4), 255, np.uint8)
    ramp[..., :3] = greys[:, None, None, None]
    found = map_to_palette(ramp, GREYS, BAYER)[..., 0].astype(int)
    levels = GREYS.colours[:, 0].astype(int)
    for grey, cell in zip(greys.tolist(), found, strict=True):
        near = levels[np.searchsorted(levels, grey, "right") - 1], levels[np.searchsorted(levels, grey)]
        assert set(cell.ravel().tolist()) <= set(near)
    assert (np.diff(found, axis=0) >= 0).all()  # a lighter grey never makes a pixel darker
    assert 8 in (found[30:60] == 90).sum((1, 2))


def test_one_colour_empty_and_transparent_sets() -> None:
    one = Palette(np.array([[9, 8, 7, 128]], np.uint8))
    rgba = noise(5)
    for dither in DITHERS:
        found = map_to_palette(rgba, one, dither)
        assert (found[rgba[..., 3] > 0][:, :3] == [9, 8, 7]).all()
        assert map_to_palette(rgba[:0], one, dither).shape == (0, 6, 6, 4)
        assert not map_to_palette(np.zeros_like(rgba), one, dither).any()


def test_most_used_colours_replace_similar_ones() -> None:
    colours = np.array([[0, 0, 0], [1, 1, 1], [255, 0, 0], [254, 2, 1], [0, 0, 255]], np.uint8)
    counts = np.array([5, 50, 9, 3, 1])
    assert run_to_end(merge_near_colours(colours, counts, 0.05)).tolist() == [1, 1, 2, 2, 4]
    assert run_to_end(merge_near_colours(colours[:0], counts[:0], 0.02)).tolist() == []


def test_merging_equals_a_search_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    colours = np.unique(rng.integers(0, 40, (300, 3), dtype=np.uint8), axis=0)
    counts = rng.integers(1, 100, len(colours))
    distance = 0.02
    becomes = run_to_end(merge_near_colours(colours, counts, distance))
    places = oklab_with_toe(colours)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    staying: list[int] = []
    for index in np.lexsort((np.arange(len(counts)), -counts)):
        near = [other for other in staying if apart[index, other] < distance]
        expected = min(near, key=lambda other: apart[index, other]) if near else index
        assert becomes[index] == expected
        if not near:
            staying.append(int(index))
    assert 10 < len(staying) < len(colours)


def test_blacks_are_close_in_oklab_with_toe() -> None:
    """In OKLab itself, the blackest greys are 0.07 apart."""
    black, white = (
        oklab_with_toe(np.array([[0, 0, 0], [1, 1, 1]], np.uint8)),
        oklab_with_toe(np.array([[255] * 3, [254] * 3])),
    )
    assert np.linalg.norm(black[0] - black[1]) < 0.02 and np.linalg.norm(white[0] - white[1]) < 0.02
    assert np.allclose(oklab_with_toe(np.array([[255] * 3])), [1, 0, 0], atol=1e-6)


def test_very_many_colours_are_merged_in_steps() -> None:
    colours = np.stack(np.unravel_index(np.arange(5000), (20, 20, 20)), 1).astype(np.uint8) * 12
    events = list(merge_near_colours(colours, np.ones(len(colours), np.int64), 0.001))
    assert [event.done for event in events] == [0, 1024, 2048, 3072, 4096]
    assert {(event.total, event.what) for event in events} == {(5000, "colours compared")}
