"""Names of cells, and the tasks by which a model of sets is judged."""

from __future__ import annotations

import torch

from studio.recipes.set_tasks import ExactShares, first_of_rows, tasks_of

WALK = ("down/stand", "down/step", "left/stand", "left/step", "right/stand", "right/step")


def test_rows_begin_with_their_first_column() -> None:
    assert first_of_rows(WALK) == (True, False) * 3
    assert first_of_rows(("front", "back")) == (True, True)


def test_tasks_follow_from_the_cells() -> None:
    alone, steps, side = tasks_of(WALK, (0, 1, 4, 5, 2, 3))
    assert (alone.name, sum(alone.given), alone.rows) == ("exact", 1, ("", "", "left", "", "right", ""))
    assert (steps.name, steps.given, steps.repeated) == ("exact steps", first_of_rows(WALK), (0, 0, 2, 2, 4, 4))
    assert (side.given.index(True), side.judged.index(True), side.mirrors) == (2, 4, True)
    assert [task.name for task in tasks_of(("a", "b"), (0, -1))] == ["exact"]


def test_exact_pixels_are_counted_in_the_union_of_silhouettes() -> None:
    (task, *_), shares = tasks_of(("front", "back"), (0, 1)), ExactShares()
    true = torch.full((1, 2, 4, 2, 2), -1.0)  # transparent
    drawn = true.clone()
    true[0, 1, :, 0, :] = 1.0  # two white pixels
    drawn[0, 1, :, :, 0] = 1.0  # of which one is drawn, and one pixel too many
    shares.add(task, true, drawn, torch.tensor([[True, True]]))
    assert shares.shares() == {"exact": 1 / 3, "exact back": 1 / 3}
    shares.add(task, true, true, torch.tensor([[True, False]]))  # a set without the cell does not count
    assert shares.shares()["exact"] == 1 / 3
