"""Images in cells: a cell, a sheet, named files, other sizes; and drafts as steps."""

from __future__ import annotations

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.sets.drafts import GIVEN, Candidate, CellRef, Draft, animation
from studio.data.sets.layout import GAP
from studio.data.sets.placing import CellGrid, count_colours, place_frames, place_images

NAMES = ("down/stand", "down/step", "up/stand")
GRID = CellGrid(NAMES)


def image(height: int, width: int, colour: int = 9) -> np.ndarray:
    return np.full((height, width, 4), (colour, 0, 0, 255), np.uint8)


def test_a_grid_has_rows_of_unequal_length() -> None:
    assert GRID.rows == ("down", "up") and GRID.columns == ("stand", "step")
    assert GRID.table.tolist() == [[0, 1], [2, GAP]]
    assert CellGrid(("a/1", "b/2", "b/3")).columns == ("1", "2") and CellGrid(("front", "back")).columns == ("",)


@pytest.mark.parametrize(
    ("file", "cell"),
    [("up.png", 2), ("hero_down_step.png", 1), ("Down-Step.PNG", 1), ("hero-down.png", 0), ("cup.png", GAP)],
)
def test_files_are_named_after_cells(file: str, cell: int) -> None:
    assert GRID.cell_of_file(file) == cell


def test_an_image_fills_its_cell_and_a_sheet_its_drawn_cells() -> None:
    assert place_images([("a.png", image(4, 4))], GRID, 4, [0, 1, 2], 1).keys() == {1}
    assert place_images([("up.png", image(4, 4))], GRID, 4, [0, 1, 2]).keys() == {2}
    assert place_images([("a.png", image(4, 4))], GRID, 4, [1, 2]).keys() == {1}
    several = place_images([("b.png", image(4, 4)), ("down.png", image(4, 4, 5))], GRID, 4, [0, 1, 2])
    assert several.keys() == {0, 1} and several[0][0, 0, 0] == 5
    sheet = image(8, 8)
    sheet[:4, 4:] = 0
    sheet[4:, 4:, 0] = 7  # a place without a cell
    placed = place_images([("sheet.png", sheet)], GRID, 4, [0, 1, 2])
    assert placed.keys() == {0, 2} and placed[2].shape == (4, 4, 4)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([rng.integers(0, 255, (8, 8, 3), np.uint8), np.full((8, 8, 1), 255, np.uint8)], 2)
    (found,) = place_images([("large.png", drawn.repeat(3, 0).repeat(3, 1))], CellGrid(("a", "b")), 8, [0, 1]).values()
    assert np.array_equal(found, drawn)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ([("a.png", image(5, 4))], "a.png has 4 x 5 pixels. A cell has 4 x 4 pixels, a sheet of all cells 8 x 8."),
        ([("a.png", image(8, 8) * 0)], "a.png is empty."),
        ([(f"{n}.png", image(4, 4)) for n in range(4)], "4 images don't fit the empty cells."),
        ([("up.png", image(4, 4)), ("x_up.png", image(4, 4))], "2 images don't fit the empty cells."),
    ],
)
def test_images_that_do_not_fit(images: list[tuple[str, np.ndarray]], words: str) -> None:
    with pytest.raises(BadInputError) as error:
        place_images(images, GRID, 4, [0, 1, 2])
    assert f"{error.value.title} {error.value.hint}".startswith(words)


def test_a_draft_is_never_changed_in_place() -> None:
    empty = Draft.empty(NAMES, 4)
    given = empty.with_given({0: image(4, 4)})
    assert not empty.given.any() and given.given.tolist() == [True, False, False] and count_colours(given.cells) == 1
    cells, locked = np.stack([image(4, 4)] * 3), given.given
    one = Candidate(cells, locked, locked, locked & False, 7, 0)
    drawn = Draft(GRID, given.cells, (one,))
    painted = drawn.with_pixels(CellRef(one.key, 1), image(4, 4, 200))
    changed = painted.candidate(one.key)
    assert changed is not None and changed.locked.tolist() == [True, True, False]
    assert changed.painted.tolist() == [False, True, False]
    assert one.cells[1, 0, 0, 0] == 9 and painted.pixels(CellRef(one.key, 1))[0, 0, 0] == 200  # type: ignore[index]
    redrawn = changed.redrawn(np.stack([image(4, 4, 50)] * 3), ~changed.locked, carries=True)
    assert redrawn.cells[:, 0, 0, 0].tolist() == [9, 200, 50] and not redrawn.painted.any()
    assert drawn.without_candidates([one.key]).pixels(CellRef(one.key, 0)) is None
    assert drawn.pixels(CellRef(GIVEN, 0)) is not None


def test_an_animation_shows_one_view_or_all() -> None:
    cells = np.stack([image(4, 4, colour) for colour in (1, 2, 3)])
    assert animation(cells, GRID, 0)[:, 0, 0, 0].tolist() == [1, 2]
    every = animation(cells, GRID, -1)
    assert every.shape == (2, 4, 8, 4) and every[1, 0, 4].tolist() == [0, 0, 0, 0]
    turn = animation(cells, CellGrid(("front", "left", "back")), -1)
    assert turn.shape == (3, 4, 4, 4)
    assert len(animation(cells * 0, GRID, -1)) == 0


SIXTEEN = CellGrid(tuple(f"{view}/{frame}" for view in ("down", "up", "left") for frame in ("stand", "step")))


def frames(*names: str) -> list[tuple[str, np.ndarray]]:
    return [(name, image(4, 4, number)) for number, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("names", "target", "cells"),
    [
        (("up 1", "up 2", "walk left 2"), 0, {2: 1, 3: 2, 5: 3}),
        (("down/stand", "down-step", "tail 1"), 4, {0: 1, 1: 2}),
        (("front 1", "front 2", "front 3"), GAP, {0: 1, 1: 2}),
        (("frame 1", "frame 2", "frame 3"), 2, {2: 1, 3: 2}),
        (("frame 1", "frame 2", "frame 3"), 5, {5: 1}),
        (tuple(f"frame {number}" for number in range(1, 7)), 3, {cell: cell + 1 for cell in range(6)}),
    ],
)
def test_frames_fill_cells_by_name_or_in_order(names: tuple[str, ...], target: int, cells: dict[int, int]) -> None:
    placed = place_frames(frames(*names), SIXTEEN, 4, target)
    assert {cell: int(rgba[0, 0, 0]) for cell, rgba in placed.items()} == cells


def test_a_strip_fills_cells_from_its_first_on() -> None:
    assert place_images([("up.png", image(4, 8))], SIXTEEN, 4, []).keys() == {2, 3}
    assert place_images([("up.png", image(8, 4))], SIXTEEN, 4, [], 3).keys() == {3, 5}
    with pytest.raises(BadInputError, match="has 12 x 4 pixels"):
        place_images([("a.png", image(4, 12))], SIXTEEN, 4, [])
    with pytest.raises(BadInputError, match="The frames have 5 x 5 pixels"):
        place_frames([("a 1", image(5, 5)), ("a 2", image(5, 5))], SIXTEEN, 4)
