"""The table of sets and cells follows its sprites."""

from __future__ import annotations

import json

import numpy as np
import pytest

from studio.data.sets.layout import NO_SETS, SetLayout, find_cell


def made() -> SetLayout:
    """Two sets: the walk of 'orc' repeats sprite 0, and 'elf' has a single column and no 'up'."""
    table = np.array([[0, 1, 0, 2, 3], [4, -1, -1, -1, -1]], np.int32)
    return SetLayout(("down/1", "down/2", "down/3", "up/1", "up/2"), ("orc", "elf"), table, "names", chosen=True)


def test_rows_columns_and_gaps() -> None:
    assert made().rows == ("down", "up") and made().columns == (1, 3)
    assert made().gaps == 1  # 'elf' lacks up/1; nobody has up/3
    assert made().describe() == "2 characters with 2 views x 1 to 3 frames: down, up"
    assert made().take(np.array([4]), 5).describe() == "1 character with 2 views: down, up"
    assert [find_cell(made().cells, name) for name in ("down/2", "up", "left", "up/9")] == [1, 3, -1, -1]
    assert not NO_SETS and (NO_SETS.rows, NO_SETS.columns, NO_SETS.gaps, NO_SETS.digest) == ((), (0, 0), 0, "")


def test_chosen_sprites_keep_their_places() -> None:
    some = made().take(np.array([3, 0, 3]), 5)
    assert some.sets == ("orc",) and some.table.tolist() == [[1, -1, 1, -1, 0]] and some.chosen
    assert made().take(np.array([], np.int64), 5) is NO_SETS and NO_SETS.take(np.array([0]), 1) is NO_SETS
    equal = made().renumbered(np.array([0, 0, 2, 3, 4, -1]))
    assert equal.table.tolist() == [[0, 0, 0, 2, 3], [4, -1, -1, -1, -1]]
    assert made().without([(1, 0), (0, 1)]).table.tolist() == [[0, -1, 0, 2, 3]]


def test_a_set_is_one_group() -> None:
    assert made().joined_groups(np.array([7, 8, 8, 9, 9])).tolist() == [7] * 5  # sprites 3 and 4 were together before
    assert made().joined_groups(np.arange(6)).tolist() == [0, 0, 0, 0, 4, 5]


def test_json() -> None:
    again = SetLayout.from_json(json.loads(json.dumps(made().to_json())), 5)
    assert again.digest == made().digest != made().take(np.arange(4), 5).digest
    values = made().to_json()
    wrong = [
        None, {}, values | {"table": [[0]]}, values | {"table": [["a"] * 5] * 2}, values | {"cells": ["down/1"] * 5},
        values | {"chosen": 1}, values | {"cells": [], "table": []},
        values | {"sets": ["orc", 2]}, values | {"table": [[2**70] * 5] * 2},
    ]  # fmt: skip
    for broken in [*wrong, values | {"table": [[5, 0, 0, 0, 0]] * 2}, values | {"table": [[-2, 0, 0, 0, 0]] * 2}]:
        with pytest.raises(ValueError, match="sets"):
            SetLayout.from_json(broken, 5)
