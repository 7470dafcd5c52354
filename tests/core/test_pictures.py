"""Pictures: joined and split sprites, and digests of pixels."""

from __future__ import annotations

import numpy as np
import pytest

from studio.core.pictures import are_filled, pixel_digest, tile, untile


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (6, 3), (7, 3), (16, 8)])
def test_untile_restores_the_sprites_in_order(count: int, columns: int) -> None:
    sprites = np.random.default_rng(0).integers(0, 256, (count, 5, 5, 4), dtype=np.uint8)
    picture = tile(sprites, columns)
    assert picture.shape == (-(-count // columns) * 5, columns * 5, 4)
    row, column = divmod(count - 1, columns)
    assert np.array_equal(picture[row * 5 : row * 5 + 5, column * 5 : column * 5 + 5], sprites[-1])
    back = untile(picture, 5)
    assert np.array_equal(back[:count], sprites) and not back[count:].any()


def test_equal_pixels_have_equal_digests() -> None:
    sprites = np.random.default_rng(0).integers(0, 256, (2, 5, 5, 4), dtype=np.uint8)
    mirrored = sprites[0, :, ::-1]
    assert pixel_digest(mirrored) == pixel_digest(mirrored.copy())
    assert len({pixel_digest(pixels) for pixels in (*sprites, mirrored)}) == 3


def test_a_single_visible_pixel_fills_a_sprite() -> None:
    sprites = np.zeros((3, 4, 4, 4), np.uint8)
    sprites[1, 3, 0, 3] = 1
    sprites[2, ..., :3] = 255  # colour below transparent pixels
    assert are_filled(sprites).tolist() == [False, True, False] and are_filled(sprites[:0]).shape == (0,)
