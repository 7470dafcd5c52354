from __future__ import annotations

import pytest

from studio.data.sets.matching import match_cells

WALK = [f"{row}/{column}" for row in ("down", "up", "left", "right") for column in ("stand", "step", "stand2", "step2")]


def test_equal_cells_match_themselves() -> None:
    assert match_cells(WALK, WALK) == WALK and match_cells(["hat", "coat"], ["coat", "hat"]) == ["hat", "coat"]


@pytest.mark.parametrize(
    ("cell", "best"),
    [
        ("front", "down"), ("Back", "up"), ("north-west", "left"), ("se", "right"), ("side", "right"), ("r", "right"),
        ("attack", ""),
    ],
)  # fmt: skip
def test_rows_that_show_the_same_side_match(cell: str, best: str) -> None:
    assert match_cells([cell], ["down", "up", "left", "right"]) == [best]


def test_a_diagonal_is_nearest_to_its_own_side() -> None:
    assert match_cells(["left", "up"], ["down-right", "up-left"]) == ["up-left", "up-left"]


def test_columns_match_by_name_then_by_position() -> None:
    assert match_cells(["down", "left/step", "left/run"], WALK) == ["down/stand", "left/step", "left/step"]
    assert match_cells([f"front/{number}" for number in range(1, 7)], WALK)[3:] == ["down/step2"] * 3
    assert match_cells(WALK[:3], ["down", "up"]) == ["down"] * 3
