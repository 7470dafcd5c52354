"""Drawn sprites in chosen colours: the same as the parts that it is put together from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.events import Progress, Rgba
from studio.data.colour import recolouring
from studio.data.colour.palette import Palette
from studio.data.colour.recolouring import ColourChoice, recoloured
from studio.data.colour.snapping import BAYER, snap
from studio.data.colour.true_pixels import style_of, true_pixels
from tests.conftest import make_sprites

SPRITES = make_sprites()
STYLE = style_of(SPRITES)
FOUR = Palette(np.array([[0, 0, 0, 255], [250, 90, 30, 255], [40, 200, 80, 255], [9, 9, 9, 0]], np.uint8), "Four")


def run(choice: ColourChoice, drawn: Rgba) -> tuple[Rgba, list[Progress]]:
    work, said = recoloured(drawn, SPRITES.labels, STYLE, choice), []
    try:
        while True:
            said.append(next(work))
    except StopIteration as end:
        return end.value, said


def noisy() -> Rgba:
    """As a model draws them: each pixel of another colour, alpha anything."""
    noise = np.random.default_rng(0).integers(-20, 21, SPRITES.rgba.shape)
    return (SPRITES.rgba.astype(np.int64) + noise).clip(0, 255).astype(np.uint8)


def test_each_choice_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recolouring, "_AT_ONCE", 5)
    drawn = noisy()
    own = true_pixels(drawn, SPRITES.labels, STYLE)
    in_four = true_pixels(drawn, SPRITES.labels, dataclasses.replace(STYLE, palette=FOUR.visible()))
    for choice, expected in (
        (ColourChoice(False), drawn),
        (ColourChoice(), own),
        (ColourChoice(True, FOUR), in_four),
        (ColourChoice(True, FOUR, BAYER), snap(own, FOUR, BAYER)),
    ):
        found, said = run(choice, drawn)
        assert np.array_equal(found, expected)
        assert said == [Progress(done, 24, "sprites coloured") for done in (5, 10, 15, 20, 24) if choice.true_pixels]
    visible = {tuple(colour) for colour in FOUR.visible().tolist()}
    for colours in (in_four, snap(own, FOUR, BAYER)):
        assert {tuple(colour) for colour in colours[colours[..., 3] > 0][:, :3].tolist()} <= visible


def test_a_palette_without_a_colour_that_can_be_seen_is_refused() -> None:
    with pytest.raises(BadInputError, match="no colour that can be seen"):
        run(ColourChoice(True, Palette(np.zeros((2, 4), np.uint8), "Ghost")), noisy())
