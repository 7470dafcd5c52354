"""Sheets that are looked at before they are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.generators import returned
from studio.data.importing import NothingUsableError
from studio.data.options import Grid
from studio.data.reading.finding import files_under, find_file, roots_of
from studio.data.sheet_preview import Sheet, find_packed, look_at_sheet
from studio.data.sheets.slicing import cut_packed
from studio.data.source_files import SourceFile
from tests.data.making import frame, imported, notes, png_of, reasons, sprite, write, write_sheet, zipped
from tests.data.sheets.test_grids import assembled


def looked_at(path: Path, name: str) -> Sheet:
    return returned(look_at_sheet([path], name))


def test_a_sheet_is_found_by_the_name_that_its_import_gives_it(tmp_path: Path) -> None:
    rgba = assembled(np.random.default_rng(0), Grid(16, 16, 1, 1, 1), 6, 4)
    folder = tmp_path / "set"
    write(folder / "a" / "gems.png", rgba)
    write(folder / "one.png", sprite(1, 16))
    zipped(folder / "pack.zip", {"inner/deep/gems.png": png_of(rgba), "inner/x.png": png_of(sprite(2, 16))})
    event = imported(folder, size=16)
    said = reasons(event, "looks like a sheet")
    names = sorted(said)
    assert names == ["a/gems.png", "pack.zip/deep/gems.png"] and "--sheets grid" in said["a/gems.png"]
    assert event.sprites.names == ("one.png", "pack.zip/x.png")  # without being asked nothing is cut
    for name in [*names, "a/gems.png#r1 c2"]:
        sheet = looked_at(folder, name)
        assert (sheet.rgba == rgba).all() and sheet.name == name.partition("#")[0]
        assert sheet.proposed is not None and sheet.proposed.tile_width == 16 and sheet.proposed.spacing == 1


@pytest.mark.parametrize("name", ["gems.png", "b/gems.png"])
def test_of_files_that_were_dropped_themselves_too(tmp_path: Path, name: str) -> None:
    paths = [write(tmp_path / folder / "gems.png", sprite(n, 16 * n)) for n, folder in ((1, "a"), (2, "b"))]
    roots = roots_of(paths if "/" in name else paths[1:])
    file = find_file(roots, name)
    assert file is not None and file.path == paths[1]
    assert find_file(roots, "c/gems.png") is None


def test_only_the_way_to_the_file_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "s.png", sprite(1))
    (tmp_path / "damaged.zip").write_text("no archive")
    write(tmp_path / "ab" / "s.png", sprite(1))
    (root,) = roots_of([tmp_path])
    (file,) = files_under(root, wanted="a/b/s.png")
    assert isinstance(file, SourceFile) and file.folders == ("a", "b") and file.beside == {"s.png"}


def test_what_can_not_be_cut_says_why(tmp_path: Path) -> None:
    write_sheet(tmp_path / "gems.png", np.tile(sprite(0), (1, 4, 1)), [frame("a", 0, 0, 8, 8)])
    (tmp_path / "broken.png").write_bytes(png_of(sprite(1))[:60])
    for name, words in (("gems.png", "describes"), ("broken.png", "broken.png"), ("other.png", "'other.png' has gone")):
        with pytest.raises(BadInputError, match=words):
            looked_at(tmp_path, name)


def test_boxes_are_those_of_the_packed_sprites(tmp_path: Path) -> None:
    rgba = np.zeros((40, 40, 4), np.uint8)
    rgba[2:18, 3:19], rgba[20:32, 5:15], rgba[4:12, 25:33] = sprite(0, 16), sprite(1, 10, 12), sprite(2)
    write(tmp_path / "s.png", rgba)
    sheet = looked_at(tmp_path, "s.png")
    assert returned(find_packed(sheet, 1)).tolist() == [[4, 3, 18, 17], [26, 5, 32, 11], [6, 21, 14, 31]]
    cut = imported(tmp_path, sheets="packed").sprites
    assert len(cut) == len(cut_packed(rgba, 1)) == 3


def test_too_many_packed_sprites_are_said(tmp_path: Path) -> None:
    write(tmp_path / "s.png", sprite(1, 16))
    rgba = np.zeros((800, 800, 4), np.uint8)
    rgba[::4, ::4] = 255
    sheet = looked_at(tmp_path, "s.png")
    sheet = Sheet("s.png", rgba, sheet.foreground, None)
    with pytest.raises(BadInputError, match="at most 30,000"):
        returned(find_packed(sheet, 0))


def test_a_cut_sheet_is_noted_also_when_none_of_it_is_kept(tmp_path: Path) -> None:
    sheet = np.concatenate([sprite(n, 16) for n in range(4)], axis=1)
    write(tmp_path / "a.png", sheet)
    write(tmp_path / "b.png", sheet)
    event = imported(tmp_path, sheets="grid", tile=16)
    words = "cut into 4 tiles of 16 x 16 pixels"
    assert len(event.sprites) == 4 and notes(event, "cut sheet") == {"a.png": words, "b.png": words}


def test_nothing_usable_says_what_there_was(tmp_path: Path) -> None:
    write(tmp_path / "s.png", np.full((512, 512, 4), 255, np.uint8))
    with pytest.raises(NothingUsableError) as caught:
        imported(tmp_path)
    assert [item.name for item in caught.value.left_out] == ["s.png"]
