"""Sets as exported models draw them: what the studio draws, and given cells bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from studio.core.events import SetsDrawn
from studio.engine import catalog
from studio.engine.models.exporting import exportable_copy
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.complete import complete
from studio.engine.sampling.settings import CompleteSettings, GivenSets
from studio.exports.base import PROBE
from studio.recipes.flow import normal_rows
from studio.recipes.set_drawing import mirror_sides, palettes_of
from tests.exports.tools import small_model


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return small_model(catalog.recipe("sets"))


@pytest.mark.parametrize("mirrored", [0.0, 1.0])
def test_exports_draw_what_the_studio_draws(model: TrainedModel, mirrored: float) -> None:
    count, exportable = len(model.spec.cells), exportable_copy(model)
    exportable.network.get_buffer("mirrored").fill_(mirrored)
    for network in (exportable.network, model.network):
        network.get_buffer("partners")[2:4] = torch.tensor([3, 2])
    cells, given = (tensor[:3] for tensor in PROBE.sets(count, 8))
    settings = CompleteSettings(seed=5, rounds=3, mirror="on" if mirrored else "off")
    *_, done = complete(model, settings, GivenSets(("a", "b", "c"), cells.numpy(), given.numpy()), first=1)
    assert isinstance(done, SetsDrawn)
    chances = torch.special.ndtr(normal_rows(2, (3, 2, count, 8, 8), 5)[1:]).expand(3, -1, -1, -1, -1, -1)
    drawn = exportable.draw_missing(exportable.network, cells, given, chances, settings.variety).numpy()
    assert (drawn == done.cells).mean() > 0.99 and (drawn[given] == cells.numpy()[given.numpy()]).all()
    is_twin = (drawn[0, 2] == drawn[0, 3, :, ::-1]).all()
    assert is_twin == bool(mirrored) and drawn[0, 2].any()


def test_new_sets_have_the_palette_of_a_training_set(model: TrainedModel) -> None:
    exportable, count = exportable_copy(model), len(model.spec.cells)
    cells, given = torch.full((4, count, 8, 8, 4), 77, dtype=torch.uint8), torch.zeros(4, count, dtype=torch.bool)
    drawn = exportable.draw_missing(exportable.network, cells, given, PROBE.chances(2, count, 8), 1.0)
    colours = {tuple(colour) for colour in drawn.flatten(0, 3).tolist()}
    assert len(colours) > 1 and all(colour[3] in (0, 255) and colour != (77,) * 4 for colour in colours)


def test_a_palette_has_the_most_used_colours_first() -> None:
    cells = torch.zeros(1, 2, 2, 2, 4, dtype=torch.uint8)
    often, rare, hidden = (
        torch.tensor(colour, dtype=torch.uint8) for colour in ((9, 8, 7, 255), (1,) * 4, (5, 5, 5, 0))
    )
    cells[0, 0, 0, 0], cells[0, 0, 1], cells[0, 0, 0, 1], cells[0, 1] = rare, often, hidden, 200
    given = torch.tensor([[True, False]])
    index, palettes = palettes_of(cells, given, 16)
    assert index.tolist() == [[[[2, 0], [1, 1]], [[0, 0], [0, 0]]]]
    assert palettes[0, :4].tolist() == [[0] * 4, often.tolist(), rare.tolist(), [0] * 4]
    index, palettes = palettes_of(cells, given, 2)  # more colours than entries
    assert index.max() == 1 and palettes.shape == (1, 2, 4)


def test_a_side_follows_its_given_or_earlier_partner() -> None:
    cells = torch.arange(3, dtype=torch.uint8)[None, :, None, None, None] * 50 + torch.arange(2)[:, None].byte()
    cells = cells.expand(1, 3, 2, 2, 4)
    partners, shares = torch.tensor([0, 2, 1]), torch.tensor([1.0, 1.0, 1.0])
    for given, followers in (((True, False, False), [2]), ((True, False, True), [1]), ((True, True, True), [])):
        found = mirror_sides(cells, torch.tensor([given]), partners, shares)
        changed = [cell for cell in range(3) if not torch.equal(found[0, cell], cells[0, cell])]
        assert changed == followers
        for cell in changed:
            assert np.array_equal(found[0, cell], cells[0, 3 - cell].flip(1))
    assert torch.equal(mirror_sides(cells, torch.tensor([[True, False, False]]), partners, shares * 0.5), cells)
