"""Sprites in the colours of a palette, and the palette that sprites have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.data.colour import palette as palette_module
from studio.data.colour.palette import Palette, main_colours, nearest, oklab
from studio.data.colour.snapping import BAYER, DITHERS, NO_DITHER, snap
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


def slow_oklab(colour: list[int]) -> list[float]:
    """Björn Ottosson's code for one colour, number by number."""
    r, g, b = ((v / 255) / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour[:3])
    cones = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    cones_m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    cones_s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return [
        0.2104542553 * cones + 0.7936177850 * cones_m - 0.0040720468 * cones_s,
        1.9779984951 * cones - 2.4285922050 * cones_m + 0.4505937099 * cones_s,
        0.0259040371 * cones + 0.7827717662 * cones_m - 0.8086757660 * cones_s,
    ]


def test_each_pixel_takes_the_nearest_colour() -> None:
    rgba, palette = noise(0), Palette(noise(1)[0, :2].reshape(-1, 4))
    assert {0, 255} <= set(palette.colours[:, 3].tolist())  # what can't be seen is no target
    found = snap(rgba, palette)
    targets = palette.colours[palette.colours[:, 3] > 0].tolist()
    assert found.dtype == np.uint8 and np.array_equal(found[..., 3], rgba[..., 3])
    for before, after in zip(rgba.reshape(-1, 4).tolist(), found.reshape(-1, 4).tolist(), strict=True):
        if before[3] == 0:
            assert after == [0, 0, 0, 0]
            continue
        best = min(targets, key=lambda colour: math.dist(slow_oklab(before), slow_oklab(colour)))
        assert after[:3] == best[:3]


@pytest.mark.parametrize("dither", DITHERS)
def test_small_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch, dither: str) -> None:
    rgba, palette = noise(2, 9), Palette(noise(3)[0].reshape(-1, 4) | np.uint8(1))
    whole, before = snap(rgba, palette, dither), rgba.copy()
    monkeypatch.setattr(canvas, "_PIXELS_AT_ONCE", 70)
    monkeypatch.setattr(palette_module, "_AT_ONCE", 100)
    assert np.array_equal(snap(rgba, palette, dither), whole)
    assert np.array_equal(snap(rgba[:, ::-1], palette)[:, ::-1], snap(rgba, palette))
    assert np.array_equal(rgba, before)


@pytest.mark.parametrize("dither", DITHERS)
def test_what_is_in_the_palette_stays(dither: str) -> None:
    colours = noise(4, 1, 8).reshape(-1, 4)
    colours[:, 3] = 255
    flat = colours.repeat(36, axis=0).reshape(-1, 6, 6, 4)
    assert np.array_equal(snap(flat, Palette(colours), dither), flat)
    assert np.array_equal(snap(flat, Palette(np.concatenate([colours, colours])), dither), flat)


def local_means(rgba: Pixels) -> NDArray[np.float64]:
    """The mean in OKLab of each 4 x 4 pixels of one sprite, whose side is a multiple of four."""
    size = rgba.shape[1]
    return np.asarray(oklab(rgba[0, ..., :3]).reshape(size // 4, 4, size // 4, 4, 3).mean((1, 3)))


@pytest.mark.parametrize(
    ("start", "end", "palette"), [((0, 0, 0), (255, 255, 255), GREYS), ((0, 0, 255), (255, 0, 0), BLUE_TO_RED)]
)
def test_dither_keeps_the_mean_of_a_gradient(start: tuple[int, ...], end: tuple[int, ...], palette: Palette) -> None:
    gradient = np.full((1, 64, 64, 4), 255, np.uint8)
    gradient[..., :3] = np.linspace(start, end, 64).astype(np.uint8)[:, None]
    plain, dithered = (snap(gradient, palette, dither) for dither in (NO_DITHER, BAYER))
    exact = local_means(gradient)
    errors = [np.sqrt(((local_means(found) - exact) ** 2).sum(-1)).mean() for found in (plain, dithered)]
    assert errors[1] < 0.65 * errors[0]
    used = {tuple(colour) for colour in dithered.reshape(-1, 4).tolist()}
    assert used <= {tuple(colour) for colour in palette.colours.tolist()}


def test_dither_mixes_neighbours_alone_and_has_no_seam_where_they_change_places() -> None:
    greys = np.arange(256, dtype=np.uint8)
    ramp = np.full((256, 4, 4, 4), 255, np.uint8)
    ramp[..., :3] = greys[:, None, None, None]
    found = snap(ramp, GREYS, BAYER)[..., 0].astype(int)
    levels = GREYS.colours[:, 0].astype(int)
    for grey, cell in zip(greys.tolist(), found, strict=True):
        near = levels[np.searchsorted(levels, grey, "right") - 1], levels[np.searchsorted(levels, grey)]
        assert set(cell.ravel().tolist()) <= set(near)
    assert (np.diff(found, axis=0) >= 0).all()  # a lighter grey never makes a pixel darker
    assert 8 in (found[30:60] == 90).sum((1, 2))


def test_one_colour_no_sprites_and_nothing_to_see() -> None:
    one = Palette(np.array([[9, 8, 7, 128]], np.uint8))
    rgba = noise(5)
    for dither in DITHERS:
        found = snap(rgba, one, dither)
        assert (found[rgba[..., 3] > 0][:, :3] == [9, 8, 7]).all()
        assert snap(rgba[:0], one, dither).shape == (0, 6, 6, 4)
        assert not snap(np.zeros_like(rgba), one, dither).any()
    with pytest.raises(BadInputError, match="no colour that can be seen"):
        snap(rgba, Palette(np.array([[9, 8, 7, 0]], np.uint8)))


def test_the_nearest_are_found_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    colours, among = rng.random((50, 3)), rng.random((7, 3))
    expected = [min(range(7), key=lambda k: math.dist(colour, among[k])) for colour in colours]
    assert nearest(colours, among).tolist() == expected
    monkeypatch.setattr(palette_module, "_AT_ONCE", 20)
    assert nearest(colours, among).tolist() == expected


def test_main_colours_are_all_or_the_most_used_of_each_kind() -> None:
    sprite = np.zeros((1, 8, 8, 4), np.uint8)
    flat = sprite.reshape(-1, 4)
    flat[:30], flat[30:40] = (200, 0, 0, 255), (0, 0, 200, 255)
    flat[40:42], flat[42] = (204, 2, 0, 255), (0, 4, 204, 255)
    flat[50:] = (0, 255, 0, 128)
    all_of_them = main_colours(sprite, 4)
    assert sorted(all_of_them.tolist()) == [[0, 0, 200, 255], [0, 4, 204, 255], [200, 0, 0, 255], [204, 2, 0, 255]]
    assert sorted(main_colours(sprite, 2).tolist()) == [[0, 0, 200, 255], [200, 0, 0, 255]]
    assert main_colours(sprite, 1).tolist() == [[200, 0, 0, 255]]
    assert main_colours(sprite[:0], 4).shape == (0, 4)


def test_main_colours_of_many_are_as_many_as_were_asked_for() -> None:
    rgba = noise(6, 40, 16)
    for count in (5, 32, 256):
        found = main_colours(rgba, count)
        assert len(found) <= count < 2 * len(found)
        opaque = {tuple(colour) for colour in rgba[rgba[..., 3] == 255].tolist()}
        assert {tuple(colour) for colour in found.tolist()} <= opaque
