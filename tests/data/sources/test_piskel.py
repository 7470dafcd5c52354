"""Piskel files: frames in chunks, layers over one another, and files that lie."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.data.files.source_files import SourceImage, UnreadableFile
from studio.data.sources import piskel as piskel_source
from studio.data.sources.piskel import PiskelSource
from tests.data.making import Pixels, found, imported, png, png_of, sprite

FRAMES = [sprite(number) for number in range(4)]


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def strip(*frames: Pixels) -> str:
    return url(png_of(np.concatenate(frames, axis=1)))


def layer(*chunks: tuple[list[list[int]], str], **more: Any) -> str:
    listed = [{"layout": layout, "base64PNG": picture} for layout, picture in chunks]
    return json.dumps({"name": "Layer", "opacity": 1, "chunks": listed, **more})


def piskel(*layers: Any, version: int = 2, **about: Any) -> bytes:
    sprite_about = {"name": "hero", "fps": 12, "width": 8, "height": 8, "layers": list(layers), **about}
    return json.dumps({"modelVersion": version, "piskel": sprite_about}).encode()


def read(path: Path, data: bytes) -> list[SourceImage]:
    path.write_bytes(data)
    return [item for item in PiskelSource().read(found(path)) if isinstance(item, SourceImage)]


def test_frames_lie_column_by_column_in_chunks(tmp_path: Path) -> None:
    square = np.concatenate([np.concatenate(FRAMES[:2]), np.concatenate(FRAMES[2:])], axis=1)
    pictures = read(tmp_path / "hero.piskel", piskel(layer(([[0, 1], [2, 3]], url(png_of(square))))))
    assert [picture.part for picture in pictures] == ["frame 1", "frame 2", "frame 3", "frame 4"]
    assert np.array_equal(np.stack([picture.rgba for picture in pictures]), FRAMES)
    two = layer(([[2], [0]], strip(FRAMES[2], FRAMES[0])), ([[1], [3]], strip(FRAMES[1], FRAMES[3])))
    assert np.array_equal(np.stack([each.rgba for each in read(tmp_path / "two.piskel", piskel(two))]), FRAMES)
    assert len(imported(tmp_path).sprites) == 4


def test_files_of_version_1_have_one_strip_for_each_layer(tmp_path: Path) -> None:
    old = json.dumps({"name": "Layer", "frameCount": 2, "base64PNG": strip(*FRAMES[:2])})
    pictures = read(tmp_path / "a.piskel", piskel(old, version=1))
    assert np.array_equal(np.stack([picture.rgba for picture in pictures]), FRAMES[:2])


def test_layers_are_drawn_over_one_another(tmp_path: Path) -> None:
    below, above = np.zeros((2, 8, 8, 4), np.uint8)
    below[:4], above[2:6] = (200, 0, 0, 255), (0, 0, 200, 255)
    data = piskel(layer(([[0]], strip(below))), layer(([[0]], strip(above)), opacity=0.5))
    (picture,) = read(tmp_path / "a.piskel", data)
    assert not picture.part
    assert picture.rgba[:, 0].tolist()[0] == [200, 0, 0, 255] and picture.rgba[:, 0].tolist()[5] == [0, 0, 200, 128]
    mixed = picture.rgba[2, 0].astype(int)
    assert np.abs(mixed - [100, 0, 100, 255]).max() <= 1 and not picture.rgba[7].any()


@pytest.mark.parametrize(
    ("data", "group", "words"),
    [
        (b"", "unreadable", "no bytes"),
        (b"{", "unreadable", "not the contents of a Piskel file"),
        (b"[" * 100_000, "unreadable", "contents"),
        (b'{"modelVersion": 2, "piskel": {"width": "8"}}', "unreadable", "contents"),
        (piskel(width=0), "unreadable", "contents"),
        (piskel(layer(opacity=float("nan"))), "unreadable", "contents"),
        (piskel(), "unreadable", "no frames"),
        (piskel(version=0), "unsupported", "old Piskel"),
        (piskel(width=50_000), "refused", "50,000 x 8"),
        (piskel(*["{}"] * 1_001), "refused", "too many layers"),
        (piskel(layer(([[0]], "data:image/png;base64,?"))), "unreadable", "no bytes"),
        (piskel(layer(([[0]], url(b"GIF89a" + bytes(30))))), "unreadable", "not a PNG"),
        (piskel(layer(([[0], [1]], strip(FRAMES[0])))), "unreadable", "the size of its frames"),
        (piskel(layer(([[-1]], strip(FRAMES[0])))), "unreadable", "contents"),
        (piskel(layer(([[10**9]], strip(FRAMES[0])))), "refused", "too many frames"),
        (piskel('{"frameCount": 1000000000, "base64PNG": "x"}'), "refused", "too many frames"),
        (piskel(layer(([[0]], url(png(50_000, 50_000, 8, 6, [bytes(9)]))))), "refused", "50,000 x 50,000"),
        (piskel(*[layer(([[0]], url(png(4_096, 4_096, 8, 6, [bytes(9)]))))] * 5), "unreadable", "cut off"),
    ],
)
def test_damaged_piskel_files_are_refused(tmp_path: Path, data: bytes, group: str, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words) as refused:
        read(tmp_path / "a.piskel", data)
    assert refused.value.group == group


def test_pixels_are_counted_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piskel_source, "MAX_PIXELS", 3 * 64)
    one = layer(([[0]], strip(FRAMES[0])))
    assert read(tmp_path / "a.piskel", piskel(one, one, one))
    with pytest.raises(UnreadableFile, match="more than 192 pixels"):
        read(tmp_path / "a.piskel", piskel(one, one, one, layer(([[0]], url(png(8, 8, 8, 6, [b""]))))))
    with pytest.raises(UnreadableFile, match="too many frames"):
        read(tmp_path / "a.piskel", piskel(layer(([[3]], strip(FRAMES[0])))))
