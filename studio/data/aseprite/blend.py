"""Drawing one picture over another as Aseprite does, to the bit where it calculates in whole numbers.

Colours and alpha are 0..255; b is below, s is drawn, and a product is p(x, y) = x y / 255, rounded. Normal, with S the
alpha of s times the opacity and B the alpha of b: the alpha is R = S + B - p(B, S), each colour b + (s - b) S / R.
The others replace s by a mixture f(b, s), listed below, which is that of W3C's Compositing and Blending Level 1 (the
last three are Aseprite's own). Over what is half-transparent Aseprite departs from W3C: from the normal result it goes
towards that with f(b, s) by B / 255, which is where W3C stops, and then once more by p(B, S) / 255. Over nothing all
of them are normal. Its formulas are in src/doc/blend_funcs.cpp of github.com/aseprite/aseprite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba

Colours = NDArray[np.int32]  # [N, 3], or [N, 1] for one value a pixel
Shades = NDArray[np.float64]  # [N, 3], 0..1
Mixture = Callable[[Colours, Colours], Colours]

_LUMA = np.array([[0.3], [0.59], [0.11]])
_BAND_PIXELS = 1 << 16  # drawn at once: what lies between takes some 100 bytes a pixel


def bands(height: int, width: int) -> Iterator[slice]:
    """Rows from the top down, in runs of few enough pixels."""
    rows = max(_BAND_PIXELS // max(width, 1), 1)
    for start in range(0, height, rows):
        yield slice(start, min(start + rows, height))


def product(first: Colours, second: Colours | int) -> Colours:
    """first * second / 255, rounded, for products of either sign."""
    scaled: Colours = first * second + 128
    return (scaled + (scaled >> 8)) >> 8


def draw(canvas: Rgba, source: Rgba, opacity: int, mode: int) -> None:
    """Draw `source` over `canvas` in place, both uint8 [H, W, 4] of straight alpha. `mode` is one of MIXTURES."""
    for rows in bands(*canvas.shape[:2]):
        _draw_band(canvas[rows], source[rows], opacity, MIXTURES[mode])


def _draw_band(canvas: Rgba, source: Rgba, opacity: int, mixture: Mixture | None) -> None:
    alpha = product(source[..., 3].astype(np.int32), opacity)
    copied = canvas[..., 3] == 0
    if mixture is None:
        copied |= alpha == 255
    mixed = ~copied & (alpha > 0)
    copied &= alpha > 0
    over = canvas[mixed].astype(np.int32)
    canvas[copied, :3] = source[copied, :3]
    canvas[copied, 3] = alpha[copied]
    if len(over):
        canvas[mixed] = _mixed(over, source[mixed][:, :3].astype(np.int32), alpha[mixed][:, None], mixture)


def _mixed(below: Colours, source: Colours, alpha: Colours, mixture: Mixture | None) -> Colours:
    """Colours and alpha [N, 4] of `source` [N, 3] with `alpha` [N, 1] over `below` [N, 4], none of it transparent."""
    below_alpha = below[:, 3:]
    below = below[:, :3]
    whole = alpha + below_alpha - product(below_alpha, alpha)
    colours = _over(below, source, alpha, whole)
    if mixture is not None:
        blended = _over(below, mixture(below, source), alpha, whole)
        colours += product(blended - colours, below_alpha)
        colours += product(blended - colours, product(below_alpha, alpha))
    return np.concatenate([colours, whole], axis=1)


def _over(below: Colours, source: Colours, alpha: Colours, whole: Colours) -> Colours:
    step = (source - below) * alpha / whole
    return below + step.astype(np.int32)  # which cuts off, towards `below`


def _screen(b: Colours, s: Colours) -> Colours:
    return b + s - product(b, s)


def _overlay(b: Colours, s: Colours) -> Colours:
    return _hard_light(s, b)


def _color_dodge(b: Colours, s: Colours) -> Colours:
    return _ratio(b, 255 - s)


def _color_burn(b: Colours, s: Colours) -> Colours:
    return 255 - _ratio(255 - b, s)


def _hard_light(b: Colours, s: Colours) -> Colours:
    return np.where(s < 128, product(b, 2 * s), _screen(b, 2 * s - 255))


def _soft_light(b: Colours, s: Colours) -> Colours:
    x, y = b / 255, s / 255
    lighter = np.where(x <= 0.25, ((16 * x - 12) * x + 4) * x, np.sqrt(x))
    shades = np.where(y <= 0.5, x - (1 - 2 * y) * x * (1 - x), x + (2 * y - 1) * (lighter - x))
    return (shades * 255 + 0.5).astype(np.int32)


def _difference(b: Colours, s: Colours) -> Colours:
    return np.where(b < s, s - b, b - s)


def _exclusion(b: Colours, s: Colours) -> Colours:
    mixed: Colours = b + s - 2 * product(b, s)
    return mixed


def _hue(b: Colours, s: Colours) -> Colours:
    below = b / 255
    return _with_luma(_with_saturation(s / 255, _spread(below)), _luma(below))


def _saturation(b: Colours, s: Colours) -> Colours:
    below = b / 255
    return _with_luma(_with_saturation(below, _spread(s / 255)), _luma(below))


def _color(b: Colours, s: Colours) -> Colours:
    return _with_luma(s / 255, _luma(b / 255))


def _luminosity(b: Colours, s: Colours) -> Colours:
    return _with_luma(b / 255, _luma(s / 255))


def _addition(b: Colours, s: Colours) -> Colours:
    return np.where(b + s < 255, b + s, 255)


def _subtract(b: Colours, s: Colours) -> Colours:
    return np.where(b > s, b - s, 0)


def _ratio(first: Colours, second: Colours) -> Colours:
    """first / second in 255ths: 0 for nothing, else no more than 255. Divide, and what dodge and burn are made of."""
    divisor = np.maximum(second, 1)
    quotient: Colours = np.where(first >= second, 255, (first * 255 + divisor // 2) // divisor)
    return np.where(first == 0, 0, quotient)


def _luma(shades: Shades) -> Shades:
    luma: Shades = shades @ _LUMA
    return luma


def _spread(shades: Shades) -> Shades:
    """What W3C calls saturation."""
    spread: Shades = np.ptp(shades, axis=1, keepdims=True)
    return spread


def _with_saturation(shades: Shades, wanted: Shades) -> Shades:
    spread = _spread(shades)
    scaled: Shades = (shades - shades.min(axis=1, keepdims=True)) * wanted / np.where(spread > 0, spread, 1)
    return scaled


def _with_luma(shades: Shades, wanted: Shades) -> Colours:
    """`shades` made lighter or darker to `wanted`, and drawn towards grey where they would leave 0..1."""
    shades = shades + wanted - _luma(shades)
    grey = _luma(shades)
    least, most = shades.min(axis=1, keepdims=True), shades.max(axis=1, keepdims=True)
    too_dark, too_light = (least < 0) & (grey > least), (most > 1) & (most > grey)
    shades = np.where(too_dark, grey + (shades - grey) * grey / np.where(too_dark, grey - least, 1), shades)
    shades = np.where(too_light, grey + (shades - grey) * (1 - grey) / np.where(too_light, most - grey, 1), shades)
    return np.clip(shades * 255, 0, 255).astype(np.int32)


# By the numbers that files have for them; None is normal.
MIXTURES: tuple[Mixture | None, ...] = (
    None,
    product,
    _screen,
    _overlay,
    np.minimum,
    np.maximum,
    _color_dodge,
    _color_burn,
    _hard_light,
    _soft_light,
    _difference,
    _exclusion,
    _hue,
    _saturation,
    _color,
    _luminosity,
    _addition,
    _subtract,
    _ratio,
)
