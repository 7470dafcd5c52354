"""Tests of grids for single sheets: a listed sheet gets its own grid, other sheets keep the common settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice
from studio.data.importing.sheet_grids import match_sheet_grids, parse_sheet_grids, replace_sheet_grids
from studio.data.options import SheetGrid
from tests.data.composing import animated, demo_sprites, laid, trimmed
from tests.data.making import Pixels, events_of, imported, notes, sprite, write

STRIP, FISTS = SheetGrid(12, 14), SheetGrid(24, 17)


def figures(rng: np.random.Generator, count: int, frames: int, grid: SheetGrid) -> list[Pixels]:
    """Return `count` sprites with `frames` frames, at most as large as a cell."""
    cells: list[Pixels] = []
    small = [trimmed(one)[: grid.tile_height, : grid.tile_width - 1] for one in demo_sprites()[::53]]
    for one in small[:count]:
        cells += animated(one, frames, grid.tile_width, grid.tile_height, rng)
    return cells


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a game has it: a strip of 512 x 32 pixels with two rows of small cells, a page of large cells in six
    rows, and plain strips.
    """
    where, rng = tmp_path_factory.mktemp("game"), np.random.default_rng(3)
    write(where / "spirits.png", laid(figures(rng, 6, 14, STRIP), STRIP, 42, 512, 32))
    fists = figures(rng, 6, 7, FISTS)
    write(where / "fists.png", laid(fists, FISTS, 7, 256, 128))
    for number in range(4):
        write(
            where / f"strip{number}.png",
            laid(figures(rng, number + 1, 8, SheetGrid(16, 16))[-8:], SheetGrid(16, 16), 8),
        )
    return where


@pytest.mark.parametrize("sheets", ["grid", "as they are", "packed"])
def test_a_sheet_with_its_own_grid(game: Path, sheets: str) -> None:
    before = imported(game, sheets=sheets)
    after = imported(game, sheets=sheets, sheet_grids="spirits.png=12x14; fists.png=24x17")
    cut = notes(after, "cut sheet")
    assert cut["spirits.png"] == "sliced into 84 tiles of 12 x 14 pixels"
    assert cut["fists.png"] == "sliced into 42 tiles of 24 x 17 pixels"
    own = {"spirits.png", "fists.png"}
    assert {name: words for name, words in cut.items() if name not in own} == {
        name: words for name, words in notes(before, "cut sheet").items() if name not in own
    }
    for sheet in after.sheets:
        if sheet.name in own:
            assert (sheet.grid, sheet.sprites) == ((STRIP, 84) if sheet.name == "spirits.png" else (FISTS, 42))
    assert after.sprites.origin["options"]["sheet_grids"] == "spirits.png=12x14; fists.png=24x17"


def test_patterns_match_several_sheets_and_unknown_names_are_reported(game: Path) -> None:
    *events, result = events_of(game, sheets="grid", sheet_grids="strip?.png=8x16; spirit.png=12x14")
    told = [event.title for event in events if isinstance(event, Notice)]
    assert "No sheet matches 'spirit.png'." in told and len(told) == 1
    assert notes(result, "cut sheet")["strip0.png"].endswith("tiles of 8 x 16 pixels")  # type: ignore[arg-type]


def test_a_sprite_in_a_single_tile_stays_whole(tmp_path: Path) -> None:
    write(tmp_path / "one.png", sprite(1, 16))
    write(tmp_path / "two.png", sprite(2, 16))
    assert imported(tmp_path, sheet_grids="one.png=16x16").sprites.names == ("one.png", "two.png")


@pytest.mark.parametrize(
    "text",
    ["hero", "=16x16", "hero=16", "hero=0x16", "hero=16x999", "hero=8x8+1", "hero=8x8+300+0", "hero=8x8/9x"],
)
def test_a_malformed_list_is_refused_before_reading_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInputError, match=r"hero|=16x16"):
        imported(tmp_path, sheet_grids=text)


def test_grids_round_trip_through_text() -> None:
    grids = {
        "a/b c.png": SheetGrid(16, 24),
        "odd[1];=*.png": SheetGrid(12, 14, 1, 2, 3),
        "c.png": SheetGrid(8, 8, 0, 0, 1),
    }
    text = replace_sheet_grids("", grids, grids)
    assert text.startswith("a/b c.png=16x24; odd") and text.endswith("=12x14+1+2/3; c.png=8x8/1")
    assert match_sheet_grids(text, [*grids, "other.png"]) == grids
    assert parse_sheet_grids(" a.png = 16x24 ;; ") == {"a.png": SheetGrid(16, 24)}


def test_new_grids_replace_only_the_entries_of_their_sheets() -> None:
    text = replace_sheet_grids(
        "strip*.png=8x8; far.png=4x4", ["strip1.png", "strip2.png"], {"strip2.png": SheetGrid(16, 16)}
    )
    assert text == "strip2.png=16x16; far.png=4x4"
