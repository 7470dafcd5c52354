"""One sprite to begin with: read, and fitted by whole pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.importing.single_sprite import fit_to_canvas, load_image, load_mask

SIZE = 8


def _enlarged(rgba: Rgba, scale: int) -> Rgba:
    return rgba.repeat(scale, 0).repeat(scale, 1)


def test_images_are_fitted_without_mixing_pixels() -> None:
    rng = np.random.default_rng(0)
    art = np.zeros((SIZE, SIZE, 4), np.uint8)
    art[1:-1, 2:-1] = [*rng.integers(0, 255, (1, 1, 3))[0, 0], 255]
    art[1:-1, 2:-1, :3] = rng.integers(0, 255, (SIZE - 2, SIZE - 3, 3))
    assert fit_to_canvas(art, SIZE).description == "" and fit_to_canvas(art, SIZE).rgba is art
    large = fit_to_canvas(_enlarged(art, 4), SIZE)
    assert "scaled down from 4x" in large.description
    np.testing.assert_array_equal(large.rgba, art)
    around = np.pad(art, ((0, 9), (7, 0), (0, 0)))
    assert "transparent borders cropped" in fit_to_canvas(around, SIZE).description
    np.testing.assert_array_equal(
        np.unique(fit_to_canvas(around, SIZE).rgba, axis=0).shape, np.unique(art, axis=0).shape
    )
    noise = rng.integers(0, 255, (40, 17, 4), np.uint8)
    noise[..., 3] = 255
    small = fit_to_canvas(noise, SIZE)
    assert small.description == "17 x 40 pixels: shrunk to one pixel of every 5 x 5, centred on 8 x 8"
    assert small.rgba.shape == (SIZE, SIZE, 4)
    seen = small.rgba[small.rgba[..., 3] > 0]
    assert len(seen) and {pixel.tobytes() for pixel in seen} <= {pixel.tobytes() for pixel in noise.reshape(-1, 4)}
    assert not fit_to_canvas(np.zeros((20, 20, 4), np.uint8), SIZE).rgba.any()


def test_white_mask_pixels_are_kept(tmp_path: Path) -> None:
    picture = np.array(
        [[[255, 255, 255, 255], [255, 255, 255, 0]], [[90, 90, 90, 255], [200, 200, 200, 255]]], np.uint8
    )
    Image.fromarray(picture).save(tmp_path / "m.png")
    assert load_mask(tmp_path / "m.png").tolist() == [[True, False], [False, True]]
    (tmp_path / "text.txt").write_text("no picture")
    (tmp_path / "torn.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for name in ("text.txt", "torn.png", "none.png", "."):
        with pytest.raises(BadInputError):
            load_image(tmp_path / name)
