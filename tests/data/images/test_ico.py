"""Icon files: the largest picture, its alpha, and no more than its size may take."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from studio.data.files.source_files import UnreadableFile
from studio.data.images.decoding import decode
from tests.data.making import Pixels, png, png_of, sprite


def icon(*bodies: bytes, kind: int = 1, side: int = 16) -> bytes:
    """Return an icon file with these pictures, all declared with one size."""
    start, entries = 6 + 16 * len(bodies), b""
    for body in bodies:
        entries += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(body), start)
        start += len(body)
    return struct.pack("<HHH", 0, kind, len(bodies)) + entries + b"".join(bodies)


def bitmap(rgba: Pixels, *, height: int = 0) -> bytes:
    """A bitmap of 32 bits as it lies in an icon file, with an empty mask."""
    rows, columns = rgba.shape[:2]
    head = struct.pack("<IiiHHIIiiII", 40, columns, 2 * (height or rows), 1, 32, 0, 0, 0, 0, 0, 0)
    return head + rgba[::-1, :, [2, 1, 0, 3]].tobytes() + bytes(rows * ((columns + 31) // 32 * 4))


@pytest.mark.parametrize("kind", [1, 2])
def test_bitmaps_and_cursors_keep_their_alpha(kind: int) -> None:
    rgba = sprite(1, 16)
    rgba[3:6, 3:6, 3] = 100
    decoded = decode(icon(bitmap(rgba), kind=kind), ".ico" if kind == 1 else ".cur")
    assert np.array_equal(decoded.rgba, rgba) and not decoded.remarks
    rgba[..., 3] = 0
    assert (decode(icon(bitmap(rgba)), ".ico").rgba[..., 3] == 255).all()  # an undefined channel


def test_the_largest_icon_size_is_read_and_reported() -> None:
    packed = io.BytesIO()
    Image.fromarray(sprite(2, 32)).save(packed, "ICO", sizes=[(16, 16), (32, 32)], bitmap_format="bmp")
    decoded = decode(packed.getvalue(), ".ico")
    assert np.array_equal(decoded.rgba, sprite(2, 32))
    assert [(remark.group, "32 x 32" in remark.reason) for remark in decoded.remarks] == [("sizes", True)]


def test_pictures_in_png_are_read_as_png() -> None:
    decoded = decode(icon(png_of(sprite(3, 20)), side=0), ".ico")
    assert np.array_equal(decoded.rgba, sprite(3, 20)) and not decoded.remarks


@pytest.mark.parametrize(
    ("data", "group", "words"),
    [
        (icon(), "unreadable", "cut off"),
        (icon(bitmap(sprite(1, 16)))[:-200], "unreadable", "cut off"),
        (icon(bitmap(sprite(1, 16), height=50_000)), "unreadable", "invalid icon header"),
        (icon(png(50_000, 50_000, 8, 6, [bytes(99)])), "refused", "50,000 x 50,000"),
        (icon(icon(bitmap(sprite(1, 16)))), "unreadable", "invalid icon header"),
        (struct.pack("<HHH", 0, 1, 60_000) + bytes(100), "unreadable", "cut off"),
    ],
)
def test_damaged_icons_are_refused(data: bytes, group: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "open", None)  # decoding would fail the test
    with pytest.raises(UnreadableFile, match=words) as refused:
        decode(data, ".ico")
    assert refused.value.group == group
