"""Blending of Aseprite layers, against the formulas of W3C's Compositing and Blending Level 1 in plain floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from studio.data.aseprite.blend import BLEND_FUNCTIONS, draw
from tests.data.ase_making import cel, drawn, layer, noise
from tests.data.making import Pixels

Colour = list[float]  # 0..1
NORMAL, MULTIPLY, SUBTRACT = 0, 1, 17


def screen(b: float, s: float) -> float:
    return b + s - b * s


def hard_light(b: float, s: float) -> float:
    return b * 2 * s if s <= 0.5 else screen(b, 2 * s - 1)


def soft_light(b: float, s: float) -> float:
    if s <= 0.5:
        return b - (1 - 2 * s) * b * (1 - b)
    lighter = ((16 * b - 12) * b + 4) * b if b <= 0.25 else math.sqrt(b)
    return b + (2 * s - 1) * (lighter - b)


SEPARABLE: dict[int, Callable[[float, float], float]] = {
    0: lambda b, s: s,
    1: lambda b, s: b * s,
    2: screen,
    3: lambda b, s: hard_light(s, b),
    4: min,
    5: max,
    6: lambda b, s: 0 if b == 0 else 1 if s == 1 else min(1, b / (1 - s)),  # color dodge
    7: lambda b, s: 1 if b == 1 else 0 if s == 0 else 1 - min(1, (1 - b) / s),  # color burn
    8: hard_light,
    9: soft_light,
    10: lambda b, s: abs(b - s),
    11: lambda b, s: b + s - 2 * b * s,
    16: lambda b, s: min(b + s, 1),
    17: lambda b, s: max(b - s, 0),
    18: lambda b, s: 0 if b == 0 else 1 if s == 0 else min(1, b / s),
}


def lum(c: Colour) -> float:
    return 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2]


def set_lum(c: Colour, wanted: float) -> Colour:
    c = [value + wanted - lum(c) for value in c]
    grey, least, most = lum(c), min(c), max(c)
    if least < -1e-12:
        c = [grey + (value - grey) * grey / (grey - least) for value in c]
    if most > 1 + 1e-12:
        c = [grey + (value - grey) * (1 - grey) / (most - grey) for value in c]
    return c


def sat(c: Colour) -> float:
    return max(c) - min(c)


def set_sat(c: Colour, wanted: float) -> Colour:
    return [(value - min(c)) * wanted / sat(c) if sat(c) else 0 for value in c]


WHOLE: dict[int, Callable[[Colour, Colour], Colour]] = {
    12: lambda b, s: set_lum(set_sat(s, sat(b)), lum(b)),
    13: lambda b, s: set_lum(set_sat(b, sat(s)), lum(b)),
    14: lambda b, s: set_lum(s, lum(b)),
    15: lambda b, s: set_lum(b, lum(s)),
}


def mixture(mode: int, b: Colour, s: Colour) -> Colour:
    if mode in WHOLE:
        return WHOLE[mode](b, s)
    return [SEPARABLE[mode](below, above) for below, above in zip(b, s, strict=True)]


def w3c(mode: int, below: Colour, source: Colour, opacity: float) -> Colour:
    """cs = (1 - ab) Cs + ab B(Cb, Cs), then source over: co = cs as + cb ab (1 - as)."""
    *b, b_alpha = below
    *s, s_alpha = source
    s_alpha *= opacity
    whole = s_alpha + b_alpha - s_alpha * b_alpha
    if not whole:
        return [0, 0, 0, 0]
    mixed = [(1 - b_alpha) * above + b_alpha * mix for above, mix in zip(s, mixture(mode, b, s), strict=True)]
    over = [m * s_alpha + below * b_alpha * (1 - s_alpha) for m, below in zip(mixed, b, strict=True)]
    return [value / whole for value in over] + [whole]


def as_aseprite(mode: int, below: Colour, source: Colour, opacity: float) -> Colour:
    """From what W3C gives on towards what the mixture would give if what is below had no alpha, by the two alphas."""
    result = w3c(mode, below, source, opacity)
    *b, b_alpha = below
    *s, s_alpha = source
    share = s_alpha * opacity / result[3] if result[3] else 0
    towards = [low + (mix - low) * share for low, mix in zip(b, mixture(mode, b, s), strict=True)]
    step = b_alpha * s_alpha * opacity if mode != NORMAL else 0
    return [now + (there - now) * step for now, there in zip(result, towards, strict=False)] + result[3:]


def both(mode: int, below: Pixels, source: Pixels, opacity: int) -> Pixels:
    canvas = below.copy()
    draw(canvas, source, opacity, mode)
    return canvas


def expected(
    formula: Callable[[int, Colour, Colour, float], Colour], mode: int, below: Pixels, source: Pixels, opacity: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    pairs = zip((below.reshape(-1, 4) / 255).tolist(), (source.reshape(-1, 4) / 255).tolist(), strict=True)
    pixels = [formula(mode, b, s, opacity / 255) for b, s in pairs]
    return np.array(pixels).reshape(below.shape) * 255


def test_every_mode_has_a_formula() -> None:
    assert len(BLEND_FUNCTIONS) == 19 and set(SEPARABLE) | set(WHOLE) == set(range(19))


@pytest.mark.parametrize("mode", range(19))
def test_blending_over_opaque_pixels_matches_w3c(mode: int) -> None:
    edges = np.array([0, 1, 63, 64, 127, 128, 254, 255], np.uint8)
    below, source = np.full((2, 20, 20, 4), 255, np.uint8)
    below[..., :3], source[..., :3] = noise(5, 20, 20, 3), noise(6, 20, 20, 3)
    below[:8, :8, :3], source[:8, :8, :3] = edges[:, None, None], edges[None, :, None]
    difference = np.abs(both(mode, below, source, 255) - expected(w3c, mode, below, source, 255))
    assert difference.max() <= (2.01 if mode in WHOLE else 1.01)  # hues are rounded down
    source[..., 3] = noise(7, 20, 20)
    difference = np.abs(both(mode, below, source, 200) - expected(w3c, mode, below, source, 200))
    assert difference.max() <= 3.5 and difference.mean() < 1


@pytest.mark.parametrize("mode", range(19))
@pytest.mark.parametrize("opacity", [255, 128])
def test_blending_over_semi_transparent_pixels(mode: int, opacity: int) -> None:
    below, source = noise(8, 20, 20, 4), noise(9, 20, 20, 4)
    below[..., 3], source[..., 3] = below[..., 3] // 2 + 128, source[..., 3] // 2 + 128
    difference = np.abs(both(mode, below, source, opacity) - expected(as_aseprite, mode, below, source, opacity))
    assert difference.max() <= 4 and difference.mean() < 1
    assert difference[..., 3].max() <= 1.5


@pytest.mark.parametrize("mode", range(19))
def test_blending_over_or_with_transparent_pixels(mode: int) -> None:
    below, source = noise(11, 3, 4, 4), noise(10, 3, 4, 4, least=2)
    result = both(mode, np.zeros_like(below), source, 128)
    assert (result[..., :3] == source[..., :3]).all()
    assert np.abs(result[..., 3] - source[..., 3] * (128 / 255)).max() <= 0.5
    assert (both(mode, below, source, 0) == below).all()
    source[..., 3] = 0
    assert (both(mode, below, source, 255) == below).all()


def test_known_results() -> None:
    """Worked out by hand with Aseprite's whole numbers, which round a product and cut a quotient off."""
    below, source = (np.array([[colour]], np.uint8) for colour in ((100, 200, 10, 255), (200, 100, 30, 128)))
    assert both(NORMAL, below, source, 255).tolist() == [[[150, 150, 20, 255]]]
    assert both(MULTIPLY, below, source, 255).tolist() == [[[89, 139, 6, 255]]]
    assert both(SUBTRACT, below, source, 255).tolist() == [[[50, 150, 5, 255]]]
    clear = np.array([[(100, 200, 10, 51)]], np.uint8)
    assert both(NORMAL, clear, source, 255).tolist() == [[[183, 117, 26, 153]]]
    assert both(MULTIPLY, clear, source, 255).tolist() == [[[155, 111, 19, 153]]]


def test_large_images_are_drawn_in_bands() -> None:
    below, source = noise(13, 300, 700, 4), noise(14, 300, 700, 4)
    once = both(MULTIPLY, below, source, 255)
    rows = [both(MULTIPLY, below[row : row + 1], source[row : row + 1], 255) for row in range(300)]
    assert (once == np.concatenate(rows)).all()


@pytest.mark.parametrize("mode", [1, 10, 16])
def test_layers_and_groups_blend(tmp_path: Path, mode: int) -> None:
    below, source = noise(15, 3, 4, 4, least=1), noise(16, 3, 4, 4, least=1)
    cels = [cel(0, below), cel(1, source)]
    assert (drawn(tmp_path, layer(), layer(mode=mode), *cels) == both(mode, below, source, 255)).all()
    group = [layer(), layer(kind=1, mode=mode, opacity=77), layer(level=1), cel(0, below), cel(2, source)]
    assert (drawn(tmp_path, *group, flags=3) == both(mode, below, source, 77)).all()
    assert (drawn(tmp_path, *group, flags=1) == both(NORMAL, below, source, 255)).all()
