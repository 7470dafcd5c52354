"""`studio evaluate`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from studio.cli import main
from studio.cli.messages import DONE, WRONG_USAGE
from studio.engine.quality import features
from tests.cli.tools import json_lines
from tests.conftest import make_sprites
from tests.engine.tools import kept_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator with enough sprites held out to be judged."""
    return kept_run(tmp_path_factory, make_sprites(60), steps=1)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_STEPS", 5)


def test_a_generator_is_judged_beside_real_sprites_and_a_cheat(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(run), "--count", "20", "--steps", "1"]
    assert main(words) == DONE
    out = capsys.readouterr().out
    assert out.startswith("20 sprites of trial, step 1, beside 24 sprites held out and 96 sprites learnt from.")
    copies = next(line.split() for line in out.splitlines() if line.startswith("Copies"))
    assert copies[0] == "Copies" and copies[-3:] == ["lower", "is", "better"]
    assert main([*words, "--json"]) == DONE
    found = json_lines(capsys.readouterr().out)[-1]
    assert found["type"] == "Evaluated" and set(found["figures"]) == {"new", "real", "cheat"}
    assert found["figures"]["cheat"]["off_palette"] == 0


def test_other_sprites_are_judged_by_the_runs_data(
    run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run), str(folder)]) == DONE
    out = capsys.readouterr().out
    assert out.startswith("24 sprites of discs,") and "Right class" not in out
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.copy(copy / "class0" / "sprite 001.png", copy / "twin.png")
    assert main(["evaluate", str(run), str(copy)]) == DONE
    assert capsys.readouterr().out.startswith("Left out: 1; 'studio inspect' says why.\n24 sprites of copy,")
    for path in (copy / "class1").glob("*.png"):
        with Image.open(path) as picture:
            larger = picture.resize((32, 32), Image.Resampling.NEAREST)
        larger.save(path.with_stem(f"large {path.stem}"))
    assert main(["evaluate", str(run), str(copy), "--count", "20"]) == DONE
    out = capsys.readouterr().out
    assert out.startswith("Left out: 13; 'studio inspect --size 8' says why.\n20 sprites of copy,")


def test_a_classifier_says_its_accuracy(classifier_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(classifier_run)]) == DONE
    out = capsys.readouterr().out
    assert "On held-out sprites, at step 4" in out and "accuracy" in out


def test_a_regression_is_judged_beside_the_mean(regression_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(regression_run)]) == DONE
    out = capsys.readouterr().out
    assert "always the mean" in out and "R²" in out and "mean error per cent" in out
    assert main(["evaluate", str(regression_run), "--json"]) == DONE
    found = json_lines(capsys.readouterr().out)[-1]
    assert found["type"] == "Validated" and set(found["metrics"]) == {"loss", "r2", "mae visible", "mae per cent"}
    baseline = found["baseline"]
    assert baseline["r2"] <= 0 and baseline["mae per cent"] == pytest.approx(100 * baseline["mae visible"], rel=0.01)
    assert main(["evaluate", str(regression_run), "elsewhere"]) == WRONG_USAGE
    assert "own held-out sprites" in capsys.readouterr().err


def test_a_run_that_held_out_too_few_can_not_be_judged(generator_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(generator_run)]) == WRONG_USAGE
    assert "too few to judge" in capsys.readouterr().err
