"""What every format for sprites must do, whoever wrote it: hold what it takes, say what it changes, harm no file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from studio.exports.sprites.formats import sprite_exports
from tests.data.making import imported

FORMS = [form for form in sprite_exports().values() if not form.saves_tiles]  # test_tile_exports.py has the others
NAMES = (
    "CON",
    "../../x",
    "..\\..\\y",
    'it\'s "quoted" \\',
    "剣 \U0001f5e1",
    "a" * 300,
    "",
    "a\0b\nc",
    "caf\udce9",
    "[x]",
)

pytestmark = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


def noise(count: int, size: int = 8, colours: int = 60, seed: int = 0) -> Rgba:
    """Opaque noise of so many colours inside a transparent border of one pixel."""
    rng = np.random.default_rng(seed)
    palette = rng.permutation(1 << 12)[:colours]
    picked = palette[rng.integers(0, colours, (count, size, size))]
    rgba = np.stack([picked % 16, picked // 16 % 16, picked // 256, picked], -1) * 17
    rgba[..., 3] = 255
    rgba[:, [0, -1]] = rgba[:, :, [0, -1]] = 0
    return rgba.astype(np.uint8)


def read_back(form: SpriteExport, sprites: SpriteSet, folder: Path) -> set[bytes]:
    """The pixels of the sprites as the studio's own import finds them in what `form` writes into `folder`."""
    form.write(sprites, folder / f"art{form.suffix}")
    return {pixels.tobytes() for pixels in imported(folder, size=sprites.sprites.shape[1]).sprites.rgba}


def different(sprites: Rgba) -> set[bytes]:
    return {pixels.tobytes() for pixels in sprites}


def refusal(form: SpriteExport, sprites: SpriteSet, folder: Path) -> ExportError | None:
    try:
        form.contents(sprites, folder / f"art{form.suffix}")
    except ExportError as error:
        return error
    return None


def test_it_introduces_itself(form: SpriteExport) -> None:
    assert form.name.isidentifier() and form.title and form.help.endswith(".")
    assert all(end.startswith(".") and end == end.lower() for end in (form.suffix, *form.companions))
    assert form.suffix not in form.companions
    assert form.plays <= (not form.companions)


@pytest.mark.parametrize(("count", "size"), [(1, 8), (64, 8), (5, 17), (64, 32), (2, 256)])
def test_the_studio_reads_back_every_pixel(form: SpriteExport, count: int, size: int, tmp_path: Path) -> None:
    given = SpriteSet(noise(count, size), classes=["sword", "item/cup"] * (count // 2) + [""] * (count % 2))
    assert form.notes(given) == ()
    assert read_back(form, given, tmp_path) == different(given.sprites)


def test_an_animation_is_held_whole(form: SpriteExport, tmp_path: Path) -> None:
    frames = noise(6)
    given = SpriteSet(frames, classes=["a", "b"] * 3, duration_ms=40, hold_ms=1000, is_animation=True, columns=3)
    assert read_back(form, given, tmp_path) == different(frames)
    wide = SpriteSet(np.concatenate([frames, frames], 2), is_animation=True)
    assert form.write(wide, tmp_path / f"wide{form.suffix}")


def test_it_keeps_clear_sprites_and_twins_apart_and_what_is_hidden_out(form: SpriteExport, tmp_path: Path) -> None:
    sprites = noise(4)
    sprites[2] = sprites[1]
    hidden = sprites.copy()
    hidden[..., :3][hidden[..., 3] == 0] = 200
    hidden[0, ..., 3] = sprites[0] = 0
    assert read_back(form, SpriteSet(hidden), tmp_path / "four") == different(sprites[[1, 3]])
    assert form.write(SpriteSet(sprites[:1]), tmp_path / "clear")


def test_soft_alpha_is_kept_or_said(form: SpriteExport, tmp_path: Path) -> None:
    sprites = noise(3)
    sprites[:, 2:4, 2:6, 3] = 90
    sprites[:, 4:6, 2:6, 3] = 170
    given = SpriteSet(sprites, palette=np.array([[1, 2, 3]], np.uint8))
    kept = read_back(form, given, tmp_path) == different(sprites)
    assert kept or any("semi-transparen" in note for note in form.notes(given))


@pytest.mark.parametrize("colours", [255, 256, 500])
def test_many_colours_are_kept_or_said_or_refused(form: SpriteExport, colours: int, tmp_path: Path) -> None:
    sprites = noise(1, 64, colours)
    assert len(np.unique(sprites.reshape(-1, 4), axis=0)) == colours + 1
    given = SpriteSet(sprites)
    refused = refusal(form, given, tmp_path)
    if refused is not None:
        assert colours > 255 and f"{colours:,} colours" in refused.title and refused.hint
        assert list(tmp_path.iterdir()) == []
    elif read_back(form, given, tmp_path) != different(sprites):
        assert colours > 255 and any(f"{colours:,}" in note for note in form.notes(given))


def test_fault_12_names_are_kept_from_doing_harm(form: SpriteExport, tmp_path: Path) -> None:
    sprites = noise(len(NAMES))
    about = {name: name for name in NAMES}
    given = SpriteSet(sprites, names=NAMES, classes=NAMES, about=about)
    assert read_back(form, given, tmp_path / "art") == different(sprites)
    assert [path.name for path in tmp_path.iterdir()] == ["art"]
    assert {path.stem for path in (tmp_path / "art").iterdir()} == {"art"}


@pytest.mark.parametrize("sets", [NAMES[:2], ()])
def test_fault_12_cells_of_sets_are_held_whole(form: SpriteExport, sets: tuple[str, ...], tmp_path: Path) -> None:
    sprites = noise(12, colours=200)
    table = np.full((2, len(NAMES)), GAP, np.int32)
    table[0, :6], table[1, 4:] = range(6), range(6, 12)
    given = SpriteSet(sprites, cells=Cells(NAMES, table, sets), about={"model": "trial"})
    assert read_back(form, given, tmp_path / "art") == different(sprites)
    assert [path.name for path in tmp_path.iterdir()] == ["art"]
    assert all(path.is_file() and path.stem.startswith("art") for path in (tmp_path / "art").iterdir())


def test_no_sprites_are_refused(form: SpriteExport, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no sprites"):
        form.write(SpriteSet(noise(0)), tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_fault_29_nothing_in_the_way_is_replaced(form: SpriteExport, tmp_path: Path) -> None:
    target = tmp_path / f"art{form.suffix}"
    occupied = [target, *map(target.with_suffix, form.companions)]
    for path in occupied:
        path.write_text("mine")
    written = form.write(SpriteSet(noise(2)), target)
    assert all(path.read_text() == "mine" for path in occupied)
    assert [path.name for path in written] == [f"art-2{end}" for end in (form.suffix, *form.companions)]
    target.unlink()  # a companion alone is in the way, too
    assert not set(form.write(SpriteSet(noise(2)), target)) & {*occupied[1:], *written}


def test_any_other_ending_is_part_of_the_name(form: SpriteExport, tmp_path: Path) -> None:
    assert form.write(SpriteSet(noise(1)), tmp_path / "sub/v1.2")[0] == tmp_path / f"sub/v1.2{form.suffix}"
    upper = tmp_path / f"art{form.suffix.upper()}"
    assert form.write(SpriteSet(noise(1)), upper)[0] == upper


def test_a_folder_that_refuses_is_said(form: SpriteExport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ExportError, match="Can't write"):
        form.write(SpriteSet(noise(1)), tmp_path / "file" / "art")


@pytest.mark.parametrize(
    ("failure", "told"), [(OSError(28, "No space left"), ExportError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_what_stops_it_at_any_write_leaves_nothing_behind(
    form: SpriteExport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    told: type[BaseException],
) -> None:
    honest, left = os.replace, 0

    def stopped(path: Path, target: Path) -> None:
        nonlocal left
        if not left:
            raise failure
        left -= 1
        honest(path, target)

    monkeypatch.setattr(Path, "replace", stopped)
    for allowed in range(1 + len(form.companions)):
        left = allowed
        with pytest.raises(told):
            form.write(SpriteSet(noise(1)), tmp_path / "art")
        assert list(tmp_path.iterdir()) == []
