"""Given cells stay, missing cells are drawn in their colours, and wrong requests are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from studio.core.errors import UsageError
from studio.core.events import Progress, SetsDrawn
from studio.data.sprites import unstack
from studio.engine import catalog
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.complete import complete
from studio.engine.sampling.settings import CompleteSettings, GivenSets
from tests.conftest import make_sprites, with_mirrored_views
from tests.engine.tools import untrained_model


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    recipe = catalog.recipe("sets")
    sprites, _ = recipe.select(with_mirrored_views(make_sprites(per_class=15)), recipe.small)
    return untrained_model(recipe, sprites)


@pytest.fixture(scope="module")
def sets(model: TrainedModel) -> GivenSets:
    """Return three sets with a given first cell. Other cells hold noise, which the model must ignore."""
    sprites = with_mirrored_views(make_sprites(per_class=6, seed=5))
    cells = unstack(sprites.stacked_sets(np.arange(9)).rgba)
    given = np.zeros(cells.shape[:2], np.bool_)
    given[:, 0] = True
    return GivenSets(("knight", "mage", "orc"), cells, given)


def drawn(
    model: TrainedModel, sets: GivenSets | None = None, first: int = 0, **settings: int | float | str
) -> SetsDrawn:
    how: dict[str, Any] = {"rounds": 3, "count": 2, **settings}
    *before, found = complete(model, CompleteSettings(**how), sets, first)
    assert isinstance(found, SetsDrawn) and all(isinstance(event, Progress) for event in before)
    return found


def colours(cells: np.ndarray) -> set[bytes]:
    pixels = cells.reshape(-1, 4)
    return {pixel.tobytes() for pixel in pixels[pixels[:, 3] > 0]}


def test_given_cells_stay_and_missing_cells_use_their_colours(model: TrainedModel, sets: GivenSets) -> None:
    found = drawn(model, sets)
    assert found.names == ("knight", "knight", "mage", "mage", "orc", "orc") and found.cell_names == (
        "down",
        "left",
        "right",
    )
    for number, (cells, given) in enumerate(zip(found.cells, found.given, strict=True)):
        own = sets.cells[number // 2]
        assert given.tolist() == [True, False, False]
        assert np.array_equal(cells[0], own[0])  # bit for bit
        assert colours(cells) <= colours(own[0])


def test_a_candidate_depends_on_its_seed_and_number_alone(model: TrainedModel, sets: GivenSets) -> None:
    whole = drawn(model, sets)
    again = drawn(model, sets, first=1, count=1)
    assert np.array_equal(whole.cells[1::2], again.cells)
    assert not np.array_equal(whole.cells[::2], whole.cells[1::2])
    assert not np.array_equal(whole.cells[1::2], drawn(model, sets, seed=1).cells[1::2])


def test_the_first_candidate_has_the_most_likely_colours(model: TrainedModel, sets: GivenSets) -> None:
    found = drawn(model, sets, variety=0.0)
    assert np.array_equal(found.cells[::2], found.cells[1::2])
    assert np.array_equal(found.cells[::2], drawn(model, sets, seed=1, rounds=5).cells[::2])


def test_new_sets_take_the_palette_of_a_training_set(model: TrainedModel) -> None:
    found = drawn(model, count=3)
    assert found.cells.shape == (3, 3, 8, 8, 4) and not found.given.any()
    sprites = with_mirrored_views(make_sprites(per_class=15))
    known = [colours(unstack(sprites.stacked_sets(np.arange(30)).rgba)[row]) for row in range(10)]
    assert all(any(colours(cells) <= palette for palette in known) for cells in found.cells)


def test_the_palette_of_the_data_adds_colours(model: TrainedModel, sets: GivenSets) -> None:
    found = drawn(model, sets, palette="data", variety=2.0)
    assert any(colours(cells) - colours(own[0]) for cells, own in zip(found.cells[1::2], sets.cells, strict=True))


def test_right_mirrors_left_by_construction(model: TrainedModel, sets: GivenSets) -> None:
    found = drawn(model, sets, mirror="on").cells
    assert np.array_equal(found[:, 2], found[:, 1, :, ::-1])
    given = sets.given.copy()
    given[:, 2] = True
    right = drawn(model, replace(sets, given=given), mirror="on").cells
    assert np.array_equal(right[::2, 2], sets.cells[:, 2]) and np.array_equal(right[:, 1], right[:, 2, :, ::-1])
    free = drawn(model, sets, mirror="auto").cells  # not all training sets mirror exactly
    assert not np.array_equal(free[:, 2], free[:, 1, :, ::-1])


def test_wrong_requests_are_refused(model: TrainedModel, sets: GivenSets) -> None:
    def refused(wrong: GivenSets) -> str:
        with pytest.raises(UsageError) as error:
            drawn(model, wrong)
        return error.value.title

    assert "no cell is given" in refused(replace(sets, given=np.zeros_like(sets.given)))
    assert "all cells are given" in refused(replace(sets, given=np.ones_like(sets.given)))
    assert "8 x 6 pixels" in refused(replace(sets, cells=sets.cells[:, :, :6]))
    colourful = sets.cells.copy()
    colourful[0, 0, ..., :3] = np.random.default_rng(0).integers(0, 255, (8, 8, 3))
    colourful[0, 0, ..., 3] = 255
    assert refused(replace(sets, cells=colourful)).endswith("colours; the model takes 15.")
    generator = catalog.recipe("generator")
    with pytest.raises(UsageError, match="can't complete characters"):
        drawn(untrained_model(generator, make_sprites()), sets)


def test_soft_alpha_is_kept(model: TrainedModel, sets: GivenSets) -> None:
    soft = sets.cells.copy()
    soft[:, 0, :2, :, 3] = 100
    soft[:, 0, :2, :, :3] = (200, 13, 7)
    found = drawn(model, replace(sets, cells=soft), variety=2.0)
    assert np.array_equal(found.cells[::2, 0], soft[:, 0])
    assert {tuple(pixel) for pixel in found.cells[found.cells[..., 3] == 100]} == {(200, 13, 7, 100)}


def test_many_sets_are_drawn_in_batches(model: TrainedModel, sets: GivenSets) -> None:
    many = GivenSets(sets.names * 8, np.tile(sets.cells, (8, 1, 1, 1, 1)), np.tile(sets.given, (8, 1)))
    found = drawn(model, many, count=1)  # more than one batch
    assert np.array_equal(found.cells[:3], drawn(model, sets, count=1).cells)
