"""Kinds of picture files: told by their contents, bounded before anything is decoded."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from studio.data.images.decoding import LARGEST_FILE, decode, read_bytes
from studio.data.source_files import Refused, SourceFile
from tests.conftest import posix
from tests.data.making import MAGIC, Pixels, chunk, png, png_of, sprite

COLOURS = np.array([[200, 30, 40, 255], [0, 0, 0, 0], [9, 8, 7, 255]], np.uint8)
DRAWING: Pixels = COLOURS[np.arange(7 * 5).reshape(7, 5) % 3]


def saved(kind: str, mode: str = "RGBA", **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(DRAWING).convert(mode).save(stream, kind, **options)
    return stream.getvalue()


def tga(width: int, height: int, pixels: bytes, *, alpha_bits: int = 8) -> bytes:
    """An uncompressed TGA of 32 bits, rows from the top, blue first."""
    return struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, width, height, 32, 0x20 | alpha_bits) + pixels


def refusal(data: bytes, suffix: str = ".png") -> Refused:
    with pytest.raises(Refused) as caught:
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
    ],
)
def test_lossless_kinds_keep_every_pixel(kind: str, suffix: str, options: dict[str, Any]) -> None:
    decoded = decode(saved(kind, "RGB" if kind == "BMP" else "RGBA", **options), suffix)
    expected = DRAWING | np.array([0, 0, 0, 255 * (kind == "BMP")], np.uint8)  # which has no alpha
    assert (decoded.rgba == expected).all() and not decoded.remarks


def test_gif_keeps_its_clear_colour() -> None:
    stream = io.BytesIO()
    image = Image.fromarray((np.arange(35).reshape(7, 5) % 3).astype(np.uint8), "L").convert("P")
    image.putpalette([200, 30, 40, 0, 255, 0, 9, 8, 7])
    image.save(stream, "GIF", transparency=1)
    rgba = decode(stream.getvalue(), ".gif").rgba
    assert (rgba[..., 3] == DRAWING[..., 3]).all()
    assert (rgba[rgba[..., 3] > 0] == DRAWING[DRAWING[..., 3] > 0]).all()


@pytest.mark.parametrize(("kind", "options"), [("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True})])
def test_first_frame_of_an_animation(kind: str, options: dict[str, Any]) -> None:
    frames = [Image.new("RGB", (6, 4), colour) for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]
    stream = io.BytesIO()
    frames[0].save(stream, kind, save_all=True, append_images=frames[1:], **options)
    decoded = decode(stream.getvalue(), f".{kind.lower()}")
    assert decoded.rgba.shape == (4, 6, 4) and (decoded.rgba == (255, 0, 0, 255)).all()
    assert [remark.group for remark in decoded.remarks] == ["animation"]


def test_read_by_content_not_by_name() -> None:
    decoded = decode(saved("JPEG", "RGB"), ".png")
    assert [remark.group for remark in decoded.remarks] == ["jpeg", "misnamed"]
    assert "JPEG" in decoded.remarks[1].reason and ".png" in decoded.remarks[1].reason
    assert [remark.group for remark in decode(saved("GIF", "P"), ".png").remarks] == ["misnamed"]
    assert not decode(saved("PNG"), ".sprite").remarks  # a name that promises nothing


def test_tga_only_by_its_name() -> None:
    assert refusal(saved("TGA"), ".png").group == "unreadable"
    assert refusal(b"\0" * 100, ".tga").group == "unreadable"


def test_tga_alpha_that_means_nothing() -> None:
    assert decode(tga(1, 1, bytes([3, 2, 1, 128])), ".tga").rgba.tolist() == [[[1, 2, 3, 128]]]
    for bits, alpha in ((0, 255), (8, 0)):
        found = decode(tga(2, 2, bytes([3, 2, 1, 0]) * 4, alpha_bits=bits), ".tga")
        assert (found.rgba == (1, 2, 3, alpha)).all()


def test_nothing_and_text() -> None:
    assert "no bytes" in refusal(b"").reason
    assert "not a picture" in refusal(b"Remember to draw the goblin.\n").reason
    assert refusal(b"8BPS\0\1" + b"\0" * 40).group == "unsupported"
    assert "Aseprite" in refusal(struct.pack("<IH", 500, 0xA5E0) + b"\0" * 40).reason


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


@pytest.mark.parametrize(
    "data",
    [
        png(1, 1, 8, 3, [b"\0"]),  # indexed without a palette
        MAGIC + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0)) + chunk(b"IEND", b""),
        MAGIC + chunk(b"IDAT", b"") + chunk(b"IEND", b""),
        png(0, 1, 8, 6, [b""]),
        png(1, 1, 3, 6, [b"\0\0"]),  # a depth that does not exist
        png(8, 8, 8, 6, [b"\x7f" * 32]),  # pixels that run out
    ],
)
def test_png_that_lies(data: bytes) -> None:
    assert refusal(data).group == "unreadable"


def test_huge_header_is_refused_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "open", None)  # whoever calls it fails the test
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 6, 0, 0, 0)
    refused = refusal(MAGIC + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b""))
    assert refused.group == "refused" and "50,000 x 50,000" in refused.reason
    for data, suffix in (
        (b"GIF89a" + struct.pack("<HH", 50_000, 50_000) + b"\0" * 20, ".gif"),
        (b"BM" + b"\0" * 12 + struct.pack("<Iii", 40, 50_000, -50_000) + b"\0" * 30, ".bmp"),
        (b"RIFF\0\1\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\xff\xff\xff" * 2, ".webp"),
        (b"RIFF\0\1\0\0WEBPVP8L\x0a\0\0\0\x2f" + b"\xff\xff\xff\xff", ".webp"),
        (b"RIFF\0\1\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a" + b"\xff\x3f\xff\x3f", ".webp"),
        (tga(50_000, 50_000, b""), ".tga"),
    ):
        assert refusal(data, suffix).group == "refused", suffix


def test_jpeg_size_is_checked_before_its_pixels() -> None:
    data = bytearray(saved("JPEG", "RGB"))
    start = data.index(b"\xff\xc0")
    data[start + 5 : start + 9] = struct.pack(">HH", 50_000, 50_000)
    assert refusal(bytes(data), ".jpg").group == "refused"


@pytest.mark.parametrize(
    "bomb",
    [
        chunk(b"iCCP", b"profile\0\0" + zlib.compress(b"\0" * 50_000_000, 9)),
        chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 50_000_000, 9)),
        chunk(b"iTXt", b"Comment\0\1\0\0\0" + zlib.compress(b"\0" * 50_000_000, 9)),
    ],
    ids=["iCCP", "zTXt", "iTXt"],
)
def test_bombs_in_texts_and_profiles_are_never_unpacked(bomb: bytes) -> None:
    data = png(1, 1, 8, 6, [b"\1\2\3\4"], extra=bomb * 20)
    decoded = decode(data, ".png")
    assert decoded.rgba.tolist() == [[[1, 2, 3, 4]]] and not decoded.remarks


def test_pixels_beyond_the_picture_are_not_unpacked() -> None:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0)
    pixels = zlib.compress(b"\0\1\2\3\4" + b"\0" * 100_000_000, 9)
    data = MAGIC + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    assert decode(data, ".png").rgba.shape == (1, 1, 4)


def test_too_many_parts() -> None:
    assert refusal(MAGIC + chunk(b"IHDR", b"\0" * 13) + chunk(b"teXt", b"") * 100_001).group == "refused"


def test_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)  # takes no room on the disk
    with pytest.raises(Refused, match="too large"):
        read_bytes(_found(path))
    assert read_bytes(_found(path), 10) == b"\0" * 10


@posix
def test_a_pipe_that_took_the_place_of_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(Refused, match="plain file"):
        read_bytes(_found(tmp_path / "pipe.png"))


def _found(path: Path) -> SourceFile:
    return SourceFile(str(path), path.name, (), "", frozenset(), 0, 0)
