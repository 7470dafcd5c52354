"""Colour ramps: the colours of one material from dark to light. Order a palette into ramps, name and edit them.

Pixel artists shade each material with a ramp, whose hue may shift between shadow and light.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.colour.palette import dominant_colours, farthest_colours, nearest_colours, to_oklab

MOST_RAMP_COLOURS = 64  # in all ramps of sprites; rarer colours follow the nearest
# Chosen by eye on the palettes DB32, Endesga 32, Sweetie 16, PICO-8 and on DCSS sprites.
_GREY, _OUTLINE = 0.05, 0.25  # saturation; colours below are neutral, or black if also dark
_DARK = 0.25  # OKLab lightness of the lightest outline
_SHIFT = 0.25  # change of saturation and hue that shading may bring, per lightness
_TURN = 0.1  # distance of opposite hues is pi times this
_MOST_CLUSTERED = 128  # colours; further colours follow the nearest of these
_LIMIT = 0.13  # largest mean distance of two merged groups
_BLACK, _NEUTRAL = "black", "grey"


@dataclass(frozen=True, eq=False)
class Ramp:
    """Colours of one material, from dark to light."""

    name: str
    colours: NDArray[np.uint8]  # [K, 3]


Ramps = tuple[Ramp, ...]  # no colour is in two ramps


class _Family(NamedTuple):
    """A family of hues up to the OKLab hue `until`, in degrees."""

    until: float
    light: str
    dark: str  # name below the lightness `border`
    border: float


_FAMILIES = (
    _Family(15, "pink", "red", 0.62),
    _Family(40, "red", "red", 0.0),
    _Family(75, "orange", "brown", 0.6),
    _Family(95, "gold", "brown", 0.55),
    _Family(118, "yellow", "olive", 0.65),
    _Family(165, "green", "green", 0.0),
    _Family(215, "teal", "teal", 0.0),
    _Family(285, "blue", "blue", 0.0),
    _Family(325, "purple", "purple", 0.0),
    _Family(350, "pink", "purple", 0.55),
    _Family(360, "pink", "red", 0.62),
)
_PALE = {"orange": "tan", "gold": "tan", "red": "rose", "blue": "steel"}  # names of ramps with low saturation
_PALE_BELOW, _BLUE_PALE_BELOW = 0.17, 0.1  # saturation


def ramps_of_sprites(rgba: Rgba) -> Ramps:
    """Order the colours of sprites, uint8 [N, H, W, 4], into ramps; of many colours, the dominant ones.

    Raises BadInputError for sprites without opaque pixels.
    """
    colours = dominant_colours(rgba, MOST_RAMP_COLOURS)
    if not len(colours):
        raise BadInputError("The sprites have no opaque pixels.", "Ramps contain opaque colours only.")
    return find_ramps(colours[:, :3])


def find_ramps(colours: NDArray[np.uint8]) -> Ramps:
    """Order distinct colours, uint8 [K, 3], into ramps: black outlines, greys, then a ramp for each group of hues.

    Our own method: hierarchical clustering with average linkage, like M. Sagad's Color Ramp Sort, but of hue and
    saturation in OKLab. Shading keeps both; a difference counts less between a dark and a light colour, so that
    hue-shifted ramps stay whole. Two colours of one lightness, like orange and brown, do differ.
    """
    lab = to_oklab(colours)
    lightness, tints = lab[:, 0], _tints(lab)
    saturation = np.hypot(*tints.T)
    is_black = (lightness < _DARK) & (saturation < _OUTLINE)
    is_grey = ~is_black & (saturation < _GREY)
    rest = np.flatnonzero(~is_black & ~is_grey)
    some = to_oklab(farthest_colours(colours[rest], _MOST_CLUSTERED))
    nearest = nearest_colours(lab[rest], some)  # each colour itself, unless there are too many
    groups = [rest[np.isin(nearest, group)] for group in _clusters(_distances(some[:, 0], _tints(some)))]
    named = [(_BLACK, np.flatnonzero(is_black)), (_NEUTRAL, np.flatnonzero(is_grey))]
    named += [(_hue_name(lab[group].mean(0)), group) for group in sorted(groups, key=lambda group: _hue(lab[group]))]
    named = [(name, group) for name, group in named if len(group)]
    names = _unique_names(named)
    return tuple(Ramp(name, dark_to_light(colours[group])) for name, (_, group) in zip(names, named, strict=True))


def dark_to_light(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sort colours, uint8 [K, 3], from dark to light."""
    return colours[to_oklab(colours)[:, 0].argsort(kind="stable")]


def ramp_named(ramps: Ramps, name: str, title: str) -> Ramp:
    """Return the ramp with this name. title: name of the palette. Raises BadInputError."""
    found = next((ramp for ramp in ramps if ramp.name == name.strip().lower()), None)
    if found is None:
        known = ", ".join(ramp.name for ramp in ramps)
        raise BadInputError(f"{title!r} has no ramp {name!r}.", f"Its ramps: {known}.")
    return found


def move_colour(ramps: Ramps, colour: NDArray[np.uint8], name: str) -> Ramps:
    """Move a colour, uint8 [3], to the ramp with this name, which is created if missing. Empty ramps are removed."""
    moved: list[Ramp] = []
    if all(ramp.name != name for ramp in ramps):
        ramps = (*ramps, Ramp(name, colour[None]))
    for ramp in ramps:
        colours = ramp.colours[(ramp.colours != colour).any(1)]
        if ramp.name == name:
            colours = dark_to_light(np.concatenate([colours, colour[None]]))
        if len(colours):
            moved.append(replace(ramp, colours=colours))
    return tuple(moved)


def _tints(lab: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a and b relative to lightness, float64 [K, 2]: shading changes them little. lab: OKLab [K, 3]."""
    return np.asarray(lab[:, 1:] / np.maximum(lab[:, :1], 0.2))


def _distances(lightness: NDArray[np.float64], tints: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of colours as shades of one material: float64 [K, K]."""
    hues = np.arctan2(tints[:, 1], tints[:, 0])
    turns = np.abs((hues[:, None] - hues + np.pi) % (2 * np.pi) - np.pi)
    apart = np.linalg.norm(tints[:, None] - tints, axis=2)
    return np.asarray(np.maximum(0, apart - _SHIFT * np.abs(lightness[:, None] - lightness)) + _TURN * turns)


def _clusters(distances: NDArray[np.float64]) -> list[list[int]]:
    """Merge the nearest clusters, by mean distance, while nearer than _LIMIT. distances: float64 [K, K]."""
    clusters = [[index] for index in range(len(distances))]
    distances = distances.copy()
    np.fill_diagonal(distances, np.inf)
    while len(clusters) > 1:
        first, second = sorted(divmod(int(distances.argmin()), len(clusters)))
        if distances[first, second] > _LIMIT:
            break
        sizes = len(clusters[first]), len(clusters[second])
        merged = (sizes[0] * distances[first] + sizes[1] * distances[second]) / sum(sizes)
        distances[first], distances[:, first] = merged, merged
        distances = np.delete(np.delete(distances, second, 0), second, 1)
        clusters[first] += clusters.pop(second)
    return clusters


def _hue(lab: NDArray[np.float64]) -> float:
    """Return the mean hue of colours in degrees, 0 to 360. lab: OKLab [K, 3]."""
    _, a, b = lab.mean(0).tolist()
    return math.degrees(math.atan2(b, a)) % 360


def _hue_name(lab: NDArray[np.float64]) -> str:
    """Return the name of a chromatic colour. lab: OKLab [3]."""
    hue, saturation, lightness = _hue(lab[None]), float(np.hypot(*_tints(lab[None])[0])), float(lab[0])
    family = next(family for family in _FAMILIES if hue <= family.until)
    name = family.dark if lightness < family.border else family.light
    is_pale = saturation < (_BLUE_PALE_BELOW if name == "blue" else _PALE_BELOW)
    return _PALE.get(name, name) if is_pale else name


def _unique_names(named: Sequence[tuple[str, NDArray[np.int64]]]) -> list[str]:
    """Number equal names: the ramp with the most colours keeps the plain name, the others become 'red-2' and so on."""
    names, seen = [name for name, _ in named], Counter[str]()
    for index in sorted(range(len(named)), key=lambda index: -len(named[index][1])):
        name = named[index][0]
        seen[name] += 1
        names[index] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    return names
