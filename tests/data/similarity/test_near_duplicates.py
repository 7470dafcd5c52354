"""Memory use of the search for near duplicates."""

from __future__ import annotations

import tracemalloc

import numpy as np

from studio.data.similarity.near_duplicates import find_similar
from tests.data.making import sprite


def test_large_sprites_are_compared_a_few_at_a_time() -> None:
    rgba = np.repeat(sprite(1, 64)[None], 12, 0).repeat(4, 1).repeat(4, 2)
    for number, one in enumerate(rgba):
        one[128, 120 + number] ^= 255
    rgba[..., 3] = 255
    tracemalloc.start()
    try:
        events = find_similar(rgba)
        peaks = []
        for _ in events:
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert max(peaks) < 48 << 20 and len(peaks) > 8
