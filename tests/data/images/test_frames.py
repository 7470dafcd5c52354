"""Animations: frames as viewers show them, without near repeats. Damaged, endless and huge files are limited."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.data.files.source_files import SourceIssue, UnreadableFile
from studio.data.images import frames as frames_module
from studio.data.images import png as apng_reader
from studio.data.images.decoding import LARGEST_SIDE, Decoded, decode
from tests.data.animating import (
    ANIMATIONS,
    NOISE,
    PALETTE,
    Drawn,
    apng,
    by_pillow,
    gif,
    noise,
    numbers,
    read,
    same,
    seen_by_pillow,
)
from tests.data.making import Pixels, chunk, frame, imported, notes, png_of, reasons, sprite, write_sheet


def in_colour(pixels: Pixels) -> Pixels:
    return np.dstack([PALETTE[pixels], np.full(pixels.shape, 255, np.uint8)])


def blended(below: Pixels, above: Pixels) -> Pixels:
    """The formula of the APNG specification, in fractions."""
    alpha, under = above[..., 3:] / 255, below[..., 3:] / 255
    whole = alpha + under * (1 - alpha)
    colour = (above[..., :3] * alpha + below[..., :3] * under * (1 - alpha)) / np.where(whole, whole, 1)
    return np.rint(np.dstack([colour, whole * 255])).astype(np.uint8)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *(("GIF", {"disposal": disposal}) for disposal in range(4)),
        *(("PNG", {"disposal": disposal, "blend": 0}) for disposal in range(3)),
        *(("PNG", {"disposal": disposal, "blend": 1}) for disposal in range(2)),
        ("WEBP", {"lossless": True, "exact": True}),
        ("WEBP", {"quality": 60}),
    ],
)
def test_frames_equal_pillows(kind: str, options: dict[str, Any]) -> None:
    data = by_pillow(NOISE, kind, **options)
    pictures, remarks = read(data, f".{kind.lower()}")
    assert same(pictures, seen_by_pillow(data))
    assert [picture.part for picture in pictures] == [f"frame {number}" for number in range(1, 6)]
    assert remarks == [SourceIssue("animation", "an animation of 5 frames: all were read")]


@pytest.mark.parametrize("disposal", range(4))
def test_small_gif_frames_with_each_disposal(disposal: int) -> None:
    places = [(9, 8, 0, 0), (4, 3, 2, 1), (5, 5, 4, 3), (3, 8, 0, 0), (9, 1, 0, 7)]
    palettes = [None, PALETTE[::-1].copy(), None, None, PALETTE[::-1].copy()]
    drawn = [
        Drawn(numbers(seed, width, height), left, top, disposal, clear=2, palette=palette)
        for seed, ((width, height, left, top), palette) in enumerate(zip(places, palettes, strict=True))
    ]
    data = gif(9, 8, drawn)
    assert same(read(data, ".gif")[0], seen_by_pillow(data))


def test_gif_disposals_that_pillow_gets_wrong() -> None:
    first, second, third = numbers(0, 6, 6), numbers(1, 3, 3), numbers(2, 2, 2)
    data = gif(6, 6, [Drawn(first), Drawn(second, 1, 1, disposal=2), Drawn(third, 4, 4), Drawn(third, 0, 4)])
    shown = np.stack([in_colour(first)] * 4)
    shown[1, 1:4, 1:4] = in_colour(second)
    shown[2:, 1:4, 1:4] = 0  # cleared and not filled with the background colour
    shown[2:, 4:6, 4:6] = in_colour(third)
    shown[3, 4:6, 0:2] = in_colour(third)  # the third frame has no disposal, and not that of the second
    assert same(read(data, ".gif")[0], list(shown))


def test_gif_whose_first_frame_is_smaller_or_larger_than_its_screen() -> None:
    small, large = numbers(0, 2, 2), numbers(1, 6, 5)
    shown = np.zeros((4, 4, 4), np.uint8)
    shown[1:3, 1:3] = in_colour(small)
    pictures, _ = read(gif(4, 4, [Drawn(small, 1, 1), Drawn(large)]), ".gif")
    assert same(pictures, [shown, in_colour(large)[:4, :4]])
    pictures, _ = read(gif(0, 0, [Drawn(large), Drawn(small, 9, 9), Drawn(small, 5, 4)]), ".gif")
    shown = in_colour(large)
    shown[4, 5] = in_colour(small)[0, 0]
    assert same(pictures, [in_colour(large), shown])


def test_the_one_frame_of_a_gif_may_be_smaller_than_its_screen() -> None:
    small = np.array([[1, 2], [3, 0]], np.uint8)
    pictures, remarks = read(gif(4, 5, [Drawn(small, 1, 2, clear=3)]), ".gif")
    expected = np.zeros((5, 4, 4), np.uint8)
    expected[2:4, 1:3, :3], expected[2:4, 1:3, 3] = PALETTE[small], 255
    expected[3, 1] = 0
    assert [picture.part for picture in pictures] == [""] and not remarks
    assert np.array_equal(pictures[0].rgba, expected)
    opaque = read(gif(4, 5, [Drawn(small, 1, 2)]), ".gif")[0][0].rgba
    assert np.count_nonzero(opaque[..., 3]) == 4 and opaque[3, 1].tolist() == [*PALETTE[3], 255]


def test_gif_without_a_palette_is_grey() -> None:
    first, second = np.full((3, 3), 90, np.uint8), np.full((3, 3), 200, np.uint8)
    pictures, _ = read(gif(3, 3, [Drawn(first), Drawn(second)], palette=None), ".gif")
    assert [picture.rgba[0, 0].tolist() for picture in pictures] == [[90, 90, 90, 255], [200, 200, 200, 255]]


def test_half_transparent_apng_frames_blend_exactly() -> None:
    first, second, third = noise(0, 8, 8, soft=True), noise(1, 6, 5, soft=True), noise(2, 8, 8, soft=True)
    drawn = [Drawn(first), Drawn(second, 2, 1, disposal=2), Drawn(third), Drawn(second, over=False)]
    pictures, _ = read(apng(8, 8, drawn))
    expected = np.stack([first, first, blended(first, third), blended(first, third)])
    expected[1, 1:6, 2:8] = blended(first[1:6, 2:8], second)
    expected[3, :5, :6] = second
    assert np.abs(np.stack([picture.rgba for picture in pictures]).astype(int) - expected).max() <= 1
    assert np.array_equal(pictures[0].rgba, first) and np.array_equal(pictures[3].rgba[:5, :6], second)


def test_palette_apng_keeps_the_alpha_of_its_colours() -> None:
    alpha = np.array([255, 0, 100, 255], np.uint8)
    colours = np.column_stack([PALETTE, alpha])
    first, second = numbers(3, 6, 6), numbers(4, 4, 4)
    drawn = [Drawn(first), Drawn(second, 1, 1, over=False)]
    pictures, _ = read(apng(6, 6, drawn, palette=PALETTE.tobytes(), transparency=alpha.tobytes()))
    shown = np.stack([colours[first]] * 2)
    shown[1, 1:5, 1:5] = colours[second]
    shown[shown[..., 3] == 0] = 0
    assert same(pictures, list(shown))


def test_default_image_is_not_a_frame() -> None:
    data = apng(6, 6, [Drawn(noise(seed, 6, 6)) for seed in (1, 2)], default=noise(9, 6, 6))
    pictures, _ = read(data)
    assert same(pictures, [noise(1, 6, 6), blended(noise(1, 6, 6), noise(2, 6, 6))])
    assert np.array_equal(decode(data, ".png").rgba, noise(9, 6, 6))


def test_semi_transparent_webp_frames_equal_libwebps() -> None:
    data = by_pillow([noise(seed, 10, 12, soft=True) for seed in range(4)], "WEBP", lossless=True, exact=True)
    pictures = np.stack([picture.rgba for picture in read(data, ".webp")[0]])
    assert np.abs(pictures.astype(int) - np.stack(seen_by_pillow(data))).max() <= 2


@pytest.mark.parametrize("changed", [0, 1, 7, 8])
def test_nearly_repeated_frames_are_skipped(changed: int) -> None:
    pixels = np.full((30, 20), 3, np.uint8)
    pixels[5:25] = 0  # 400 visible pixels
    other = pixels.copy()
    other[5, :changed] = 1
    pictures, remarks = read(gif(20, 30, [Drawn(pixels, clear=3, disposal=2), Drawn(other, clear=3)]), ".gif")
    assert len(pictures) == (2 if changed >= 400 * frames_module.SAME_SHARE else 1)
    kept = "all were read" if len(pictures) == 2 else "1 was read"
    assert remarks[-1].reason == f"an animation of 2 frames: {kept}"


def test_slow_changes_are_kept_and_exact_repeats_skipped() -> None:
    steps = [np.zeros((10, 10), np.uint8) for _ in range(7)]
    for number, step in enumerate(steps):
        step.flat[:number] = 1  # one pixel more each time: a hundredth
    pictures, _ = read(gif(10, 10, [Drawn(step) for step in steps]), ".gif")
    assert [picture.part for picture in pictures] == ["frame 1", "frame 3", "frame 5", "frame 7"]
    there_and_back = [*NOISE, *NOISE[-2:0:-1]]
    pictures, remarks = read(by_pillow(there_and_back, "PNG"))
    assert same(pictures, NOISE) and "of 8 frames: 5 different" in remarks[0].reason


def test_single_pictures_and_wrong_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [remark.group for remark in read(ANIMATIONS[".gif"], ".png")[1]] == ["misnamed", "animation"]
    monkeypatch.setattr(apng_reader, "split_frames", None)  # a plain PNG is not looked through twice
    gif_and_webp = ((by_pillow(NOISE[:1], kind), f".{kind.lower()}") for kind in ("GIF", "WEBP"))
    for data, suffix in ((png_of(sprite(0)), ".png"), *gif_and_webp):
        pictures, remarks = read(data, suffix)
        assert same(pictures, [decode(data, suffix).rgba]) and pictures[0].part == "" and not remarks


def test_a_whole_import(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "slime").mkdir(parents=True)
    (folder / "slime" / "walk.gif").write_bytes(ANIMATIONS[".gif"])
    write_sheet(folder / "gems.png", sprite(0, 10), [frame("ruby", 0, 0, 10, 10)])
    (folder / "gems.png").write_bytes(ANIMATIONS[".png"])
    event = imported(folder)
    # A description beside an animation hides no frames.
    assert event.sprites.names == tuple(f"gems.png#frame {number}" for number in range(1, 6))
    assert notes(event, "animation") == {"gems.png": "an animation of 5 frames: all were read"}
    assert reasons(event).keys() == {f"slime/walk.gif#frame {number}" for number in range(1, 6)}  # duplicates


@pytest.fixture
def decoded_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the pixels of every decoded frame."""
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
    taken = "1 was read from the first 256, the rest is skipped"
    assert remarks[-1].reason == f"an animation of 10,000 frames: {taken}"


def test_large_frames_are_bounded_by_their_pixels(monkeypatch: pytest.MonkeyPatch, decoded_sizes: list[int]) -> None:
    monkeypatch.setattr(frames_module, "MOST_PIXELS", 1000)
    drawn = [Drawn(noise(seed, 4, 4), seed % 6, seed // 6, over=False) for seed in range(30)]
    assert len(read(apng(10, 10, [Drawn(noise(99, 10, 10)), *drawn]))[0]) == 10 == len(decoded_sizes)
    large = Drawn(numbers(0, 30, 30))  # larger than its canvas: only in GIF
    read(gif(2, 2, [Drawn(numbers(1, 2, 2)), large, large]), ".gif")
    assert sum(decoded_sizes[10:]) < 1000
    assert len(read(apng(40, 40, [Drawn(noise(seed, 40, 40)) for seed in range(2)]))[0]) == 1


def test_a_huge_palette_is_not_copied_into_every_frame() -> None:
    head, rest = apng(6, 6, [Drawn(noise(seed, 6, 6)) for seed in range(40)]).split(
        chunk(b"acTL", b"\0\0\0\x28\0\0\0\0")
    )
    swollen = head + chunk(b"acTL", b"\0" * 8) + chunk(b"PLTE", bytes(3_000_000)) + chunk(b"tRNS", b"\0") * 9 + rest
    assert sum(len(frame.data) for frame in apng_reader.split_frames(swollen)) < 40 * 500


def test_huge_canvas_is_refused_before_decoding(decoded_sizes: list[int]) -> None:
    far = LARGEST_SIDE + 1
    for data in (
        gif(2, 2, [Drawn(numbers(0, 2, 2), far, 0), Drawn(numbers(1, 2, 2))]),
        gif(far, 2, [Drawn(numbers(0, 2, 2)), Drawn(numbers(1, 2, 2))]),
        apng(far, far, [Drawn(noise(0, 2, 2))] * 2, default=noise(0, 2, 2)),
    ):
        with pytest.raises(UnreadableFile, match="too large"):
            read(data)
    assert not decoded_sizes


@pytest.mark.parametrize("suffix", ANIMATIONS)
def test_cut_off_anywhere_gives_the_frames_before(suffix: str) -> None:
    data = ANIMATIONS[suffix]
    whole = [picture.rgba for picture in read(data, suffix)[0]]
    counts = set()
    for length in range(0, len(data) - 2, 11):
        try:
            pictures, remarks = read(data[:length], suffix)
        except UnreadableFile as refused:
            pictures, remarks = [], [SourceIssue(refused.group, refused.reason)]
        assert same(pictures, whole[: len(pictures)])
        assert [remark.group for remark in remarks] == ["animation" if pictures else "unreadable"], length
        counts.add(len(pictures))
    assert {0, 1, 2, 3, 4} <= counts


@pytest.mark.parametrize("suffix", ANIMATIONS)
def test_a_damaged_frame_ends_the_animation(suffix: str) -> None:
    data = bytearray(ANIMATIONS[suffix])
    mark = {".gif": b"\x21\xf9", ".png": b"fdAT", ".webp": b"ANMF"}[suffix]
    place = len(data.split(mark)[0])
    for _ in range(3 - (suffix == ".png")):  # up to the fourth frame; PNG marks its first frame differently
        place = data.index(mark, place + 1)
    data[place + 8 : place + 90] = b"\xff" * 82
    pictures, remarks = read(bytes(data), suffix)
    assert same(pictures, [picture.rgba for picture in read(ANIMATIONS[suffix], suffix)[0]][:3])
    assert "3 different frames were read from the first 3, the rest is " in remarks[-1].reason


def test_inconsistent_frame_headers() -> None:
    drawn = [Drawn(noise(0, 6, 6)), Drawn(noise(1, 4, 4)), Drawn(noise(2, 4, 4))]
    outside = apng(6, 6, [*drawn[:2], Drawn(noise(2, 4, 4), 3, 3)])
    assert "the rest is damaged: a frame lies outside the picture" in read(outside)[1][-1].reason
    parts = apng(6, 6, drawn).split(b"fcTL")
    swapped = b"fcTL".join([*parts[:2], parts[3], parts[2]])
    assert "the rest is damaged" in read(swapped)[1][-1].reason
    with pytest.raises(UnreadableFile, match="cut off"):
        read(apng(6, 6, [Drawn(noise(0, 4, 4)), *drawn]))
    control = struct.pack(">5IHHBB", 0, 6, 6, 0, 0, 1, 10, 0, 1)
    smaller = struct.pack(">5IHHBB", 0, 4, 6, 0, 0, 1, 10, 0, 1)
    pictures, remarks = read(apng(6, 6, drawn).replace(chunk(b"fcTL", control), chunk(b"fcTL", smaller)))
    assert same(pictures, [noise(0, 6, 6)]) and "only the first" in remarks[-1].reason
