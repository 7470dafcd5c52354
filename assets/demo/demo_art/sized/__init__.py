"""Kinds of sprites that can be drawn at any size, from 16 pixels on: KINDS maps names to functions."""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import Generator

from ..canvas import Canvas
from . import figures, places, things

KINDS: dict[str, Callable[[Generator, int], Canvas]] = {
    "blobs": figures.blob,
    "boulders": things.boulder,
    "emblems": things.emblem,
    "faces": figures.face,
    "flowers": places.flower,
    "floors": places.floor,
    "houses": places.house,
    "planets": things.planet,
    "tools": things.tool,
    "vessels": things.vessel,
    "walls": places.wall,
}
