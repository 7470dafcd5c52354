from __future__ import annotations

import json

import numpy as np
import pytest

from studio.data.colour.true_pixels import PixelStyle, pixel_truth, style_of, true_pixels
from studio.data.sprites import Sprites
from tests.conftest import make_sprites

PALETTE = np.array([[0, 0, 0], [255, 255, 255], [220, 30, 30], [30, 60, 200]], np.uint8)
STYLE = PixelStyle((2, 3), PALETTE, soft_alpha=False)
ANY = np.array([-1])


def _art(per_class: int = 10, size: int = 8) -> Sprites:
    """Class 0 in black and white, class 1 in three colours; the colours in areas, with transparent borders."""
    rng = np.random.default_rng(0)
    rgba = np.zeros((2 * per_class, size, size, 4), np.uint8)
    for number, sprite in enumerate(rgba):
        used = PALETTE[:2] if number < per_class else PALETTE[[0, 2, 3]]
        stripes = np.resize(np.repeat(rng.permutation(len(used)), 2), size - 2)
        sprite[1:-1, 1:-1, :3] = used[stripes][:, None]
        sprite[1:-1, 1:-1, 3] = 255
    labels = np.repeat(np.arange(2), per_class).astype(np.int64)
    return Sprites(rgba, labels, ("plain", "bright"), tuple(map(str, range(2 * per_class))), "art")


def test_a_style_is_what_the_sprites_have() -> None:
    style = style_of(_art())
    assert style.colours == (2, 3) and not style.soft_alpha
    assert {tuple(colour) for colour in style.palette.tolist()} == {tuple(colour) for colour in PALETTE.tolist()}
    again = PixelStyle.from_json(json.loads(json.dumps(style.to_json())))
    assert again.colours == style.colours and np.array_equal(again.palette, style.palette)


def test_an_empty_class_has_the_style_of_all_and_soft_alpha_is_seen() -> None:
    art = _art()
    rgba = art.rgba.copy()
    rgba[:, 2, 2:5, 3] = 100
    rgba[:, 2, 2:5, :3] = [9, 9, 9]
    soft = Sprites(rgba, art.labels, (*art.class_names, "none"), art.names, "soft")
    style = style_of(soft)
    assert style.soft_alpha and style.colours == (2, 3, 2)  # the median of as many twos as threes, rounded to even
    assert [9, 9, 9] not in style.palette.tolist()  # half-transparent pixels are no colours


def test_noise_and_soft_edges_go_and_the_sprite_stays() -> None:
    art = _art()
    noisy = art.rgba.astype(np.int64)
    noise = np.random.default_rng(1).integers(-25, 26, noisy.shape)
    noisy[..., :3] += noise[..., :3] * (noisy[..., 3:] > 0)
    noisy[..., 3] = np.where(noisy[..., 3] > 0, 255 - abs(noise[..., 3]), abs(noise[..., 3]))
    found = true_pixels(noisy.clip(0, 255).astype(np.uint8), art.labels, style_of(art))
    assert np.array_equal(found, art.rgba)
    truth = pixel_truth(found, art.rgba)
    assert (truth.half_transparent, truth.off_palette) == (0, 0)


def test_what_is_true_already_does_not_change() -> None:
    for sprites in (_art(), make_sprites(6, size=16)):
        style = style_of(sprites)
        once = true_pixels(sprites.rgba, sprites.labels, style)
        assert np.array_equal(true_pixels(once, sprites.labels, style), once)
    art = _art()
    assert np.array_equal(true_pixels(art.rgba, art.labels, style_of(art)), art.rgba)


def test_soft_alpha_stays_where_the_data_has_it() -> None:
    sprite = np.zeros((1, 4, 4, 4), np.uint8)
    assert np.array_equal(true_pixels(sprite, ANY, STYLE), sprite)  # there is nothing to see
    sprite[0, :, :, 3] = [[10, 100, 150, 250]] * 4
    hard = true_pixels(sprite, ANY, STYLE)[0, 0, :, 3]
    soft = true_pixels(sprite, ANY, PixelStyle((2,), PALETTE, soft_alpha=True))[0, 0, :, 3]
    assert hard.tolist() == [0, 0, 255, 255] and soft.tolist() == [0, 100, 150, 255]
    plain, no_palette = np.full_like(sprite, 77), PixelStyle((2,), PALETTE[:0], soft_alpha=False)
    assert np.array_equal(true_pixels(plain, ANY, no_palette), plain)


@pytest.mark.parametrize(("colour", "expected"), [([112] * 3, [100] * 3), ([230] * 3, [255] * 3)])
def test_a_lone_pixel_stays_only_if_it_stands_out(colour: list[int], expected: list[int]) -> None:
    palette = np.array([[100] * 3, [110] * 3, [255] * 3], np.uint8)
    sprite = np.full((1, 5, 5, 4), 100, np.uint8)
    sprite[..., 3] = 255
    sprite[0, 2, 2, :3] = colour
    found = true_pixels(sprite, np.array([0]), PixelStyle((2,), palette, soft_alpha=False))
    assert found[0, 2, 2, :3].tolist() == expected
    assert (found[0, 0, :, :3] == 100).all()
