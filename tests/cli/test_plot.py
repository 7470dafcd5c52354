"""`studio plot`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from studio.cli import main
from studio.cli.messages import DONE, FAILED, WRONG_USAGE
from tests.cli.tools import json_lines


def test_runs_are_drawn_over_one_another(
    generator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = shutil.copytree(generator_run, tmp_path / "other")
    with (other / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "metrics": {"loss": 0.7, "accuracy": 0.5}}\n')
    runs = [str(generator_run), str(other), str(generator_run)]  # one of them named twice
    out = tmp_path / "curves.png"
    assert main(["plot", *runs, "--log", "--smoothing", "10", "--out", str(out)]) == DONE
    assert f"Loss of 2 runs: {out}" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert picture.size == (1600, 900)
    assert main(["plot", *runs, "--curve", "accuracy", "--out", str(out), "--json"]) == DONE
    lines = json_lines(capsys.readouterr().out)
    assert "my generator has no curve 'Held-out accuracy'" in lines[0]["title"]
    assert lines[-1] == {"type": "FilesSaved", "paths": [str(tmp_path / "curves 2.png")]}


def test_a_plot_has_a_name_of_its_own(generator_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = shutil.copytree(generator_run, tmp_path / "one")
    monkeypatch.chdir(run)
    assert main(["plot", "."]) == DONE and (run / "one loss.png").is_file()
    assert main(["plot", ".", "--curve", "held-out-loss", "--out", str(tmp_path)]) == DONE
    assert (tmp_path / "one held-out-loss.png").is_file()


def test_what_can_not_be_drawn_is_said(generator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
        ([run, "--out", str(tmp_path / "a.gif")], WRONG_USAGE, "Let --out end in .png, .svg or .pdf."),
        ([run, "--out", str(tmp_path / "a")], WRONG_USAGE, "can't be saved as 'a'"),
        ([run, "--out", str(tmp_path / "file" / "a.svg")], FAILED, "Can't write"),
        ([run, "--curve", "kid"], FAILED, "--curve takes here: loss, held-out-loss."),
        ([run, "--curve", "beauty"], WRONG_USAGE, "'held-out-loss'"),
        ([run, "--smoothing", "nan"], WRONG_USAGE, "from 0 to 1,000,000"),
        ([str(damaged)], FAILED, "run.json"),
        (many[:1], FAILED, "Let it train for a few steps."),
        (many, WRONG_USAGE, "9 runs are too many"),
    ):
        assert main(["plot", *words]) == code, words
        assert said in capsys.readouterr().err
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
