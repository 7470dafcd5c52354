"""Beginning with sprites from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.messages import FAILED, WRONG_USAGE
from studio.core.arrays import Rgba
from studio.data.importing.single_sprite import fit_to_canvas, load_image
from studio.data.tiles.layout import TileSetSpec
from tests.cli.tools import Studio

SIZE = 8


def _cells(path: Path, count: int, columns: int = 8) -> Rgba:
    """The sprites of a sheet."""
    with Image.open(path) as picture:
        sheet = np.asarray(picture)
    rows = -(-count // columns)
    width = sheet.shape[1] // SIZE
    return sheet.reshape(rows, SIZE, width, SIZE, 4).swapaxes(1, 2).reshape(-1, SIZE, SIZE, 4)[:count]


@pytest.fixture
def sprite(folder: Path) -> Path:
    return sorted(folder.rglob("*.png"))[0]


@pytest.fixture
def mask(tmp_path: Path) -> Path:
    """Keeps the lower half."""
    picture = np.zeros((SIZE, SIZE), np.uint8)
    picture[SIZE // 2 :] = 255
    Image.fromarray(picture).save(tmp_path / "mask.png")
    return tmp_path / "mask.png"


def test_variations_and_inpainting_keep_masked_pixels(
    generator_run: Path, sprite: Path, mask: Path, tmp_path: Path, studio: Studio
) -> None:
    before = np.asarray(Image.open(sprite).convert("RGBA"))
    words = ["generate", generator_run, "--from", sprite, "--steps", 2]
    assert "16 new sprites" in studio(*words, "--strength", 0, "--out", tmp_path / "same.png").out
    assert (_cells(tmp_path / "same.png", 16) == before).all()
    studio(*words, "--keep", mask, "--count", 3, "--out", tmp_path / "filled.png")
    filled = _cells(tmp_path / "filled.png", 3, 3)
    assert (filled[:, SIZE // 2 :] == before[SIZE // 2 :]).all() and (
        filled[:, : SIZE // 2] != before[: SIZE // 2]
    ).any()
    with Image.open(tmp_path / "filled.png") as picture:
        about = picture.text  # type: ignore[attr-defined]
    assert about["from"] == sprite.name and about["keep"] == "mask.png" and about["strength"] == "1.0"


def test_sprites_come_in_a_silhouette(
    generator_run: Path, sprite: Path, mask: Path, tmp_path: Path, studio: Studio
) -> None:
    """Of a picture without alpha what is white, else its alpha."""
    words = ["generate", generator_run, "--steps", 2, "--count", 3, "--silhouette"]
    studio(*words, mask, "--out", tmp_path / "x.png")
    alpha = _cells(tmp_path / "x.png", 3, 3)[..., 3]
    assert (alpha[:, SIZE // 2 :] == 255).all() and not alpha[:, : SIZE // 2].any()
    studio(*words, sprite, "--from", sprite, "--strength", 0.7, "--out", tmp_path / "y.png")
    assert (_cells(tmp_path / "y.png", 3, 3)[..., 3] == np.asarray(Image.open(sprite))[..., 3]).all()
    with Image.open(tmp_path / "y.png") as picture:
        assert picture.text["silhouette"] == sprite.name  # type: ignore[attr-defined]


def test_best_of_prefers_sprites_like_the_liked_ones(
    generator_run: Path, folder: Path, tmp_path: Path, studio: Studio
) -> None:
    words = ["generate", generator_run, "--steps", 2, "--count", 4, "--best-of", 3, "--out", tmp_path / "x.png"]
    assert "4 new sprites" in studio(*words, "--liked", *sorted(folder.rglob("*.png"))[:3]).out
    assert len(_cells(tmp_path / "x.png", 4, 4)) == 4


def _fits(path: Path, plan: TileSetSpec) -> bool:
    layout = plan.layout(SIZE)
    return layout.fits(_cells(path, len(layout.places), layout.columns))


def test_tile_sets_fit_together(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    words, both = ["generate", generator_run, "--steps", 2], ("class0", "class1")
    mix = [*words, "--mix", "class0:1,class1:1"]
    assert "16 new sprites" in studio(*mix, "--corner-tiles", "--out", tmp_path / "tiles.tsx").out
    assert {path.suffix for path in tmp_path.glob("tiles.*")} == {".tsx", ".png", ".tmx"}
    for no_tile_set in (["--out", tmp_path / "x.tsx"], ["--out", tmp_path / "x.ldtk", "--format", "ldtk"]):
        assert "Only tile sets can be saved as" in studio(*words, *no_tile_set, code=WRONG_USAGE).err
    assert _fits(tmp_path / "tiles.png", TileSetSpec("corner", both))
    studio(*mix, "--dual-grid", "--out", tmp_path / "tiles")
    assert len(list((tmp_path / "tiles").glob("class0-class1-[01][01][01][01].png"))) == 16
    blob = [*words, "--terrains", "class1,transparent", "--blob-tiles"]
    assert "48 new sprites" in studio(*blob, "--out", tmp_path / "blob.png").out
    assert _fits(tmp_path / "blob.png", TileSetSpec("blob", both))
    assert not _cells(tmp_path / "blob.png", 48)[-1].any()


def test_missing_tiles_of_a_given_set_are_drawn(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    words = ["generate", generator_run, "--steps", 2, "--terrains", "class0,class1"]
    studio(*words, "--out", tmp_path / "tiles.png")
    with Image.open(tmp_path / "tiles.png") as picture:
        begun = np.array(picture.convert("RGBA"))
    first = begun[:SIZE, :SIZE].copy()
    first[3:5, 3:5] = 255, 0, 255, 255  # no tile border
    begun[:] = 0
    begun[:SIZE, :SIZE] = first
    Image.fromarray(begun).save(tmp_path / "begun.png")
    studio(*words, "--seed", 5, "--given", tmp_path / "begun.png", "--out", tmp_path / "done.png")
    np.testing.assert_array_equal(_cells(tmp_path / "done.png", 16, 4)[0], first)
    assert _fits(tmp_path / "done.png", TileSetSpec("corner", ("class0", "class1")))
    assert "All tiles are given" in studio(*words, "--given", tmp_path / "done.png", code=WRONG_USAGE).err
    for more in (["--given", tmp_path / "begun.png"], ["--corner-tiles", "--silhouette", tmp_path / "begun.png"]):
        studio(*words[:4], *more, code=WRONG_USAGE)


def test_between_and_like(generator_run: Path, folder: Path, tmp_path: Path, studio: Studio) -> None:
    files = sorted(folder.rglob("*.png"))[::10]
    words = ["generate", generator_run, "--steps", 2, "--out", tmp_path / "x.png"]
    assert "6 new sprites" in studio(*words, "--between", files[0], files[1], "--count", 4).out
    ends = _cells(tmp_path / "x.png", 6)[[0, -1]]
    np.testing.assert_array_equal(ends, [np.asarray(Image.open(path).convert("RGBA")) for path in files[:2]])
    assert "16 new sprites" in studio(*words, "--like", *files).out
    strip = tmp_path / "walk_strip10.png"
    studio(*words[:-1], strip, "--between", files[0], files[1], "--count", 8)
    with Image.open(strip) as row:
        assert row.size == (10 * SIZE, SIZE)
    studio(*words[:-1], tmp_path / "film.gif", "--between", files[0], files[1], "--count", 4)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 6  # type: ignore[attr-defined]
    studio(*words[:-1], tmp_path / "index.png", "--count", 4, "--format", "indexed_sheet")
    with Image.open(tmp_path / "index.png") as picture:
        assert picture.mode == "P"
    assert "5 new sprites" in studio(*words, "--mix", "class0:1,class1:0.5", "--count", 5).out


def test_fit_resizes_sprites_on_request(generator_run: Path, sprite: Path, tmp_path: Path, studio: Studio) -> None:
    small = tmp_path / "small.png"
    Image.open(sprite).crop((0, 0, 5, 6)).save(small)
    words = ["generate", generator_run, "--from", small, "--strength", 0, "--count", 1, "--out", tmp_path / "y.png"]
    assert "--fit changes the size: 5 x 6 pixels: centred on 8 x 8" in studio(*words, code=WRONG_USAGE).err
    studio(*words, "--fit")
    np.testing.assert_array_equal(_cells(tmp_path / "y.png", 1, 1)[0], fit_to_canvas(load_image(small), SIZE).rgba)


def test_conflicting_flags_are_errors(generator_run: Path, sprite: Path, mask: Path, studio: Studio) -> None:
    for words, said in (
        (["--strength", 0.3], "Add --from FILE"),
        (["--keep", mask], "Add --from FILE"),
        (["--liked", sprite], "Add --best-of N"),
        (["--best-of", 2, "--from", sprite], "Remove --best-of"),
        (["--best-of", 2, "--liked", sprite], "Keep or name at least 3 sprites"),
        (["--between", sprite, sprite, "--silhouette", mask], "Remove --silhouette"),
        (["--from", sprite, sprite, "--keep", mask], "Add --from FILE"),
        (["--from", sprite, "--quick"], "--quick can't start from sprites"),
        (["--from", sprite, "--like", sprite], "not allowed with"),
        (["--like", sprite], "needs two or more source sprites"),
        (["--mix", "class0"], "not a class with a share"),
    ):
        assert said in studio("generate", generator_run, "--steps", 2, *words, code=WRONG_USAGE).err
    assert "No file or folder" in studio("generate", generator_run, "--from", "nothing.png", code=FAILED).err
