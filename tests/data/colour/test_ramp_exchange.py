"""An exchange of ramps keeps alpha, shading and all other colours, and adds colours of the new ramp only."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.core.arrays import Rgba
from studio.data.colour.palette import to_oklab
from studio.data.colour.ramp_exchange import RampExchange, match_ramps
from studio.data.colour.ramps import Ramp, dark_to_light, find_ramps
from tests.data.colour.test_ramps import KNIGHT, colours

RAMPS = find_ramps(colours(KNIGHT))
RED = next(ramp for ramp in RAMPS if ramp.name == "red")
STEEL = Ramp("steel", colours("223139 2e414b 3b5360 62889d"))
RAMP = st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=8, unique=True)


def some_pixels(seed: int, count: int = 64) -> Rgba:
    """Random pixels in the colours of the knight, and a few others."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([colours(KNIGHT), rng.integers(0, 256, (4, 3), np.uint8)])
    alpha = rng.choice(np.array([0, 100, 255], np.uint8), (count, 1))
    rgba = np.concatenate([known[rng.integers(0, len(known), count)], alpha], 1)
    rgba[alpha[:, 0] == 0] = 0
    return rgba.reshape(1, 8, -1, 4)


@given(st.integers(0, 1 << 30), RAMP)
@settings(max_examples=15, deadline=None)
def test_every_new_colour_is_of_the_new_ramp(seed: int, wanted: list[tuple[int, int, int]]) -> None:
    target = Ramp("new", dark_to_light(np.array(wanted, np.uint8)))
    before = some_pixels(seed)
    after = RampExchange(RAMPS, {"red": target})(before)
    assert np.array_equal(before[..., 3], after[..., 3])
    changed = after[(before != after).any(-1)]
    assert {*map(tuple, changed[:, :3].tolist())} <= set(wanted)
    kept = RampExchange(RAMPS, {})(before)
    assert np.array_equal(kept, before)


@given(st.integers(0, 1 << 30))
@settings(max_examples=15, deadline=None)
def test_ramps_of_equal_length_exchange_there_and_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = np.pad(colours(KNIGHT)[rng.integers(0, 13, (1, 8, 8))], [(0, 0)] * 3 + [(0, 1)], constant_values=255)
    there = RampExchange(RAMPS, {"red": STEEL})
    others = tuple(ramp for ramp in RAMPS if ramp is not RED)
    back = RampExchange((*others, STEEL), {"steel": RED})
    assert np.array_equal(back(there(before)), before)
    blue = next(ramp for ramp in RAMPS if ramp.name == "blue")
    swap = RampExchange(RAMPS, {"red": blue, "blue": RED})
    assert np.array_equal(swap(swap(before)), before)


@given(RAMP, RAMP)
@settings(max_examples=20, deadline=None)
def test_order_is_kept_and_a_longer_ramp_keeps_all_steps(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    source, target = (to_oklab(dark_to_light(np.array(each, np.uint8)))[:, 0] for each in (first, second))
    steps = np.diff(match_ramps(source, target))
    assert (steps > 0).all() if len(target) >= len(source) else (steps >= 0).all()


def test_lightness_is_kept_where_the_new_ramp_allows() -> None:
    wide = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    assert match_ramps(np.array([0.45, 0.72]), wide).tolist() == [2, 3]
    assert match_ramps(np.array([0.0, 0.05]), wide).tolist() == [0, 1]  # own steps, though the first is nearer to both
    assert match_ramps(wide, np.array([0.5, 0.7, 0.8])).tolist() == [0, 0, 1, 1, 2]  # scaled into the shorter range
    assert match_ramps(wide, np.array([0.5])).tolist() == [0] * 5


def test_a_colour_outside_the_ramps_follows_its_nearest_colour() -> None:
    exchange = RampExchange(RAMPS, {"red": STEEL})
    assert exchange.becomes(colours("7f0101 bf0202 0a08bd")).tolist() == colours("3b5360 62889d 0a08bd").tolist()


def test_a_transparent_picture_stays() -> None:
    empty = np.zeros((1, 4, 4, 4), np.uint8)
    assert np.array_equal(RampExchange(RAMPS, {"red": STEEL})(empty), empty)
