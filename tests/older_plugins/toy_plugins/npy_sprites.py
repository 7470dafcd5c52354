"""Sprites as .npy, for programs that have NumPy: uint8 [N, H, W, 4]."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from studio.exports.sprites.base import SpriteExport, SpriteSet


class NpySprites(SpriteExport):
    name = "npy"
    title = "NumPy array (.npy)"
    suffix = ".npy"
    help = "Pixels for programs that have NumPy alone."

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        packed = io.BytesIO()
        np.save(packed, np.ascontiguousarray(sprites.sprites))
        return {target: packed.getvalue()}
