"""Animations that are damaged, endless or huge: bounded, and sound up to the first damage."""

from __future__ import annotations

import struct

import pytest

from studio.data.images import frames as frames_module
from studio.data.images import png as apng_reader
from studio.data.images.decoding import LARGEST_SIDE, Decoded, decode
from studio.data.source_files import Picture, Refused, Remark
from tests.data.animating import ANIMATIONS, Drawn, apng, gif, noise, numbers, read, same
from tests.data.making import chunk


def attempt(data: bytes, suffix: str) -> tuple[list[Picture], list[Remark]]:
    """As `read`; the reason as the only remark where the file is refused."""
    try:
        return read(data, suffix)
    except Refused as refused:
        return [], [Remark(refused.group, refused.reason)]


@pytest.fixture
def decoded_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pixels of every frame that is decoded from here on."""
    sizes: list[int] = []

    def counting(data: bytes, suffix: str) -> Decoded:
        decoded = decode(data, suffix)
        sizes.append(decoded.rgba.shape[0] * decoded.rgba.shape[1])
        return decoded

    monkeypatch.setattr(frames_module, "decode", counting)
    return sizes


@pytest.mark.parametrize("suffix", [".gif", ".png"])
def test_ten_thousand_frames(suffix: str, decoded_sizes: list[int]) -> None:
    drawn = [Drawn(numbers(0, 2, 2) if suffix == ".gif" else noise(0, 2, 2))] * 10_000
    data = gif(2, 2, drawn) if suffix == ".gif" else apng(2, 2, drawn)
    pictures, remarks = read(data, suffix)
    assert len(decoded_sizes) == frames_module.MOST_FRAMES and len(pictures) == 1
    expected = "an animation of 10,000 frames: 1 was taken from the first 256, the rest is not looked at"
    assert remarks[-1].reason == expected


def test_large_frames_are_bounded_by_their_pixels(monkeypatch: pytest.MonkeyPatch, decoded_sizes: list[int]) -> None:
    monkeypatch.setattr(frames_module, "MOST_PIXELS", 1000)
    drawn = [Drawn(noise(seed, 4, 4), seed % 6, seed // 6, over=False) for seed in range(30)]
    assert len(read(apng(10, 10, [Drawn(noise(99, 10, 10)), *drawn]))[0]) == 10 == len(decoded_sizes)
    large = Drawn(numbers(0, 30, 30))  # larger than its canvas, as only a GIF's frame can be
    read(gif(2, 2, [Drawn(numbers(1, 2, 2)), large, large]), ".gif")
    assert sum(decoded_sizes[10:]) < 1000
    assert len(read(apng(40, 40, [Drawn(noise(seed, 40, 40)) for seed in range(2)]))[0]) == 1


def test_a_huge_palette_is_not_copied_into_every_frame() -> None:
    head, rest = apng(6, 6, [Drawn(noise(seed, 6, 6)) for seed in range(40)]).split(
        chunk(b"acTL", b"\0\0\0\x28\0\0\0\0")
    )
    swollen = head + chunk(b"acTL", b"\0" * 8) + chunk(b"PLTE", bytes(3_000_000)) + chunk(b"tRNS", b"\0") * 9 + rest
    assert sum(len(frame.data) for frame in apng_reader.frames_of(swollen)) < 40 * 500


def test_huge_canvas_is_refused_before_decoding(decoded_sizes: list[int]) -> None:
    far = LARGEST_SIDE + 1
    for data in (
        gif(2, 2, [Drawn(numbers(0, 2, 2), far, 0), Drawn(numbers(1, 2, 2))]),
        gif(far, 2, [Drawn(numbers(0, 2, 2)), Drawn(numbers(1, 2, 2))]),
        apng(far, far, [Drawn(noise(0, 2, 2))] * 2, default=noise(0, 2, 2)),
    ):
        with pytest.raises(Refused, match="too large"):
            read(data)
    assert not decoded_sizes


@pytest.mark.parametrize("suffix", ANIMATIONS)
def test_cut_off_anywhere_gives_the_frames_before(suffix: str) -> None:
    data = ANIMATIONS[suffix]
    whole = [picture.rgba for picture in read(data, suffix)[0]]
    counts = set()
    for length in range(0, len(data) - 2, 11):
        pictures, remarks = attempt(data[:length], suffix)
        assert same(pictures, whole[: len(pictures)])
        assert [remark.group for remark in remarks] == ["animation" if pictures else "unreadable"], length
        counts.add(len(pictures))
    assert {0, 1, 2, 3, 4} <= counts


@pytest.mark.parametrize("suffix", ANIMATIONS)
def test_a_damaged_frame_ends_the_animation(suffix: str) -> None:
    data = bytearray(ANIMATIONS[suffix])
    mark = {".gif": b"\x21\xf9", ".png": b"fdAT", ".webp": b"ANMF"}[suffix]
    place = len(data.split(mark)[0])
    for _ in range(3 - (suffix == ".png")):  # on to the fourth frame; the first of a PNG has another mark
        place = data.index(mark, place + 1)
    data[place + 8 : place + 90] = b"\xff" * 82
    pictures, remarks = read(bytes(data), suffix)
    assert same(pictures, [picture.rgba for picture in read(ANIMATIONS[suffix], suffix)[0]][:3])
    assert "3 that differ were taken from the first 3, the rest is " in remarks[-1].reason


def test_frames_that_lie() -> None:
    drawn = [Drawn(noise(0, 6, 6)), Drawn(noise(1, 4, 4)), Drawn(noise(2, 4, 4))]
    outside = apng(6, 6, [*drawn[:2], Drawn(noise(2, 4, 4), 3, 3)])
    assert "the rest is damaged: a frame lies outside the picture" in read(outside)[1][-1].reason
    parts = apng(6, 6, drawn).split(b"fcTL")
    swapped = b"fcTL".join([*parts[:2], parts[3], parts[2]])
    assert "the rest is damaged" in read(swapped)[1][-1].reason
    with pytest.raises(Refused, match="cut off"):
        read(apng(6, 6, [Drawn(noise(0, 4, 4)), *drawn]))
    control = struct.pack(">5IHHBB", 0, 6, 6, 0, 0, 1, 10, 0, 1)
    smaller = struct.pack(">5IHHBB", 0, 4, 6, 0, 0, 1, 10, 0, 1)
    pictures, remarks = read(apng(6, 6, drawn).replace(chunk(b"fcTL", control), chunk(b"fcTL", smaller)))
    assert same(pictures, [noise(0, 6, 6)]) and "only the first" in remarks[-1].reason
