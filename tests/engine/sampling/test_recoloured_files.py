"""Recoloured copies of files differ from the originals only in colours."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.aseprite.file import parse
from studio.data.aseprite.frames import FramePainter
from studio.data.colour.palette import Palette
from studio.data.colour.quantizing import map_to_palette
from studio.data.images.frames import read_animation
from studio.engine.sampling.recoloured_files import FilesRecoloured, recolour_files
from studio.exports.sprites.apng import Apng
from studio.exports.sprites.aseprite import Aseprite
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.gif import Gif
from tests.data.animating import noise
from tests.data.making import png_of, sprite, write

TWO = np.array([[190, 74, 47, 255], [20, 20, 30, 255]], np.uint8)
DURATIONS = (50, 200, 100, 1000)


@pytest.fixture
def art(tmp_path: Path) -> Path:
    return tmp_path / "art"


def snapped(art: Path) -> FilesRecoloured:
    *_, done = recolour_files([art], partial(map_to_palette, palette=Palette(TWO, "Two")), art.parent / "new")
    assert isinstance(done, FilesRecoloured)
    return done


def pixels(path: Path) -> Rgba:
    return read_animation(path.read_bytes(), path.suffix).rgba


def in_palette(before: Rgba, after: Rgba) -> bool:
    """Whether only colours differ, and the palette holds all colours of `after`."""
    seen = after[..., 3] > 0
    return np.array_equal(before[..., 3], after[..., 3]) and {*map(tuple, after[seen][:, :3].tolist())} <= {
        tuple(colour[:3]) for colour in TWO.tolist()
    }


def frames(soft: bool = False) -> Rgba:
    """Return four frames of 7 x 5 pixels; the first two are equal."""
    first, third, fourth = (noise(seed, 7, 5, soft=soft) for seed in range(3))
    return np.stack([first, first, third, fourth])


def test_sizes_names_and_duplicates_are_those_of_the_files(art: Path) -> None:
    shapes = {"a.png": (8, 8), "a copy.png": (8, 8), "deep/er/still/b.png": (5, 9), "large.png": (40, 300)}
    for name, (height, width) in shapes.items():
        write(art / name, sprite(len(name) > 12, width, height))
    write(art / "a copy.png", sprite(0))
    write(art / "a.png", sprite(0))
    done = snapped(art)
    assert {path.relative_to(art.parent / "new").as_posix() for path in done.paths} == set(
        shapes
    ) and done.pictures == 4
    for name in shapes:
        assert in_palette(pixels(art / name), pixels(art.parent / "new" / name))


@pytest.mark.parametrize("name", ["walk.gif", "walk.png", "walk.webp"])
def test_an_animation_keeps_its_frames_and_durations(art: Path, name: str) -> None:
    art.mkdir()
    given = SpriteSet(frames(soft=name != "walk.gif"), own_durations_ms=DURATIONS, is_animation=True)
    if name == "walk.webp":
        first, *rest = map(Image.fromarray, given.sprites)
        options: dict[str, Any] = {"lossless": True, "exact": True, "duration": list(DURATIONS), "minimize_size": False}
        first.save(art / name, save_all=True, append_images=rest, **options)
    else:
        form = Gif() if name == "walk.gif" else Apng()
        (art / name).write_bytes(*form.contents(given, art / name).values())
    before = read_animation((art / name).read_bytes(), Path(name).suffix)
    (path,) = snapped(art).paths
    after = read_animation(path.read_bytes(), path.suffix)
    assert path.name == ("walk.png" if name == "walk.webp" else name)
    assert after.durations_ms == before.durations_ms and sum(before.durations_ms) == sum(DURATIONS)
    assert len(after.rgba) == len(before.rgba) and in_palette(before.rgba, after.rgba)


def test_an_aseprite_file_keeps_frames_durations_and_tags(art: Path) -> None:
    art.mkdir()
    tags = [("walk", 0, 2, 2), ("all", 0, 3, 0)]
    given = SpriteSet(frames(soft=True), classes=[""] * 4, own_durations_ms=DURATIONS, tags=tags)
    (art / "hero.ase").write_bytes(*Aseprite().contents(given, art / "hero.ase").values())
    (path,) = snapped(art).paths
    assert path.name == "hero.ase"
    ase = parse(path.read_bytes())
    assert [frame.duration_ms for frame in ase.frames] == list(DURATIONS)
    assert [(tag.name, tag.first, tag.last, tag.direction) for tag in ase.tags] == tags
    painter = FramePainter(ase)
    assert in_palette(given.sprites, np.stack([painter.render(frame) for frame in ase.frames]))


def test_a_sheet_stays_a_sheet_with_its_description(art: Path) -> None:
    sheet = np.concatenate([sprite(1), sprite(1)], axis=1)
    write(art / "gems.png", sheet)
    about = {"frames": {"ruby 1": {"frame": {"x": 0, "y": 0, "w": 8, "h": 8}}}, "meta": {"image": "gems.png"}}
    (art / "gems.json").write_text(json.dumps(about))
    (art / "notes.txt").write_text("hello")
    (art / "package.json").write_text('{"name": "a game"}')
    done = snapped(art)
    assert [path.name for path in done.paths] == ["gems.png", "gems.json"] and done.pictures == 1
    assert (art.parent / "new" / "gems.json").read_text() == json.dumps(about)
    assert in_palette(sheet[None], pixels(art.parent / "new" / "gems.png"))


def test_a_still_picture_keeps_a_lossless_format(art: Path) -> None:
    art.mkdir()
    rgba = noise(3, 6, 4, soft=True)
    names = {"a.bmp": "a.bmp", "a.tga": "a.tga", "a.tif": "a.tif", "b.webp": "b.webp", "c.jpg": "c.png"}
    for name in names:
        picture = Image.fromarray(rgba)
        if name == "c.jpg":
            picture.convert("RGB").save(art / name)
        else:
            picture.save(art / name, lossless=True, exact=True)
    done = snapped(art)
    assert {path.name for path in done.paths} == set(names.values())
    for before, after in names.items():
        assert in_palette(pixels(art / before), pixels(art.parent / "new" / after))


def test_files_left_out_are_reported_and_copies_stay_inside_the_folder(art: Path) -> None:
    art.mkdir()
    (art / "broken.png").write_bytes(png_of(sprite(0))[:-30])
    with zipfile.ZipFile(art / "pack.zip", "w") as pack:
        for name in ("../../up.png", "con.png", "a/b.png"):
            pack.writestr(name, png_of(sprite(1)))
    done = snapped(art)
    assert [(item.name, item.group) for item in done.left_out if item.group == "unreadable"] == [
        ("broken.png", "unreadable")
    ]
    assert done.paths and all(path.resolve().is_relative_to((art.parent / "new").resolve()) for path in done.paths)
    assert sorted(path.name for path in art.parent.iterdir()) == ["art", "new"]


def test_a_folder_without_pictures_is_refused(art: Path) -> None:
    art.mkdir()
    with pytest.raises(BadInputError, match="'art' has no picture to copy"):
        snapped(art)
