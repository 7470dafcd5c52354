"""Exchange colour ramps in sprites: recolour a material and keep the shading."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.colour.palette import nearest_colours, to_oklab
from studio.data.colour.ramps import Ramp, Ramps
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32


class RampExchange:
    """Recolours sprites: replaces ramps by other ramps.

    A colour outside the ramps follows the nearest colour's ramp.
    """

    def __init__(self, ramps: Ramps, targets: Mapping[str, Ramp]) -> None:
        """Create an exchange. ramps: the sprites' ramps. targets: new ramp by the old ramp's name."""
        self._known = np.concatenate([ramp.colours for ramp in ramps])
        self._ramp_of = np.repeat(np.arange(len(ramps)), [len(ramp.colours) for ramp in ramps])
        self._ramps, self._targets = ramps, targets

    def __call__(self, rgba: Rgba) -> Rgba:
        """Return a recoloured copy of uint8 [..., 4]. Alpha doesn't change."""
        pixels = as_uint32(rgba)
        used = np.unique(pixels[rgba[..., 3] > 0] | OPAQUE)
        if not len(used):
            return rgba.copy()
        becomes = _packed(self.becomes(as_rgba(used)[:, :3]))
        found = np.searchsorted(used, pixels | OPAQUE).clip(max=len(used) - 1)
        return as_rgba(np.where(rgba[..., 3] > 0, (becomes[found] & ~OPAQUE) | (pixels & OPAQUE), pixels))

    def becomes(self, colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Map colours to new colours: uint8 [K, 3] -> uint8 [K, 3]."""
        lab = to_oklab(colours)
        where = nearest_colours(lab, to_oklab(self._known))
        result = colours.copy()
        for number, ramp in enumerate(self._ramps):
            target = self._targets.get(ramp.name)
            own = self._ramp_of[where] == number
            if target is not None and own.any():
                result[own] = target.colours[_steps(ramp, target, lab[own, 0])]
        return result


def match_ramps(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the target colour of each source colour: int64 [n], ascending.

    source, target: lightness from dark to light, float64 [n] and [m]. The source keeps its lightness as far as the
    target's range allows. A target with enough colours gives every source colour its own; ramps of equal length match
    in order. A shorter target gives the colour of the nearest lightness.
    """
    fitted = _fitted(source, target)
    costs = np.abs(fitted[:, None] - target)
    spare = len(target) - len(source)
    if spare < 0:
        return np.asarray(costs.argmin(1), np.int64)
    # The cheapest ascending choice: best[i, k] is the cost of the first i + 1 colours, with k targets skipped or fewer.
    best = np.array([costs[row, row : row + spare + 1] for row in range(len(source))])
    for row in range(len(source)):
        if row:
            best[row] += np.minimum.accumulate(best[row - 1])
    chosen, skipped = np.empty(len(source), np.int64), spare
    for row in range(len(source) - 1, -1, -1):
        skipped = int(best[row, : skipped + 1].argmin())
        chosen[row] = row + skipped
    return chosen


def _steps(ramp: Ramp, target: Ramp, lightness: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the step of the target ramp for each lightness, float64 [n], in the ramp: int64 [n]."""
    known = to_oklab(ramp.colours)[:, 0]
    matched = match_ramps(known, to_oklab(target.colours)[:, 0])
    return np.asarray(np.interp(lightness, known, matched).round(), np.int64)


def _fitted(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move lightness into the target's range as little as possible; scale down only a wider range."""
    low, high = target[0], target[-1]
    if source[-1] - source[0] > high - low:
        return np.asarray(low + (source - source[0]) * (high - low) / (source[-1] - source[0]))
    return np.asarray(source + max(0.0, low - source[0]) + min(0.0, high - source[-1]))


def _packed(colours: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Convert colours, uint8 [K, 3], to opaque pixels in the format of `as_uint32`."""
    opaque = np.full((len(colours), 1), 255, np.uint8)
    return as_uint32(np.concatenate([colours, opaque], 1))
