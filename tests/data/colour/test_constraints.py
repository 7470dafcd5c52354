"""Symmetry, seamless borders and outlines: applied and checked."""

from __future__ import annotations

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.data.colour.constraints import (
    BOTH,
    ConstraintCheck,
    Constraints,
    evaluate_constraints,
    outline_mask,
    seam_differences,
)
from studio.data.tiles.layout import TileSetSpec


def _noise(size: int = 9, count: int = 4) -> Rgba:
    return np.random.default_rng(0).integers(0, 256, (count, size, size, 4), np.uint8)


def _found(sprites: Rgba, constraints: Constraints, **more: np.ndarray | None) -> dict[str, ConstraintCheck]:
    checked = evaluate_constraints(sprites, constraints, more.get("palette"), more.get("keep"), more.get("alphas"))
    return {badge.title: badge for badge in checked}


@pytest.mark.parametrize("size", [8, 9])
def test_halves_are_mirrored(size: int) -> None:
    sprites = _noise(size)
    both = Constraints(mirror=BOTH)
    made = both.apply(sprites)
    np.testing.assert_array_equal(made, made[:, :, ::-1])
    np.testing.assert_array_equal(made, made[:, ::-1])
    first = -(-size // 2)
    np.testing.assert_array_equal(made[:, :first, :first], sprites[:, :first, :first])
    one = Constraints(mirror="left-right").apply(sprites)
    np.testing.assert_array_equal(one[:, :, :first], sprites[:, :, :first])
    assert _found(made, both) == {
        title: ConstraintCheck(title, 4, 4) for title in ("Mirrored left-right", "Mirrored top-bottom")
    }
    assert [badge.holds for badge in _found(sprites, both).values()] == [0, 0]


def test_kept_pixels_override_constraints_and_are_counted() -> None:
    sprites, how = _noise(), Constraints(mirror="left-right", outline="#102030")
    keep = np.zeros(sprites.shape[:3], bool)
    keep[:2, 3, 7] = True
    made = how.apply(sprites, keep)
    np.testing.assert_array_equal(made[keep], sprites[keep])
    assert _found(made, Constraints(mirror="left-right"), keep=keep)["Mirrored left-right"] == ConstraintCheck(
        "Mirrored left-right", 2, 4, 2
    )
    made[0, 5, 1] ^= 1
    assert _found(made, Constraints(mirror="left-right"), keep=keep)["Mirrored left-right"].but_kept == 1


def test_outline_has_one_colour() -> None:
    sprite = np.zeros((1, 8, 8, 4), np.uint8)
    sprite[0, 1:7, 0:6] = [200, 180, 90, 255]
    sprite[0, 3, 3] = [20, 10, 40, 255]
    rim = outline_mask(sprite)[0]
    assert (
        rim[1, :6].all() and rim[1:7, 5].all() and rim[6, :6].all() and rim.sum() == 16
    )  # the canvas border needs no outline
    dark = Constraints(outline="dark")
    assert (dark.apply(sprite)[0][rim] == [20, 10, 40, 255]).all()
    assert (Constraints(outline="#0a0B0c").apply(sprite)[0][rim] == [10, 11, 12, 255]).all()
    np.testing.assert_array_equal(dark.apply(sprite)[0][~rim], sprite[0][~rim])
    (badge,) = _found(dark.apply(sprite), dark).values()
    assert (badge.title, badge.holds) == ("One-colour outline", 1)
    sprite[0, 1, 1] = [1, 2, 3, 255]
    assert _found(sprite, dark)["One-colour outline"].holds == 0
    nothing = np.zeros_like(sprite)
    np.testing.assert_array_equal(dark.apply(nothing), nothing)


@pytest.mark.parametrize("outline", ["", "red", "#12", "#1234567", "#12345g"])
def test_invalid_outline_colour_is_refused(outline: str) -> None:
    with pytest.raises(UsageError, match="is not a colour"):
        Constraints(outline=outline)


def test_seamless_if_the_seam_differs_no_more_than_other_lines() -> None:
    ramp = np.zeros((1, 8, 8, 4), np.uint8)
    ramp[..., 3] = 255
    ramp[0, :, :, 0] = 30 * np.arange(8)
    wave = ramp.copy()
    wave[0, :, :, 0] = 120 + 100 * np.sin(np.arange(8) / 8 * 2 * np.pi)
    across = Constraints(seamless="across")
    assert (
        _found(ramp, across)["Seamless horizontally"].holds == 0
        and _found(wave, across)["Seamless horizontally"].holds == 1
    )
    assert _found(ramp, Constraints(seamless="down"))["Seamless vertically"].holds == 1
    np.testing.assert_allclose(seam_differences(ramp, 2)[0], [210 / 4, *[30 / 4] * 7])


def test_colours_are_from_the_palette_except_kept_pixels() -> None:
    palette = np.array([[1, 2, 3], [200, 0, 0]], np.uint8)
    sprites = np.zeros((3, 4, 4, 4), np.uint8)
    sprites[:, 1:] = [1, 2, 3, 255]
    sprites[1, 2, 2] = [9, 9, 9, 255]
    sprites[2, 0, 0] = [9, 9, 9, 0]  # nobody sees it
    assert _found(sprites, Constraints(), palette=palette)["Palette OK"] == ConstraintCheck("Palette OK", 2, 3)
    keep = (sprites[..., 0] == 9).copy()
    assert _found(sprites, Constraints(), palette=palette, keep=keep)["Palette OK"].but_kept == 1
    sprites[1, 3, 3] = [9, 9, 9, 255]  # a new pixel in the colour of a kept one
    assert _found(sprites, Constraints(), palette=palette, keep=keep)["Palette OK"].but_kept == 1
    sprites[1, 3, 3] = [8, 9, 9, 255]
    assert _found(sprites, Constraints(), palette=palette, keep=keep)["Palette OK"].but_kept == 0


def test_given_tiles_are_not_judged_and_lend_their_colours() -> None:
    how = Constraints(tiles=TileSetSpec("corner", ("grass", "water")))
    palette, alphas = np.array([[1, 2, 3]], np.uint8), np.isin(np.arange(256), (0, 255))[None].repeat(16, 0)
    tiles = np.full((16, 8, 8, 4), (1, 2, 3, 255), np.uint8)
    tiles[5] = (90, 80, 70, 130)
    keep = np.zeros(tiles.shape[:3], bool)
    keep[5] = True
    tiles[9, 4, 4] = (90, 80, 70, 255)  # a drawn pixel
    titles = ("Palette OK", "No semi-transparency")
    found = _found(tiles, how, palette=palette, alphas=alphas, keep=keep)
    assert [found[title] for title in titles] == [ConstraintCheck(title, 16, 16) for title in titles]
    tiles[9, 4, 5] = (90, 80, 71, 254)
    found = _found(tiles, how, palette=palette, alphas=alphas, keep=keep)
    assert [found[title] for title in titles] == [ConstraintCheck(title, 15, 16) for title in titles]


def test_pixels_have_the_alpha_of_the_silhouette() -> None:
    sprites, silhouette = _noise(), np.random.default_rng(1).integers(0, 3, (9, 9)).astype(np.uint8) * 120
    how = Constraints(silhouette=silhouette)
    assert _found(sprites, how) == {"Silhouette OK": ConstraintCheck("Silhouette OK", 0, 4)}
    keep = np.zeros(sprites.shape[:3], bool)
    keep[1, 4:6] = True
    made = how.apply(sprites, keep)
    assert (made[[0, 2, 3], ..., 3] == silhouette).all() and not made[0, silhouette == 0].any()
    np.testing.assert_array_equal(made[keep], sprites[keep])
    np.testing.assert_array_equal(made[0, silhouette > 0, :3], sprites[0, silhouette > 0, :3])
    assert _found(made, how, keep=keep)["Silhouette OK"] == ConstraintCheck("Silhouette OK", 3, 4, 1)
    both = Constraints(mirror=BOTH, silhouette=silhouette)  # half of it counts
    found = _found(both.apply(sprites), both)
    assert all(badge.holds == 4 for badge in found.values()) and len(found) == 3
    np.testing.assert_array_equal(both.apply(sprites)[0, :5, :5, 3], silhouette[:5, :5])


def test_alpha_is_0_255_or_a_known_level() -> None:
    sprites = np.zeros((2, 4, 4, 4), np.uint8)
    sprites[0, 1], sprites[1, 2] = 255, 128
    alphas = np.zeros((2, 256), bool)
    alphas[:, [0, 255]] = True
    assert _found(sprites, Constraints(), alphas=alphas) == {
        "No semi-transparency": ConstraintCheck("No semi-transparency", 1, 2)
    }
    assert (
        _found(sprites, Constraints(), alphas=alphas, keep=sprites[..., 3] == 128)["No semi-transparency"].but_kept == 1
    )
    alphas[1, 128] = True
    assert _found(sprites, Constraints(), alphas=alphas)["Transparency OK"].holds == 2
