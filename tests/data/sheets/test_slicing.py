"""Sheets without a description: previewed, and sliced on import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.core.generators import run_to_end
from studio.data.importing.importing import NothingUsableError
from studio.data.importing.sheet_preview import SheetPreview, find_packed, load_sheet_preview
from studio.data.options import SheetGrid
from studio.data.sheets.slicing import slice_packed
from tests.data.making import frame, imported, notes, png_of, reasons, sprite, write, write_sheet, zipped
from tests.data.sheets.test_grids import assembled

WHITE = (255, 255, 255, 255)


def flood_filled(filled: NDArray[np.bool_], gap: int) -> set[frozenset[tuple[int, int]]]:
    """Return connected components as sets of (y, x), across up to `gap` empty pixels."""
    left = {(int(y), int(x)) for y, x in np.argwhere(filled)}
    parts = set()
    reach = range(-gap - 1, gap + 2)
    while left:
        waiting = [left.pop()]
        part = set(waiting)
        while waiting:
            y, x = waiting.pop()
            near = {(y + down, x + across) for down in reach for across in reach} & left
            left -= near
            part |= near
            waiting += near
        parts.add(frozenset(part))
    return parts


@pytest.mark.parametrize("gap", [0, 1, 2, 3])
@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
def test_packed_components_equal_a_flood_fill(share: float, gap: int) -> None:
    rng = np.random.default_rng(int(100 * share) + gap)
    seeds = rng.random((24, 30)) < share / 6
    filled = np.pad(seeds, 1).repeat(3, axis=0).repeat(2, axis=1)  # blobs of six pixels: no sparks
    rgba = np.zeros((*filled.shape, 4), np.uint8)
    rgba[filled] = WHITE
    found = set()
    for piece in slice_packed(rgba, gap):
        places = np.argwhere(piece.rgba[..., 3]).tolist()
        found.add(frozenset((y + piece.top, x + piece.left) for y, x in places))
    assert found == flood_filled(filled, gap)


def test_spiral_is_one_component() -> None:
    rgba = np.zeros((33, 33, 4), np.uint8)
    for near in range(
        0, 16, 2
    ):  # a turn: the row above, the column on the right, the row below, the column on the left
        far = 32 - near
        rgba[near, max(0, near - 2) : far] = rgba[near : far + 1, far] = WHITE
        rgba[far, near:far] = rgba[near + 2 : far, near] = WHITE
    (piece,) = slice_packed(rgba, 0)
    assert (piece.rgba == rgba).all()


def test_packed_sprites_come_in_reading_order_without_their_neighbours() -> None:
    rgba = np.zeros((40, 40, 4), np.uint8)
    rgba[1:9, 20:28] = WHITE
    rgba[3:9, 2:8] = (200, 0, 0, 255)
    rgba[20:36, 4] = rgba[35, 4:20] = (0, 200, 0, 255)  # an L, and a block in its corner
    rgba[22:30, 8:16] = (0, 0, 200, 255)
    pieces = slice_packed(rgba, 1)
    assert [(piece.row, piece.left, piece.top) for piece in pieces] == [(0, 2, 3), (0, 20, 1), (1, 4, 20), (1, 8, 22)]
    assert np.unique(pieces[2].rgba.reshape(-1, 4), axis=0).tolist() == [[0, 0, 0, 0], [0, 200, 0, 255]]


def test_sparks_join_the_sprite_they_are_near() -> None:
    rgba = np.zeros((30, 40, 4), np.uint8)
    rgba[10:18, 2:10] = rgba[10:18, 25:33] = WHITE
    rgba[7, 5] = rgba[14, 22] = rgba[29, 39] = WHITE
    boxes = [(piece.left, piece.top, *piece.rgba.shape[1::-1]) for piece in slice_packed(rgba, 1)]
    assert boxes == [(2, 7, 8, 11), (22, 10, 11, 8)]


def test_an_opaque_background_parts_sprites_and_stays() -> None:
    rgba = np.full((20, 30, 4), (255, 0, 255, 255), np.uint8)
    rgba[2:10, 2:10] = rgba[4:12, 15:23] = WHITE
    rgba[5, 5] = (255, 0, 255, 255)
    first, second = slice_packed(rgba, 0)
    assert (first.rgba == rgba[2:10, 2:10]).all() and (second.rgba == 255).all()


def looked_at(folder: Path, name: str) -> SheetPreview:
    return run_to_end(load_sheet_preview([folder], name))


def test_a_sheet_is_found_by_the_name_that_its_import_gives_it_and_cut_by_the_grid_that_is_seen(tmp_path: Path) -> None:
    rgba = assembled(np.random.default_rng(0), SheetGrid(16, 16, 1, 1, 1), 6, 4)
    folder = tmp_path / "set"
    write(folder / "a" / "gems.png", rgba)
    write(folder / "one.png", sprite(1, 16))
    zipped(folder / "pack.zip", {"inner/deep/gems.png": png_of(rgba), "inner/x.png": png_of(sprite(2, 16))})
    event = imported(folder, size=16)
    said = reasons(event, "looks like a sheet")
    names = sorted(said)
    assert names == ["a/gems.png", "pack.zip/deep/gems.png"] and "--sheets grid" in said["a/gems.png"]
    assert event.sprites.names == ("one.png", "pack.zip/x.png")  # not sliced by default
    for name in [*names, "a/gems.png#r1 c2"]:
        sheet = looked_at(folder, name)
        assert (sheet.rgba == rgba).all() and sheet.name == name.partition("#")[0]
        assert sheet.proposed is not None and sheet.proposed.tile_width == 16 and sheet.proposed.spacing == 1
    cut = imported(folder, size=16, sheets="grid").sprites
    assert cut.class_names == ("a", "pack", "set")  # sheets in two folders
    assert cut.names[0] == "a/gems.png#r1 c1" and {"one.png", "pack.zip/x.png"} <= set(cut.names)
    assert (cut.rgba[0] == rgba[1:17, 1:17]).all()
    assert imported(folder, sheets="grid").sprites.fingerprint == cut.fingerprint


def test_unsliceable_sheets_say_why(tmp_path: Path) -> None:
    frames = [frame("a", 0, 0, 16, 8), frame("b", 16, 0, 16, 8)]
    write_sheet(tmp_path / "gems.png", np.tile(sprite(0), (1, 4, 1)), frames)
    (tmp_path / "broken.png").write_bytes(png_of(sprite(1))[:60])
    for name, words in (
        ("gems.png", "describes"),
        ("broken.png", "broken.png"),
        ("other.png", "other.png' was moved"),
    ):
        with pytest.raises(BadInputError, match=words):
            looked_at(tmp_path, name)


def test_given_grid_and_a_class_per_row(tmp_path: Path) -> None:
    rgba = np.concatenate([np.concatenate([sprite(n + 3 * row, 8, 12) for n in range(3)], 1) for row in range(2)])
    archive = zipped(tmp_path / "set.zip", {"s.png": png_of(np.pad(rgba, ((2, 0), (2, 0), (0, 0))))})
    event = imported(archive, sheets="grid", tile=8, tile_height=12, margin=2, sheet_classes="row", size=16)
    assert event.sprites.class_names == ("s row 1", "s row 2")
    assert event.sprites.names == tuple(f"s.png#r{row} c{column}" for row in (1, 2) for column in (1, 2, 3))
    assert event.sprites.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert (event.sprites.rgba[4, 2:14, 4:12] == sprite(4, 8, 12)).all()


def test_a_sheet_that_is_cut_makes_classes_however_deep_it_lies(tmp_path: Path) -> None:
    rows = [np.concatenate([sprite(2 * row), sprite(2 * row + 1)], 1) for row in range(10)]
    write(tmp_path / "chars" / "heroes" / "young" / "s.png", np.pad(np.concatenate(rows), ((5, 0), (2, 0), (0, 0))))
    grid: dict[str, Any] = {"sheets": "grid", "tile": 8, "margin": 2, "margin_top": 5}
    by_row = imported(tmp_path, sheet_classes="row", **grid).sprites
    assert by_row.class_names == tuple(f"chars/heroes/s row {row:02}" for row in range(1, 11))  # as the rows lie
    assert by_row.labels.tolist() == [row for row in range(10) for _ in range(2)]
    assert all(np.array_equal(rgba, sprite(number)) for number, rgba in enumerate(by_row.rgba))
    assert imported(tmp_path, class_levels=1, **grid).sprites.class_names == ("chars/s",)


def test_packed_sprites_are_cut_as_their_boxes_are_drawn(tmp_path: Path) -> None:
    rgba = np.zeros((40, 40, 4), np.uint8)
    rgba[2:18, 3:19], rgba[20:32, 5:15], rgba[4:12, 25:33] = sprite(0, 16), sprite(1, 10, 12), sprite(2)
    write(tmp_path / "s.png", rgba)
    boxes = run_to_end(find_packed(looked_at(tmp_path, "s.png"), 1))
    assert boxes.tolist() == [[4, 3, 18, 17], [26, 5, 32, 11], [6, 21, 14, 31]]
    assert imported(tmp_path, sheets="packed").sprites.names == ("s.png#1", "s.png#2", "s.png#3")
    assert imported(tmp_path, sheets="packed", sheet_classes="row").sprites.labels.tolist() == [0, 0, 1]
    assert imported(tmp_path, sheets="packed", gap=16).sprites.names == ("s.png",)


def test_described_or_small_pictures_stay_whole(tmp_path: Path) -> None:
    write_sheet(
        tmp_path / "set" / "gems.png",
        np.tile(sprite(0), (1, 2, 1)),
        [frame("wide", 0, 0, 15, 8), frame("narrow", 15, 0, 1, 8)],
    )
    write(tmp_path / "set" / "small.png", np.concatenate([sprite(1), sprite(2)], axis=1))
    event = imported(tmp_path / "set", sheets="grid", tile=8, size=16)
    assert event.sprites.names == ("gems.png#wide", "small.png")
    assert len(imported(tmp_path / "set", sheets="grid", tile=8).sprites) == 3


@pytest.mark.parametrize("shrink", [0, 4])
def test_enlarged_sprites_that_fit_the_canvas_at_their_true_size_stay_whole(tmp_path: Path, shrink: int) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.png", sprite(number, 16).repeat(4, 0).repeat(4, 1))
    sheet = np.concatenate([sprite(number, 16) for number in range(5, 7)], 1)
    write(tmp_path / "s.png", sheet.repeat(4, 0).repeat(4, 1))
    event = imported(tmp_path, sheets="grid", tile=32, size=16, shrink=shrink)
    assert event.sprites.names[:4] == ("0.png", "1.png", "2.png", "s.png#r1 c1") and len(event.sprites) == 3 + 8
    assert all(np.array_equal(event.sprites.rgba[number], sprite(number, 16)) for number in range(3))


def test_a_sheet_without_a_grid_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "s.png", np.full((320, 320, 4), 255, np.uint8))
    with pytest.raises(NothingUsableError) as caught:
        imported(tmp_path)
    assert [item.name for item in caught.value.left_out] == ["s.png"]
    write(tmp_path / "one.png", sprite(1, 16))
    for sheets, advice in (("grid", "--tile 16"), ("packed", "--sheets grid")):
        event = imported(tmp_path, sheets=sheets, size=16)
        assert event.sprites.names == ("one.png",) and advice in reasons(event, "looks like a sheet")["s.png"]


def test_too_many_sprites_are_refused(tmp_path: Path) -> None:
    rgba = np.random.default_rng(0).integers(1, 255, (200, 200, 4)).astype(np.uint8)
    path = write(tmp_path / "s.png", rgba)
    with pytest.raises(BadInputError, match="the limit is 30,000"):
        imported(path, sheets="grid", tile=1)
    specks = np.zeros((800, 800, 4), np.uint8)
    specks[::4, ::4] = 255
    with pytest.raises(BadInputError, match="the limit is 30,000"):
        run_to_end(find_packed(SheetPreview("s.png", specks, looked_at(tmp_path, "s.png").foreground, None), 0))


def test_sliced_sheet_is_noted_without_kept_sprites(tmp_path: Path) -> None:
    sheet = np.concatenate([sprite(n, 16) for n in range(4)], axis=1)
    write(tmp_path / "a.png", sheet)
    write(tmp_path / "b.png", sheet)
    event = imported(tmp_path, sheets="grid", tile=16)
    words = "sliced into 4 tiles of 16 x 16 pixels"
    assert len(event.sprites) == 4 and notes(event, "cut sheet") == {"a.png": words, "b.png": words}
