"""One of everything, whole and broken: what 'inspect' says of it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from studio.cli import main
from studio.cli.messages import DONE
from tests.cli.tools import json_lines
from tests.data.making import chunk, png_of, sprite, write, zipped
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
BESIDE = ("sheet.json", "art.json", "labels-idx1-ubyte")  # read with another file, which is the one that is named


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
def test_one_of_everything(everything: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(everything), "--json"]) == DONE
    left_out = next(line for line in json_lines(capfd.readouterr().out) if "quarantine" in line)["quarantine"]
    assert main(["inspect", str(everything), "--all"]) == DONE
    said = capfd.readouterr()
    assert "Traceback" not in said.out + said.err
    first, kept = said.out.partition("\nLeft out:\n")[2].split("\nKept, but worth a look:\n")
    lines = [line.strip() for line in first.splitlines() if line.startswith("    ")]
    assert sorted(lines) == sorted(f"{item['name']}: {item['reason']}" for item in left_out)
    broken = [path.name for path in (everything / "broken").iterdir() if not path.name.endswith((*BESIDE, "pack.zip"))]
    for name in [*broken, "pack.zip/inside.png", "pack.zip/../up.png"]:
        assert f"    broken/{name}: " in (kept if "animated" in name or "apng" in name else first), name
    assert all(": the same pixels as " in line for line in lines if line.startswith("fine/"))


def test_sheets_are_named_with_the_flag_that_cuts_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        cells = [sprite(10 * seed + cell, 16) for cell in range(6)]
        write(tmp_path / f"{seed}.png", np.concatenate([*cells, np.zeros((16, 32, 4), np.uint8)], axis=1))
    write(tmp_path / "one.png", sprite(1, 32))
    assert main(["inspect", str(tmp_path)]) == DONE
    said = capfd.readouterr().out
    assert "looks like a sheet: 3." in said and "Cut them into sprites: --sheets grid" in said
    assert "0.png: 128 x 16 pixels, looks like 6 sprites of 16 x 16" in said and "one.png: 32 x 32" not in said
    assert main(["inspect", str(tmp_path), "--sheets", "grid"]) == DONE
    said = capfd.readouterr().out
    assert "canvas 16 x 16 pixels" in said and "cut into 6 tiles of 16 x 16" in said


def test_the_first_few_are_named_and_the_others_counted(everything: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(everything)]) == DONE
    text = capfd.readouterr().out
    assert " more; --all names them" in text and len(text.splitlines()) < 150
