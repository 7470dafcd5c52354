"""Picture files: detection by contents, size limits before decoding, and all colour formats."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ExifTags, Image

from studio.data.files.source_files import UnreadableFile
from studio.data.images.decoding import (
    LARGEST_FILE,
    apply_exif_orientation,
    decode,
    read_bytes,
    strip_metadata,
    to_rgba,
)
from tests.conftest import posix
from tests.data.animating import ANIMATIONS, NOISE
from tests.data.making import MAGIC, Pixels, chunk, found, png, png_of, sprite
from tests.fuzz.specimens import SPECIMENS, xpm

ORIENTATION = int(ExifTags.Base.Orientation)
RED, GREEN, BLUE = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255)
CLEAR_RED = (255, 0, 0, 0)
COLOURS = np.array([[200, 30, 40, 255], [0, 0, 0, 0], [9, 8, 7, 255]], np.uint8)
DRAWING: Pixels = COLOURS[np.arange(7 * 5).reshape(7, 5) % 3]


def stored(image: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def saved(kind: str, mode: str = "RGBA", **options: Any) -> bytes:
    return stored(Image.fromarray(DRAWING).convert(mode), kind, **options)


def tga(width: int, height: int, pixels: bytes, *, alpha_bits: int = 8) -> bytes:
    """An uncompressed TGA of 32 bits, rows from the top, blue first."""
    return struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, width, height, 32, 0x20 | alpha_bits) + pixels


def refusal(data: bytes, suffix: str = ".png") -> UnreadableFile:
    with pytest.raises(UnreadableFile) as caught:
        decode(data, suffix)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "suffix", "options"),
    [
        ("PNG", ".png", {}),
        ("WEBP", ".webp", {"lossless": True, "exact": True}),
        ("TGA", ".tga", {}),
        ("TGA", ".tga", {"compression": "tga_rle"}),
        ("TIFF", ".tif", {}),
        ("TIFF", ".tiff", {"compression": "tiff_lzw"}),
        ("BMP", ".bmp", {}),
        ("QOI", ".qoi", {}),
        ("PPM", ".ppm", {}),
        ("PCX", ".pcx", {}),
    ],
)
def test_lossless_kinds_keep_every_pixel(kind: str, suffix: str, options: dict[str, Any]) -> None:
    has_alpha = kind not in ("BMP", "PPM", "PCX")
    decoded = decode(saved(kind, "RGBA" if has_alpha else "RGB", **options), suffix)
    expected = DRAWING | np.array([0, 0, 0, 255 * (not has_alpha)], np.uint8)
    assert (decoded.rgba == expected).all() and not decoded.remarks


@pytest.mark.parametrize("kind", ["QOI", "PPM", "XPM"])
def test_slow_formats_have_a_lower_pixel_limit(kind: str) -> None:
    width, height = 2048, 1024
    data = {
        "QOI": b"qoif" + struct.pack(">IIBB", width, height, 4, 0),
        "PPM": f"P6 {width} {height} 255\n".encode(),
        "XPM": f'/* XPM */\n"{width} {height} 1 1",\n"a c #010203",\n'.encode(),
    }[kind]
    refused = refusal(data + bytes(100), f".{kind.lower()}")
    assert refused.group == "refused" and "at most 1,048,576 pixels" in refused.reason


def test_pixmaps_keep_transparent_pixels() -> None:
    assert np.array_equal(decode(xpm(sprite(3)), ".xpm").rgba, sprite(3))


@pytest.mark.parametrize("suffix", ANIMATIONS)
def test_first_frame_of_an_animation(suffix: str) -> None:
    decoded = decode(ANIMATIONS[suffix], suffix)
    assert (decoded.rgba == NOISE[0]).all()
    assert [remark.group for remark in decoded.remarks] == ["animation"]


def test_read_by_content_not_by_name() -> None:
    decoded = decode(saved("JPEG", "RGB"), ".png")
    assert [remark.group for remark in decoded.remarks] == ["jpeg", "misnamed"]
    assert "JPEG" in decoded.remarks[1].reason and ".png" in decoded.remarks[1].reason
    assert [remark.group for remark in decode(saved("GIF", "P"), ".png").remarks] == ["misnamed"]
    assert not decode(saved("PNG"), ".sprite").remarks  # an unknown extension


def test_undefined_tga_alpha_is_opaque() -> None:
    assert decode(tga(1, 1, bytes([3, 2, 1, 128])), ".tga").rgba.tolist() == [[[1, 2, 3, 128]]]
    for bits, alpha in ((0, 255), (8, 0)):
        decoded = decode(tga(2, 2, bytes([3, 2, 1, 0]) * 4, alpha_bits=bits), ".tga")
        assert (decoded.rgba == (1, 2, 3, alpha)).all()


HUGE, WEBP = "50,000 x 50,000", b"RIFF\0\1\0\0WEBP"
EMPTY = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0)) + chunk(b"IEND", b"")
REFUSED = {  # contents, suffix, group and words
    "nothing": (b"", ".png", "unreadable", "no bytes"),
    "text": (b"Remember to draw the goblin.\n", ".png", "unreadable", "not a picture"),
    "Photoshop": (b"8BPS\0\1" + bytes(40), ".png", "unsupported", "Photoshop"),
    "Aseprite": (struct.pack("<IH", 500, 0xA5E0) + bytes(40), ".png", "unsupported", "Aseprite"),
    "a TGA by another name": (saved("TGA"), ".png", "unreadable", "not a picture"),
    "zeros named TGA": (bytes(100), ".tga", "unreadable", "not a picture"),
    "indexed without a palette": (png(1, 1, 8, 3, [b"\0"]), ".png", "unreadable", "palette is missing"),
    "no pixels": (MAGIC + EMPTY, ".png", "unreadable", "pixel data"),
    "no header": (MAGIC + chunk(b"IDAT", b"") + chunk(b"IEND", b""), ".png", "unreadable", "invalid PNG header"),
    "no width": (png(0, 1, 8, 6, [b""]), ".png", "unreadable", "damaged"),
    "a depth that does not exist": (png(1, 1, 3, 6, [b"\0\0"]), ".png", "unreadable", "damaged"),
    "pixels that run out": (png(8, 8, 8, 6, [b"\x7f" * 32]), ".png", "unreadable", "cut off"),
    "very many parts": (MAGIC + chunk(b"teXt", b"") * 100_001, ".png", "refused", "100,000 chunks"),
    "a huge PNG": (png(50_000, 50_000, 8, 6, [bytes(99)]), ".png", "refused", HUGE),
    "a huge GIF": (b"GIF89a" + struct.pack("<HH", 50_000, 50_000) + bytes(20), ".gif", "refused", HUGE),
    "a huge BMP": (b"BM" + bytes(12) + struct.pack("<Iii", 40, 50_000, -50_000) + bytes(30), ".bmp", "refused", HUGE),
    "a huge VP8X": (WEBP + b"VP8X\x0a" + bytes(7) + b"\xff" * 6, ".webp", "refused", "16,777,216 x 16,777,216"),
    "a huge VP8L": (WEBP + b"VP8L\x0a\0\0\0\x2f" + b"\xff" * 4, ".webp", "refused", "16,384 x 16,384"),
    "a huge VP8": (
        WEBP + b"VP8 \x0a" + bytes(6) + b"\x9d\x01\x2a" + b"\xff" * 4,
        ".webp",
        "refused",
        "16,383 x 16,383",
    ),
    "a RAR archive": (b"Rar!\x1a\x07\1\0", ".png", "unsupported", "RAR archive"),
    "a JPEG XL picture": (b"\xff\x0a" + bytes(20), ".png", "unsupported", "JPEG XL"),
    "a PPM by another name": (saved("PPM", "RGB"), ".png", "unreadable", "not a picture"),
    "a huge QOI": (b"qoif" + struct.pack(">IIBB", 50_000, 50_000, 4, 0), ".qoi", "refused", HUGE),
    "a huge PCX": (b"\n\5\1\x08" + struct.pack("<4H", 0, 0, 49_999, 49_999), ".pcx", "refused", HUGE),
    "a huge TGA": (tga(50_000, 50_000, b""), ".tga", "refused", HUGE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_or_too_large_files_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, suffix, group, words = REFUSED[name]
    if group == "refused":
        monkeypatch.setattr(Image, "open", None)  # decoding would fail the test
    refused = refusal(data, suffix)
    assert refused.group == group and words in refused.reason


def test_a_png_that_is_cut_off_or_has_a_flipped_bit_is_noticed() -> None:
    data = png_of(sprite(1, 4))
    for length in range(8, len(data)):
        refused = refusal(data[:length])
        assert refused.group == "unreadable" and "cut off" in refused.reason
    for position in range(8 * 8, 8 * len(data)):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        reason = refusal(bytes(flipped)).reason
        assert "checksum" in reason or position // 8 != data.index(b"IDAT") + 12


def test_jpeg_size_is_checked_before_its_pixels() -> None:
    data = bytearray(saved("JPEG", "RGB"))
    start = data.index(b"\xff\xc0")
    data[start + 5 : start + 9] = struct.pack(">HH", 50_000, 50_000)
    assert refusal(bytes(data), ".jpg").group == "refused"


@pytest.mark.parametrize("start", [b"iCCPprofile\0\0", b"zTXtComment\0\0", b"iTXtComment\0\1\0\0\0"])
def test_bombs_in_texts_and_profiles_are_never_unpacked(start: bytes) -> None:
    bomb = chunk(start[:4], start[4:] + zlib.compress(bytes(50_000_000), 9))
    decoded = decode(png(1, 1, 8, 6, [b"\1\2\3\4"], extra=bomb * 20), ".png")
    assert decoded.rgba.tolist() == [[[1, 2, 3, 4]]] and not decoded.remarks


def test_pixels_beyond_the_picture_are_not_unpacked() -> None:
    assert decode(png(1, 1, 8, 6, [b"\1\2\3\4" + bytes(100_000_000)]), ".png").rgba.shape == (1, 1, 4)


def test_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)  # takes no room on the disk
    with pytest.raises(UnreadableFile, match="too large"):
        read_bytes(found(path))
    assert read_bytes(found(path), 10) == b"\0" * 10


@posix
def test_pipe_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(UnreadableFile, match="not a file"):
        read_bytes(found(tmp_path / "pipe.png"))


def grey(value: int, alpha: int = 255) -> tuple[int, int, int, int]:
    return (value, value, value, alpha)


PNGS = {  # depth, colour type, a row of samples, transparency, expected pixels
    "1 bit grey": (1, 0, b"\x50", b"", [grey(0), grey(255), grey(0), grey(255)]),
    "2 bit grey": (2, 0, b"\x1b", b"", [grey(0), grey(85), grey(170), grey(255)]),
    "4 bit grey": (4, 0, b"\x3c", b"", [grey(51), grey(204)]),
    "8 bit grey": (8, 0, b"\x07\xfe", b"", [grey(7), grey(254)]),
    "16 bit grey": (16, 0, struct.pack(">3H", 0, 0x8080, 65_535), b"", [grey(0), grey(128), grey(255)]),
    "16 bit grey rounds": (16, 0, struct.pack(">2H", 128, 129), b"", [grey(0), grey(1)]),
    "1 bit grey, key": (1, 0, b"\x40", b"\0\1", [grey(0), grey(255, 0)]),
    "2 bit grey, key": (2, 0, b"\x1b", b"\0\2", [grey(0), grey(85), grey(170, 0), grey(255)]),
    "4 bit grey, key": (4, 0, b"\x3c", b"\0\3", [grey(51, 0), grey(204)]),
    "8 bit grey, key": (8, 0, b"\x07\xfe", b"\0\x07", [grey(7, 0), grey(254)]),
    "16 bit grey, key": (16, 0, b"\x80\x80\x80\x81", b"\x80\x80", [grey(128, 0), grey(128)]),
    "RGB": (8, 2, b"\xff\0\0\0\xff\0", b"", [RED, GREEN]),
    "RGB, key": (8, 2, b"\xff\0\0\0\xff\0", b"\0\xff\0\0\0\0", [CLEAR_RED, GREEN]),
    "16 bit RGB": (16, 2, struct.pack(">3H", 65_535, 0x4040, 0), b"", [(255, 64, 0, 255)]),
    "16 bit RGB, key": (16, 2, struct.pack(">6H", 65_535, 0, 0, 0, 65_535, 0), b"\xff\xff\0\0\0\0", [CLEAR_RED, GREEN]),
    "grey and alpha": (8, 4, b"\x64\x01\xc8\xfe", b"", [grey(100, 1), grey(200, 254)]),
    "16 bit grey and alpha": (16, 4, struct.pack(">2H", 0x6464, 0x0101), b"", [grey(100, 1)]),
    "RGBA": (8, 6, b"\x01\x02\x03\x04\xff\xfe\xfd\xfc", b"", [(1, 2, 3, 4), (255, 254, 253, 252)]),
    "16 bit RGBA": (16, 6, struct.pack(">4H", 0x0101, 0x0202, 0, 0x8080), b"", [(1, 2, 0, 128)]),
    "1 bit palette": (1, 3, b"\x40", b"", [RED, GREEN]),
    "4 bit palette": (4, 3, b"\x10", b"", [GREEN, RED]),
    "palette": (8, 3, b"\0\1\2", b"", [RED, GREEN, BLUE]),
    "palette, one clear": (8, 3, b"\0\1\2", b"\0\xff\xff", [CLEAR_RED, GREEN, BLUE]),
    "palette, every alpha": (8, 3, b"\0\1\2", b"\x01\x80\xfe", [(255, 0, 0, 1), (0, 255, 0, 128), (0, 0, 255, 254)]),
    "palette, short alpha": (8, 3, b"\0\1", b"\x7f", [(255, 0, 0, 127), GREEN]),
    "palette, index beyond it": (8, 3, b"\0\x09", b"", [RED, grey(0)]),
}


@pytest.mark.parametrize("name", PNGS)
def test_every_kind_of_png(name: str) -> None:
    depth, colour_type, row, transparency, expected = PNGS[name]
    palette = b"\xff\0\0\0\xff\0\0\0\xff" if colour_type == 3 else b""
    data = png(len(expected), 1, depth, colour_type, [row], palette=palette, transparency=transparency)
    decoded = decode(data, ".png")
    assert decoded.rgba.dtype == np.uint8 and decoded.rgba.shape == (1, len(expected), 4)
    assert [tuple(pixel) for pixel in decoded.rgba[0].tolist()] == expected
    assert [remark.group for remark in decoded.remarks] == (["converted"] if depth == 16 else [])


def test_interlaced_rows_are_put_in_place() -> None:
    data, passes = SPECIMENS["png, interlaced"]().files["art.png"], [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8)]
    rgba = decode(data, ".png").rgba
    passes += [(2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for left, top, across, down in passes:  # in each, every row holds the numbers from 0
        row = rgba[top::down, left::across].reshape(len(range(top, 8, down)), -1)
        assert (row == np.arange(row.shape[1])).all()


@pytest.mark.parametrize(
    ("mode", "colour", "expected", "tolerance"),
    [
        ("CMYK", (255, 0, 0, 0), (0, 255, 255, 255), 0),
        ("YCbCr", (128, 128, 128), grey(128), 0),
        ("HSV", (0, 255, 255), RED, 0),
        ("PA", (0, 128), grey(0, 128), 0),
        ("RGBX", (1, 2, 3, 0), (1, 2, 3, 255), 0),
        ("RGBa", (64, 0, 0, 128), (127, 0, 0, 128), 1),
        ("LAB", (255, 128, 128), grey(255), 6),
        ("LAB", (0, 128, 128), grey(0), 6),
        ("LAB", (138, 209, 198), (254, 0, 0, 255), 6),  # L* 54.3, a* 81, b* 70 is the red of sRGB under D50
    ],
)
def test_every_mode_of_pillow(mode: str, colour: tuple[int, ...], expected: tuple[int, ...], tolerance: int) -> None:
    rgba, words = to_rgba(Image.new(mode, (2, 3), colour))
    assert rgba.shape == (3, 2, 4) and (rgba[..., 3] == expected[3]).all()
    assert np.abs(rgba.astype(int) - expected).max() <= tolerance
    assert words == (f"from {mode} colours" if mode in ("CMYK", "YCbCr", "HSV", "LAB") else "")


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


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [*enumerate(("abcdef", "cbafed", "fedcba", "defabc", "adbecf", "daebfc", "fcebda", "cfbead"), 1)],
)
def test_all_eight_exif_orientations(orientation: int, expected: str) -> None:
    letters = Image.fromarray(np.array([[ord(letter) for letter in row] for row in ("abc", "def")], np.uint8))
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    seen, turned = apply_exif_orientation(letters, exif.tobytes())
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
    image = Image.new("RGB", (16, 8), (250, 250, 250))
    image.paste((5, 5, 5), (0, 0, 8, 8))  # dark on the left
    data, segment = stored(image, "JPEG", quality=95), b"Exif\0\0" + exif
    with_exif = data[:2] + b"\xff\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]
    decoded = decode(with_exif, ".jpg")
    seen = decoded.rgba.transpose(1, 0, 2) if turned else decoded.rgba  # dark on top: a quarter to the right
    assert seen.shape == (8, 16, 4) and (seen[:, :6] < (20, 20, 20, 256)).all() and (seen[:, 10:] > 235).all()
    assert [remark.group for remark in decoded.remarks] == ["jpeg", *(["turned"] if turned else [])]
    assert strip_metadata(with_exif) == (data, segment)


def test_exif_and_colour_profiles_of_other_kinds_change_nothing() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    image = Image.new("RGB", (16, 8), (10, 20, 30))
    decoded = decode(stored(image, "PNG", exif=exif, icc_profile=b"not even a profile"), ".png")
    assert decoded.rgba.shape == (8, 16, 4) and not decoded.remarks
    assert (decoded.rgba == (10, 20, 30, 255)).all()
