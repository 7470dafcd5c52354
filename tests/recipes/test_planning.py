from __future__ import annotations

import pytest

from studio.recipes.base import TrainingBudget
from studio.recipes.planning import Planner

PLANNER = Planner(width=64, widths=(32, 64, 128), slowing=2.0, most_looks=100, most_tuning_looks=200)


def changes(means: TrainingBudget, minutes: float = 10.0, enough: int = 60_000) -> dict[str, object]:
    return dict(PLANNER.preset("Standard", "", minutes, enough, means).changes)


def test_without_means_it_is_the_default_network() -> None:
    assert changes(TrainingBudget()) == {"minutes": 10.0, "width": 64}


@pytest.mark.parametrize(
    ("sprites_per_s", "width"),
    [(1.0, 32), (25.0, 32), (99.0, 32), (101.0, 64), (399.0, 64), (401.0, 128), (1e6, 128)],
)
def test_the_widest_network_that_sees_enough(sprites_per_s: float, width: int) -> None:
    # In ten minutes 60,000 sprites need 100 a second; a network twice as wide is four times slower.
    assert changes(TrainingBudget(0, sprites_per_s))["width"] == width


def test_few_sprites_are_not_looked_at_more_often_than_is_good() -> None:
    assert changes(TrainingBudget(120, 100.0)) == {"minutes": 2.0, "width": 64}  # 12,000 looks at 100 a second
    assert changes(TrainingBudget(600, 100.0))["minutes"] == 10.0
    assert changes(TrainingBudget(3, 100.0))["minutes"] == 0.5


def test_trained_weights_fix_the_width_and_are_tuned_for_longer() -> None:
    given = {"width": 32}
    assert changes(TrainingBudget(given=given))["width"] == 32
    assert changes(TrainingBudget(1_000_000, 1000.0, given))["width"] == 32
    assert changes(TrainingBudget(120, 25.0, given)) == {"minutes": 4.0, "width": 32}  # 24,000 looks at 100 a second
