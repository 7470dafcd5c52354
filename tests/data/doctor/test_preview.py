"""Previews of fixes show the pixels of the fixed import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.data.doctor.findings import MERGE_CLASSES, Fix
from studio.data.doctor.preview import FixPreviewed, changes_pixels, preview_fix
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions
from tests.data.making import Pixels, imported, sprite, write, write_many


def preview(found: SpritesImported, options: ImportOptions, names: list[str], **changes: Any) -> Pixels:
    fix = Fix("Fix", changes)
    assert changes_pixels(fix, options)
    indices = np.array([found.sprites.names.index(name) for name in names])
    *_, last = preview_fix(found.read, indices, options, fix)
    assert isinstance(last, FixPreviewed)
    return last.rgba


@pytest.mark.parametrize("before", [{}, {"merge_colours": 0.2, "leave_out": "0.png; 3.png"}])
def test_preview_equals_the_fixed_import(tmp_path: Path, before: dict[str, Any]) -> None:
    write_many(tmp_path, 5)
    soft = sprite(7)
    soft[3, 3, 3], soft[4, 4, 3] = 200, 90
    write(tmp_path / "soft.png", soft)
    names, options, found = ["soft.png", "1.png"], ImportOptions(**before), imported(tmp_path, **before)
    fixes: list[dict[str, Any]] = [
        {"alpha_threshold": 100}, {"merge_colours": 0.1}, {"colours_all": 3}, {"colours_each": 2}
    ]  # fmt: skip
    for changes in fixes:
        shown = preview(found, options, names, **changes)
        after = imported(tmp_path, duplicates="keep", **{**before, **changes}).sprites
        for name, rgba in zip(names, shown, strict=True):
            assert np.array_equal(rgba, after.rgba[after.names.index(name)]), (name, changes)


def test_preview_of_transparent_magenta(tmp_path: Path) -> None:
    magenta = sprite(8)
    magenta[magenta[..., 3] == 0] = (255, 0, 255, 255)
    write(tmp_path / "magenta.png", magenta)
    write(tmp_path / "other.png", sprite(1))
    shown = preview(imported(tmp_path), ImportOptions(), ["magenta.png", "other.png"], clear_magenta=True)
    assert np.array_equal(shown[0], sprite(8)) and np.array_equal(shown[1], sprite(1))


def test_preview_of_undone_upscaling_and_of_reverting(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.png", np.kron(sprite(number), np.ones((4, 4, 1), np.uint8)))
    found = imported(tmp_path, alpha_threshold=1, colours_each=2)
    names = ["2.png", "0.png"]
    options = ImportOptions(alpha_threshold=1, colours_each=2)
    shown = preview(found, options, names, alpha_threshold=0, colours_each=0)
    assert np.array_equal(shown[1], np.kron(sprite(0), np.ones((4, 4, 1), np.uint8)))
    small = preview(found, ImportOptions(), names, shrink=4, size=0)
    assert small.shape == (2, 32, 32, 4) and np.array_equal(small[0][12:20, 12:20], sprite(2))


def test_fixes_that_keep_the_pixels() -> None:
    assert not changes_pixels(MERGE_CLASSES, ImportOptions())
    assert not changes_pixels(Fix("", {"alpha_threshold": 0, "leave_out": ""}), ImportOptions(leave_out="a"))
