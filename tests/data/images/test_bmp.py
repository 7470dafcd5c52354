"""BMP files with 16 and 32 bits keep their alpha, whatever the header declares."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.decoding import decode

ARGB = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
SPRITE = np.array(
    [[(190, 74, 47, 255), (1, 2, 3, 128), (0, 0, 0, 0)], [(9, 8, 7, 255), (255, 255, 255, 1), (4, 5, 6, 255)]], np.uint8
)


def packed(rgba: NDArray[np.uint8], masks: tuple[int, ...], bits: int) -> NDArray[np.uint32]:
    """Return the pixels as numbers, with channels under the masks."""
    numbers = np.zeros(rgba.shape[:2], np.uint32)
    for channel, mask in enumerate(masks):
        low = (mask & -mask).bit_length() - 1 if mask else 0
        numbers |= (rgba[..., channel].astype(np.uint32) * np.uint32(mask >> low) // 255) << np.uint32(low)
    return numbers.astype(f"<u{bits // 8}")


def bmp(
    numbers: NDArray[np.uint32],
    *,
    header: int = 40,
    packing: int = 0,
    masks: tuple[int, ...] = (),
    top_down: bool = False,
) -> bytes:
    height, width = numbers.shape
    bits = numbers.dtype.itemsize * 8
    rows = [row.tobytes().ljust((width * bits + 31) // 32 * 4, b"\0") for row in numbers]
    pixels = b"".join(rows if top_down else rows[::-1])
    inside, after = (
        (struct.pack(f"<{len(masks)}I", *masks), b"") if header > 40 else (b"", struct.pack(f"<{len(masks)}I", *masks))
    )
    about = struct.pack("<IiiHHIIiiII", header, width, -height if top_down else height, 1, bits, packing, 0, 0, 0, 0, 0)
    about = (about + inside).ljust(header, b"\0") + after
    return struct.pack("<2sIHHI", b"BM", 14 + len(about) + len(pixels), 0, 0, 14 + len(about)) + about + pixels


@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize(
    ("header", "packing", "masks"),
    [
        (40, 0, ()),
        (40, 3, ARGB[:3]),
        (40, 6, ARGB),
        (52, 3, ARGB[:3]),
        (56, 3, ARGB),
        (56, 3, (0, 0, 0, 0)),
        (108, 3, ARGB),
        (124, 0, ()),
    ],
)
def test_alpha_is_kept(header: int, packing: int, masks: tuple[int, ...], top_down: bool) -> None:
    data = bmp(packed(SPRITE, ARGB, 32), header=header, packing=packing, masks=masks, top_down=top_down)
    assert np.array_equal(decode(data, ".bmp").rgba, SPRITE)


def test_channel_masks_in_another_order() -> None:
    masks = (0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    assert np.array_equal(
        decode(bmp(packed(SPRITE, masks, 32), header=108, packing=3, masks=masks), ".bmp").rgba, SPRITE
    )
    ten_bits = (0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000)
    rgba = decode(bmp(packed(SPRITE, ten_bits, 32), header=108, packing=3, masks=ten_bits), ".bmp").rgba
    assert np.abs(rgba[..., :3].astype(int) - SPRITE[..., :3]).max() <= 1
    assert rgba[..., 3].tolist() == [[255, 85, 0], [255, 0, 255]]


def test_a_zero_fourth_byte_means_opaque() -> None:
    opaque = SPRITE | np.array([0, 0, 0, 255], np.uint8)
    assert np.array_equal(decode(bmp(packed(SPRITE, ARGB[:3], 32)), ".bmp").rgba, opaque)
    declared = bmp(packed(SPRITE, ARGB[:3], 32), header=108, packing=3, masks=ARGB)
    assert not decode(declared, ".bmp").rgba[..., 3].any()


def test_an_empty_alpha_mask_means_opaque() -> None:
    data = bmp(packed(SPRITE, ARGB, 32), header=108, packing=3, masks=(*ARGB[:3], 0))
    assert (decode(data, ".bmp").rgba[..., 3] == 255).all()


@pytest.mark.parametrize(
    ("masks", "alpha"),
    [
        ((0x7C00, 0x3E0, 0x1F, 0x8000), [[255, 0, 0], [255, 0, 255]]),
        ((0xF00, 0xF0, 0xF, 0xF000), [[255, 119, 0], [255, 0, 255]]),
    ],
)
def test_16_bits(masks: tuple[int, ...], alpha: list[list[int]]) -> None:
    data = bmp(packed(SPRITE, masks, 16), header=56, packing=3, masks=masks)
    assert decode(data, ".bmp").rgba[..., 3].tolist() == alpha
    plain = decode(bmp(packed(SPRITE, (0x7C00, 0x3E0, 0x1F), 16)), ".bmp").rgba
    assert (plain[..., 3] == 255).all() and np.abs(plain[..., :3].astype(int) - SPRITE[..., :3]).max() < 16


def test_truncated_or_damaged_bmp_files_are_refused() -> None:
    data = bmp(packed(SPRITE, ARGB, 32))
    for length in range(26, len(data)):
        with pytest.raises(UnreadableFile):
            decode(data[:length], ".bmp")
    with pytest.raises(UnreadableFile, match=CUT_OFF):
        decode(data[:-1], ".bmp")
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(bmp(packed(SPRITE, ARGB, 32), header=108, packing=3, masks=ARGB))
        for place in rng.integers(10, 122, 3):
            damaged[place] = rng.integers(256)
        try:
            rgba = decode(bytes(damaged), ".bmp").rgba
        except UnreadableFile:
            continue
        assert rgba.dtype == np.uint8 and rgba.shape[2] == 4
