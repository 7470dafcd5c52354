"""`studio evaluate`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from studio.cli.messages import WRONG_USAGE
from studio.engine.quality import features
from studio.engine.runs.evaluation import read_evaluations
from tests.cli.tools import Studio
from tests.conftest import make_sprites
from tests.engine.tools import kept_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator with enough sprites held out to be judged."""
    return kept_run(tmp_path_factory, make_sprites(60), steps=1)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_STEPS", 5)


def test_evaluate_compares_a_generator_with_real_and_copied_sprites(run: Path, tmp_path: Path, studio: Studio) -> None:
    words = ["evaluate", run, "--count", "20", "--steps", "1"]
    out = studio(*words).out
    assert out.startswith(
        "20 sprites of trial, step 1, compared with 24 sprites for validation and 96 sprites for training."
    )
    copies = next(line.split() for line in out.splitlines() if line.startswith("Copies"))
    assert copies[0] == "Copies" and copies[-3:] == ["lower", "is", "better"]
    found = studio(*words, "--json").objects()[-1]
    assert found["type"] == "Evaluated" and set(found["figures"]) == {"new", "real", "cheat"}
    assert found["figures"]["cheat"]["off_palette"] == 0
    (kept,) = json.loads((run / "evaluation.json").read_text())
    assert kept["figures"] == found["figures"]["new"] and kept["settings"]["count"] == kept["count"] == 20
    studio("report", run, "--out", tmp_path / "run.html")
    assert f'<td class="left">{found["figures"]["new"]["fd_heldout"]:.3g}</td>' in (tmp_path / "run.html").read_text()


def test_evaluate_accepts_other_sprites(run: Path, folder: Path, tmp_path: Path, studio: Studio) -> None:
    kept = read_evaluations(run)
    out = studio("evaluate", run, folder).out
    assert out.startswith("24 sprites of discs,") and "Class match" not in out
    assert read_evaluations(run) == kept  # they say nothing of the model
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.copy(copy / "class0" / "sprite 001.png", copy / "twin.png")
    out = studio("evaluate", run, copy).out
    assert out.startswith("Excluded files: 1. 'studio inspect' lists the reasons.\n24 sprites of copy,")
    for path in (copy / "class1").glob("*.png"):
        with Image.open(path) as picture:
            larger = picture.resize((32, 32), Image.Resampling.NEAREST)
        larger.save(path.with_stem(f"large {path.stem}"))
    out = studio("evaluate", run, copy, "--count", "20").out
    assert out.startswith("Excluded files: 13. 'studio inspect --size 8' lists the reasons.\n20 sprites of copy,")


def test_evaluate_prints_the_accuracy_of_a_classifier(classifier_run: Path, studio: Studio) -> None:
    out = studio("evaluate", classifier_run).out
    assert "Validation at step 4" in out and "accuracy" in out


def test_evaluate_compares_a_regression_with_the_mean(regression_run: Path, studio: Studio) -> None:
    out = studio("evaluate", regression_run).out
    assert "predicting the mean" in out and "R²" in out and "mean error per cent" in out
    found = studio("evaluate", regression_run, "--json").objects()[-1]
    assert found["type"] == "Validated" and set(found["metrics"]) == {"loss", "r2", "mae visible", "mae per cent"}
    baseline = found["baseline"]
    assert baseline["r2"] <= 0 and baseline["mae per cent"] == pytest.approx(100 * baseline["mae visible"], rel=0.01)
    assert (
        "evaluated on the validation set of its run"
        in studio("evaluate", regression_run, "elsewhere", code=WRONG_USAGE).err
    )


def test_evaluate_needs_enough_validation_sprites(generator_run: Path, studio: Studio) -> None:
    assert "too few" in studio("evaluate", generator_run, code=WRONG_USAGE).err
