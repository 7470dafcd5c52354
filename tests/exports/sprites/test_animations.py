"""GIF and APNG: what other programs show is what was saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtGui import QImage, QImageReader

from studio.core.arrays import Rgba
from studio.exports.sprites.base import SpriteSet
from tests.exports.sprites.making import BLUE, GREEN, RED, many_coloured, notes, of_colours, played, written

ANIMATIONS = pytest.mark.parametrize("form", ["gif", "apng"])


def same(frames: list[tuple[Rgba, int]], sprites: Rgba) -> bool:
    return np.array_equal([rgba for rgba, _ in frames], sprites)


@ANIMATIONS
def test_equal_frames_are_not_merged(form: str, tmp_path: Path) -> None:
    sprites = of_colours(RED, RED, GREEN, RED, RED)
    sprites[3, 2] = 0
    path = written(form, SpriteSet(sprites, duration_ms=250, hold_ms=1750), tmp_path)
    frames = played(path.read_bytes())
    assert same(frames, sprites)
    assert [duration_ms for _, duration_ms in frames] == [250, 250, 250, 250, 2000]
    with Image.open(path) as image:
        assert image.info["loop"] == 0  # for ever


@ANIMATIONS
def test_frames_replace_previous_frames(form: str, tmp_path: Path) -> None:
    sprites = of_colours(RED, GREEN, BLUE, RED)
    sprites[1, 3:] = sprites[2] = sprites[3, :, :3] = 0
    assert same(played(written(form, SpriteSet(sprites), tmp_path).read_bytes()), sprites)


def test_qt_plays_equal_frames_of_a_gif(tmp_path: Path) -> None:
    sprites = of_colours(RED, GREEN, GREEN, BLUE)
    sprites[1, 3:] = 0
    reader = QImageReader(str(written("gif", SpriteSet(sprites, duration_ms=30), tmp_path)))
    for sprite in sprites:
        image = reader.read().convertToFormat(QImage.Format.Format_RGBA8888)
        shown = np.frombuffer(image.constBits(), np.uint8).reshape(sprite.shape).copy()
        shown[shown[..., 3] == 0] = 0
        assert np.array_equal(shown, sprite) and reader.nextImageDelay() in (0, 30)
    assert not reader.canRead()


def test_a_gif_has_the_given_palette_or_a_palette_per_frame(tmp_path: Path) -> None:
    sprites = of_colours(RED, GREEN)
    path = written("gif", SpriteSet(sprites, palette=np.array([BLUE, GREEN, (1, 2, 3), RED], np.uint8)), tmp_path)
    with Image.open(path) as image:
        assert image.getpalette()[3:15] == [*BLUE, *GREEN, 1, 2, 3, *RED]  # type: ignore[index]
    many = many_coloured(3, 15)  # 225 colours each
    path = written("gif", SpriteSet(many), tmp_path)
    assert same(played(path.read_bytes()), many) and notes("gif", SpriteSet(many)) == ""


def test_a_gif_notes_lost_alpha_and_colours(tmp_path: Path) -> None:
    sprites = np.concatenate([many_coloured(2, 24), of_colours(RED, size=24)])
    sprites[2, 4, 4:9, 3] = (1, 127, 128, 254, 255)
    given = SpriteSet(sprites)
    assert notes("gif", given) == (
        "GIF has no semi-transparency: 4 semi-transparent pixels became opaque or transparent. "
        "2 frames reduced to 255 colours, from up to 576."
    )
    frames = [rgba.astype(int) for rgba, _ in played(written("gif", given, tmp_path).read_bytes())]
    assert frames[2][4, 4:9, 3].tolist() == [0, 0, 255, 255, 255]
    for frame, sprite in zip(frames[:2], sprites[:2], strict=True):
        assert (frame[..., 3] == 255).all() and len(np.unique(frame.reshape(-1, 4), axis=0)) <= 255
        assert np.abs(frame - sprite).mean() < 12


def test_a_large_gif_is_whole(tmp_path: Path) -> None:
    sprites = many_coloured(1, 256) & np.uint8(0xC0)
    sprites[..., 3] = 255
    assert same(played(written("gif", SpriteSet(sprites), tmp_path).read_bytes()), sprites)


def test_an_apng_keeps_alpha_and_metadata(tmp_path: Path) -> None:
    sprites = np.random.default_rng(0).integers(0, 256, (4, 9, 9, 4), dtype=np.uint8)
    sprites[..., 3] |= 1
    path = written("apng", SpriteSet(sprites, about={"seed": 7, "model": "naïve 剣"}), tmp_path)
    assert same(played(path.read_bytes()), sprites)
    with Image.open(path) as image:
        assert image.text["model"] == "naïve 剣" and image.text["seed"] == "7"  # type: ignore[attr-defined]


def test_a_gif_has_a_note(tmp_path: Path) -> None:
    about = {"model": "naïve " * 100, "seed": 7}
    with Image.open(written("gif", SpriteSet(of_colours(RED), about=about), tmp_path)) as image:
        comment = image.info["comment"].decode("ascii")
    assert comment.startswith("Sprite Training Studio\nmodel: na?ve na?ve") and comment.endswith("\nseed: 7")
