"""Findings of the doctor, and their fixes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.data.doctor import findings
from studio.data.doctor.checks import run_checks
from studio.data.doctor.findings import Finding, SpritesChecked, exclude_fix, include_fix, list_findings, slice_fix
from studio.data.doctor.fixes import exclusion_filter
from studio.data.files.source_files import ImportIssue
from studio.data.import_result import NOTE_GROUPS, QUARANTINE_GROUPS
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from tests.data.images.test_canvas import on_magenta
from tests.data.making import Pixels, sprite, write


def opened(folder: Path, options: ImportOptions) -> SpritesImported:
    *_, found = import_sprites([folder], options)
    assert isinstance(found, SpritesImported)
    return found


def looked_at(folder: Path, options: ImportOptions) -> dict[tuple[str, bool], Finding]:
    """Return the findings by group and `left_out`."""
    found = opened(folder, options)
    *_, examined = run_checks(found.sprites, options)
    assert isinstance(examined, SpritesChecked) and examined.looked_at == len(found.sprites)
    return {(each.group, each.left_out): each for each in list_findings(found, options, [examined])}


def mended(options: ImportOptions, finding: Finding) -> ImportOptions:
    return options.replace(**finding.fixes[0].changes)


def in_palette(seed: int, colours: Pixels) -> Pixels:
    rgba = np.zeros((16, 16, 4), np.uint8)
    rgba[2:14, 2:14, :3] = colours[np.random.default_rng(seed).integers(0, len(colours), (12, 12))]
    rgba[2:14, 2:14, 3] = 255
    return rgba


PALETTE = np.array([[20, 20, 30], [240, 230, 210], [200, 60, 40], [60, 120, 200], [250, 200, 60]], np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write ten sprites that share a palette to 'a', and one sprite with each kind of problem."""
    home = tmp_path / "set"
    for seed in range(12):
        write(home / "a" / f"{seed:02}.png", in_palette(seed, PALETTE))
    write(home / "b" / "lonely.png", in_palette(40, PALETTE))
    turned = np.ascontiguousarray(in_palette(3, PALETTE)[:, ::-1])
    turned[5, 5, :3] = PALETTE[1]
    write(home / "a" / "turned.png", turned)
    near = in_palette(50, PALETTE)
    near[4, 4, :3] = (241, 230, 210)
    near[3, 3, :3] = (240, 230, 210)
    write(home / "a" / "near.png", near)
    painted = np.zeros((16, 16, 4), np.uint8)
    painted[..., :3] = np.random.default_rng(1).integers(0, 256, (16, 16, 3))
    painted[..., 3] = 255
    write(home / "a" / "painted.png", painted)
    soft = in_palette(60, PALETTE)
    soft[6, 6, 3] = 100
    write(home / "a" / "soft.png", soft)
    return home


@pytest.mark.parametrize(
    ("group", "name", "gone"),
    [
        ("similar", "a/turned.png", True),
        ("near colours", "a/near.png", False),
        ("many colours", "a/painted.png", False),
        ("off palette", "a/near.png", False),
        ("soft alpha", "a/soft.png", False),
        ("small class", "b/lonely.png", True),
    ],
)
def test_every_problem_is_found_and_fixed(folder: Path, group: str, name: str, gone: bool) -> None:
    options = ImportOptions()
    finding = looked_at(folder, options)[group, False]
    assert name in [item.name for item in finding.items]
    after = looked_at(folder, mended(options, finding))
    assert (group, False) not in after or name not in [item.name for item in after[group, False].items]
    taken = after[("similar" if group == "similar" else "small class"), True] if gone else after["mended", False]
    assert name in [item.name for item in taken.items]
    assert mended(mended(options, finding), taken) == options  # a click reverts the fix


def test_magenta_background_becomes_transparent_in_one_click(tmp_path: Path) -> None:
    for seed in range(3):
        write(tmp_path / "key" / f"{seed}.png", on_magenta(sprite(seed, 16)))
        write(tmp_path / "alpha" / f"{seed}.png", sprite(seed, 16))
    large = np.pad(sprite(9, 16), ((150, 150), (150, 150), (0, 0)))  # fits no canvas before the fix
    write(tmp_path / "key" / "large.png", on_magenta(large))
    write(tmp_path / "alpha" / "large.png", large)
    finding = looked_at(tmp_path / "key", ImportOptions())["magenta ground", False]
    assert [item.name for item in finding.items] == ["0.png", "1.png", "2.png", "large.png"]
    options = mended(ImportOptions(), finding)
    assert ("magenta ground", False) not in looked_at(tmp_path / "key", options)
    assert np.array_equal(
        opened(tmp_path / "key", options).sprites.rgba,
        opened(tmp_path / "alpha", ImportOptions()).sprites.rgba,
    )


def test_sheets_on_magenta_are_sliced_like_transparent_sheets(tmp_path: Path) -> None:
    sheet = np.concatenate([in_palette(seed, PALETTE) for seed in range(12)], 1)
    write(tmp_path / "key" / "sheet.png", on_magenta(sheet))
    write(tmp_path / "alpha" / "sheet.png", sheet)
    cut = ImportOptions(sheets="grid")
    mended_sprites = opened(tmp_path / "key", cut.replace(clear_magenta=True)).sprites
    assert len(mended_sprites) == 12
    assert np.array_equal(mended_sprites.rgba, opened(tmp_path / "alpha", cut).sprites.rgba)


def test_clean_set_has_no_findings(tmp_path: Path) -> None:
    for seed in range(20):
        write(tmp_path / "sound" / f"{seed}.png", in_palette(seed, PALETTE))
        write(tmp_path / "noise" / f"{seed}.png", sprite(seed, 16))
    assert looked_at(tmp_path / "sound", ImportOptions()) == {}
    assert ("off palette", False) not in looked_at(tmp_path / "noise", ImportOptions())


@pytest.mark.parametrize(
    ("options", "size"), [(ImportOptions(), 0), (ImportOptions(sheets="grid", tile=16, size=64), 16)]
)
def test_upscaled_sprites_are_offered_their_original_size(tmp_path: Path, options: ImportOptions, size: int) -> None:
    for seed in range(5):
        write(tmp_path / f"{seed}.png", in_palette(seed, PALETTE).repeat(4, 0).repeat(4, 1))
    finding = looked_at(tmp_path, options)["upscaled", False]
    assert finding.fixes[0].changes == {"shrink": 4, "size": size}
    options = mended(options, finding)
    sprites = opened(tmp_path, options).sprites
    assert len(sprites) == 5 and sprites.size == 16  # kept whole beside sheets
    assert looked_at(tmp_path, options) == {}


def test_no_original_size_without_upscaling(tmp_path: Path) -> None:
    found = opened(write(tmp_path / "0.png", in_palette(0, PALETTE)), ImportOptions())
    found = dataclasses.replace(found, notes=(ImportIssue("0.png", "looks like another", "upscaled"),))
    assert list_findings(found, ImportOptions())[0].fixes == ()
    for seed in range(3):
        small = Image.fromarray(in_palette(seed, PALETTE))
        small.resize((69, 69), Image.Resampling.BICUBIC).save(tmp_path / f"{seed}.png")  # no whole number undoes that
    assert ("upscaled", False) not in looked_at(tmp_path, ImportOptions())


def test_sheets_and_large_sprites_have_fixes(tmp_path: Path) -> None:
    for seed in range(20):
        write(tmp_path / f"{seed:02}.png", in_palette(seed, PALETTE))
    sheet = np.concatenate([in_palette(seed, PALETTE) for seed in range(100, 112)], 1)
    write(tmp_path / "sheet.png", sheet)
    write(tmp_path / "tall.png", np.concatenate([in_palette(200, PALETTE)[2:14], in_palette(201, PALETTE)[2:14]]))
    found = looked_at(tmp_path, ImportOptions())
    assert mended(ImportOptions(), found["looks like a sheet", True]).sheets == "grid"
    given = ImportOptions(tile=16, tile_height=8, size=64)
    assert given.replace(**slice_fix(given).changes).uses_detected_grids and slice_fix(given).changes["size"] == 0
    large = mended(ImportOptions(), found["wrong size", True])
    assert large.size >= 24
    assert ("wrong size", True) not in looked_at(tmp_path, large)


def test_exclude_fix_adds_to_excluded_sprites() -> None:
    options = ImportOptions(leave_out="mon/*")
    assert exclude_fix(["a.png", "b[1].png"], options).changes == {"leave_out": "mon/*;a.png;b[[]1].png"}


@pytest.mark.parametrize(
    ("leave_out", "names", "expected"),
    [
        ("mon/*;a.png;b[[]1].png", ["a.png"], "mon/*;b[[]1].png"),
        ("mon/*;a.png;b[[]1].png", ["b[1].png"], "mon/*;a.png"),
        ("mon/*;a.png", ["mon/1.png", "a.png"], "mon/2.png"),
        ("mon/*;mon/2*", ["mon/1.png"], "mon/2*"),
        ("a.png", ["a.png"], ""),
    ],
)
def test_include_fix_brings_back_only_some_sprites(leave_out: str, names: list[str], expected: str) -> None:
    options = ImportOptions(leave_out=leave_out)
    known = ["mon/1.png", "mon/2.png", "a.png", "b[1].png"]
    excluded = [name for name in known if exclusion_filter(leave_out)(name)]
    assert include_fix(names, excluded, options).changes == {"leave_out": expected}


def test_every_group_has_advice() -> None:
    assert set(findings._LEFT_OUT) == set(QUARANTINE_GROUPS)
    looked_for = {
        "similar",
        "small class",
        "like-named",
        "many colours",
        "near colours",
        "off palette",
        "outlier",
        "wrong class",
    }
    assert set(findings._KEPT) == {*NOTE_GROUPS, *looked_for}


def test_every_fix_changes_existing_settings(folder: Path) -> None:
    fixes = [fix for finding in looked_at(folder, ImportOptions()).values() for fix in finding.fixes]
    assert fixes and all(ImportOptions().replace(**fix.changes) for fix in fixes)
