"""Figures of walks, and of a model of sets beside the true cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studio.core.events import Progress, Validated
from studio.core.generators import Steps, run_to_end
from studio.engine import catalog
from studio.engine.quality.judge_sets import judge_sets, walk_figures
from tests.conftest import make_sprites, with_sets
from tests.engine.tools import untrained_model

WALK = ("down/1", "down/2", "down/3", "up/1", "up/2", "up/3")


def _figure(top: int) -> np.ndarray:
    """A block of 2x2 white pixels: uint8 [8, 8, 4]."""
    cell = np.zeros((8, 8, 4), np.uint8)
    cell[top : top + 2, 3:5] = 255
    return cell


def test_feet_range_and_closed_walks() -> None:
    leads, there = np.array([True, False, False]), np.ones((1, 3), np.bool_)
    jumping = np.stack([_figure(1), _figure(4), _figure(2)])[None]
    assert walk_figures(jumping, there, leads) == {"feet": 3.0, "closed": 1.0}  # each step moves the whole figure
    torn = np.stack([_figure(1), _figure(2), _figure(3)])[None]  # the way back is longer than a step
    assert walk_figures(torn, there, leads) == {"feet": 2.0, "closed": 0.0}
    there[0, 2] = False  # two frames are no walk
    assert walk_figures(torn, there, leads) == {"feet": 1.0}


def test_drawn_cells_are_judged_beside_true_cells() -> None:
    recipe = catalog.recipe("sets")
    sprites, _ = recipe.select(with_sets(make_sprites(per_class=30), WALK), recipe.small)
    model, found = untrained_model(recipe, sprites), Validated(0, {"loss": 1.0}, baseline={"exact": 0.5})
    training, heldout = sprites.take(np.arange(36)), sprites.take(np.arange(36, 60))
    steps = Steps(judge_sets(model, found, heldout, training))
    assert all(isinstance(event, Progress) for event in steps)
    judged = steps.result
    assert set(judged.metrics) == {"loss", "surprisal", "copies", "feet", "closed"}
    assert set(judged.baseline) == {"exact", "surprisal", "copies", "feet", "closed"}
    assert judged.metrics["surprisal"] > judged.baseline["surprisal"] > 0  # it has learnt nothing
    assert 0 <= judged.metrics["copies"] <= 1


def test_true_cells_are_not_judged_by_counts_of_themselves() -> None:
    recipe = catalog.recipe("sets")
    sprites, _ = recipe.select(with_sets(make_sprites(per_class=30), WALK), recipe.small)
    noise = np.random.default_rng(0).integers(0, 2, (len(sprites), *sprites.rgba.shape[1:3], 1), np.uint8) * 255
    sprites = replace(sprites, rgba=np.concatenate([noise.repeat(3, 3), np.full_like(noise, 255)], 3))
    training, heldout = sprites.take(np.arange(36)), sprites.take(np.arange(36, 60))
    model = untrained_model(recipe, sprites)
    judged = run_to_end(judge_sets(model, Validated(0, {}, baseline={}), heldout, training))
    assert judged.baseline["surprisal"] == pytest.approx(1, abs=0.1)  # of random black and white pixels: one bit each
