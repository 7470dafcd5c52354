"""Blend one image over another exactly as Aseprite does, bit for bit where Aseprite uses integers.

Colours and alpha are 0..255. b is the backdrop, s the source, and mul(x, y) = x y / 255, rounded. In normal mode, with
the source alpha S times the opacity and the backdrop alpha B, the result has alpha R = S + B - mul(B, S) and colour
b + (s - b) S / R. Other modes replace s by a blend function f(b, s) of W3C's Compositing and Blending Level 1; the last
three are Aseprite's own. Over a semi-transparent backdrop Aseprite differs from W3C: starting at the normal result, it
moves towards the result for f(b, s) by B / 255, where W3C stops, and then by mul(B, S) / 255. Over a transparent
backdrop all modes are normal. Aseprite's formulas: src/doc/blend_funcs.cpp of github.com/aseprite/aseprite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba

Channels = NDArray[np.int32]  # [N, 3], or [N, 1] for one value a pixel; 0..255
UnitColours = NDArray[np.float64]  # [N, 3], 0..1
BlendFunction = Callable[[Channels, Channels], Channels]  # (backdrop, source) -> blended source

_LUMA = np.array([[0.3], [0.59], [0.11]])
_BAND_PIXELS = 1 << 16  # drawn at once: the intermediate arrays take about 100 bytes a pixel


def bands(height: int, width: int) -> Iterator[slice]:
    """Split an image into bands of rows, to limit memory while drawing; yields row slices from the top down."""
    rows = max(_BAND_PIXELS // max(width, 1), 1)
    for start in range(0, height, rows):
        yield slice(start, min(start + rows, height))


def mul(first: Channels, second: Channels | int) -> Channels:
    """Return first * second / 255, rounded; the factors may be negative."""
    scaled: Channels = first * second + 128
    return (scaled + (scaled >> 8)) >> 8


def draw(canvas: Rgba, source: Rgba, opacity: int, mode: int) -> None:
    """Draw `source` over `canvas`, uint8 [H, W, 4], straight alpha. opacity: 0..255. mode: of BLEND_FUNCTIONS."""
    for rows in bands(*canvas.shape[:2]):
        _draw_band(canvas[rows], source[rows], opacity, BLEND_FUNCTIONS[mode])


def _draw_band(canvas: Rgba, source: Rgba, opacity: int, function: BlendFunction | None) -> None:
    alpha = mul(source[..., 3].astype(np.int32), opacity)
    copied = canvas[..., 3] == 0
    if function is None:
        copied |= alpha == 255
    mixed = ~copied & (alpha > 0)
    copied &= alpha > 0
    over = canvas[mixed].astype(np.int32)
    canvas[copied, :3] = source[copied, :3]
    canvas[copied, 3] = alpha[copied]
    if len(over):
        canvas[mixed] = _blended(over, source[mixed][:, :3].astype(np.int32), alpha[mixed][:, None], function)


def _blended(below: Channels, source: Channels, alpha: Channels, function: BlendFunction | None) -> Channels:
    """Blend `source` [N, 3] with `alpha` [N, 1] over `below` [N, 4], all alphas above 0. Returns RGBA [N, 4]."""
    below_alpha = below[:, 3:]
    below = below[:, :3]
    whole = alpha + below_alpha - mul(below_alpha, alpha)
    colours = _over(below, source, alpha, whole)
    if function is not None:
        blended = _over(below, function(below, source), alpha, whole)
        colours += mul(blended - colours, below_alpha)
        colours += mul(blended - colours, mul(below_alpha, alpha))
    return np.concatenate([colours, whole], axis=1)


def _over(below: Channels, source: Channels, alpha: Channels, whole: Channels) -> Channels:
    step = (source - below) * alpha / whole
    return below + step.astype(np.int32)  # truncates, towards `below`


def _screen(b: Channels, s: Channels) -> Channels:
    return b + s - mul(b, s)


def _hard_light(b: Channels, s: Channels) -> Channels:
    return np.where(s < 128, mul(b, 2 * s), _screen(b, 2 * s - 255))


def _soft_light(b: Channels, s: Channels) -> Channels:
    x, y = b / 255, s / 255
    lighter = np.where(x <= 0.25, ((16 * x - 12) * x + 4) * x, np.sqrt(x))
    colours = np.where(y <= 0.5, x - (1 - 2 * y) * x * (1 - x), x + (2 * y - 1) * (lighter - x))
    return (colours * 255 + 0.5).astype(np.int32)


def _hue(b: Channels, s: Channels) -> Channels:
    return _with_luma(_with_saturation(s / 255, _saturation_of(b / 255)), _luma(b / 255))


def _saturation(b: Channels, s: Channels) -> Channels:
    return _with_luma(_with_saturation(b / 255, _saturation_of(s / 255)), _luma(b / 255))


def _ratio(first: Channels, second: Channels) -> Channels:
    """Return 255 * first / second, rounded and at most 255; 0 where `first` is 0. For divide, color dodge and burn."""
    divisor = np.maximum(second, 1)
    quotient: Channels = np.where(first >= second, 255, (first * 255 + divisor // 2) // divisor)
    return np.where(first == 0, 0, quotient)


def _luma(colours: UnitColours) -> UnitColours:
    """Return the luma of each pixel: float64 [N, 1]."""
    return np.asarray(colours @ _LUMA)


def _saturation_of(colours: UnitColours) -> UnitColours:
    """Return the saturation of each pixel, float64 [N, 1]: the largest minus the smallest channel (W3C)."""
    return np.asarray(np.ptp(colours, axis=1, keepdims=True))


def _with_saturation(colours: UnitColours, wanted: UnitColours) -> UnitColours:
    """Return `colours` with the smallest channel at 0 and the largest at `wanted` (saturation); greys become black."""
    saturation = _saturation_of(colours)
    scaled: UnitColours = colours - colours.min(axis=1, keepdims=True)
    return scaled * wanted / np.where(saturation > 0, saturation, 1)


def _with_luma(colours: UnitColours, wanted: UnitColours) -> Channels:
    """Return `colours` shifted to the luma `wanted`, scaled to 0..255. Moves colours out of range towards grey."""
    colours = colours + wanted - _luma(colours)
    grey = _luma(colours)
    least, most = colours.min(axis=1, keepdims=True), colours.max(axis=1, keepdims=True)
    too_dark, too_light = (least < 0) & (grey > least), (most > 1) & (most > grey)
    colours = np.where(too_dark, grey + (colours - grey) * grey / np.where(too_dark, grey - least, 1), colours)
    colours = np.where(too_light, grey + (colours - grey) * (1 - grey) / np.where(too_light, most - grey, 1), colours)
    return np.clip(colours * 255, 0, 255).astype(np.int32)


# Indexed by the blend mode in the file; None is normal.
BLEND_FUNCTIONS: tuple[BlendFunction | None, ...] = (
    None,
    mul,  # multiply
    _screen,
    lambda b, s: _hard_light(s, b),  # overlay
    np.minimum,  # darken
    np.maximum,  # lighten
    lambda b, s: _ratio(b, 255 - s),  # color dodge
    lambda b, s: 255 - _ratio(255 - b, s),  # color burn
    _hard_light,
    _soft_light,
    lambda b, s: np.abs(b - s),  # difference
    lambda b, s: b + s - 2 * mul(b, s),  # exclusion
    _hue,
    _saturation,
    lambda b, s: _with_luma(s / 255, _luma(b / 255)),  # color
    lambda b, s: _with_luma(b / 255, _luma(s / 255)),  # luminosity
    lambda b, s: np.minimum(b + s, 255),  # addition
    lambda b, s: np.maximum(b - s, 0),  # subtract
    _ratio,  # divide
)
