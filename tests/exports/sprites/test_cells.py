"""Rows of sets with gaps, and their places in a sheet."""

from __future__ import annotations

import numpy as np

from studio.exports.sprites.cells import GAP, Cells

WALK = ("down/stand", "down/step", "up/stand", "up/step")


def test_rows_end_at_their_last_sprite() -> None:
    table = np.array([[0, 1, 2, GAP], [GAP, 3, GAP, GAP], [GAP] * 4], np.int32)
    rows = Cells(WALK, table, ("orc", "elf", "imp")).rows()
    assert [(row.label, row.columns, row.sprites, row.filled) for row in rows] == [
        ("orc_down", ("stand", "step"), (0, 1), [0, 1]),
        ("orc_up", ("stand",), (2,), [2]),
        ("elf_down", ("stand", "step"), (GAP, 3), [3]),
    ]


def test_labels_of_animations_are_unique() -> None:
    cells = Cells(("c", "b_c"), np.array([[0, 1], [2, 3]], np.int32), ("a_b", "a"))
    assert [row.label for row in cells.rows()] == ["a_b_c", "a_b_b_c", "a_c", "a_b_c_"]
    assert [row.label for row in Cells.full(("front", "back"), 2, ["hero"]).rows()] == ["front", "back"]
    assert [row.label for row in Cells.full(("front",), 2).rows()] == ["1_front", "2_front"]


def test_sets_stand_below_one_another_until_the_sheet_is_full() -> None:
    cells = Cells.full(("down/1", "down/2", "down/3", "up"), 12)
    numbers, columns = cells.slots(100)
    assert columns == 3 and numbers.ravel().tolist() == list(range(18))
    numbers, columns = cells.slots(4)  # two sets, then the third beside them
    assert columns == 6
    assert numbers[1].tolist() == [[12, 13, 14], [18, 19, 20]] and numbers[2].tolist() == [[3, 4, 5], [9, 10, 11]]
    assert cells.slots(1)[1] == 9
