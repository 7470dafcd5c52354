"""`studio inspect`: one of everything, whole and broken, and what is said of it."""

from __future__ import annotations

import os
import shlex
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.messages import FAILED
from studio.core.generators import run_to_end
from studio.data.edits import edits_path, save_edits
from studio.data.importing.class_moves import ClassMove, load_edits
from studio.data.importing.stored_options import store_options
from studio.data.options import ImportOptions
from studio.engine.runs.folder import RunDir
from tests.cli.tools import Studio
from tests.data.making import chunk, imported, png_of, sprite, write, zipped
from tests.fuzz.specimens import SPECIMENS, read_pictures

GOOD = png_of(sprite(77))
HUGE = GOOD[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 6, 0, 0, 0)) + GOOD[33:]
LABELS = struct.pack(">II", 0x801, 1) + b"\0"
BROKEN = {
    "empty.png": b"",
    "text.png": b"no picture",
    "checksum.png": GOOD[:-20] + b"?" + GOOD[-19:],
    "huge.png": HUGE,
    "clear.png": png_of(np.zeros((8, 8, 4), np.uint8)),
    "layers.psd": b"8BPS" + bytes(20),
    "swatch.ase": b"ASEF" + bytes(20),
    "hero.png": b"\0\0\0\0\xe0\xa5" + bytes(200),
    "text.zip": b"no archive",
    "sheet.png": GOOD,
    "sheet.json": b'{"frames": [',
    "a-images-idx3-ubyte": SPECIMENS["idx"]().files["train-images-idx3-ubyte"],
    "a-labels-idx1-ubyte": LABELS,
}
# Read with another file, which is the one that is named.
BESIDE = ("sheet.json", "art.json", "labels-idx1-ubyte", "s.tres", "s.xml")


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    """'fine': a folder for each kind that is read. 'broken': the files of BROKEN, and every kind cut off."""
    broken = tmp_path / "all" / "broken"
    broken.mkdir(parents=True)
    for kind, make in SPECIMENS.items():
        specimen = make()
        if specimen.read is not read_pictures or "example" in kind:
            continue
        specimen.write(tmp_path / "all" / "fine" / kind)
        cut = specimen.files[specimen.target]
        (broken / f"{kind}, {specimen.target}").write_bytes(cut[: len(cut) // 2])
    for name, data in BROKEN.items():
        (broken / name).write_bytes(data)
    if os.name != "nt":  # Windows has no pipes, and links for administrators alone
        os.mkfifo(broken / "pipe.png")
        (broken / "link.png").symlink_to(broken / "text.png")
    zipped(broken / "pack.zip", {"fine.png": GOOD, "inside.png": b"no picture", "../up.png": GOOD})
    return tmp_path / "all"


@pytest.mark.filterwarnings("error::UserWarning")  # Pillow's would go to the terminal
def test_one_of_everything(everything: Path, studio: Studio) -> None:
    left_out = next(line for line in studio("inspect", everything, "--json").objects() if "quarantine" in line)
    out, err = studio("inspect", everything, "--all")
    assert "Traceback" not in out + err
    first, kept = out.partition("\nExcluded:\n")[2].split("\nImported, but worth checking:\n")
    lines = [line.strip() for line in first.splitlines() if line.startswith("    ")]
    assert sorted(lines) == sorted(f"{item['name']}: {item['reason']}" for item in left_out["quarantine"])
    broken = [path.name for path in (everything / "broken").iterdir() if not path.name.endswith((*BESIDE, "pack.zip"))]
    for name in [*broken, "pack.zip/inside.png", "pack.zip/../up.png"]:
        assert f"    broken/{name}: " in (kept if "animated" in name or "apng" in name else first), name
    fine = [line for line in lines if line.startswith("fine/") and ": duplicate of " not in line]
    assert {line.partition(":")[0] for line in fine} == {f"fine/xml atlas/s.png#{name}" for name in ("away", "nowhere")}
    shorter = studio("inspect", everything).out
    assert " more; --all lists them" in shorter and len(shorter.splitlines()) < 150


def test_inspect_suggests_the_flag_that_slices_sheets(tmp_path: Path, studio: Studio) -> None:
    for seed in range(3):
        cells = [sprite(10 * seed + cell, 16) for cell in range(6)]
        write(tmp_path / f"{seed}.png", np.concatenate([*cells, np.zeros((16, 32, 4), np.uint8)], axis=1))
    write(tmp_path / "one.png", sprite(1, 32))
    said = studio("inspect", tmp_path).out
    assert "looks like a sheet: 3." in said and "Slice into sprites: --sheets grid" in said
    assert "0.png: 128 x 16 pixels, looks like 6 sprites of 16 x 16" in said and "one.png: 32 x 32" not in said
    said = studio("inspect", tmp_path, "--sheets", "grid").out
    assert "canvas 16 x 16 pixels" in said and "sliced into 6 tiles of 16 x 16" in said
    assert "Sheets: a class per sheet; --sheet-classes changes this" in said


def test_tiles_without_sheets_are_a_warning(tmp_path: Path, studio: Studio) -> None:
    write(tmp_path / "one.png", sprite(1, 32))
    warned = studio("inspect", tmp_path, "--tile", "16")
    assert "--tile 16 has no effect" in warned.err and "Add --sheets grid." in warned.err
    assert "has no effect" not in studio("inspect", tmp_path, "--tile", "16", "--sheets", "grid").err


def test_inspect_lists_problems_and_files(folder: Path, tmp_path: Path, studio: Studio) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.copy(copy / "class0" / "sprite 001.png", copy / "class0" / "twin.png")
    (copy / "class1" / "text.png").write_text("no picture")
    text = studio("inspect", copy).out
    assert "24 sprites in 2 classes, canvas 8 x 8 pixels" in text
    assert "duplicate: 1" in text and "twin.png" in text and "text.png" in text
    lines = studio("inspect", copy, "--json", "--size", "16").objects()
    said = {item["type"]: item for item in lines if item.get("group") != "unreadable"}
    found = said["SpritesImported"]
    assert found["sprites"]["size"] == 16 and found["proposed_size"] == 8
    assert {item["group"] for item in found["quarantine"]} >= {"duplicate"}
    assert said["Examined"]["looked_at"] == 24 and said["Finding"]["advice"]


def test_it_says_how_to_mend_it(folder: Path, tmp_path: Path, studio: Studio) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with Image.open(copy / "class0" / "sprite 001.png") as opened:
        opened.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(copy / "class1" / "turned.png")
    flags = studio("inspect", copy).out.partition("Keep one of each: ")[2].splitlines()[0]
    assert flags == "--similar 'leave out'"
    text = studio("inspect", copy, *shlex.split(flags)).out
    assert "Excluded: each nearly equals" in text and "Include them: --similar keep" in text


def test_a_setting_that_is_on_is_turned_off_by_its_flag(tmp_path: Path, studio: Studio) -> None:
    for seed, name in enumerate(("train/cat/0.png", "test/cat/1.png")):
        write(tmp_path / "set" / name, sprite(seed))
    assert "Use them as classes: --no-split-folders" in studio("inspect", tmp_path / "set").out
    assert "test/cat" in studio("inspect", tmp_path / "set", "--no-split-folders").out


def test_the_flag_clears_a_magenta_background(tmp_path: Path, studio: Studio) -> None:
    rgba = sprite(1)
    rgba[rgba[..., 3] == 0] = (255, 0, 255, 255)
    write(tmp_path / "set" / "a.png", rgba)
    text = studio("inspect", tmp_path / "set").out
    assert "magenta background: 1" in text and "Make magenta transparent: --clear-magenta" in text
    assert "magenta" not in studio("inspect", tmp_path / "set", "--clear-magenta").out


def test_it_tells_of_numbers(labelled_folder: Path, studio: Studio) -> None:
    text = studio("inspect", labelled_folder).out
    row = next(line.split() for line in text.splitlines() if line.startswith("visible"))
    assert row[:2] == ["visible", "23"] and 0 < float(row[2]) < float(row[3]) < 1
    assert "label file problems: 1" in text and "labels.csv: no row for class0/sprite 001.png" in text
    lines = studio("inspect", labelled_folder, "--json").objects()
    found = next(line for line in lines if line["type"] == "SpritesImported")
    assert found["sprites"]["numbers"] == {"visible": 23, "per cent": 23}


def test_it_looks_into_archives(folder: Path, tmp_path: Path, studio: Studio) -> None:
    pictures = {f"discs/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in folder.rglob("*.png")}
    archive = zipped(tmp_path / "discs.zip", pictures)
    assert "discs: 24 sprites in 2 classes, canvas 8 x 8 pixels" in studio("inspect", archive).out
    archive.write_bytes(archive.read_bytes()[:500])
    assert "'discs.zip' can't be used: cut off" in studio("inspect", archive, code=FAILED).err


def test_class_moves_are_listed_followed_and_recorded(folder: Path, tmp_path: Path, studio: Studio) -> None:
    found = imported(folder)
    edits = load_edits([folder], ImportOptions())
    save_edits(edits, run_to_end(ClassMove(edits, found.read, (0, 1), "new").resolve()))
    text = studio("inspect", folder).out
    assert "24 sprites in 3 classes" in text and "moved to another class: 2. You moved" in text
    assert f"{found.sprites.names[0]}: class 'new' instead of 'class0'" in text
    assert "Use the files' classes: --edits off" in text
    assert "24 sprites in 2 classes" in studio("inspect", folder, "--edits", "off").out
    lines = studio("inspect", folder, "--json").objects()
    assert not {"read", "edits"} & next(line for line in lines if line["type"] == "SpritesImported").keys()

    run, off = tmp_path / "run", tmp_path / "off"
    said = studio("queue", "add", folder, "--out", run, "--steps", "2", "--from", "nothing")
    assert "Moved to another class: 2. 'studio inspect' lists the sprites." in said.out
    studio("queue", "add", folder, "--out", off, "--steps", "2", "--from", "nothing", "--edits", "off")
    record = RunDir(run).record()
    assert record.class_names == ("class0", "class1", "new")
    assert record.data_origin["edits"] == {"moved": {"new": list(found.sprites.names[:2])}}
    assert RunDir(off).record().class_names == ("class0", "class1")
    assert RunDir(off).record().data_origin["options"] == {"edits": "off"}

    edits_path(folder).write_text("damaged")
    err = studio("inspect", folder, code=FAILED).err
    assert "The edits of 'discs' can't be read." in err and "'--edits off' ignores it." in err
    assert edits_path(folder).read_text() == "damaged"
    studio("inspect", folder, "--edits", "off")


def test_it_prints_the_flags_of_the_window(folder: Path, studio: Studio) -> None:
    options = ImportOptions(leave_out="class0/sprite 001.png", size=16)
    store_options([folder], options)
    first = studio("inspect", folder)
    assert "The window opens these sprites with other import settings" in first.err and "24 sprites" in first.out
    flags = " ".join(first.err.partition("To use them here: ")[2].split())
    second = studio("inspect", folder, *shlex.split(flags))
    assert "The window" not in second.err and "23 sprites" in second.out


def test_sets_are_named(tmp_path: Path, studio: Studio) -> None:
    for number, who in enumerate(("elf", "imp", "orc")):
        write(tmp_path / "views" / f"{who}_left.png", sprite(number))
        write(tmp_path / "views" / f"{who}_right.png", sprite(10 + number))
        cells = [[sprite(20 * number + 4 * row + column, 16) for column in range(4)] for row in range(4)]
        write(tmp_path / "sheets" / f"{who}.png", np.concatenate([np.concatenate(row, axis=1) for row in cells]))
    (tmp_path / "views" / "imp_right.png").unlink()
    out = studio("inspect", tmp_path / "views").out
    assert "Sets: 2 characters" not in out  # too few to be sure
    out = studio("inspect", tmp_path / "views", "--sets", "names").out
    assert "Sets: 2 characters with 2 views: left, right\n" in out
    sheets = ("inspect", tmp_path / "sheets")
    line = "Sets: looks like 3 characters with 4 views x 4 frames: row1, row2, row3, row4; --sets sheets slices them\n"
    assert line in studio(*sheets).out
    flags = ("--sets", "sheets", "--rows", "down,up,left,right", "--columns", "stand")
    last = next(line for line in studio(*sheets, *flags, "--json").objects() if "quarantine" in line)
    rows = ["down", "up", "left", "right"]
    assert last["sprites"]["sets"] == {
        "kind": "sheets", "chosen": True, "count": 3, "rows": rows, "columns": [4, 4],
        "cells": [f"{row}/{column}" for row in rows for column in ("stand", 2, 3, 4)], "gaps": 0,
    }  # fmt: skip
