"""Aseprite files that are cut off, damaged, or lie: a reason in words, never another error, a hang or much memory."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from studio.data.aseprite import frames as ase_frames
from studio.data.aseprite.file import parse
from studio.data.aseprite.frames import Painter
from studio.data.options import QUARANTINE_GROUPS
from studio.data.source_files import CUT_OFF, Refused
from tests.data.ase_making import (
    BACKGROUND,
    FLIP_X,
    MASKS,
    VISIBLE,
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
    tags,
    text,
    tileset,
)
from tests.data.ase_making import tilemap as tiles_cel
from tests.data.making import png_of, sprite
from tests.fuzz.specimens import read_pictures

RED = filled((200, 0, 0, 255))


def refusal(data: bytes, folder: Path, name: str = "art.ase") -> Refused:
    with pytest.raises(Refused) as refused:
        items(data, folder, name)
    assert refused.value.group in QUARANTINE_GROUPS and refused.value.reason.isprintable()
    return refused.value


def rich(depth: int) -> bytes:
    """A file with a bit of everything."""
    channels = depth // 8
    tiles = noise(1, 3, 2, 2, channels)
    layers = [layer(VISIBLE | BACKGROUND), layer(kind=1, opacity=200), layer(level=1, mode=9), layer(kind=2, mode=13)]
    first = [palette([(1, 2, 3, 255)] * 5, names=True), tileset(0, tiles), *layers, tags((0, 1, "walk"), (2, 2, "run"))]
    grid = tiles_cel(3, [[1, 2 | FLIP_X]], -1, 1)
    cels = [cel(0, noise(2, 3, 4, channels), raw=True), cel(2, noise(3, 2, 2, channels), 1, 1, z=1), grid]
    second = [old_palette([(0, [(5, 5, 5)])]), link(0, 0), link(2, 0, -1, opacity=90), part(0x2020, b"\0\0\0\0")]
    return ase(frame(*first, *cels), frame(*second), frame(link(2, 1)), depth=depth, flags=3)


@pytest.mark.parametrize("depth", [8, 16, 32])
def test_cut_off_anywhere(tmp_path: Path, depth: int) -> None:
    whole = rich(depth)
    assert len(pictures(whole, tmp_path)) == 3
    for length in range(6, len(whole), 7):
        assert refusal(whole[:length], tmp_path).reason == CUT_OFF
    ends = [128]
    while ends[-1] < len(whole):  # the borders of frames, with a header that fits what is left
        ends.append(ends[-1] + int.from_bytes(whole[ends[-1] : ends[-1] + 4], "little"))
        cut = struct.pack("<I", ends[-1] - 1) + whole[4 : ends[-1] - 1]
        assert refusal(cut, tmp_path).reason == CUT_OFF
    assert len(ends) == 4
    for end in ends[:-1]:
        assert refusal(struct.pack("<I", end) + whole[4:end], tmp_path).reason == CUT_OFF


def chunk_starts(data: bytes) -> Iterator[int]:
    start = 128 + 16
    for _ in range(int.from_bytes(data[140:144], "little")):
        yield start
        start += int.from_bytes(data[start : start + 4], "little")


@pytest.mark.parametrize("depth", [8, 16, 32])
def test_parts_cut_short(tmp_path: Path, depth: int) -> None:
    """Every chunk in turn loses bytes from its end, with sizes that agree: noticed or harmless, and never an error."""
    whole = rich(depth)
    size = int.from_bytes(whole[128:132], "little")
    for start in chunk_starts(whole):
        length = int.from_bytes(whole[start : start + 4], "little")
        for kept in range(6, length, 3):
            less = length - kept
            body = bytearray(whole[: start + kept] + whole[start + length :])
            struct.pack_into("<I", body, 0, len(body))
            struct.pack_into("<I", body, 128, size - less)
            struct.pack_into("<I", body, start, kept)
            survives(bytes(body), tmp_path)


def survives(data: bytes, folder: Path) -> None:
    (folder / "art.ase").write_bytes(data)
    read_pictures(folder)


@pytest.mark.parametrize("size", [0, 1, 5, 7, 0x7FFFFFFF, 0xFFFFFFFF])
def test_sizes_of_parts_that_lie(tmp_path: Path, size: int) -> None:
    for kind in (0x2004, 0x2020):
        lying = struct.pack("<IH", size, kind) + b"\0" * 4
        assert refusal(ase(frame(layer(), lying)), tmp_path).group == "unreadable"
    whole = bytearray(ase(frame(layer(), cel(0, RED))))
    struct.pack_into("<I", whole, 128, size)
    assert refusal(bytes(whole), tmp_path).group == "unreadable"


def test_counts_of_parts_that_lie(tmp_path: Path) -> None:
    whole = frame(layer(), cel(0, RED))
    for old, new, reason in [(3, 3, "shorter"), (1, 1, "more in it"), (9, 0, "shorter"), (0, 2**32 - 1, "200,000")]:
        lying = bytearray(whole)
        struct.pack_into("<H", lying, 6, old)
        struct.pack_into("<I", lying, 12, new)
        assert reason in refusal(ase(bytes(lying)), tmp_path).reason
    struct.pack_into("<H4xI", lying, 6, 2, 0)
    assert len(pictures(ase(bytes(lying)), tmp_path)) == 1  # as files of old have it
    struct.pack_into("<H", lying, 4, 0xF1FB)
    assert "does not begin" in refusal(ase(bytes(lying)), tmp_path).reason
    assert refusal(ase(whole, count=2), tmp_path).reason == CUT_OFF
    assert "200,000 parts" in refusal(ase(frame(*[part(0x2020, b"")] * 200_001)), tmp_path).reason


def test_headers_that_lie(tmp_path: Path) -> None:
    body = frame(layer(), cel(0, RED))
    for size in ((65535, 65535), (4097, 1), (1, 65535)):
        refused = refusal(ase(body, size=size), tmp_path)
        assert refused.group == "refused" and f"{size[0]:,} x {size[1]:,} pixels" in refused.reason
    assert "no pixels" in refusal(ase(body, size=(0, 3)), tmp_path).reason
    assert "no pixels" in refusal(ase(body, size=(4, 0)), tmp_path).reason
    assert "24 bits" in refusal(ase(body, depth=24), tmp_path).reason
    nothing = bytearray(ase(body))
    struct.pack_into("<H", nothing, 6, 0)
    assert "no pixels" in refusal(bytes(nothing), tmp_path).reason
    assert "palette is missing" in refusal(ase(frame(layer(), cel(0, RED[..., 0])), depth=8), tmp_path).reason


def test_other_files_under_that_name(tmp_path: Path) -> None:
    swatches = b"ASEF\0\1\0\0\0\0\0\1" + b"\0" * 200
    refused = refusal(swatches, tmp_path, "colours.ase")
    assert (refused.group, refused.reason) == ("unsupported", "an Adobe swatch file: it holds colours and no picture")
    assert refusal(b"", tmp_path).reason == "empty: the file has no bytes"
    for data in (b"\0", b"whatever", b"*3DSMAX_ASCIIEXPORT 200", png_of(sprite(0)), b"\0" * 200):
        assert refusal(data, tmp_path).reason == "not an Aseprite file: its contents are something else"


def lying(kind: int, width: int, height: int, data: bytes) -> bytes:
    """A cel of layer 0: raw for kind 0, packed for kind 2."""
    return part(0x2005, struct.pack("<HhhBHh5xHH", 0, 0, 0, 255, kind, 0, width, height) + data)


PIXELS, GROUP, TILES = layer(), layer(kind=1), layer(kind=2)
TILE_SET, RED_CEL, GREY = tileset(0, noise(4, 2, 2, 2, 4)), cel(0, RED), [(7, 7, 7, 255)]
MANY_TILES = struct.pack("<IIIHHh14x", 0, 6, 0xFFFFFFFF, 64, 64, 1) + text("") + b"\0" * 4
SHORT_GRID, HUGE_GRID = (
    struct.pack("<HhhBHh5xHHHIIII10x", 0, 0, 0, 255, 3, 0, side, side, 32, *MASKS) + zlib.compress(b"\0" * 4)
    for side in (9, 65535)
)
LIES: dict[str, list[list[bytes]]] = {  # what is said, and the parts of each frame
    "layer that is not there": [[PIXELS, GROUP, cel(number, RED)] for number in (2, 65535, 1)],  # 1: a group
    "two drawings": [[PIXELS, RED_CEL, RED_CEL]],
    "newer Aseprite": [
        [PIXELS, part(0x2005, struct.pack("<HhhBHh5x", 0, 0, 0, 255, 4, 0))], [layer(kind=3)],
        [PIXELS, tiles_cel(0, [[1]])],  # tiles on a layer of pixels
    ],
    "65,535 x 65,535": [
        *([PIXELS, lying(kind, 65535, 65535, zlib.compress(b""))] for kind in (0, 2)),
        [TILES, TILE_SET, part(0x2005, HUGE_GRID)],
    ],
    "more or fewer": [
        [PIXELS, lying(0, 4, 4, b"")], [PIXELS, lying(0, 4, 4, RED.tobytes())],
        [PIXELS, lying(2, 4, 4, zlib.compress(b""))], [PIXELS, lying(2, 4, 4, zlib.compress(RED.tobytes()))],
        [PIXELS, lying(2, 4, 3, zlib.compress(RED.tobytes())[:-5] + b"\0")],
        [TILES, TILE_SET, part(0x2005, SHORT_GRID)],
    ],
    "unpacked": [[PIXELS, lying(2, 4, 3, b"no zlib")]],
    "group that is not there": [
        [layer(level=1)], [GROUP, layer(level=2)], [GROUP, PIXELS, layer(level=1)],
    ],
    "2,000 layers": [[PIXELS] * 2_001],
    "tileset is missing": [[layer(kind=2, tileset=3), TILE_SET, tiles_cel(0, [[1]])]],
    "not in its tileset": [
        [TILES, TILE_SET, tiles_cel(0, [[2]])],
        [TILES, tileset(0, np.zeros((0, 2, 2, 4), np.uint8)), tiles_cel(0, [[1]])],
    ],
    "24 bits": [[TILES, TILE_SET, tiles_cel(0, [[1]], bits=24)]],
    "no pixels": [[tileset(0, np.zeros((1, 0, 2, 4), np.uint8))]],
    "tilesets have more pixels": [[part(0x2023, MANY_TILES)]],
    "4,294,967,295 colours": [[palette(GREY, size=2**32 - 1)]],
    "its own size": [[palette(GREY, first=9, size=3)], [part(0x2019, struct.pack("<III8x", 5, 3, 2))]],
    "shorter": [
        [part(0x2019, struct.pack("<III8x", 65_536, 0, 65_535))], [part(0x0004, struct.pack("<HBB", 65535, 0, 0))],
        [part(0x2018, struct.pack("<H8x", 9))],
    ],
    "place for": [[old_palette([(255, [(1, 2, 3)] * 2)])]],
    "1,000 tags": [[part(0x2018, struct.pack("<H8x", 65535))]],
}  # fmt: skip


@pytest.mark.parametrize("said", LIES)
def test_parts_that_lie(tmp_path: Path, said: str) -> None:
    for parts in LIES[said]:
        assert said in refusal(ase(frame(*parts)), tmp_path).reason


def test_what_only_looks_like_a_lie(tmp_path: Path) -> None:
    nested = [layer(kind=1, level=level) for level in range(1_500)]
    assert "too deep" in refusal(ase(frame(*nested), flags=3), tmp_path).reason
    assert (drawn(ase(frame(*nested, layer(level=1_500), cel(1_500, RED))), tmp_path) == RED).all()
    for masks in ((0, 0, 0, 0), (0xFFFFFFFF,) * 4, (1, 1, 1, 1), (0x80000000, 1, 2, 3)):
        survives(ase(frame(TILE_SET, TILES, tiles_cel(0, [[1, 2**32 - 1]], masks=masks))), tmp_path)
    last = ase(frame(palette(GREY, first=65_535), layer(), cel(0, RED[..., 0])), depth=8)
    assert not pictures(last, tmp_path)[0].rgba.any()


def test_links_that_lie(tmp_path: Path) -> None:
    def refused(*frames: bytes) -> str:
        return refusal(ase(*frames), tmp_path).reason

    start = frame(layer(), layer(), cel(0, RED))
    assert "does not come before" in refused(frame(layer(), link(0, 0)))
    assert "does not come before" in refused(start, frame(link(0, 1)))
    assert "does not come before" in refused(start, frame(link(1, 2)), frame(link(1, 1)))  # a circle
    assert "does not come before" in refused(start, frame(link(0, 65535)))
    assert "has none" in refused(start, frame(link(1, 0)))


def test_bombs_are_not_unpacked(tmp_path: Path) -> None:
    bomb = zlib.compress(b"\0" * (32 << 20))
    lying = part(0x2005, struct.pack("<HhhBHh5xHH", 0, 0, 0, 255, 2, 0, 4, 3) + bomb)
    head = struct.pack("<IIIHHh14x", 0, 6, 2, 2, 2, 1) + text("") + struct.pack("<I", len(bomb))
    tiles = [part(0x2023, head + bomb), layer(kind=2), tiles_cel(0, [[1]])]
    for data in (ase(frame(layer(), lying)), ase(frame(*tiles))):
        assert "more or fewer" in refusal(data, tmp_path).reason
        tracemalloc.start()
        try:
            file = parse(data)
            with pytest.raises(Refused, match="more or fewer"):
                Painter(file).picture(file.frames[0])
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_too_much_to_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ase_frames, "_MOST_DRAWN", 1 << 18)
    large = cel(0, np.zeros((256, 256, 4), np.uint8))
    assert len(pictures(ase(frame(layer(), large), *[frame(link(0, 0))] * 2, size=(1, 1)), tmp_path)) == 3
    over = ase(frame(layer(), large), *[frame(link(0, 0))] * 4, size=(1, 1))
    assert "pixels to draw" in refusal(over, tmp_path).reason
    groups = [layer(kind=1, level=level) for level in range(5)]
    deep = ase(frame(*groups, layer(level=5)), size=(4096, 4096), flags=3)
    assert "too deep" in refusal(deep, tmp_path).reason
