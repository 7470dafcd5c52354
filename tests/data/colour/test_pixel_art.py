"""Conversion to pixel art, and recolouring."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Progress
from studio.core.generators import run_to_end
from studio.data.colour import recolouring
from studio.data.colour.palette import Palette
from studio.data.colour.pixel_art import PixelStyle, measure_pixel_art, measure_style, to_pixel_art
from studio.data.colour.quantizing import BAYER, DITHERS, map_to_palette
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.sprites import Sprites
from tests.conftest import make_sprites

PALETTE = np.array([[0, 0, 0], [255, 255, 255], [220, 30, 30], [30, 60, 200]], np.uint8)
ANY = np.array([-1])


def _art() -> Sprites:
    """Class 0 in black and white, class 1 in three colours; the colours in areas, with transparent borders."""
    rng = np.random.default_rng(0)
    rgba = np.zeros((20, 8, 8, 4), np.uint8)
    for number, sprite in enumerate(rgba):
        used = PALETTE[:2] if number < 10 else PALETTE[[0, 2, 3]]
        stripes = np.resize(np.repeat(rng.permutation(len(used)), 2), 6)
        sprite[1:-1, 1:-1, :3] = used[stripes][:, None]
        sprite[1:-1, 1:-1, 3] = 255
    return Sprites(rgba, np.repeat(np.arange(2), 10), ("plain", "bright"), tuple(map(str, range(20))), "art")


ART = _art()
OWN = measure_style(ART)


def _noisy() -> Rgba:
    """ART as a model draws it: every pixel has another colour, and any alpha."""
    rgba = ART.rgba.astype(np.int64)
    noise = np.random.default_rng(1).integers(-25, 26, rgba.shape)
    rgba[..., :3] += noise[..., :3] * (rgba[..., 3:] > 0)
    rgba[..., 3] = np.where(rgba[..., 3] > 0, 255 - abs(noise[..., 3]), abs(noise[..., 3]))
    return rgba.clip(0, 255).astype(np.uint8)


def test_style_of_sprites() -> None:
    assert (OWN.colours, OWN.alpha_levels, OWN.class_counts) == ((2, 3), ((), ()), (10, 10))
    assert sorted(OWN.palette.tolist()) == sorted(PALETTE.tolist())
    again = PixelStyle.from_json(json.loads(json.dumps(OWN.to_json())))
    assert np.array_equal(again.palette, OWN.palette)
    assert dataclasses.replace(again, palette=OWN.palette).to_json() == OWN.to_json()


def test_empty_class_has_the_style_of_the_set() -> None:
    rgba = ART.rgba.copy()
    rgba[:, 2, 2:5] = [9, 9, 9, 100]
    style = measure_style(dataclasses.replace(ART, rgba=rgba, class_names=(*ART.class_names, "none")))
    assert style.alpha_levels == ((100,), (100,), (100,))
    assert style.colours == (2, 3, 2)  # median of equally many 2s and 3s, rounded to even
    assert style.class_counts == (10, 10, 0)
    assert [9, 9, 9] not in style.palette.tolist()  # half-transparent pixels are no colours


def test_noise_and_soft_edges_are_removed() -> None:
    found = to_pixel_art(_noisy(), ART.labels, OWN)
    assert np.array_equal(found, ART.rgba)
    truth = measure_pixel_art(found, ART.rgba)
    assert (truth.half_transparent, truth.off_palette) == (0, 0)


def test_pixel_art_does_not_change() -> None:
    for sprites in (ART, make_sprites(6, size=16)):
        style = measure_style(sprites)
        once = to_pixel_art(sprites.rgba, sprites.labels, style)
        assert np.array_equal(to_pixel_art(once, sprites.labels, style), once)
    assert np.array_equal(to_pixel_art(ART.rgba, ART.labels, OWN), ART.rgba)


def test_many_alpha_levels_are_reduced() -> None:
    rgba = ART.rgba.copy()
    rgba[:10, 0, :, 3] = [40, 45, 45, 120, 120, 120, 125, 200]
    rgba[10:, 0, :, 3] = np.arange(80).reshape(10, 8) + 100  # a smooth shadow
    first, second = measure_style(dataclasses.replace(ART, rgba=rgba)).alpha_levels
    assert first == (45, 120, 200)
    assert len(second) in (3, 4) and min(np.diff(second)) > 24


def test_few_semi_transparent_pixels_are_ignored() -> None:
    rgba = np.full((1, 100, 100, 4), 255, np.uint8)
    for soft, levels in ((10, ()), (30, (128,))):
        rgba[0, 0, :soft, 3] = 128
        sprites = Sprites(rgba, np.zeros(1, np.int64), ("tile",), ("a",), "")
        assert measure_style(sprites).alpha_levels == (levels,), soft


def test_alpha_takes_the_nearest_level_of_the_data() -> None:
    sprite = np.zeros((1, 4, 4, 4), np.uint8)
    hard = PixelStyle((2,), PALETTE, ((),), (1,))
    assert np.array_equal(to_pixel_art(sprite, ANY, hard), sprite)  # fully transparent
    sprite[0, :, :, 3] = [[10, 100, 150, 250]] * 4
    assert to_pixel_art(sprite, ANY, hard)[0, 0, :, 3].tolist() == [0, 0, 255, 255]
    soft = dataclasses.replace(hard, alpha_levels=((96, 200),))
    assert to_pixel_art(sprite, np.array([0]), soft)[0, 0, :, 3].tolist() == [0, 96, 200, 255]
    assert to_pixel_art(sprite, ANY, soft)[0, 0, :, 3].tolist() == [0, 0, 255, 255]
    plain = np.full_like(sprite, 77)
    assert np.array_equal(to_pixel_art(plain, ANY, dataclasses.replace(hard, palette=PALETTE[:0])), plain)


@pytest.mark.parametrize(("colour", "expected"), [([112] * 3, [100] * 3), ([230] * 3, [255] * 3)])
def test_isolated_pixel_stays_only_if_it_stands_out(colour: list[int], expected: list[int]) -> None:
    palette = np.array([[100] * 3, [110] * 3, [255] * 3], np.uint8)
    sprite = np.full((1, 5, 5, 4), 100, np.uint8)
    sprite[..., 3] = 255
    sprite[0, 2, 2, :3] = colour
    found = to_pixel_art(sprite, np.array([0]), PixelStyle((2,), palette, ((),), (1,)))
    assert found[0, 2, 2, :3].tolist() == expected
    assert (found[0, 0, :, :3] == 100).all()


def test_pixel_art_figures_equal_manual_counts() -> None:
    red, soft, blue, clear, grey = (255, 0, 0, 255), (255, 0, 0, 100), (0, 0, 255, 255), (9, 9, 9, 0), (9, 9, 9, 255)
    reference = np.array([red, red, blue, clear], np.uint8).reshape(1, 2, 2, 4)  # transparent pixels have no colour
    sprites = np.array([red, soft, grey, clear, blue, blue, blue, red], np.uint8).reshape(2, 2, 2, 4)
    found = measure_pixel_art(sprites, reference)
    assert found.half_transparent == pytest.approx(1 / 7)
    assert found.off_palette == pytest.approx(1 / 7)
    assert found.colours == 2.0  # red and grey; blue and red
    nothing = measure_pixel_art(np.zeros((2, 2, 2, 4), np.uint8), reference)
    assert (nothing.half_transparent, nothing.off_palette, nothing.colours) == (0, 0, 0)


FOUR = Palette(np.array([[0, 0, 0, 255], [250, 90, 30, 255], [40, 200, 80, 255], [9, 9, 9, 0]], np.uint8), "Four")


def test_each_colour_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recolouring, "_BATCH_SIZE", 6)
    drawn = _noisy()
    own = to_pixel_art(drawn, ART.labels, OWN)
    in_four = to_pixel_art(drawn, ART.labels, dataclasses.replace(OWN, palette=FOUR.visible()))
    for choice, expected in (
        (ColourMode(False), drawn),
        (ColourMode(), own),
        (ColourMode(True, FOUR), in_four),
        (ColourMode(True, FOUR, BAYER), map_to_palette(own, FOUR, BAYER)),
    ):
        work = (drawn, ART.labels, OWN, choice)
        assert np.array_equal(run_to_end(recolour_sprites(*work)), expected)
        assert list(recolour_sprites(*work)) == [
            Progress(done, 20, "sprites coloured") for done in (6, 12, 18, 20) if choice.true_pixels
        ]
    visible = {tuple(colour) for colour in FOUR.visible().tolist()}
    for colours in (in_four, map_to_palette(own, FOUR, BAYER)):
        assert {tuple(colour) for colour in colours[colours[..., 3] > 0][:, :3].tolist()} <= visible


@pytest.mark.parametrize("dither", DITHERS)
def test_palette_without_visible_colours_is_refused(dither: str) -> None:
    ghost = ColourMode(True, Palette(np.zeros((2, 4), np.uint8), "Ghost"), dither)
    with pytest.raises(BadInputError, match="no visible colour"):
        run_to_end(recolour_sprites(_noisy(), ART.labels, OWN, ghost))


def test_kept_pixels_stay_and_their_colours_are_preferred() -> None:
    """A kept red outside the palette: similar colours drawn beside it become this red."""
    red = [250, 3, 77, 200]
    sprite = np.zeros((1, 8, 8, 4), np.uint8)
    sprite[0, :, :4] = red
    sprite[0, 2, 2] = [9, 8, 7, 0]
    sprite[0, :, 4:6] = [245, 8, 80, 255]
    sprite[0, :, 6:] = [2, 4, 3, 250]
    keep = np.zeros((1, 8, 8), bool)
    keep[0, :, :4] = True
    found = to_pixel_art(sprite, np.array([1]), OWN, keep)
    assert np.array_equal(found[keep], sprite[keep])
    assert (found[0, :, 4:6] == [*red[:3], 255]).all() and (found[0, :, 6:] == [0, 0, 0, 255]).all()
    assert np.array_equal(to_pixel_art(sprite, np.array([1]), OWN, ~np.zeros_like(keep)), sprite)
    assert np.array_equal(to_pixel_art(_noisy(), ART.labels, OWN, np.zeros((20, 8, 8), bool)), ART.rgba)
    for choice in (ColourMode(False), ColourMode(True), ColourMode(True, FOUR), ColourMode(True, FOUR, BAYER)):
        in_choice = run_to_end(recolour_sprites(sprite, np.array([1]), OWN, choice, keep))
        assert np.array_equal(in_choice[keep], sprite[keep])
        if choice.palette is not None:
            assert np.isin(in_choice[~keep][:, :3], FOUR.visible()).all()
