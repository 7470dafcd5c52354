"""Aseprite files: colours, layers, cels, tiles, frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.data.ase_making import (
    BACKGROUND,
    DIAGONAL,
    FLIP_X,
    FLIP_Y,
    REFERENCE,
    VISIBLE,
    ase,
    cel,
    drawn,
    filled,
    frame,
    layer,
    link,
    noise,
    old_palette,
    palette,
    part,
    pictures,
    remarks,
    tags,
    tilemap,
    tileset,
)
from tests.data.making import Pixels, imported, notes, write

RED, BLUE, GREEN = (200, 0, 0, 255), (0, 0, 200, 255), (0, 200, 0, 255)
COLOURS = [(9, 9, 9, 255), (200, 0, 0, 255), (0, 200, 0, 128), (0, 0, 200, 255)]
INDICES = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 4, 255]], np.uint8)


def test_rgba_and_grey(tmp_path: Path) -> None:
    pixels = noise(0, 3, 4, 4)
    for raw in (True, False):
        rgba = drawn(ase(frame(layer(), cel(0, pixels, raw=raw))), tmp_path)
        assert (rgba[..., 3] == pixels[..., 3]).all()
        assert (rgba[rgba[..., 3] > 0] == pixels[rgba[..., 3] > 0]).all()
        assert rgba.flags.writeable and rgba.flags.c_contiguous and rgba.flags.owndata
    grey = noise(1, 3, 4, 2, least=1)
    assert (drawn(ase(frame(layer(), cel(0, grey)), depth=16), tmp_path) == grey[..., [0, 0, 0, 1]]).all()


OF_NO_PIXELS = [part(kind, b"\xff" * 9) for kind in (0x2006, 0x2007, 0x2008, 0x2016, 0x2020, 0x2022, 0x7777)]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([layer(), layer(0), layer(VISIBLE | REFERENCE), cel(1, filled(BLUE)), cel(2, filled(BLUE))], []),
        ([layer(VISIBLE | BACKGROUND, opacity=10, mode=1)], []),  # opaque whatever it says
        ([*OF_NO_PIXELS, layer(), part(0x9999, b"")], []),
        ([layer(mode=19), layer(0, mode=77)],
         [("blend mode", "1 layer of a blend mode that is not known: drawn as normal")]),
        ([tileset(0, noise(3, 2, 2, 3, 4), flags=5), layer(), layer(kind=2), tilemap(1, [[1]])],
         [("incomplete", "1 layer left out: the tiles are in another file")]),
    ],
    ids=["hidden layers", "a background", "parts of no pixels", "an unknown blend mode", "tiles in another file"],
)  # fmt: skip
def test_only_the_first_layer_is_seen(tmp_path: Path, parts: list[bytes], said: list[tuple[str, str]]) -> None:
    data = ase(frame(*parts, cel(0, filled(RED))))
    assert (drawn(data, tmp_path) == RED).all() and remarks(data, tmp_path) == said


def indexed(clear: int = 0) -> Pixels:
    """INDICES as they should look; what is beyond the palette is transparent."""
    table = np.zeros((256, 4), np.uint8)
    table[:4] = COLOURS
    table[clear] = 0
    return table[INDICES]


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("clear", [0, 3])
def test_indexed(tmp_path: Path, clear: int, names: bool) -> None:
    colours = palette(COLOURS, names=names)
    data = ase(frame(colours, layer(), cel(0, INDICES)), depth=8, clear=clear)
    assert (drawn(data, tmp_path) == indexed(clear)).all()
    tiles = np.stack([np.zeros((3, 4), np.uint8), INDICES])[..., None]
    data = ase(frame(colours, tileset(0, tiles), layer(kind=2), tilemap(0, [[1]])), depth=8, clear=clear)
    assert (drawn(data, tmp_path) == indexed(clear)).all()
    background = ase(frame(colours, layer(VISIBLE | BACKGROUND), cel(0, INDICES)), depth=8)
    assert (drawn(background, tmp_path)[0, 0] == COLOURS[0]).all()  # there the clear index is a colour


def test_palettes_of_old(tmp_path: Path) -> None:
    pixels = np.array([[1, 2, 4, 5]], np.uint8)
    packets = [(1, [(63, 0, 32), (1, 2, 3)]), (1, [(10, 20, 30), (40, 50, 60)])]
    six_bits = old_palette(packets, kind=0x0011)
    row = drawn(ase(frame(six_bits, layer(), cel(0, pixels)), size=(4, 1), depth=8), tmp_path)[0]
    assert row.tolist() == [[255, 0, 130, 255], [4, 8, 12, 255], [40, 81, 121, 255], [162, 203, 243, 255]]
    row = drawn(ase(frame(old_palette(packets), layer(), cel(0, pixels)), size=(4, 1), depth=8), tmp_path)[0]
    assert row[:, :3].tolist() == [[63, 0, 32], [1, 2, 3], [10, 20, 30], [40, 50, 60]]
    whole = old_palette([(0, [(index, 0, 0) for index in range(256)])])
    rgba = drawn(ase(frame(whole, layer(), cel(0, INDICES)), depth=8), tmp_path)
    assert (rgba[..., 0] == INDICES).all()


@pytest.mark.parametrize("new_first", [True, False])
def test_the_new_palette_outdoes_the_old(tmp_path: Path, new_first: bool) -> None:
    both = [palette(COLOURS), old_palette([(0, [(7, 7, 7)] * 4)])]
    both = both if new_first else both[::-1]
    assert (drawn(ase(frame(*both, layer(), cel(0, INDICES)), depth=8), tmp_path) == indexed()).all()


def test_a_palette_changes_with_the_frames(tmp_path: Path) -> None:
    second = frame(palette([(1, 2, 3, 255)], first=1, size=3), link(0, 0))
    data = ase(frame(palette(COLOURS), layer(), cel(0, INDICES)), second, frame(link(0, 1)), depth=8)
    shots = [picture.rgba for picture in pictures(data, tmp_path)]
    assert (shots[0] == indexed()).all()
    assert shots[1][0].tolist() == [[0, 0, 0, 0], [1, 2, 3, 255], list(COLOURS[2]), [0, 0, 0, 0]]
    assert (shots[2] == shots[1]).all()


@pytest.mark.parametrize("flags", [1, 3])
def test_a_hidden_group_hides_what_is_in_it(tmp_path: Path, flags: int) -> None:
    layers = [layer(), layer(0, kind=1), layer(kind=1, level=1), layer(level=2), layer(level=1), layer()]
    cels = [cel(0, filled(RED)), cel(3, filled(BLUE)), cel(4, filled(BLUE)), cel(5, filled(GREEN, 2))]
    rgba = drawn(ase(frame(*layers, *cels), flags=flags), tmp_path)
    assert (rgba[:, :2] == GREEN).all() and (rgba[:, 2:] == RED).all()


def test_opacities_multiply(tmp_path: Path) -> None:
    half = frame(layer(), layer(opacity=128), cel(0, filled(RED)), cel(1, filled(BLUE), opacity=192))
    share = 128 / 255 * 192 / 255
    expected = [200 * (1 - share), 0, 200 * share, 255]
    assert np.abs(drawn(ase(half), tmp_path)[0, 0] - np.array(expected)).max() <= 1
    expected = [200 * (1 - 192 / 255), 0, 200 * 192 / 255, 255]
    assert np.abs(drawn(ase(half, flags=0), tmp_path)[0, 0] - np.array(expected)).max() <= 1


def test_groups_are_drawn_apart_where_the_file_says_so(tmp_path: Path) -> None:
    layers = [layer(), layer(kind=1, opacity=128), layer(level=1), layer(level=1)]
    cels = [cel(0, filled(RED)), cel(2, filled(BLUE)), cel(3, filled(GREEN))]
    assert (drawn(ase(frame(*layers, *cels), flags=1), tmp_path) == GREEN).all()
    assert (drawn(ase(frame(*layers, *cels), flags=3), tmp_path)[0, 0] == [100, 100, 0, 255]).all()
    empty = frame(layer(), layer(kind=1), layer(level=1), cel(0, filled(RED)))
    assert (drawn(ase(empty, flags=3), tmp_path) == RED).all()


@pytest.mark.parametrize(("x", "y"), [(-2, -1), (2, 1), (0, 0), (3, -2), (9, 9), (-32768, 0), (0, 32767)])
def test_cels_beside_the_canvas(tmp_path: Path, x: int, y: int) -> None:
    pixels = noise(2, 3, 4, 4, least=1)
    expected = np.zeros((3, 4, 4), np.uint8)
    for row in range(3):
        for column in range(4):
            if 0 <= row - y < 3 and 0 <= column - x < 4:
                expected[row, column] = pixels[row - y, column - x]
    assert (drawn(ase(frame(layer(), cel(0, pixels, x, y))), tmp_path) == expected).all()


def test_empty_cels_and_frames(tmp_path: Path) -> None:
    data = ase(frame(layer(), cel(0, np.zeros((0, 0, 4), np.uint8))), frame())
    assert not any(picture.rgba.any() for picture in pictures(data, tmp_path))


def test_links_and_links_to_links(tmp_path: Path) -> None:
    data = ase(
        frame(layer(), cel(0, filled(RED, 1, 1))),
        frame(link(0, 0, 1, 0)),
        frame(),
        frame(link(0, 1, 2, 0, opacity=100)),
    )
    first, second, third, fourth = (picture.rgba[0] for picture in pictures(data, tmp_path))
    assert first[0].tolist() == second[1].tolist() == list(RED) and not third.any()
    assert fourth[2].tolist() == [*RED[:3], 100] and not fourth[[0, 1, 3]].any()


def test_the_z_index_moves_a_cel(tmp_path: Path) -> None:
    def top(*z: int, flags: int = 1) -> list[int]:
        cels = [cel(number, filled(colour), z=z[number]) for number, colour in enumerate((RED, GREEN, BLUE))]
        rgba = drawn(ase(frame(layer(), layer(), layer(), *cels), flags=flags), tmp_path)
        return [int(value) for value in rgba[0, 0]]

    for flags in (1, 3):
        assert top(0, 0, 0, flags=flags) == list(BLUE)
        assert top(0, 0, -1, flags=flags) == list(GREEN)
        assert top(0, 1, 0, flags=flags) == list(GREEN)  # of two in one place the one with the larger z-index
        assert top(2, 0, 0, flags=flags) == list(RED)
        assert top(1, 0, 0, flags=flags) == list(BLUE)
        assert top(0, -32768, 32767, flags=flags) == list(BLUE)


TILES = np.concatenate([np.zeros((1, 2, 3, 4), np.uint8), noise(3, 2, 2, 3, 4, least=1)])


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_tiles(tmp_path: Path, bits: int) -> None:
    masks = {8: (0x1F, 0x80, 0x40, 0x20), 16: (0x1FFF, 0x8000, 0x4000, 0x2000)}.get(bits, (0x1FFFFFFF, 1 << 31, 0, 0))
    cells = tilemap(0, [[1, 0], [2, 1 | masks[1]]], -1, 1, bits=bits, masks=masks)
    rgba = drawn(ase(frame(tileset(5, TILES), layer(kind=2, tileset=5), cells), size=(6, 6)), tmp_path)
    expected = np.zeros((6, 6, 4), np.uint8)
    expected[1:3, :2] = TILES[1][:, 1:]
    expected[3:5, :2] = TILES[2][:, 1:]
    expected[3:5, 2:5] = TILES[1][:, ::-1]
    assert (rgba == expected).all()


def test_flips_of_tiles(tmp_path: Path) -> None:
    tile = noise(4, 1, 3, 3, 4, least=1)
    tiles = np.concatenate([np.zeros_like(tile), tile])
    for flags in range(8):
        x, y, diagonal = flags & 1, flags >> 1 & 1, flags >> 2
        cells = tilemap(0, [[1 | FLIP_X * x | FLIP_Y * y | DIAGONAL * diagonal]])
        rgba = drawn(ase(frame(tileset(0, tiles), layer(kind=2), cells), size=(3, 3)), tmp_path)
        expected = tile[0].transpose(1, 0, 2) if diagonal else tile[0]
        expected = expected[:, ::-1] if x else expected
        assert (rgba == (expected[::-1] if y else expected)).all()


def test_a_turned_tile_that_is_no_square_keeps_its_place(tmp_path: Path) -> None:
    rgba = drawn(ase(frame(tileset(0, TILES), layer(kind=2), tilemap(0, [[1 | DIAGONAL]])), size=(3, 2)), tmp_path)
    assert (rgba[:, :2] == TILES[1][:, :2].transpose(1, 0, 2)).all() and not rgba[:, 2].any()


def test_empty_tiles_of_old(tmp_path: Path) -> None:
    cells = tilemap(0, [[0, 0xFFFFFFFF], [2, 1]])
    rgba = drawn(ase(frame(tileset(0, TILES[1:][[0, 1, 0]], flags=2), layer(kind=2), cells), size=(6, 4)), tmp_path)
    assert (rgba[:2, :3] == TILES[1]).all() and not rgba[:2, 3:].any() and (rgba[2:, 3:] == TILES[2]).all()
    no_tiles = frame(tileset(0, TILES[:0], flags=2), layer(kind=2), tilemap(0, [[0xFFFFFFFF]]))
    assert not drawn(ase(no_tiles), tmp_path).any()


def test_names_of_frames(tmp_path: Path) -> None:
    run = tags((1, 2, "walk"), (0, 4, "all"), (3, 3, "\0bell"), (4, 9, "walk"), (3, 2, "never"), (5, 5, "  "))
    parts = [picture.part for picture in pictures(ase(frame(run), *[frame()] * 5), tmp_path)]
    assert parts == ["all 1", "walk 1", "walk 2", "\\x00bell 1", "all 5", "walk 2 (2)"]
    parts = [picture.part for picture in pictures(ase(frame(tags((1, 1, "frame"))), *[frame()] * 2), tmp_path)]
    assert parts == ["frame 1", "frame 1 (2)", "frame 3"]
    assert [picture.part for picture in pictures(ase(frame(run)), tmp_path)] == [""]


def test_very_many_frames_are_cut_short(tmp_path: Path) -> None:
    data = ase(frame(layer(), cel(0, filled(RED, 1, 1))), *[frame(link(0, 0))] * 1_200, size=(1, 1))
    assert len(pictures(data, tmp_path)) == 1_000
    assert remarks(data, tmp_path) == [("animation", "holds 1,201 frames: only the first 1,000 were taken")]
    large = ase(frame(layer()), *[frame()] * 4, size=(4096, 4096))
    assert remarks(large, tmp_path) == [("animation", "holds 5 frames: only the first 4 were taken")]


def test_a_whole_import(tmp_path: Path) -> None:
    second = filled(RED)
    second[0, 0, 3] = 100
    folder = tmp_path / "set"
    write(folder / "item" / "old.png", filled(BLUE))
    data = ase(frame(tags((0, 1, "spin")), layer(), cel(0, filled(RED))), frame(cel(0, second)), frame(link(0, 0)))
    (folder / "item" / "gem.ASE").write_bytes(data)
    event = imported(folder)
    assert event.sprites.names == ("item/gem.ASE#spin 1", "item/gem.ASE#spin 2", "item/old.png")
    assert event.sprites.class_names == ("item",)
    assert notes(event, "soft alpha") == {"item/gem.ASE#spin 2": "1 half-transparent pixel"}
    assert [item.group for item in event.quarantine] == ["duplicate"]
    event = imported(folder, tag_classes=True)
    assert [event.sprites.class_names[label] for label in event.sprites.labels] == ["spin", "spin", "item"]
