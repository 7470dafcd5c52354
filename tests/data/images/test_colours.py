"""Every way to store colours, against values worked out by hand."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import ExifTags, Image

from studio.data.images.decoding import decode, strip, to_rgba, upright
from tests.data.making import png
from tests.fuzz.specimens import SPECIMENS

ORIENTATION = int(ExifTags.Base.Orientation)
RED, GREEN, BLUE = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255)
CLEAR_RED = (255, 0, 0, 0)


def grey(value: int, alpha: int = 255) -> tuple[int, int, int, int]:
    return (value, value, value, alpha)


PNGS = {
    "1 bit grey": (png(4, 1, 1, 0, [b"\x50"]), [grey(0), grey(255), grey(0), grey(255)]),
    "2 bit grey": (png(4, 1, 2, 0, [b"\x1b"]), [grey(0), grey(85), grey(170), grey(255)]),
    "4 bit grey": (png(2, 1, 4, 0, [b"\x3c"]), [grey(51), grey(204)]),
    "8 bit grey": (png(2, 1, 8, 0, [b"\x07\xfe"]), [grey(7), grey(254)]),
    "16 bit grey": (png(3, 1, 16, 0, [struct.pack(">3H", 0, 0x8080, 65_535)]), [grey(0), grey(128), grey(255)]),
    "16 bit grey rounds": (png(2, 1, 16, 0, [struct.pack(">2H", 128, 129)]), [grey(0), grey(1)]),
    "1 bit grey, key": (png(2, 1, 1, 0, [b"\x40"], transparency=b"\0\1"), [grey(0), grey(255, 0)]),
    "2 bit grey, key": (
        png(4, 1, 2, 0, [b"\x1b"], transparency=b"\0\2"),
        [grey(0), grey(85), grey(170, 0), grey(255)],
    ),
    "4 bit grey, key": (png(2, 1, 4, 0, [b"\x3c"], transparency=b"\0\3"), [grey(51, 0), grey(204)]),
    "8 bit grey, key": (png(2, 1, 8, 0, [b"\x07\xfe"], transparency=b"\0\x07"), [grey(7, 0), grey(254)]),
    "16 bit grey, key": (
        png(2, 1, 16, 0, [struct.pack(">2H", 0x8080, 0x8081)], transparency=b"\x80\x80"),
        [grey(128, 0), grey(128)],
    ),
    "RGB": (png(2, 1, 8, 2, [b"\xff\0\0\0\xff\0"]), [RED, GREEN]),
    "RGB, key": (png(2, 1, 8, 2, [b"\xff\0\0\0\xff\0"], transparency=b"\0\xff\0\0\0\0"), [CLEAR_RED, GREEN]),
    "16 bit RGB": (png(1, 1, 16, 2, [struct.pack(">3H", 65_535, 0x4040, 0)]), [(255, 64, 0, 255)]),
    "16 bit RGB, key": (
        png(2, 1, 16, 2, [struct.pack(">6H", 65_535, 0, 0, 0, 65_535, 0)], transparency=b"\xff\xff\0\0\0\0"),
        [CLEAR_RED, GREEN],
    ),
    "grey and alpha": (png(2, 1, 8, 4, [b"\x64\x01\xc8\xfe"]), [grey(100, 1), grey(200, 254)]),
    "16 bit grey and alpha": (png(1, 1, 16, 4, [struct.pack(">2H", 0x6464, 0x0101)]), [grey(100, 1)]),
    "RGBA": (png(2, 1, 8, 6, [b"\x01\x02\x03\x04\xff\xfe\xfd\xfc"]), [(1, 2, 3, 4), (255, 254, 253, 252)]),
    "16 bit RGBA": (png(1, 1, 16, 6, [struct.pack(">4H", 0x0101, 0x0202, 0, 0x8080)]), [(1, 2, 0, 128)]),
    "1 bit palette": (png(2, 1, 1, 3, [b"\x40"], palette=b"\xff\0\0\0\xff\0"), [RED, GREEN]),
    "4 bit palette": (png(2, 1, 4, 3, [b"\x10"], palette=b"\xff\0\0\0\xff\0"), [GREEN, RED]),
    "palette": (png(3, 1, 8, 3, [b"\0\1\2"], palette=b"\xff\0\0\0\xff\0\0\0\xff"), [RED, GREEN, BLUE]),
    "palette, one clear": (
        png(3, 1, 8, 3, [b"\0\1\2"], palette=b"\xff\0\0\0\xff\0\0\0\xff", transparency=b"\xff\0\xff"),
        [RED, (0, 255, 0, 0), BLUE],
    ),
    "palette, every alpha": (
        png(3, 1, 8, 3, [b"\0\1\2"], palette=b"\xff\0\0\0\xff\0\0\0\xff", transparency=b"\x01\x80\xfe"),
        [(255, 0, 0, 1), (0, 255, 0, 128), (0, 0, 255, 254)],
    ),
    "palette, short alpha": (
        png(2, 1, 8, 3, [b"\0\1"], palette=b"\xff\0\0\0\xff\0", transparency=b"\x7f"),
        [(255, 0, 0, 127), GREEN],
    ),
    "palette, index beyond it": (png(2, 1, 8, 3, [b"\0\x09"], palette=b"\xff\0\0"), [RED, grey(0)]),
}


@pytest.mark.parametrize("name", PNGS)
def test_every_kind_of_png(name: str) -> None:
    data, expected = PNGS[name]
    decoded = decode(data, ".png")
    assert decoded.rgba.dtype == np.uint8 and decoded.rgba.shape == (1, len(expected), 4)
    assert [tuple(pixel) for pixel in decoded.rgba[0].tolist()] == expected
    assert [remark.group for remark in decoded.remarks] == (["converted"] if name.startswith("16 bit") else [])


def test_interlaced_rows_are_put_in_place() -> None:
    data, passes = SPECIMENS["png, interlaced"]().files["art.png"], [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8)]
    rgba = decode(data, ".png").rgba
    passes += [(2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for left, top, across, down in passes:  # in each, every row holds the numbers from 0
        row = rgba[top::down, left::across].reshape(len(range(top, 8, down)), -1)
        assert (row == np.arange(row.shape[1])).all()


MODES = {
    "CMYK": ((255, 0, 0, 0), (0, 255, 255, 255)),
    "YCbCr": ((128, 128, 128), grey(128)),
    "HSV": ((0, 255, 255), RED),
    "PA": ((0, 128), grey(0, 128)),
    "RGBX": ((1, 2, 3, 0), (1, 2, 3, 255)),
    "RGBa": ((64, 0, 0, 128), (127, 0, 0, 128)),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_pillow(mode: str) -> None:
    colour, expected = MODES[mode]
    rgba, words = to_rgba(Image.new(mode, (2, 3), colour))
    assert rgba.shape == (3, 2, 4)
    assert np.abs(rgba.astype(int) - expected).max() <= (1 if mode == "RGBa" else 0)
    assert bool(words) == (mode in ("CMYK", "YCbCr", "HSV"))


@pytest.mark.parametrize(
    ("lab", "expected"),
    [((255, 128, 128), (255, 255, 255)), ((0, 128, 128), (0, 0, 0)), ((138, 209, 198), (254, 0, 0))],
)
def test_lab_against_the_textbook(lab: tuple[int, int, int], expected: tuple[int, int, int]) -> None:
    rgba, words = to_rgba(Image.new("LAB", (1, 1), lab))  # L* 54.3, a* 81, b* 70 is the red of sRGB under D50
    assert np.abs(rgba[0, 0, :3].astype(int) - expected).max() <= 6
    assert rgba[0, 0, 3] == 255 and "LAB" in words


def test_whole_numbers_and_fractions() -> None:
    assert _greys(np.array([[0, 65_535]], np.int32)) == [0, 255]
    assert _greys(np.array([[0, 200]], np.int32)) == [0, 200]
    assert _greys(np.array([[-100, 0, 100]], np.int32)) == [0, 128, 255]
    assert _greys(np.array([[-5, -5]], np.int32)) == [0, 0]
    assert _greys(np.array([[0.0, 0.5, 1.0]], np.float32)) == [0, 128, 255]
    assert _greys(np.array([[0.0, 200.0, np.nan, np.inf]], np.float32)) == [0, 200, 0, 0]


def _greys(values: np.ndarray[tuple[int, int], np.dtype[np.generic]]) -> list[int]:
    rgba, words = to_rgba(Image.fromarray(values))
    assert words and (rgba[..., 3] == 255).all() and (rgba[..., 0] == rgba[..., 2]).all()
    return [int(value) for value in rgba[0, :, 0]]


def test_jpeg_is_noted_and_turned_as_viewers_do() -> None:
    image = Image.new("RGB", (16, 8), (250, 250, 250))
    image.paste((5, 5, 5), (0, 0, 8, 8))  # dark on the left
    exif = Image.Exif()
    exif[ORIENTATION] = 6  # to be turned a quarter to the right
    decoded = decode(_saved(image, "JPEG", exif=exif, quality=95), ".jpg")
    assert decoded.rgba.shape == (16, 8, 4)
    assert decoded.rgba[2, 4, 0] < 20 and decoded.rgba[13, 4, 0] > 235  # dark on top
    assert [remark.group for remark in decoded.remarks] == ["jpeg", "turned"]


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [
        (1, "abcdef"),
        (2, "cbafed"),
        (3, "fedcba"),
        (4, "defabc"),
        (5, "adbecf"),
        (6, "daebfc"),
        (7, "fcebda"),
        (8, "cfbead"),
    ],
)
def test_all_eight_turns(orientation: int, expected: str) -> None:
    stored = Image.fromarray(np.array([[ord(letter) for letter in row] for row in ("abc", "def")], np.uint8))
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    seen, turned = upright(stored, exif.tobytes())
    assert seen.size == ((3, 2) if orientation < 5 else (2, 3)) and turned == (orientation > 1)
    assert "".join(chr(value) for value in np.asarray(seen).flatten()) == expected


def _entries(*entries: tuple[int, int, int, bytes]) -> bytes:
    """EXIF with one directory: tag, kind, count and the four bytes of each entry."""
    packed = b"".join(struct.pack("<HHI", tag, kind, count) + value for tag, kind, count, value in entries)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + packed + b"\0\0\0\0"


QUARTER = (ORIENTATION, 3, 1, b"\x06\0\0\0")


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, about damaged tags
@pytest.mark.parametrize(
    ("exif", "turned"),
    [
        (b"", False),
        (b"II*\0", False),
        (b"neither", False),
        (b"MM\0*\xff\xff\xff\xff", False),
        (b"II*\0\x08\0\0\0\xff\xff", False),
        (_entries((ORIENTATION, 3, 1, b"\x09\0\0\0")), False),
        (_entries((ORIENTATION, 2, 1, b"\x06\0\0\0")), False),
        (_entries((ORIENTATION, 5, 1, b"\xff\xff\xff\xff")), False),
        (_entries((ORIENTATION, 3, 0, b"\x06\0\0\0")), False),
        (_entries(QUARTER)[:-8], False),
        (_entries(QUARTER), True),
        # ImageOps.exif_transpose alone raises for these two: a date that is a number, and a resolution of bytes.
        (_entries(QUARTER, (0x0132, 11, 1, b"\0\0\x80\x3f")), True),
        (_entries(QUARTER, (0x011A, 2, 1, b"\x05\0\0\0")), True),
        (_entries(QUARTER, (0x010F, 2, 4_000_000_000, b"\xff\xff\xff\xff")), True),
    ],
)
def test_fault_7_damaged_exif_loses_no_picture(exif: bytes, turned: bool) -> None:
    data = _saved(Image.new("RGB", (16, 8)), "JPEG")
    segment = b"Exif\0\0" + exif
    with_exif = data[:2] + b"\xff\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]
    decoded = decode(with_exif, ".jpg")
    assert decoded.rgba.shape == ((16, 8, 4) if turned else (8, 16, 4))
    assert ("turned" in [remark.group for remark in decoded.remarks]) == turned
    assert strip(with_exif) == (data, segment)


def test_exif_and_colour_profiles_of_other_kinds_change_nothing() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    image = Image.new("RGB", (16, 8), (10, 20, 30))
    decoded = decode(_saved(image, "PNG", exif=exif, icc_profile=b"not even a profile"), ".png")
    assert decoded.rgba.shape == (8, 16, 4) and not decoded.remarks
    assert (decoded.rgba == (10, 20, 30, 255)).all()


def _saved(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()
