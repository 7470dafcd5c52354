"""Files cut anywhere and with flipped bits: a picture or a reason, never an exception."""

from __future__ import annotations

import functools
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from studio.data.images.decoding import decode, sniff
from studio.data.options import NOTE_GROUPS, QUARANTINE_GROUPS
from studio.data.sources.base import Refused

KINDS = {
    "png": ("PNG", "RGBA", ".png", {}),
    "png of a palette": ("PNG", "P", ".png", {"transparency": 3}),
    "gif": ("GIF", "P", ".gif", {"transparency": 1}),
    "bmp": ("BMP", "RGB", ".bmp", {}),
    "bmp of a palette": ("BMP", "P", ".bmp", {}),
    "webp": ("WEBP", "RGBA", ".webp", {"lossless": True}),
    "lossy webp": ("WEBP", "RGB", ".webp", {"quality": 50}),
    "jpeg": ("JPEG", "RGB", ".jpg", {}),
    "cmyk jpeg": ("JPEG", "CMYK", ".jpg", {"progressive": True}),
    "tga": ("TGA", "RGBA", ".tga", {}),
    "packed tga": ("TGA", "RGBA", ".tga", {"compression": "tga_rle"}),
    "tga of a palette": ("TGA", "P", ".tga", {}),
    "tiff": ("TIFF", "RGBA", ".tif", {}),
    "lab tiff": ("TIFF", "LAB", ".tif", {}),
    "tiff of fractions": ("TIFF", "F", ".tif", {}),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, about damaged TIFF tags


@functools.cache
def whole(kind: str) -> tuple[bytes, str]:
    form, mode, suffix, options = KINDS[kind]
    noise = (np.random.default_rng(0).integers(0, 4, (20, 24, 4)) * 85).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(stream, form, **options)  # type: ignore[arg-type]
    return stream.getvalue(), suffix


def check(data: bytes, suffix: str) -> bool:
    """Whether a picture came out; fails on anything but a picture or a good reason."""
    try:
        decoded = decode(data, suffix)
    except Refused as refused:
        check_reason(refused)
        return False
    assert decoded.rgba.dtype == np.uint8 and decoded.rgba.ndim == 3 and decoded.rgba.shape[2] == 4
    assert decoded.rgba.flags.writeable and decoded.rgba.flags.c_contiguous
    assert all(remark.group in NOTE_GROUPS for remark in decoded.remarks)
    return True


def check_reason(refused: Refused) -> None:
    assert refused.group in QUARANTINE_GROUPS and refused.reason
    assert refused.reason.isprintable() and "Error" not in refused.reason


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off_anywhere(kind: str) -> None:
    data, suffix = whole(kind)
    assert check(data, suffix)
    ends = 26 if "tga" in kind else 2  # a footer, a closing mark: all pixels are there without it
    for length in [*range(min(len(data), 200)), *range(200, len(data) - ends, 7)]:
        assert not check(data[:length], suffix), length


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=12))
def test_changed_bytes(kind: str, changes: list[tuple[float, int]]) -> None:
    data, suffix = whole(kind)
    damaged = bytearray(data)
    for where, value in changes:
        damaged[int(where**2 * len(data))] = value  # more of them in the header
    check(bytes(damaged), suffix)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    start=st.sampled_from(
        [b"", b"BM", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0"]
    ),
    rest=st.binary(max_size=200),
    suffix=st.sampled_from([".png", ".tga", ".jpg", ""]),
)
def test_any_bytes_at_all(start: bytes, rest: bytes, suffix: str) -> None:
    sniff(start + rest, suffix)
    check(start + rest, suffix)


def test_reasons_are_plain() -> None:
    texts = set()
    for kind in KINDS:
        data, suffix = whole(kind)
        for length in (0, 3, 60, len(data) // 2, len(data) - 30):
            with pytest.raises(Refused) as caught:
                decode(data[:length], suffix)
            texts.add(caught.value.reason)
    assert len(texts) < 12, json.dumps(sorted(texts), indent=1)
    assert all(text[0].islower() and not text.endswith(".") for text in texts)
