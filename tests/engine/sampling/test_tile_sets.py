"""Tile sets: all tiles of a set fit together, also with tiles that the user has given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import UsageError
from studio.core.events import Events, Progress, SpritesGenerated
from studio.core.generators import run_to_end
from studio.data.colour.palette import Palette
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.tiles.layout import TileLayout
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.edit import EditInput, redraw
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.sampling.tile_sets import draw_tile_set
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind


@pytest.fixture(scope="module")
def model(generator_run: Path) -> TrainedModel:
    return load_model(generator_run, "last", CPU)


def _settings(**changes: float | str | bool) -> GenerateSettings:
    usual = {"steps": 2, "seed": 3, "tiles": "corner", "terrains": "class0,class1"}
    return GenerateSettings(**{**usual, **changes})  # type: ignore[arg-type]


def _layout(settings: GenerateSettings, size: int) -> TileLayout:
    plan = settings.tile_set_spec()
    assert plan is not None
    return plan.layout(size)


def _made(events: Events) -> SpritesGenerated:
    found = list(events)
    (made,) = of_kind(found, SpritesGenerated)
    assert made is found[-1] and of_kind(found, Progress)[-1].done == of_kind(found, Progress)[-1].total
    return made


@pytest.mark.parametrize("true_pixels", [True, False])
def test_tiles_of_a_mixture_fit_together(model: TrainedModel, true_pixels: bool) -> None:
    how = _settings(terrains="", mix="class0:1,class1:2", true_pixels=true_pixels)
    layout = _layout(how, model.spec.size)
    made = _made(draw_tile_set(model, how))
    assert len(made.sprites) == 16 == len(set(made.titles)) and layout.fits(made.sprites)
    assert "class0-class1 0110" in made.titles and set(made.labels.tolist()) == {0, 1}
    assert not np.array_equal(_made(draw_tile_set(model, how.replace(seed=4))).sprites, made.sprites)
    choice = ColourMode(palette=Palette(np.array([[0, 0, 0, 255], [250, 90, 30, 255]], np.uint8), "two"))
    again = run_to_end(recolour_sprites(made.sprites, made.labels, model.style, choice, constraints=how.constraints()))
    assert layout.fits(again) and len(np.unique(again.reshape(-1, 4), axis=0)) <= 3


def test_three_terrains_and_transparency(model: TrainedModel) -> None:
    how = _settings(terrains="class1,transparent,class0", tiles="dual-grid")
    made = _made(draw_tile_set(model, how))
    assert len(made.sprites) == 81 and _layout(how, model.spec.size).fits(made.sprites)
    assert not made.sprites[made.titles.index("class1-transparent-class0 1111")].any()
    assert set(made.labels.tolist()) == {-1, 0, 1}


def test_variants_have_names_and_chances_of_their_own(model: TrainedModel) -> None:
    how = _settings(variants=2)
    made, plan = _made(draw_tile_set(model, how)), how.tile_set_spec()
    assert len(made.sprites) == 32 == len(set(made.titles)) and "class0-class1 0110-2" in made.titles
    assert _layout(how, model.spec.size).fits(made.sprites) and plan is not None
    assert plan.tile_set(made.sprites).weights.tolist() == [0.5] * 32
    assert not np.array_equal(made.sprites[:16], made.sprites[16:])


def test_blob_tiles_with_a_ground(model: TrainedModel) -> None:
    how = _settings(tiles="blob")
    made = _made(draw_tile_set(model, how))
    assert len(made.sprites) == 48 and _layout(how, model.spec.size).fits(made.sprites)
    assert made.titles[-1] == "class0-class1 xxxx1xxxx" and np.bincount(made.labels).tolist() == [47, 1]


@pytest.mark.parametrize("true_pixels", [True, False])
def test_given_tiles_stay_and_the_others_fit(model: TrainedModel, true_pixels: bool) -> None:
    how = _settings(true_pixels=true_pixels)
    layout = _layout(how, model.spec.size)
    given = np.random.default_rng(0).integers(90, 120, (16, model.spec.size, model.spec.size, 4), np.uint8)
    given[4:] = 0  # the borders of the four given tiles differ
    made = _made(draw_tile_set(model, how, given))
    np.testing.assert_array_equal(made.sprites[:4], given[:4])
    assert made.keep is not None and made.keep[:4].all()
    assert layout.fits(made.sprites, made.keep) and not layout.fits(made.sprites)
    other = _made(draw_tile_set(model, how))
    assert not np.array_equal(made.sprites[4:], other.sprites[4:])


def test_unsuitable_given_tiles_are_refused(model: TrainedModel) -> None:
    size = model.spec.size
    for given, message in (
        (np.zeros((16, size, size, 4), np.uint8), "No tile is given"),
        (np.ones((16, size + 1, size + 1, 4), np.uint8), "given tile has"),
    ):
        with pytest.raises(UsageError, match=message):
            list(draw_tile_set(model, _settings(), given))


def test_unsuitable_settings_are_refused(model: TrainedModel) -> None:
    for changes in (
        {"terrains": ""}, {"terrains": "class0"}, {"mirror": "both"}, {"seamless": "across"}, {"quick": True},
        {"terrains": "class0,lava"}, {"terrains": "class0,class0"}, {"terrains": "class0,,class1"},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            list(draw_tile_set(model, _settings(**changes)))
    sprites = make_sprites()
    with pytest.raises(UsageError, match="can't start from a sprite"):
        list(redraw(model, _settings(), EditInput(sprites.rgba[:1], sprites.labels[:1])))


def test_settings_of_earlier_versions_draw_corner_tiles() -> None:
    values = {**GenerateSettings(mix="a:1,b:1").to_json(), "corner_tiles": True}
    del values["tiles"], values["terrains"]
    found = GenerateSettings.from_json(values)
    assert found.tiles == "corner" and found.tile_set_spec() == _settings(terrains="a,b").tile_set_spec()
    assert GenerateSettings.from_json({**values, "corner_tiles": False}).tile_set_spec() is None
