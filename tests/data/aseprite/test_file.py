"""Aseprite files: colours, layers, cels, tiles, frames.

Those that are cut off, damaged, or lie get a reason in words, never another error, a hang or much memory.
"""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from studio.data.aseprite import frames as ase_frames
from studio.data.aseprite.file import parse
from studio.data.aseprite.frames import FramePainter
from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.import_result import QUARANTINE_GROUPS
from tests.data.ase_making import (
    BACKGROUND,
    DIAGONAL,
    FLIP_X,
    FLIP_Y,
    MASKS,
    REFERENCE,
    VISIBLE,
    any_cel,
    ase,
    cel,
    drawn,
    filled,
    frame,
    items,
    layer,
    link,
    noise,
    old_palette,
    palette,
    part,
    pictures,
    remarks,
    tags,
    text,
    tilemap,
    tileset,
)
from tests.data.making import Pixels, imported, notes, png_of, sprite, write
from tests.fuzz.specimens import read_pictures

RED, BLUE, GREEN = (200, 0, 0, 255), (0, 0, 200, 255), (0, 200, 0, 255)
COLOURS = [(9, 9, 9, 255), (200, 0, 0, 255), (0, 200, 0, 128), (0, 0, 200, 255)]
INDICES = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 4, 255]], np.uint8)


def test_rgba_and_grey(tmp_path: Path) -> None:
    pixels = noise(0, 3, 4, 4)
    for raw in (True, False):
        rgba = drawn(tmp_path, layer(), cel(0, pixels, raw=raw))
        assert (rgba[..., 3] == pixels[..., 3]).all()
        assert (rgba[rgba[..., 3] > 0] == pixels[rgba[..., 3] > 0]).all()
        assert rgba.flags.writeable and rgba.flags.c_contiguous and rgba.flags.owndata
    grey = noise(1, 3, 4, 2, least=1)
    assert (drawn(tmp_path, layer(), cel(0, grey), depth=16) == grey[..., [0, 0, 0, 1]]).all()


OF_NO_PIXELS = [part(kind, b"\xff" * 9) for kind in (0x2006, 0x2007, 0x2008, 0x2016, 0x2020, 0x2022, 0x7777)]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([layer(), layer(0), layer(VISIBLE | REFERENCE), cel(1, filled(BLUE)), cel(2, filled(BLUE))], []),
        ([layer(VISIBLE | BACKGROUND, opacity=10, mode=1)], []),  # opaque whatever it says
        ([*OF_NO_PIXELS, layer(), part(0x9999, b"")], []),
        ([layer(mode=19), layer(0, mode=77)],
         [("blend mode", "1 layer of an unknown blend mode: drawn as normal")]),
        ([tileset(0, noise(3, 2, 2, 3, 4), flags=5), layer(), layer(kind=2), tilemap(1, [[1]])],
         [("incomplete", "1 layer left out: the tiles are in another file")]),
    ],
    ids=["hidden layers", "a background", "parts of no pixels", "an unknown blend mode", "tiles in another file"],
)  # fmt: skip
def test_invisible_layers_are_not_drawn(tmp_path: Path, parts: list[bytes], said: list[tuple[str, str]]) -> None:
    parts = [*parts, cel(0, filled(RED))]
    assert (drawn(tmp_path, *parts) == RED).all() and remarks(ase(frame(*parts)), tmp_path) == said


def indexed(clear: int = 0) -> Pixels:
    """Return INDICES in palette colours; indices beyond the palette are transparent."""
    table = np.zeros((256, 4), np.uint8)
    table[:4] = COLOURS
    table[clear] = 0
    return table[INDICES]


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("clear", [0, 3])
def test_indexed(tmp_path: Path, clear: int, names: bool) -> None:
    colours = palette(COLOURS, names=names)
    tiles = np.stack([np.zeros((3, 4), np.uint8), INDICES])[..., None]
    for parts in ([layer(), cel(0, INDICES)], [tileset(0, tiles), layer(kind=2), tilemap(0, [[1]])]):
        assert (drawn(tmp_path, colours, *parts, depth=8, clear=clear) == indexed(clear)).all()
    background = drawn(tmp_path, colours, layer(VISIBLE | BACKGROUND), cel(0, INDICES), depth=8)
    assert (background[0, 0] == COLOURS[0]).all()  # there the clear index is a colour


def test_old_palette_chunks(tmp_path: Path) -> None:
    pixels = np.array([[1, 2, 4, 5]], np.uint8)
    packets = [(1, [(63, 0, 32), (1, 2, 3)]), (1, [(10, 20, 30), (40, 50, 60)])]
    six_bits = old_palette(packets, kind=0x0011)
    row = drawn(tmp_path, six_bits, layer(), cel(0, pixels), size=(4, 1), depth=8)[0]
    assert row.tolist() == [[255, 0, 130, 255], [4, 8, 12, 255], [40, 81, 121, 255], [162, 203, 243, 255]]
    row = drawn(tmp_path, old_palette(packets), layer(), cel(0, pixels), size=(4, 1), depth=8)[0]
    assert row[:, :3].tolist() == [[63, 0, 32], [1, 2, 3], [10, 20, 30], [40, 50, 60]]
    whole = old_palette([(0, [(index, 0, 0) for index in range(256)])])
    assert (drawn(tmp_path, whole, layer(), cel(0, INDICES), depth=8)[..., 0] == INDICES).all()


def test_the_new_palette_chunk_overrides_the_old(tmp_path: Path) -> None:
    both = [palette(COLOURS), old_palette([(0, [(7, 7, 7)] * 4)])]
    for palettes in (both, both[::-1]):
        assert (drawn(tmp_path, *palettes, layer(), cel(0, INDICES), depth=8) == indexed()).all()


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
    rgba = drawn(tmp_path, *layers, *cels, flags=flags)
    assert (rgba[:, :2] == GREEN).all() and (rgba[:, 2:] == RED).all()


@pytest.mark.parametrize(("flags", "share"), [(1, 128 / 255 * 192 / 255), (0, 192 / 255)])
def test_opacities_multiply(tmp_path: Path, flags: int, share: float) -> None:
    parts = [layer(), layer(opacity=128), cel(0, filled(RED)), cel(1, filled(BLUE), opacity=192)]
    expected = np.array([200 * (1 - share), 0, 200 * share, 255])
    assert np.abs(drawn(tmp_path, *parts, flags=flags)[0, 0] - expected).max() <= 1


def test_groups_blend_if_the_file_says_so(tmp_path: Path) -> None:
    layers = [layer(), layer(kind=1, opacity=128), layer(level=1), layer(level=1)]
    cels = [cel(0, filled(RED)), cel(2, filled(BLUE)), cel(3, filled(GREEN))]
    assert (drawn(tmp_path, *layers, *cels, flags=1) == GREEN).all()
    assert (drawn(tmp_path, *layers, *cels, flags=3)[0, 0] == [100, 100, 0, 255]).all()
    assert (drawn(tmp_path, layer(), layer(kind=1), layer(level=1), cels[0], flags=3) == RED).all()  # an empty one


@pytest.mark.parametrize(("x", "y"), [(-2, -1), (2, 1), (0, 0), (3, -2), (9, 9), (-32768, 0), (0, 32767)])
def test_cels_outside_the_canvas(tmp_path: Path, x: int, y: int) -> None:
    pixels = noise(2, 3, 4, 4, least=1)
    expected = np.zeros((3, 4, 4), np.uint8)
    for row in range(3):
        for column in range(4):
            if 0 <= row - y < 3 and 0 <= column - x < 4:
                expected[row, column] = pixels[row - y, column - x]
    assert (drawn(tmp_path, layer(), cel(0, pixels, x, y)) == expected).all()


def test_empty_cels_and_frames(tmp_path: Path) -> None:
    data = ase(frame(layer(), cel(0, np.zeros((0, 0, 4), np.uint8))), frame())
    assert not any(picture.rgba.any() for picture in pictures(data, tmp_path))


def test_links_and_links_to_links(tmp_path: Path) -> None:
    links = frame(link(0, 0, 1, 0)), frame(), frame(link(0, 1, 2, 0, opacity=100))
    data = ase(frame(layer(), cel(0, filled(RED, 1, 1))), *links)
    first, second, third, fourth = (picture.rgba[0] for picture in pictures(data, tmp_path))
    assert first[0].tolist() == second[1].tolist() == list(RED) and not third.any()
    assert fourth[2].tolist() == [*RED[:3], 100] and not fourth[[0, 1, 3]].any()


def test_the_z_index_moves_a_cel(tmp_path: Path) -> None:
    def top(*z: int, flags: int = 1) -> list[int]:
        cels = [cel(number, filled(colour), z=z[number]) for number, colour in enumerate((RED, GREEN, BLUE))]
        return [int(value) for value in drawn(tmp_path, layer(), layer(), layer(), *cels, flags=flags)[0, 0]]

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
    rgba = drawn(tmp_path, tileset(5, TILES), layer(kind=2, tileset=5), cells, size=(6, 6))
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
        rgba = drawn(tmp_path, tileset(0, tiles), layer(kind=2), cells, size=(3, 3))
        expected = tile[0].transpose(1, 0, 2) if diagonal else tile[0]
        expected = expected[:, ::-1] if x else expected
        assert (rgba == (expected[::-1] if y else expected)).all()


def test_a_flipped_non_square_tile_keeps_its_position(tmp_path: Path) -> None:
    rgba = drawn(tmp_path, tileset(0, TILES), layer(kind=2), tilemap(0, [[1 | DIAGONAL]]), size=(3, 2))
    assert (rgba[:, :2] == TILES[1][:, :2].transpose(1, 0, 2)).all() and not rgba[:, 2].any()


def test_empty_tiles_of_beta_versions(tmp_path: Path) -> None:
    cells = tilemap(0, [[0, 0xFFFFFFFF], [2, 1]])
    rgba = drawn(tmp_path, tileset(0, TILES[1:][[0, 1, 0]], flags=2), layer(kind=2), cells, size=(6, 4))
    assert (rgba[:2, :3] == TILES[1]).all() and not rgba[:2, 3:].any() and (rgba[2:, 3:] == TILES[2]).all()
    assert not drawn(tmp_path, tileset(0, TILES[:0], flags=2), layer(kind=2), tilemap(0, [[0xFFFFFFFF]])).any()


def test_names_of_frames(tmp_path: Path) -> None:
    run = tags((1, 2, "walk"), (0, 4, "all"), (3, 3, "\0bell"), (4, 9, "walk"), (3, 2, "never"), (5, 5, "  "))
    parts = [picture.part for picture in pictures(ase(frame(run), *[frame()] * 5), tmp_path)]
    assert parts == ["all 1", "walk 1", "walk 2", "\\x00bell 1", "all 5", "walk 2 (2)"]
    parts = [picture.part for picture in pictures(ase(frame(tags((1, 1, "frame"))), *[frame()] * 2), tmp_path)]
    assert parts == ["frame 1", "frame 1 (2)", "frame 3"]
    assert [picture.part for picture in pictures(ase(frame(run)), tmp_path)] == [""]


def test_frames_beyond_the_limit_are_left_out(tmp_path: Path) -> None:
    data = ase(frame(layer(), cel(0, filled(RED, 1, 1))), *[frame(link(0, 0))] * 1_200, size=(1, 1))
    assert len(pictures(data, tmp_path)) == 1_000
    assert remarks(data, tmp_path) == [("animation", "holds 1,201 frames: only the first 1,000 were read")]
    large = ase(frame(layer()), *[frame()] * 4, size=(4096, 4096))
    assert remarks(large, tmp_path) == [("animation", "holds 5 frames: only the first 4 were read")]


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
    assert notes(event, "soft alpha") == {"item/gem.ASE#spin 2": "1 semi-transparent pixel"}
    assert [item.group for item in event.quarantine] == ["duplicate"]
    event = imported(folder, tag_classes=True)
    assert [event.sprites.class_names[label] for label in event.sprites.labels] == ["spin", "spin", "item"]


RED_PIXELS = filled(RED)


def refusal(data: bytes, folder: Path, name: str = "art.ase") -> UnreadableFile:
    with pytest.raises(UnreadableFile) as refused:
        items(data, folder, name)
    assert refused.value.group in QUARANTINE_GROUPS and refused.value.reason.isprintable()
    return refused.value


def rich(depth: int) -> list[list[bytes]]:
    """The parts of three frames with a bit of everything."""
    channels = depth // 8
    tiles = noise(1, 3, 2, 2, channels)
    layers = [layer(VISIBLE | BACKGROUND), layer(kind=1, opacity=200), layer(level=1, mode=9), layer(kind=2, mode=13)]
    first = [palette([(1, 2, 3, 255)] * 5, names=True), tileset(0, tiles), *layers, tags((0, 1, "walk"), (2, 2, "run"))]
    grid = tilemap(3, [[1, 2 | FLIP_X]], -1, 1)
    cels = [cel(0, noise(2, 3, 4, channels), raw=True), cel(2, noise(3, 2, 2, channels), 1, 1, z=1), grid]
    second = [old_palette([(0, [(5, 5, 5)])]), link(0, 0), link(2, 0, -1, opacity=90), part(0x2020, b"\0\0\0\0")]
    return [[*first, *cels], second, [link(2, 1)]]


def test_truncated_at_every_offset(tmp_path: Path) -> None:
    frames = [frame(*parts) for parts in rich(8)]
    whole = ase(*frames, depth=8, flags=3)
    assert len(pictures(whole, tmp_path)) == 3
    for length in range(6, len(whole), 7):
        assert refusal(whole[:length], tmp_path).reason == CUT_OFF
    ends = list(accumulate(map(len, frames), initial=128))
    for end in [*ends[:-1], *(end - 1 for end in ends[1:])]:  # at a frame's border, with a header that fits
        assert refusal(struct.pack("<I", end) + whole[4:end], tmp_path).reason == CUT_OFF


@pytest.mark.parametrize("depth", [8, 16, 32])
def test_truncated_chunks(tmp_path: Path, depth: int) -> None:
    """Every part in turn loses bytes from its end, with sizes that agree: noticed or harmless, and never an error."""
    first, *later = rich(depth)
    for number, whole in enumerate(first):
        for kept in range(6, len(whole), 3):
            short = struct.pack("<I", kept) + whole[4:kept]
            frames = [[*first[:number], short, *first[number + 1 :]], *later]
            survives(ase(*(frame(*parts) for parts in frames), depth=depth, flags=3), tmp_path)


def survives(data: bytes, folder: Path) -> None:
    (folder / "art.ase").write_bytes(data)
    read_pictures(folder)


@pytest.mark.parametrize("size", [0, 1, 5, 7, 0x7FFFFFFF, 0xFFFFFFFF])
def test_wrong_chunk_sizes(tmp_path: Path, size: int) -> None:
    for kind in (0x2004, 0x2020):
        lying = struct.pack("<IH", size, kind) + b"\0" * 4
        assert refusal(ase(frame(layer(), lying)), tmp_path).group == "unreadable"
    whole = bytearray(ase(frame(layer(), cel(0, RED_PIXELS))))
    struct.pack_into("<I", whole, 128, size)
    assert refusal(bytes(whole), tmp_path).group == "unreadable"


def test_wrong_chunk_counts(tmp_path: Path) -> None:
    whole = frame(layer(), cel(0, RED_PIXELS))
    cases = (3, 3, "too early"), (1, 1, "after the last chunk"), (9, 0, "too early"), (0, 2**32 - 1, "200,000")
    for old, new, reason in cases:
        lie = whole[:6] + struct.pack("<HHxxI", old, 100, new) + whole[16:]
        assert reason in refusal(ase(lie), tmp_path).reason
    old_counts = whole[:6] + struct.pack("<HHxxI", 2, 100, 0) + whole[16:]
    assert len(pictures(ase(old_counts), tmp_path)) == 1  # as files of old have it
    assert "no valid header" in refusal(ase(whole[:4] + b"\xfb\xf1" + whole[6:]), tmp_path).reason
    assert refusal(ase(whole, count=2), tmp_path).reason == CUT_OFF
    assert "200,000 chunks" in refusal(ase(frame(*[part(0x2020, b"")] * 200_001)), tmp_path).reason


def test_wrong_headers(tmp_path: Path) -> None:
    body = frame(layer(), cel(0, RED_PIXELS))
    for size in ((65535, 65535), (4097, 1), (1, 65535)):
        refused = refusal(ase(body, size=size), tmp_path)
        assert refused.group == "refused" and f"{size[0]:,} x {size[1]:,} pixels" in refused.reason
    no_frames = ase(body)[:6] + b"\0\0" + ase(body)[8:]
    for nothing in (ase(body, size=(0, 3)), ase(body, size=(4, 0)), no_frames):
        assert "no pixels" in refusal(nothing, tmp_path).reason
    assert "24 bits" in refusal(ase(body, depth=24), tmp_path).reason
    assert "palette is missing" in refusal(ase(frame(layer(), cel(0, RED_PIXELS[..., 0])), depth=8), tmp_path).reason


def test_other_formats_with_the_suffix(tmp_path: Path) -> None:
    swatches = b"ASEF\0\1\0\0\0\0\0\1" + b"\0" * 200
    refused = refusal(swatches, tmp_path, "colours.ase")
    assert (refused.group, refused.reason) == ("unsupported", "an Adobe swatch file: it holds colours and no picture")
    assert refusal(b"", tmp_path).reason == "empty: the file has no bytes"
    for data in (b"\0", b"whatever", b"*3DSMAX_ASCIIEXPORT 200", png_of(sprite(0)), b"\0" * 200):
        assert refusal(data, tmp_path).reason == "not an Aseprite file"


def lying(kind: int, width: int, height: int, data: bytes) -> bytes:
    """A cel of layer 0: raw for kind 0, packed for kind 2."""
    return any_cel(0, 0, 0, 255, kind, 0, struct.pack("<HH", width, height) + data)


def lying_tiles(count: int, side: int, packed: bytes) -> bytes:
    head = struct.pack("<IIIHHh14x", 0, 6, count, side, side, 1)
    return part(0x2023, head + text("") + struct.pack("<I", len(packed)) + packed)


PIXELS, GROUP, TILED = layer(), layer(kind=1), layer(kind=2)
TILE_SET, RED_CEL, GREY = tileset(0, noise(4, 2, 2, 2, 4)), cel(0, RED_PIXELS), [(7, 7, 7, 255)]
SHORT_GRID, HUGE_GRID = (
    lying(3, side, side, struct.pack("<HIIII10x", 32, *MASKS) + zlib.compress(b"\0" * 4)) for side in (9, 65535)
)
LIES: dict[str, list[list[bytes]]] = {  # reason -> chunks of each frame
    "missing layer": [[PIXELS, GROUP, cel(number, RED_PIXELS)] for number in (2, 65535, 1)],  # 1: a group
    "two cels": [[PIXELS, RED_CEL, RED_CEL]],
    "newer Aseprite": [
        [PIXELS, any_cel(0, 0, 0, 255, 4, 0, b"")], [layer(kind=3)],
        [PIXELS, tilemap(0, [[1]])],  # tiles on a layer of pixels
    ],
    "65,535 x 65,535": [
        *([PIXELS, lying(kind, 65535, 65535, zlib.compress(b""))] for kind in (0, 2)),
        [TILED, TILE_SET, HUGE_GRID],
    ],
    "does not match": [
        [PIXELS, lying(0, 4, 4, b"")], [PIXELS, lying(0, 4, 4, RED_PIXELS.tobytes())],
        [PIXELS, lying(2, 4, 4, zlib.compress(b""))], [PIXELS, lying(2, 4, 4, zlib.compress(RED_PIXELS.tobytes()))],
        [PIXELS, lying(2, 4, 3, zlib.compress(RED_PIXELS.tobytes())[:-5] + b"\0")],
        [TILED, TILE_SET, SHORT_GRID],
    ],
    "unpacked": [[PIXELS, lying(2, 4, 3, b"no zlib")]],
    "missing group": [
        [layer(level=1)], [GROUP, layer(level=2)], [GROUP, PIXELS, layer(level=1)],
    ],
    "2,000 layers": [[PIXELS] * 2_001],
    "tileset is missing": [[layer(kind=2, tileset=3), TILE_SET, tilemap(0, [[1]])]],
    "exceeds the tileset": [
        [TILED, TILE_SET, tilemap(0, [[2]])],
        [TILED, tileset(0, np.zeros((0, 2, 2, 4), np.uint8)), tilemap(0, [[1]])],
    ],
    "24 bits": [[TILED, TILE_SET, tilemap(0, [[1]], bits=24)]],
    "no pixels": [[tileset(0, np.zeros((1, 0, 2, 4), np.uint8))]],
    "too many pixels": [[lying_tiles(0xFFFFFFFF, 64, b"")]],
    "4,294,967,295 colours": [[palette(GREY, size=2**32 - 1)]],
    "exceed the palette size": [[palette(GREY, first=9, size=3)], [part(0x2019, struct.pack("<III8x", 5, 3, 2))]],
    "ends too early": [
        [part(0x2019, struct.pack("<III8x", 65_536, 0, 65_535))], [part(0x0004, struct.pack("<HBB", 65535, 0, 0))],
        [part(0x2018, struct.pack("<H8x", 9))],
    ],
    "more than 256": [[old_palette([(255, [(1, 2, 3)] * 2)])]],
    "1,000 tags": [[part(0x2018, struct.pack("<H8x", 65535))]],
}  # fmt: skip


@pytest.mark.parametrize("said", LIES)
def test_damaged_chunks(tmp_path: Path, said: str) -> None:
    for parts in LIES[said]:
        assert said in refusal(ase(frame(*parts)), tmp_path).reason


def test_unusual_but_valid_chunks(tmp_path: Path) -> None:
    nested = [layer(kind=1, level=level) for level in range(1_500)]
    assert "too deep" in refusal(ase(frame(*nested), flags=3), tmp_path).reason
    assert (drawn(tmp_path, *nested, layer(level=1_500), cel(1_500, RED_PIXELS)) == RED).all()
    for masks in ((0, 0, 0, 0), (0xFFFFFFFF,) * 4, (1, 1, 1, 1), (0x80000000, 1, 2, 3)):
        survives(ase(frame(TILE_SET, TILED, tilemap(0, [[1, 2**32 - 1]], masks=masks))), tmp_path)
    assert not drawn(tmp_path, palette(GREY, first=65_535), layer(), cel(0, RED_PIXELS[..., 0]), depth=8).any()


def test_wrong_links(tmp_path: Path) -> None:
    def refused(*frames: bytes) -> str:
        return refusal(ase(*frames), tmp_path).reason

    start = frame(layer(), layer(), cel(0, RED_PIXELS))
    assert "does not precede" in refused(frame(layer(), link(0, 0)))
    assert "does not precede" in refused(start, frame(link(0, 1)))
    assert "does not precede" in refused(start, frame(link(1, 2)), frame(link(1, 1)))  # a circle
    assert "does not precede" in refused(start, frame(link(0, 65535)))
    assert "without a cel" in refused(start, frame(link(1, 0)))


def test_bombs_are_not_unpacked(tmp_path: Path) -> None:
    bomb = zlib.compress(b"\0" * (32 << 20))
    tiles = frame(lying_tiles(2, 2, bomb), TILED, tilemap(0, [[1]]))
    for data in (ase(frame(PIXELS, lying(2, 4, 3, bomb))), ase(tiles)):
        assert "does not match" in refusal(data, tmp_path).reason
        tracemalloc.start()
        try:
            file = parse(data)
            with pytest.raises(UnreadableFile, match="does not match"):
                FramePainter(file).render(file.frames[0])
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_the_pixel_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ase_frames, "_MAX_DRAWN", 1 << 18)
    large = cel(0, np.zeros((256, 256, 4), np.uint8))
    assert len(pictures(ase(frame(layer(), large), *[frame(link(0, 0))] * 2, size=(1, 1)), tmp_path)) == 3
    over = ase(frame(layer(), large), *[frame(link(0, 0))] * 4, size=(1, 1))
    assert "layers with more" in refusal(over, tmp_path).reason
    groups = [layer(kind=1, level=level) for level in range(5)]
    deep = ase(frame(*groups, layer(level=5)), size=(4096, 4096), flags=3)
    assert "too deep" in refusal(deep, tmp_path).reason
