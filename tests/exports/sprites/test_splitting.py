"""Sets in several files: the animations as Pillow plays them, and the names of the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from studio.exports.sprites.formats import sprite_exports
from studio.exports.sprites.splitting import split_rows, split_sets, unique_file_names
from tests.exports.sprites.making import BLUE, GREEN, RED, of_colours, played

WHITE = (250, 250, 250)
SPRITES = of_colours(RED, GREEN, BLUE, WHITE)
WALK = ("down/1", "down/2", "down/3", "up/1", "up/2")


def shown(path: Path) -> list[tuple[int, int]]:
    """Index in SPRITES and milliseconds of each frame."""
    return [(_index(frame), duration_ms) for frame, duration_ms in played(path.read_bytes())]


def _index(frame: Rgba) -> int:
    return [np.array_equal(frame, sprite) for sprite in SPRITES].index(True)


@pytest.mark.parametrize("form", ["gif", "apng"])
def test_a_file_for_each_row_of_frames(form: str, tmp_path: Path) -> None:
    cells = Cells(WALK, np.array([[0, GAP, 1, 2, 3], [3, 1, 3, GAP, 0]], np.int32), ("orc", "elf"))
    written = sprite_exports()[form].write(SpriteSet(SPRITES, cells=cells, duration_ms=150), tmp_path / "art")
    assert {path.name: shown(path) for path in written} == {
        f"art-orc-down.{form}": [(0, 150), (1, 150)],
        f"art-orc-up.{form}": [(2, 150), (3, 150)],
        f"art-elf.{form}": [(0, 300)],
        f"art-elf-down.{form}": [(3, 150), (1, 150), (3, 150)],
    }


@pytest.mark.parametrize("form", ["gif", "apng"])
@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("down", "up", "left", "right"), [0, 2, 1, 3]),
        (("north", "East", "south", "west"), [2, 3, 0, 1]),
        (("front", "side", "back", "hat"), [0, 1, 2, 3]),
    ],
)
def test_single_views_become_a_turntable(form: str, names: tuple[str, ...], order: list[int], tmp_path: Path) -> None:
    given = SpriteSet(SPRITES, cells=Cells.full(names, 4), duration_ms=400)
    (path,) = sprite_exports()[form].write(given, tmp_path / "art")
    assert path.name == f"art.{form}" and shown(path) == [(index, 400) for index in order]


def test_a_single_animation_has_the_chosen_name(tmp_path: Path) -> None:
    (path,) = sprite_exports()["gif"].write(
        SpriteSet(SPRITES, cells=Cells.full(("down/1", "down/2"), 2)), tmp_path / "a"
    )
    assert path.name == "a.gif" and len(shown(path)) == 2


def test_endings_are_safe_and_unique() -> None:
    cells = Cells.full(("b-c/1", "b-c/2", "c/1", "c/2"), 12, ["a", "A-b", "../a:b"])
    assert [*split_rows(SpriteSet(of_colours(*[RED] * 12), cells=cells))] == [
        "-a-b-c", "-a-c", "-A-b-b-c", "-A-b-c-2", "-_a_b-b-c", "-_a_b-c",
    ]  # fmt: skip
    assert unique_file_names(["x", "X", "x-2", "x"]) == ["x", "X-2", "x-2-2", "x-3"]


def test_each_set_takes_its_own_sprites() -> None:
    cells = Cells(("front", "back"), np.array([[3, 1], [GAP, GAP], [3, GAP]], np.int32))
    parts = split_sets(SpriteSet(SPRITES, list("abcd"), own_durations_ms=[1, 2, 3, 4], cells=cells))
    assert list(parts) == ["-1", "-3"]
    first = parts["-1"]
    assert np.array_equal(first.sprites, SPRITES[[1, 3]]) and first.names == ["b", "d"]
    assert first.own_durations_ms == [2, 4] and first.cells is not None and first.cells.table.tolist() == [[1, 0]]


def test_files_that_nobody_named_are_never_replaced(tmp_path: Path) -> None:
    given = SpriteSet(SPRITES, cells=Cells.full(("down/1", "down/2", "up/1", "up/2"), 4))
    for number in ("", "-2"):
        written = sprite_exports()["gif"].write(given, tmp_path / "a.gif", replace=True)
        assert [path.name for path in written] == [f"a{number}-down.gif", f"a{number}-up.gif"]
    one = SpriteSet(SPRITES, cells=Cells.full(("down", "up"), 2))
    for _ in range(2):
        assert sprite_exports()["gif"].write(one, tmp_path / "a.gif", replace=True) == [tmp_path / "a.gif"]


def test_sets_without_a_sprite_are_refused(tmp_path: Path) -> None:
    cells = Cells(("front",), np.array([[GAP]], np.int32))
    with pytest.raises(ExportError, match="no sprites"):
        sprite_exports()["gif"].write(SpriteSet(SPRITES, cells=cells), tmp_path / "a")
