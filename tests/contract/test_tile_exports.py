"""What every format for tile sets must do, whoever wrote it: hold what it takes, refuse what it can't, harm no file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import ExportError, UsageError
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.formats import forms_for, sprite_export_for, sprite_exports
from tests.exports.sprites.tile_sets import as_sprites, corner_set, cut

FORMS = [form for form in sprite_exports().values() if form.saves_tiles]
NAMES = ('it\'s "quoted" \\ <&>', "a\0b\nc", "caf\udce9", "../../x")
TWO = corner_set("grass", "water")

each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


@each_form
def test_it_introduces_itself(form: SpriteExport) -> None:
    assert form.name.isidentifier() and form.title and form.help.endswith(".") and not form.plays
    assert form in forms_for(is_tile_set=True) and form not in forms_for()


@each_form
def test_sprites_that_are_no_tile_set_are_refused(form: SpriteExport, tmp_path: Path) -> None:
    for sprites, told in (
        (SpriteSet(TWO.tiles), "no tile set"),
        (as_sprites(replace(TWO, terrains=("grass", "water", "sand"))), "No tile shows sand"),
        (as_sprites(replace(TWO, terrains=("grass",))), "terrain 2"),
        (as_sprites(replace(TWO, places=np.where(TWO.places == 1, -1, TWO.places))), "No tile shows water"),
        (as_sprites(replace(TWO, places=np.where(np.arange(9) == 2, -1, TWO.places))), "upper right corner"),
    ):
        with pytest.raises(ExportError, match=told) as refused:
            form.write(sprites, tmp_path / "art")
        assert refused.value.hint
    assert list(tmp_path.iterdir()) == []


@each_form
def test_fault_12_names_are_kept_from_doing_harm(form: SpriteExport, tmp_path: Path) -> None:
    tiles = corner_set(*NAMES)
    written = form.write(as_sprites(tiles), tmp_path / "art")
    assert {path.name for path in tmp_path.iterdir()} == {f"art{end}" for end in (form.suffix, *form.companions)}
    assert written[0] == tmp_path / f"art{form.suffix}" and written[0].read_text("utf-8")
    assert (cut(tmp_path / "art.png", 8, 16) == tiles.tiles).all()


@each_form
def test_fault_29_nothing_in_the_way_is_replaced(form: SpriteExport, tmp_path: Path) -> None:
    for end in (form.suffix, *form.companions):
        (tmp_path / f"art{end}").write_text("mine")
    written = form.write(as_sprites(TWO), tmp_path / "art")
    assert [path.name for path in written] == [f"art-2{end}" for end in (form.suffix, *form.companions)]
    assert all(path.read_text() == "mine" for path in tmp_path.iterdir() if path not in written)
    again = form.write(as_sprites(TWO), written[0], replace=True)
    assert again == written


def test_the_ending_of_a_name_means_a_tile_set_for_a_tile_set() -> None:
    assert sprite_export_for(Path("a.tres")).name == "godot"
    assert sprite_export_for(Path("a.tres"), is_tile_set=True).name == "godot_tiles"
    assert sprite_export_for(Path("a.png"), is_tile_set=True).name == "sheet"
    with pytest.raises(UsageError, match="Only tile sets"):
        sprite_export_for(Path("a.tsx"))
