"""`studio plot`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from studio.cli.messages import FAILED, WRONG_USAGE
from tests.cli.tools import Studio


def test_runs_are_drawn_over_one_another(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    other = shutil.copytree(generator_run, tmp_path / "other")
    with (other / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "metrics": {"loss": 0.7, "accuracy": 0.5}}\n')
    words = ["plot", generator_run, other, generator_run, "--out", tmp_path / "curves.png"]  # one of them named twice
    assert f"Loss of 2 runs: {tmp_path / 'curves.png'}" in studio(*words, "--log", "--smoothing", "10").out
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (1600, 900)
    first, *_, last = studio(*words, "--curve", "accuracy", "--json").objects()
    assert "my generator has no curve 'Validation accuracy'" in first["title"]
    assert last == {"type": "FilesSaved", "paths": [str(tmp_path / "curves-2.png")]}


def test_a_plot_gets_a_free_name(
    generator_run: Path, tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(generator_run, tmp_path / "one")
    monkeypatch.chdir(run)
    studio("plot", ".")
    assert (run / "one-loss.png").is_file()
    studio("plot", ".", "--curve", "held-out-loss", "--out", tmp_path)
    assert (tmp_path / "one-held-out-loss.png").is_file()


def test_plot_errors(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    run = str(shutil.copytree(generator_run, tmp_path / "run"))
    damaged = shutil.copytree(generator_run, tmp_path / "damaged")
    (damaged / "run.json").write_text("{")
    (damaged / "metrics.jsonl").unlink()
    (tmp_path / "file").write_text("")
    many = [str(shutil.copytree(generator_run / "samples", tmp_path / f"many{i}")) for i in range(9)]
    for name in many:
        shutil.copy(generator_run / "run.json", name)
    for words, code, said in (
        ([run, "nowhere"], WRONG_USAGE, "no run 'nowhere'"),
        ([run, "--out", str(tmp_path / "a.gif")], WRONG_USAGE, "Use a name that ends in .png, .svg or .pdf."),
        ([run, "--out", str(tmp_path / "a")], WRONG_USAGE, "can't be saved as 'a'"),
        ([run, "--out", str(tmp_path / "file" / "a.svg")], FAILED, "Can't write"),
        ([run, "--curve", "kid"], FAILED, "Available curves: loss, held-out-loss."),
        ([run, "--curve", "beauty"], WRONG_USAGE, "'held-out-loss'"),
        ([run, "--smoothing", "nan"], WRONG_USAGE, "from 0 to 1,000,000"),
        ([str(damaged)], FAILED, "run.json"),
        (many[:1], FAILED, "Train the run for a few steps first."),
        (many, WRONG_USAGE, "A plot has room for 8 runs, not 9"),
    ):
        assert said in studio("plot", *words, code=code).err
    assert not list(tmp_path.glob("a*"))


def test_plot_leaves_torch_and_qt_alone(generator_run: Path, tmp_path: Path) -> None:
    words = ["plot", str(generator_run), "--out", str(tmp_path / "loss.svg")]
    code = (
        f"import sys\nfrom studio.cli import main\nassert main({words!r}) == 0\n"
        "loaded = {'torch', 'PySide6', 'pyqtgraph', 'matplotlib.pyplot'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
