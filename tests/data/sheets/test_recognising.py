"""Realistic folders: strips and sheets without description are detected, single sprites are not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.data.doctor.findings import list_findings
from studio.data.files.source_files import SourceFile
from studio.data.import_result import SpritesImported
from studio.data.importing.import_buffer import ImportBuffer
from studio.data.importing.sheet_detection import further_sheets
from studio.data.options import ImportOptions, SheetGrid
from studio.data.reading.read import DecodedSprite, ReadResult
from studio.data.sheets.recognising import SheetCandidate, sheet_candidates, vote_on_sheets, without_lone_sheets
from tests.data.composing import Composed, Composer, animated, celled, demo_sprites, frames_of, laid, trimmed
from tests.data.making import Pixels, imported, notes, reasons, sprite, write, write_many

STRIPS, WHOLE = 44, 12
Both = tuple[SpritesImported, SpritesImported]


@pytest.fixture(scope="module")
def sprites() -> list[Pixels]:
    return demo_sprites()


@pytest.fixture(scope="module")
def nfc(sprites: list[Pixels]) -> dict[str, Composed]:
    made = Composer(sprites, np.random.default_rng(4)).folder(STRIPS, WHOLE)
    return {one.name: one for one in made}


@pytest.fixture(scope="module")
def both(nfc: dict[str, Composed], tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Import the folder without slicing, and with slicing."""
    where = tmp_path_factory.mktemp("game") / "set"
    for one in nfc.values():
        write(where / one.name, one.rgba)
    return imported(where), imported(where, sheets="grid")


@pytest.mark.parametrize(
    ("grid", "frames", "columns", "figures", "page"),
    [
        (SheetGrid(12, 14), 14, 42, 6, (512, 32)),
        (SheetGrid(24, 17), 7, 7, 6, (256, 128)),
        (SheetGrid(12, 15), 14, 14, 4, (256, 64)),
    ],
)
def test_rows_of_a_page_are_not_joined(
    sprites: list[Pixels], grid: SheetGrid, frames: int, columns: int, figures: int, page: tuple[int, int]
) -> None:
    rng, cells = np.random.default_rng(1), list[Pixels]()
    fitting = [one for one in map(trimmed, sprites[1::7]) if fits(one, grid)]
    for one in fitting[:: max(1, len(fitting) // figures)][:figures]:
        cells += animated(one, frames, grid.tile_width, grid.tile_height, rng)
    rgba = laid(cells, grid, columns, *page)
    found = vote_on_sheets({0: sheet_candidates(rgba)})[0]
    assert frames_of(rgba, found.grid) == frames_of(rgba, grid)


def fits(rgba: Pixels, grid: SheetGrid) -> bool:
    """Whether a sprite fills most of a tile."""
    height, width = rgba.shape[:2]
    return bool(grid.tile_height - 3 <= height <= grid.tile_height - 1 and 6 <= width < grid.tile_width)


def test_all_strips_and_sheets_are_recognised_with_their_cells(nfc: dict[str, Composed], both: Both) -> None:
    kinds = Counter(one.name.split()[0] for one in nfc.values() if one.grid)
    assert sum(kinds.values()) == STRIPS and min(kinds.values()) >= 2 and len(kinds) == 7
    expected = {one.name: one for one in nfc.values() if one.grid}
    found = {sheet.name: sheet for sheet in both[0].sheets}
    assert found.keys() == expected.keys()  # all 44 sheets, no single sprite
    exact = 0
    for name, sheet in found.items():
        one = expected[name]
        assert one.grid is not None and frames_of(one.rgba, sheet.grid) == frames_of(one.rgba, one.grid), name
        assert sheet.sprites == one.frames, name
        exact += replace(sheet.grid, confidence=1.0) == one.grid
    assert exact >= 40  # a page taller than its frames: the cell height is unknown


def test_single_sprite_is_never_sliced(nfc: dict[str, Composed], both: Both) -> None:
    uncut, cut = both
    whole = {one.name for one in nfc.values() if not one.grid}
    names = {*cut.sprites.names, *(item.name for item in cut.quarantine)}
    assert whole <= names and notes(cut, "cut sheet").keys() == {one.name for one in nfc.values() if one.grid}
    assert not notes(cut, "looks like a sheet") and not reasons(cut, "looks like a sheet")
    assert cut.sheets == uncut.sheets


def test_the_canvas_comes_from_the_cells(nfc: dict[str, Composed], both: Both) -> None:
    uncut, cut = both
    assert uncut.sprites.size == 256
    largest = max(max(sheet.grid.tile_width, sheet.grid.tile_height) for sheet in cut.sheets)
    assert cut.sprites.size <= 32 and largest <= 32
    kept = sum("#" in name for name in cut.sprites.names)
    left_out = sum("#" in item.name for item in cut.quarantine)
    assert kept + left_out == sum(one.frames for one in nfc.values() if one.grid)  # no empty cell


def test_detected_sheets_are_reported_with_a_flag(nfc: dict[str, Composed], both: Both) -> None:
    uncut, _ = both
    said = {**notes(uncut, "looks like a sheet"), **reasons(uncut, "looks like a sheet")}
    duplicates = reasons(uncut, "duplicate").keys()
    assert said.keys() | duplicates >= {one.name for one in nfc.values() if one.grid}
    assert all("looks like" in words and "sprites of" in words for words in said.values())
    for size, changes in ((0, {"sheets": "grid"}), (64, {"sheets": "grid", "size": 0})):
        kept = {one.group: one for one in list_findings(uncut, ImportOptions(size=size)) if not one.left_out}
        assert kept["looks like a sheet"].fixes[0].changes == changes


def test_single_sprites_are_not_sheets(sprites: list[Pixels]) -> None:
    seen = {number: sheet_candidates(rgba) for number, rgba in enumerate(sprites[::4])}
    assert len(seen) == 840 and not vote_on_sheets(seen)


def test_double_sprites_are_sheets_only_by_vote(sprites: list[Pixels]) -> None:
    boot = celled(trimmed(sprites[1440]), 16, 18)
    two = np.concatenate([boot, boot], axis=1)
    assert not vote_on_sheets({0: sheet_candidates(two)})
    others = {number: (SheetCandidate(SheetGrid(16, 18), 6, 8.0, 15.0),) for number in range(1, 9)}
    assert vote_on_sheets({0: sheet_candidates(two), **others})[0].grid.tile_width == 16


def test_only_clear_borders_prove_a_cut_off_tile() -> None:
    cut_off = SheetCandidate(SheetGrid(16, 16), 5, -2.7, 15.7, strip=True, rest=(6, 0))
    assert vote_on_sheets({0: (cut_off,)})[0].rest == (6, 0)
    for weaker in (replace(cut_off, sheet=10.0), replace(cut_off, rest=(0, 0)), replace(cut_off, score=-4.5)):
        assert not vote_on_sheets({0: (weaker,)})


def test_vote_decides_between_equally_likely_grids() -> None:
    unclear = (SheetCandidate(SheetGrid(24, 16), 8, 4.0, 12.0), SheetCandidate(SheetGrid(12, 16), 16, 3.0, 12.0))
    assert vote_on_sheets({0: unclear})[0].grid.tile_width == 24
    others = {number: (SheetCandidate(SheetGrid(12, 16), 6, 8.0, 15.0),) for number in range(1, 6)}
    assert vote_on_sheets({0: unclear, **others})[0].grid.tile_width == 12
    assert 0 not in vote_on_sheets({0: (SheetCandidate(SheetGrid(12, 16), 16, -9.0, 12.0),), **others})


def test_pictures_like_most_of_their_folder_share_its_grid() -> None:
    grid, other = SheetGrid(16, 16), (SheetCandidate(SheetGrid(32, 32), 4, 5.0, 0.3),)
    sure, weak = SheetCandidate(grid, 16, 5.0, 12.0), SheetCandidate(grid, 16, -1.2, -6.9)
    seen = dict.fromkeys(range(4), (sure,)) | {4: (*other, weak), 5: other, 6: (replace(weak, score=-2.0),)}
    sizes = dict.fromkeys(seen, ("npc", (64, 64)))
    assert vote_on_sheets(seen).keys() == set(range(4))
    found = vote_on_sheets(seen, sizes)
    assert found.keys() == set(range(5)) and found[4].grid == replace(grid, confidence=0.571)
    assert 4 not in vote_on_sheets(seen, sizes | {4: ("npc", (64, 80))})
    seen.update(dict.fromkeys((7, 8), other))  # half of the pictures no longer have the grid
    assert 4 not in vote_on_sheets(seen, dict.fromkeys(seen, ("npc", (64, 64))))


def test_odd_sheets_among_single_sprites_of_equal_size_are_single_sprites() -> None:
    sheets = {number: SheetCandidate(SheetGrid(32, 4 + 4 * number), 4, 5.0, 12.0) for number in range(6)}
    shape = ("walls", (64, 64))
    sizes = dict.fromkeys(sheets, shape)
    assert not without_lone_sheets(sheets, sizes, Counter({shape: 40, ("walls", (8, 8)): 4}))
    for pictures in (
        {shape: 10},  # most pictures are sheets
        {shape: 20},  # too few single sprites
        {shape: 40, ("walls", (8, 8)): 5},  # a folder of various sizes
        {("walls", (8, 8)): 400},  # files of several pictures
    ):
        assert without_lone_sheets(sheets, sizes, Counter(pictures)) == sheets
    alike = sheets | {number: SheetCandidate(SheetGrid(16, 16), 16, 5.0, 12.0) for number in range(4)}
    assert without_lone_sheets(alike, sizes, Counter({shape: 400})) == alike
    other = alike | {9: sheets[5]}
    sizes[9] = ("floors", (64, 64))
    assert without_lone_sheets(other, sizes, Counter({shape: 400, sizes[9]: 21})) == alike


def test_pairs_of_touching_frames_are_parted_like_most_of_their_folder() -> None:
    others = {number: (SheetCandidate(SheetGrid(16, 16), 16, 8.0, 15.0),) for number in range(1, 6)}
    sizes = dict.fromkeys(range(6), ("npc", (64, 64)))
    for width, parted in ((16, True), (32, False)):  # frames in pairs, and wide frames
        looks = [_ball(number, width) for number in range(8)]
        frames = [looks[row * 2 + column % 2] for row in range(4) for column in range(64 // width)]
        seen = {0: sheet_candidates(laid(frames, SheetGrid(width, 16), 64 // width)), **others}
        assert vote_on_sheets(seen)[0].grid.tile_width == 32
        grid = vote_on_sheets(seen, sizes)[0].grid
        assert grid.tile_width == (16 if parted else 32) and (grid.confidence == 0.833) == parted


def _ball(number: int, width: int) -> Pixels:
    """Return a ball as wide as its cell, with an outline, in a colour of its own."""
    y, x = np.mgrid[:16, :width]
    away = np.hypot((y - 8) / 7, (x - (width - 1) / 2) / (width / 2))
    rgba = np.zeros((16, width, 4), np.uint8)
    rgba[away <= 0.98] = (20, 20, 20, 255)
    rgba[away <= 0.8] = (60 + 60 * (number % 2), 30 * number, 90, 255)
    return rgba


def test_upscaled_strips_are_sliced_at_whole_blocks(sprites: list[Pixels]) -> None:
    small = laid(animated(trimmed(sprites[3]), 8, 24, 24, np.random.default_rng(0)), SheetGrid(24, 24), 8)
    (grid,) = (one.grid for one in vote_on_sheets({0: sheet_candidates(small.repeat(3, 0).repeat(3, 1))}).values())
    assert replace(grid, confidence=1.0) == SheetGrid(72, 72)


def test_noisy_or_plain_pictures_are_not_sheets() -> None:
    for seed in range(30):
        height = 12 + seed
        assert not vote_on_sheets({0: sheet_candidates(sprite(seed, height * (2 + seed % 5), height))})
    for side in (1, 5, 11, 64, 300):
        for rgba in (np.zeros((side, side, 4), np.uint8), np.full((side, 4 * side, 4), 255, np.uint8)):
            assert not vote_on_sheets({0: sheet_candidates(rgba)})


def test_sheets_named_by_the_user_need_less_evidence(tmp_path: Path, sprites: list[Pixels]) -> None:
    pair = laid([sprites[700], sprites[701]], SheetGrid(*sprites[700].shape[1::-1]), 2)
    write(tmp_path / "pair.png", pair)
    write_many(tmp_path, 4, 16)
    assert not imported(tmp_path).sheets
    assert "pair.png" in imported(tmp_path, size=64, sheets="grid").sprites.names
    assert "pair.png#r1 c1" in imported(tmp_path, size=24, sheets="grid").sprites.names


def test_sheets_asked_for_are_larger_than_the_canvas() -> None:
    files = [SourceFile(f"/{number}.png", f"{number}.png", (), "", frozenset(), 0, 0) for number in range(3)]
    gathered, seen = ImportBuffer(files, None), (SheetCandidate(SheetGrid(8, 8), 4, 0.0, 0.0),)
    for number, width, several in ((2, 64, seen), (0, 16, ()), (1, 32, seen)):
        shape = DecodedSprite("", (), "", (width, 16), (width, 16), None, ())
        gathered.put(number, ReadResult([shape], candidates=several, sheet_size=(width, 16)))
    assert further_sheets(gathered, {}, 32) == {2: seen[0]}
    assert further_sheets(gathered, {}, 0) == {2: seen[0], 1: seen[0]}
    assert further_sheets(gathered, {2: seen[0]}, 16) == {1: seen[0]}
    assert not further_sheets(gathered, {2: seen[0]}, 0)
    gathered.close()
