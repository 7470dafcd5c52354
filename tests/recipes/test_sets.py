"""The recipe of sets: which sets it learns from, what a batch shows it, and what it learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from studio.core.errors import TrainingError
from studio.core.events import SamplesReady, Validated
from studio.data.sprites import Sprites
from studio.engine.steps.batches import DeviceSprites
from studio.recipes.base import BatchRng, Spec
from studio.recipes.capabilities import SetCondition
from studio.recipes.sets import Sets, SetsConfig
from tests.conftest import make_sprites, with_sets
from tests.engine.tools import of_kind, train_sets, untrained_model

RECIPE = Sets()


@pytest.fixture
def sprites() -> Sprites:
    """Twelve sets of a left and a right view; nine of the right views mirror the left ones."""
    rgba = make_sprites().rgba
    rgba[1:18:2] = rgba[0:18:2, :, ::-1]
    return with_sets(replace(make_sprites(), rgba=rgba), ("left", "right"))


def test_rare_cells_and_colourful_sets_are_left_out(sprites: Sprites) -> None:
    layout = sprites.sets
    table = np.concatenate([layout.table, np.full((12, 1), -1, np.int32)], 1)
    table[0, 2] = 5
    rgba = sprites.rgba.copy()
    rgba[2, ..., :3] = np.random.default_rng(0).integers(0, 255, rgba[2, ..., :3].shape)
    rgba[2, ..., 3] = 255
    wide = replace(sprites, rgba=rgba, sets=replace(layout, cells=("left", "right", "wave"), table=table))
    chosen, notes = RECIPE.select(wide, SetsConfig(colours=16))
    assert chosen.sets.cells == ("left", "right") and len(chosen.sets) == 11 and chosen.sets.chosen
    assert notes == ["Left out, in too few sets: wave.", "Left out, more than 16 colours: 1 set."]
    assert (chosen.labels == 0).all() and len(chosen) == 22


def test_sprites_without_sets_or_with_few_are_refused(sprites: Sprites) -> None:
    with pytest.raises(TrainingError, match="form no sets"):
        RECIPE.select(make_sprites(), SetsConfig())
    few = sprites.of_sets(sprites.sets.part(np.arange(12) < 7, np.ones(2, np.bool_)))
    with pytest.raises(TrainingError, match="7 sets with two or more cells: too few"):
        RECIPE.select(few, SetsConfig())


def test_unsuitable_sprites_are_told_before_a_training(sprites: Sprites) -> None:
    assert RECIPE.obstacle(make_sprites()) == "These sprites have no views or frames. Open sheets of characters."
    few = sprites.of_sets(sprites.sets.part(np.arange(12) < 7, np.ones(2, np.bool_)))
    assert RECIPE.obstacle(few) == "7 characters with several views or frames. Open at least 8."
    assert not RECIPE.obstacle(sprites) and RECIPE.count_examples(sprites) == 12


def test_a_mirrored_set_swaps_left_and_right(sprites: Sprites) -> None:
    chosen, _ = RECIPE.select(sprites, RECIPE.small)
    network: Any = untrained_model(RECIPE, chosen).network
    examples, indices = RECIPE.examples(chosen, np.arange(24))
    data, losses = DeviceSprites(examples, torch.device("cpu"), indices=indices), list[float]()
    batch = next(data.plain_batches(4, 4))
    cells = batch.x.unflatten(1, (2, 4))
    by_hand = replace(batch, x=cells.flip(1, 4).flatten(1, 2))
    mirrored = replace(batch, x=batch.x.flip(3), augment_labels=torch.tensor([[1.0, 0, 0]]).expand(4, -1))
    for each in (by_hand, mirrored):
        losses.append(RECIPE.loss(network, each, RECIPE.small, BatchRng(torch.Generator().manual_seed(1), each)).item())
    assert losses[0] == pytest.approx(losses[1])


def test_statistics_tell_exact_mirror_images(sprites: Sprites) -> None:
    found = RECIPE.statistics(sprites, RECIPE.small)
    assert found["mirrored"].tolist() == [0.75, 0.75] and found["partners"].tolist() == [1, 0]
    assert found["leads"].tolist() == [True, True]


@pytest.mark.slow
def test_it_learns_to_copy_and_mirror(run_path: Path, sprites: Sprites) -> None:
    """Right views are mirror images; held-out sets show whether it has learnt this instead of its sprites."""
    rgba = make_sprites(per_class=40).rgba
    rgba[1::2] = rgba[::2, :, ::-1]
    many = with_sets(replace(make_sprites(per_class=40), rgba=rgba), ("left", "right"))
    events = list(train_sets(run_path, many, steps=25, batch_size=8, learning_rate=4e-3, flip=False))
    validated = of_kind(events, Validated)[-1]
    assert validated.metrics["exact right"] > validated.baseline["exact right"] + 0.1
    samples = of_kind(events, SamplesReady)[-1]
    assert samples.originals is not None and samples.originals.shape == samples.sprites.shape
    assert samples.captions[:2] == ("left", "right")
    assert np.array_equal(samples.sprites[::2], samples.originals[::2])  # the given views


def test_a_new_set_is_drawn_from_its_first_cell(sprites: Sprites) -> None:
    network = RECIPE.build(RECIPE.small, Spec.of(sprites)).eval()
    given = torch.tensor([[False, False], [True, False]])
    index, palette = torch.ones(2, 2, 8, 8, dtype=torch.long), torch.rand(2, 16, 4) * 2 - 1
    chances = torch.rand(2, 4, 2, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        states = list(RECIPE.complete(network, SetCondition(index, palette, given), chances, 1.0))
    assert len(states) == 4 and torch.equal(states[2][0, 0], states[3][0, 0])  # whole before the last round
    assert not torch.equal(states[0][0, 0], states[1][0, 0]) and (states[3][1, 0] == 1).all()
