from __future__ import annotations

from dataclasses import replace

import pytest

from studio.engine import catalog
from studio.engine.steps.benchmark import training_budget
from studio.recipes.base import Recipe, TrainingBudget
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.planning import Planner
from tests.engine.tools import CPU

PLANNER = Planner(width=64, widths=(32, 64, 128), slowing=2.0, most_epochs=100, most_tuning_epochs=200)


def changes(budget: TrainingBudget, minutes: float = 10.0, enough: int = 60_000) -> dict[str, object]:
    return dict(PLANNER.preset("Standard", "", minutes, enough, budget).changes)


def test_unknown_budget_gives_the_default_network() -> None:
    assert changes(TrainingBudget()) == {"minutes": 10.0, "width": 64}


@pytest.mark.parametrize(
    ("sprites_per_s", "width"),
    [(1.0, 32), (25.0, 32), (99.0, 32), (101.0, 64), (399.0, 64), (401.0, 128), (1e6, 128)],
)
def test_preset_takes_the_widest_network_that_sees_enough_sprites(sprites_per_s: float, width: int) -> None:
    # In ten minutes 60,000 sprites need 100 a second; a network twice as wide takes four times as long.
    assert changes(TrainingBudget(0, sprites_per_s))["width"] == width


def test_few_sprites_limit_the_epochs() -> None:
    assert changes(TrainingBudget(300, 100.0)) == {"epochs": 100, "width": 64}
    assert changes(TrainingBudget(599, 100.0)) == {"epochs": 100, "width": 64}
    assert changes(TrainingBudget(600, 100.0)) == {"minutes": 10.0, "width": 64}  # that is, 60,000 at 100 a second


def test_very_few_sprites_are_repeated() -> None:
    assert changes(TrainingBudget(64, 100.0))["epochs"] == 200  # 12,800 in all
    assert changes(TrainingBudget(3, 100.0))["epochs"] == 4267


def test_few_sprites_from_scratch_are_repeated_less() -> None:
    planner = replace(PLANNER, few_epochs=80)
    epochs = [
        planner.preset("Standard", "", 10.0, 60_000, TrainingBudget(count, 100.0, parent)).changes["epochs"]
        for count, parent in ((200, None), (201, None), (200, {"width": 32}))
    ]
    assert epochs == [80, 100, 200]


def test_preset_in_epochs_estimates_its_duration() -> None:
    few, many = (PLANNER.preset("Standard", "", 10.0, 60_000, TrainingBudget(count, 100.0)) for count in (300, 600))
    assert few.about_s == pytest.approx(300.0) and many.about_s == 0.0
    narrow = PLANNER.preset("Standard", "", 10.0, 60_000, TrainingBudget(120, 50.0))
    assert narrow.changes["width"] == 32 and narrow.about_s == pytest.approx(12_840 / (2 * 50.0))


@pytest.mark.parametrize(
    ("sprites", "expected"),
    [
        (600, "Finer."),
        (120, "Suits 120 sprites; a longer training would only memorise them."),
        (1, "One sprite is too few: the model can only memorise it."),
    ],
)
def test_preset_shortened_by_few_sprites_explains_why(sprites: int, expected: str) -> None:
    assert PLANNER.preset("Best", "Finer.", 10.0, 60_000, TrainingBudget(sprites, 100.0)).help == expected


def test_parent_fixes_the_width_and_allows_more_epochs() -> None:
    given = {"width": 32}
    assert changes(TrainingBudget(parent_settings=given))["width"] == 32
    assert changes(TrainingBudget(1_000_000, 1000.0, given))["width"] == 32
    assert changes(TrainingBudget(120, 25.0, given)) == {"epochs": 200, "width": 32}


def test_several_devices_get_a_wider_network_and_larger_batches() -> None:
    device, recipe = replace(CPU, steps_per_s=100.0), Generator()
    one, four = (training_budget(recipe, None, device, None, alike) for alike in (1, 4))
    assert four == TrainingBudget(0, 4 * one.sprites_per_s, None, 4)
    widths = [dict(recipe.presets(budget)[1].changes)["width"] for budget in (one, four)]
    assert widths[0] < widths[1]  # type: ignore[operator]
    sizes = [recipe.defaults(TrainingBudget(devices=alike)).batch_size for alike in (1, 2, 3, 4, 8)]
    assert sizes == [64, 128, 192, 256, 256]
    fixed = {"width": 32, "colours": 256}
    tuned = recipe.defaults(TrainingBudget(parent_settings=fixed, devices=2))
    assert (tuned.batch_size, tuned.width, tuned.learning_rate) == (128, 32, 1e-3)
    assert Classifier().defaults(TrainingBudget(devices=4)) == Classifier().Config()  # its noise scale is not known


@pytest.mark.parametrize("recipe", catalog.recipes().values(), ids=lambda recipe: recipe.name)
def test_one_device_gets_the_usual_batch_size(recipe: Recipe) -> None:
    assert recipe.defaults(TrainingBudget(1000, 100.0)) == recipe.Config()
    assert not any("batch_size" in preset.changes for preset in recipe.presets(TrainingBudget(1000, 100.0)))
