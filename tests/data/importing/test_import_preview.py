"""Previews of changed import options equal the import with these options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.data.importing.import_preview import ImportPreviewed, can_change_pixels, preview_import
from studio.data.options import ImportOptions
from tests.data.making import imported, sprite, write, write_many


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with six sprites: three plain, one with soft alpha, one on magenta, one enlarged."""
    write_many(tmp_path, 3)
    soft, magenta = sprite(7), sprite(8)
    soft[3, 3, 3], soft[4, 4, 3] = 200, 90
    magenta[magenta[..., 3] == 0] = (255, 0, 255, 255)
    write(tmp_path / "soft.png", soft)
    write(tmp_path / "magenta.png", magenta)
    write(tmp_path / "large.png", np.kron(sprite(9), np.ones((3, 3, 1), np.uint8)))
    return tmp_path


def preview(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> ImportPreviewed:
    found, wanted = imported(folder, **before), ImportOptions(**after)
    *_, last = preview_import(found, [folder], ImportOptions(**before), wanted, None)
    assert isinstance(last, ImportPreviewed) and last.is_done
    return last


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {"alpha_threshold": 100}, {"soft.png"}),
        ({"clear_magenta": True}, {}, {"magenta.png"}),
        ({"shrink": 3, "size": 24, "leave_out": "1.png"}, {"size": 24, "leave_out": "1.png"}, {"large.png"}),
        ({"size": 24, "alpha_threshold": 100}, {"size": 24, "alpha_threshold": 100, "shrink": 0}, {"large.png"}),
    ],
)
def test_preview_equals_the_import(
    folder: Path, before: dict[str, Any], after: dict[str, Any], changed: set[str]
) -> None:
    shown = preview(folder, before, after)
    sprites = imported(folder, **after).sprites
    assert {each.name for each in shown.examples if each.changed} == changed and shown.changed == len(changed)
    for each in shown.examples:
        assert np.array_equal(each.after, sprites.rgba[sprites.names.index(each.name)])
    assert shown.excluded == shown.added == 0


def test_preview_counts_excluded_and_added_sprites(folder: Path) -> None:
    small = preview(folder, {"size": 24}, {"size": 8})
    assert (small.total, small.changed, small.excluded, small.added) == (6, 0, 1, 0) and small.sizes == (24, 8)
    assert len(small.examples) == 5  # on the smaller canvas
    assert preview(folder, {"size": 8}, {"size": 24}).added == 1


def test_preview_reports_an_unusable_palette(folder: Path) -> None:
    shown = preview(folder, {}, {"palette": str(folder / "none.gpl")})
    assert "none.gpl" in shown.problem and not shown.examples


def test_only_options_that_can_change_pixels_are_previewed() -> None:
    assert can_change_pixels(ImportOptions(), ImportOptions(merge_colours=0.1))
    assert not can_change_pixels(ImportOptions(), ImportOptions(class_levels=1, leave_out="*"))
