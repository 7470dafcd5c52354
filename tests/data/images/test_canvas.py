"""Canvas sizes, placing, and telling enlargements from drawings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.data.images.canvas import (
    COMMON_SIZES,
    clear_hidden,
    clear_magenta,
    has_magenta_ground,
    looks_like_sheet,
    looks_smooth,
    paste_centred,
    propose_canvas_size,
    upscaling_factor,
    visible_bounds,
)
from tests.data.making import Pixels, sprite


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({(32, 32): 3984, (32, 48): 77, (8, 14): 9, (20, 20): 1}, 32),
        ({(24, 24): 1440, (20, 20): 1440, (16, 16): 480}, 24),
        ({(16, 16): 50, (32, 32): 50}, 32),
        ({(16, 16): 95, (32, 32): 5}, 16),
        ({(20, 20): 10}, 24),
        ({(1, 1): 1}, 8),
        ({(32, 32): 10, (64, 64): 1, (128, 32): 1, (200, 210): 1}, 32),
        ({(32, 32): 10, (2048, 2048): 90}, 32),
        ({(32, 32): 1, (128, 128): 1}, 128),
        ({(2048, 2048): 3}, 256),
        ({}, 256),
    ],
)
def test_proposed_size(sizes: dict[tuple[int, int], int], expected: int) -> None:
    assert propose_canvas_size(sizes) == expected


@given(
    st.dictionaries(st.tuples(st.integers(1, 256), st.integers(1, 256)), st.integers(1, 1000), min_size=1, max_size=8)
)
def test_proposed_size_is_common_and_fits_most(sizes: dict[tuple[int, int], int]) -> None:
    canvas = propose_canvas_size(sizes)
    held = sum(count for size, count in sizes.items() if max(size) <= canvas)
    assert canvas in COMMON_SIZES and held >= 0.9 * 0.75 * sum(sizes.values())


def test_sheets() -> None:
    assert looks_like_sheet(128, 32, 32) and looks_like_sheet(32, 96, 32) and looks_like_sheet(128, 64, 32)
    assert looks_like_sheet(1920, 1080, 32) and looks_like_sheet(200, 210, 32)
    assert not looks_like_sheet(64, 64, 32) and not looks_like_sheet(32, 48, 32) and not looks_like_sheet(64, 32, 32)


def test_hidden_colour_and_visible_box() -> None:
    rgba = np.zeros((6, 5, 4), np.uint8)
    assert visible_bounds(rgba) is None
    rgba[..., 0] = 200
    rgba[2, 1:4] = (1, 2, 3, 1)
    assert visible_bounds(rgba) == (1, 2, 4, 3)
    clear_hidden(rgba)
    assert rgba[2, 1:4].tolist() == [[1, 2, 3, 1]] * 3 and rgba.sum() == 21
    assert visible_bounds(np.full((3, 2, 4), 255, np.uint8)) == (0, 0, 2, 3)


@given(st.integers(1, 16), st.integers(1, 16))
def test_centred_by_whole_pixels(width: int, height: int) -> None:
    rgba = np.full((height, width, 4), 9, np.uint8)
    canvas = np.zeros((16, 16, 4), np.uint8)
    paste_centred(rgba, canvas)
    box = visible_bounds(canvas)
    assert box == ((16 - width) // 2, (16 - height) // 2, (16 - width) // 2 + width, (16 - height) // 2 + height)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 5), st.integers(0, 5))
def test_upscaling_is_detected_at_any_offset(seed: int, scale: int, left: int, top: int) -> None:
    large = sprite(seed, 12).repeat(scale, 0).repeat(scale, 1)
    assert upscaling_factor(np.pad(large, ((top, 0), (left, 0), (0, 0)))) == scale


def test_no_upscaling_without_evidence() -> None:
    clear, plain = np.zeros((32, 32, 4), np.uint8), np.full((32, 32, 4), 255, np.uint8)
    stray = sprite(1, 16).repeat(2, 0).repeat(2, 1)
    square, two_squares = clear.copy(), clear.copy()
    square[8:24, 8:24] = two_squares[8:16, 8:16] = two_squares[8:16, 16:24] = (200, 10, 10, 255)
    stray[10, 11] = (1, 2, 3, 255)
    three_by_three = sprite(3, 5).repeat(8, 0).repeat(8, 1)
    for rgba in (clear, plain, plain[:1, :1], square, two_squares, three_by_three, stray):
        assert upscaling_factor(rgba) == 1


def test_smooth() -> None:
    y, x = np.mgrid[:64, :64]
    photo = np.stack([100 + 60 * np.sin(x / 7), 100 + 60 * np.cos(y / 9), 120 + 50 * np.sin((x + y) / 11)], axis=-1)
    rgba = np.concatenate([photo, np.full((64, 64, 1), 255)], axis=-1).astype(np.uint8)
    assert looks_smooth(rgba)
    assert not looks_smooth(rgba[::9, ::9].repeat(9, 0).repeat(9, 1))
    for plain in (sprite(0, 64), np.full((64, 64, 4), 255, np.uint8), np.zeros((64, 64, 4), np.uint8)):
        assert not looks_smooth(plain)
    for tiny in ((1, 1), (1, 64), (2, 2), (64, 2)):
        assert not looks_smooth(np.full((*tiny, 4), 255, np.uint8))


MAGENTA = (255, 0, 255, 255)


def on_magenta(rgba: Pixels) -> Pixels:
    """The picture with its transparent pixels in magenta."""
    return np.where(rgba[..., 3:] > 0, rgba, np.array(MAGENTA, np.uint8))


def test_a_magenta_ground_is_opaque_and_reaches_the_border() -> None:
    assert has_magenta_ground(on_magenta(sprite(1, 16)))
    assert not has_magenta_ground(sprite(1, 16))
    opaque = sprite(1, 16)[1:-1, 1:-1].copy()
    opaque[3:11, 3:11] = MAGENTA  # a gem inside the drawing
    assert not has_magenta_ground(opaque)
    opaque[0, 0] = MAGENTA
    assert has_magenta_ground(opaque)
    some = on_magenta(sprite(1, 16))
    some[5, 5, 3] = 200
    assert not has_magenta_ground(some)
    few = np.full((16, 16, 4), 255, np.uint8)
    few[0, :12] = MAGENTA
    assert not has_magenta_ground(few)
    near = on_magenta(sprite(1, 16))
    near[..., 0] = np.minimum(near[..., 0], 254)
    assert not has_magenta_ground(near)
    assert not has_magenta_ground(np.zeros((0, 0, 4), np.uint8))


def test_magenta_is_cleared_in_opaque_pictures() -> None:
    rgba = on_magenta(sprite(2, 16))
    clear_magenta(rgba)
    assert np.array_equal(rgba, sprite(2, 16))
    soft = sprite(2, 16)
    soft[4, 4] = MAGENTA
    before = soft.copy()
    clear_magenta(soft)
    assert np.array_equal(soft, before)
