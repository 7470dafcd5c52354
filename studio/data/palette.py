"""The colours of a set of sprites."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Rgba


def palette_of(rgba: Rgba, limit: int = 256) -> tuple[Rgba, NDArray[np.int64]]:
    """The most used opaque colours of uint8 [N, S, S, 4]: uint8 [K, 4] with counts int64 [K], K <= limit."""
    raise NotImplementedError


def display_order(colours: Rgba) -> NDArray[np.int64]:
    """Indices that lay uint8 [K, 4] out for the eye: greys from dark to light, then hue by hue: int64 [K]."""
    raise NotImplementedError
