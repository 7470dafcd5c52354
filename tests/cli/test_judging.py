"""`studio evaluate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.cli import main
from studio.cli.boundary import DONE, WRONG_USAGE
from studio.engine import features
from tests.cli.tools import json_lines
from tests.conftest import make_sprites
from tests.engine.tools import train_generator


@pytest.fixture
def run(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A generator with enough sprites held out to be judged."""
    monkeypatch.setattr(features, "_STEPS", 5)
    list(train_generator(run_path, make_sprites(60), steps=1))
    return run_path


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


def test_other_sprites_are_judged_by_the_runs_data(run: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), str(folder)]) == DONE
    out = capsys.readouterr().out
    assert out.startswith("24 sprites of discs,") and "Right class" not in out


def test_a_classifier_says_its_accuracy(classifier_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(classifier_run)]) == DONE
    out = capsys.readouterr().out
    assert "On held-out sprites, at step 4" in out and "accuracy" in out


def test_a_run_that_held_out_too_few_can_not_be_judged(generator_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(generator_run)]) == WRONG_USAGE
    assert "too few to judge" in capsys.readouterr().err
