"""Palette files of other programs, and damaged files."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.GimpPaletteFile import GimpPaletteFile

from studio.core import files
from studio.core.errors import BadInputError, ExportError, UsageError
from studio.data.colour.palette import Palette
from studio.data.palettes.files import load_palette, save_palette
from tests.data.making import png, png_of

GIMP = b"""GIMP Palette
Name: Warm evening
Columns: 4
# by hand
190  74  47\tRust
  0   0   0 Pitch black
255 255 255
#  1   2   3\tno colour

 13  14  15\tUntitled
"""
GIMP_COLOURS = [[190, 74, 47], [0, 0, 0], [255, 255, 255], [13, 14, 15]]
ASEPRITE = b"""GIMP Palette
Channels: RGBA
#
  0   0   0   0 Transparent
254  91  89 255 Red
 87 185 242 128 Blue
"""
FULL_OF_COLOURS = (np.arange(70 * 70, dtype="<u4") | 0xFF000000).view(np.uint8).reshape(70, 70, 4)
WARM = np.array([[190, 74, 47, 255], [1, 2, 3, 255]], np.uint8)


def loaded(folder: Path, data: bytes, name: str = "warm.gpl") -> Palette:
    (folder / name).write_bytes(data)
    return load_palette(folder / name)


def fault(folder: Path, data: bytes, name: str = "warm.gpl") -> str:
    with pytest.raises(BadInputError) as caught:
        loaded(folder, data, name)
    assert caught.value.hint
    return caught.value.title


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_gimp(tmp_path: Path, newline: bytes, mark: bytes) -> None:
    found = loaded(tmp_path, mark + GIMP.replace(b"\n", newline))
    assert found.colours.tolist() == [[*colour, 255] for colour in GIMP_COLOURS]
    assert found.name == "Warm evening" and found.colour_names == ("Rust", "Pitch black", "", "")


def test_gimp_as_pillow_reads_and_writes_it(tmp_path: Path) -> None:
    palette, mode = GimpPaletteFile.frombytes(GIMP.replace(b"\n\n", b"\n")).getpalette()
    assert mode == "RGB" and np.frombuffer(palette, np.uint8).reshape(-1, 3).tolist() == GIMP_COLOURS
    written = save_palette(tmp_path / "new.gpl", Palette(WARM, "two", ("Rust", "")))
    with written.open("rb") as stream:
        assert GimpPaletteFile(stream).getpalette() == (WARM[:, :3].tobytes(), "RGB")
    assert written.read_bytes() == b"GIMP Palette\nName: two\n#\n190  74  47\tRust\n  1   2   3\tUntitled\n"


def test_aseprite_with_alpha(tmp_path: Path) -> None:
    found = loaded(tmp_path, ASEPRITE)
    assert found.colours.tolist() == [[0, 0, 0, 0], [254, 91, 89, 255], [87, 185, 242, 128]]
    assert found.name == "warm" and found.colour_names == ("Transparent", "Red", "Blue")
    assert found.visible().tolist() == [[87, 185, 242], [254, 91, 89]]
    assert b"\nChannels: RGBA\n" in save_palette(tmp_path / "new.gpl", found).read_bytes()


def test_latin_1_names_and_odd_letters(tmp_path: Path) -> None:
    found = loaded(tmp_path, "GIMP Palette\nName: Föhn\n1 2 3 Grün\n4 5 6 a\x1bb\n".encode("latin-1"))
    assert (found.name, found.colour_names) == ("Föhn", ("Grün", "a\\x1bb"))
    assert Palette(WARM, "two\nlines\u2028\ud800").name == "two lines \\ud800"


RIFF_TABLE = b"data" + struct.pack("<IHH", 12, 0x300, 2) + bytes([190, 74, 47, 0, 1, 2, 3, 4])
OTHER_PART = b"abcd" + struct.pack("<I", 3) + b"xyz\0"  # of odd length, and so padded
ACT = bytes([190, 74, 47, 1, 2, 3]) + bytes(762)
STRIP = np.array([[WARM[0], WARM[1], WARM[0], (9, 9, 9, 0)]], np.uint8)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("warm.pal", b"JASC-PAL\r\n0100\r\n2\r\n190 74 47\r\n1 2 3\r\n"),
        ("warm.pal", b"RIFF" + struct.pack("<I", 99) + b"PAL " + RIFF_TABLE),
        ("warm.pal", b"RIFF" + struct.pack("<I", 99) + b"PAL " + OTHER_PART + RIFF_TABLE),
        ("warm.txt", b"be4a2f\n010203\n"),
        ("warm.txt", b"#BE4A2F\r\n\r\n#010203"),
        ("warm.txt", b" be4a2fff \r010203ff\r"),
        ("evening.json", b'{"name":"warm","author":"Someone","colors":["be4a2f","010203"]}'),
        ("warm.png", png_of(STRIP)),
        ("warm.png", png_of(STRIP.repeat(8, 0).repeat(8, 1))),
        ("warm.png", png_of(np.concatenate([STRIP, STRIP]))),
        ("warm.png", png(2, 1, 8, 3, [b"\0\1"], palette=WARM[:, :3].tobytes())),
        ("warm.act", ACT + b"\0\2\xff\xff"),
    ],
)
def test_files_of_other_programs(tmp_path: Path, name: str, data: bytes) -> None:
    found = loaded(tmp_path, data, name)
    assert found.colours.tolist() == WARM.tolist() and found.name == "warm"


def test_transparent_colours_and_full_tables(tmp_path: Path) -> None:
    assert loaded(tmp_path, b"JASC-PAL\n0100\n1\n1 2 3 4", "a.pal").colours.tolist() == [[1, 2, 3, 4]]
    assert loaded(tmp_path, b"01020304", "a.hex").colours.tolist() == [[1, 2, 3, 4]]
    clear = loaded(tmp_path, ACT + b"\0\2\0\1", "a.act")
    assert clear.colours.tolist() == [[190, 74, 47, 255], [1, 2, 3, 0]]
    assert save_palette(tmp_path / "new.act", clear).read_bytes() == ACT + b"\0\2\0\1"
    assert len(loaded(tmp_path, ACT, "a.act")) == 256
    assert len(loaded(tmp_path, b"010203\r\n" * 96, "text.act")) == 96  # as long as a table: 768 bytes


@pytest.mark.parametrize(
    ("name", "lines", "colours"),
    [
        ("a.txt", "; paint.net Palette File\n; aarrggbb\n80be4a2f\nFF010203", [[190, 74, 47, 128], [1, 2, 3, 255]]),
        ("a.hex", ";Palette Name: Warm\nFFbe4a2f\n", [[190, 74, 47, 255]]),
        ("a.txt", "FFbe4a2f\nFF010203", [[190, 74, 47, 255], [1, 2, 3, 255]]),
        ("a.txt", "80be4a2f\nFF010203", [[190, 74, 47, 128], [1, 2, 3, 255]]),
        ("a.txt", "ff0000FF\nff0102FF", [[0, 0, 255, 255], [1, 2, 255, 255]]),
        ("a.txt", "be4a2fFF\n010203FF", [[190, 74, 47, 255], [1, 2, 3, 255]]),
        ("a.txt", "be4a2f\n01020304", [[190, 74, 47, 255], [1, 2, 3, 4]]),
        ("a.hex", "ff4a2f80\nff020304", [[255, 74, 47, 128], [255, 2, 3, 4]]),
        ("a.lst", "be4a2f80\n01020304", [[190, 74, 47, 128], [1, 2, 3, 4]]),
    ],
)
def test_alpha_comes_first_in_paint_net_files(tmp_path: Path, name: str, lines: str, colours: list[list[int]]) -> None:
    found = loaded(tmp_path, lines.encode(), name)
    assert found.colours.tolist() == colours
    assert found.name == ("Warm" if "Name" in lines else "a")


def test_written_files(tmp_path: Path) -> None:
    def saved(suffix: str) -> bytes:
        return save_palette(tmp_path / f"new{suffix}", Palette(WARM, "Warm Evening")).read_bytes()

    assert saved(".pal") == b"JASC-PAL\r\n0100\r\n2\r\n190 74 47\r\n1 2 3\r\n"
    assert saved(".hex") == b"be4a2f\n010203\n" and saved(".act") == ACT + b"\0\2\xff\xff"
    assert json.loads(saved(".json")) == {"name": "Warm Evening", "author": "", "colors": ["be4a2f", "010203"]}
    with Image.open(io.BytesIO(saved(".png"))) as picture:
        assert np.asarray(picture).tolist() == [WARM.tolist()]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.gpl", b"", "a.gpl: the file does not begin with 'GIMP Palette'"),
        ("a.gpl", b"GIMP Palette\nName: x\n#\n", "a.gpl: it has no colours"),
        ("a.gpl", b"GIMP Palette\n#\n1 2 3\n1 abc 3 Red\n", "line 4 of a.gpl: 'abc' is not a number from 0 to 255."),
        ("a.gpl", b"GIMP Palette\n1 2 256\n", "line 2 of a.gpl: '256' is not a number"),
        ("a.gpl", "GIMP Palette\n1 2 \u200b3\n".encode(), "line 2 of a.gpl: '\\u200b3' is not a number"),
        ("a.gpl", b"GIMP Palette\n1 2 -3\n", "line 2 of a.gpl: '-3' is not"),
        ("a.gpl", "GIMP Palette\n1 2 ³\n".encode(), "line 2 of a.gpl: '³' is not"),
        ("a.gpl", b"GIMP Palette\n1 2 " + b"9" * 9000, "line 2 of a.gpl: '999999999999999999999999…' is not"),
        ("a.gpl", b"GIMP Palette\n1 2\n", "line 2 of a.gpl: expected 3 numbers from 0 to 255"),
        ("a.gpl", b"GIMP Palette\nChannels: RGBA\n1 2 3\n", "line 3 of a.gpl: expected 4 numbers"),
        ("a.gpl", b"GIMP Palette\n1 2 3\n1 2 3 a\0b\n", "line 3 of a.gpl: not a text"),
        ("a.gpl", b"GIMP Palette\n" + b"1 2 3\n" * 100_000, "line 4098 of a.gpl: more than 4,096 colours"),
        ("a.pal", b"JASC-PAL\n0100\n2\n1 2 3\n", "line 3 of a.pal: 2 colours announced, but 1 found"),
        ("a.pal", b"JASC-PAL\n0100\n", "a.pal: cut off"),
        ("a.pal", b"JASC-PAL\n0200\n1\n1 2 3\n", "line 2 of a.pal: the version is not 0100"),
        ("a.pal", b"JASC-PAL\n0100\nmany\n", "line 3 of a.pal: 'many' is not a number from 0 to 4096"),
        ("a.pal", b"JASC-PAL\n0100\n0\n", "a.pal: it has no colours"),
        ("a.pal", b"JASC-PAL\n0100\n1\n1 2 3 4 5\n", "line 4 of a.pal: expected 3 numbers"),
        ("a.pal", b"RIFF\0\0\0\0PAL " + RIFF_TABLE[:-1], "a.pal: cut off"),
        ("a.pal", b"RIFF\0\0\0\0PAL data\0\0\0\0\0\3\0\0", "a.pal: it has no colours"),
        ("a.pal", b"RIFF\0\0\0\0PAL data\0\0\0\0\0\3\xff\xff", "a.pal: 65,535 colours announced"),
        ("a.hex", b"", "a.hex: it has no colours"),
        ("a.hex", b"010203\n\n01020\n", "line 3 of a.hex: '01020' is not a colour such as be4a2f"),
        ("a.hex", b"010203\n" * 100_000, "line 4097 of a.hex: more than 4,096 colours"),
        ("a.json", b"{", "line 1 of a.json: invalid JSON"),
        ("a.json", b'{"colors": [' + b"[" * 100_000, "a.json: invalid JSON"),
        ("a.json", b'{"colors": ' + b"9" * 9000 + b"}", "a.json: invalid JSON"),
        ("a.json", b'{"frames": []}', "a.json: the list 'colors' is missing"),
        ("a.json", b'{"colors": ["010203", 7]}', "colour 2 of a.json: not a text"),
        ("a.json", b'{"colors": []}', "a.json: it has no colours"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "a.png: cut off"),
        ("a.png", b"GIF89a", "a.png: not a PNG picture"),
        ("a.png", png_of(np.zeros((2, 2, 4), np.uint8)), "a.png: it has no colours"),
        ("a.png", png_of(np.zeros((1025, 1025, 4), np.uint8)), "a.png: a picture of 1,025 x 1,025 pixels is too"),
        ("a.png", png_of(FULL_OF_COLOURS), "a.png: a picture of 4,900 colours; the limit is 4,096"),
        ("a.act", bytes(767), "a.act: it has 767 bytes; a colour table has 768 or 772"),
        ("a.act", bytes(772), "a.act: it has no colours"),
        ("a.act", bytes(768) + b"\xff\xff\0\0", "a.act: 65,535 colours announced"),
        ("a.md", b"hello", "a.md: not a palette"),
        ("a.txt", b"hello", "line 1 of a.txt: 'hello' is not a colour such as be4a2f"),
        ("a.txt", b"; paint.net\n", "a.txt: it has no colours"),
        ("a.hex", b"010203\n" * 150_000, "a.hex: larger than 1 MB"),
    ],
)
def test_damaged_palettes_name_the_line(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    assert f"Can't read {said}" in fault(tmp_path, data, name)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for name, words in (("gone.gpl", "does not exist"), ("", "is a folder")):
        with pytest.raises(BadInputError, match=words):
            load_palette(tmp_path / name)
    if os.name != "nt":  # Windows has no pipes
        os.mkfifo(tmp_path / "pipe.gpl")
        with pytest.raises(BadInputError, match="not a file"):
            load_palette(tmp_path / "pipe.gpl")


def test_errors_of_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.exe", "a"):
        with pytest.raises(UsageError, match=r"Can't save a palette as .*\.gpl, \.hex, \.pal"):
            save_palette(tmp_path / name, Palette(WARM))

    def full(target: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_atomic", full)
    with pytest.raises(ExportError, match="No space left"):
        save_palette(tmp_path / "a.gpl", Palette(WARM))
    assert list(tmp_path.iterdir()) == []
