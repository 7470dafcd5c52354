"""`studio lab`."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.core.events import Events
from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.lab import running
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome
from studio.lab.results import ExperimentDone
from studio.lab.running import result_of
from tests.cli.tools import SMALL, Studio
from tests.engine.tools import train_classifier
from tests.lab.tools import InProcess

SMALL_CLASSIFIER = ["--recipe", "classifier", "--batch-size", "4", *SMALL["classifier"]]


def test_an_experiment_from_question_to_report(
    studio: Studio, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)  # the window's test has a process of its own for it
    report = tmp_path / "report.html"
    words = ["batch-size", str(folder), *SMALL_CLASSIFIER, "--seconds", "1", "--device", "cpu"]
    said = studio("lab", *words, "--out", str(report), "--json").objects()
    done = next(each for each in said if each["type"] == "ExperimentDone")
    assert done["result"]["experiment"] == "batch-size" and done["result"]["settings"]["batch_size"] == 4
    assert {"type": "FilesSaved", "paths": [str(report)]} in said
    sentence = done["result"]["outcome"]["sentences"][0]
    assert sentence in report.read_text()
    listed = studio("lab").out
    assert "learning-rate" in listed and sentence in listed
    first, second = studio("lab", "--compare", "1", "1", "--out", str(tmp_path / "two.html"), "--json").objects()[:2]
    assert first == second and first["sentences"][0] == sentence
    assert (tmp_path / "two.html").read_text().count(f"<p>{sentence}</p>") == 2
    assert sentence in studio("lab", "--compare", "1").out
    names = [each["name"] for each in studio("lab", "--json").objects() if each["type"] == "Experiment"]
    assert names[0] == "devices" and "threads" in names


def test_a_fixed_recipe_is_named(studio: Studio, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_at_once(experiment: Experiment, context: ExperimentContext) -> Events:
        yield ExperimentDone(result_of(experiment, context, Outcome(), 1.0), None)

    monkeypatch.setattr(running, "run_experiment", end_at_once)
    words = ["lab", "program-generator", str(folder), *SMALL_CLASSIFIER, "--device", "cpu"]
    assert "? Generator, on " in studio(*words).out
    (done,) = [each for each in studio(*words, "--json").objects() if each["type"] == "ExperimentDone"]
    assert (done["result"]["recipe"], done["result"]["settings"]["batch_size"]) == ("generator", 64)


def test_lab_usage_errors_come_before_the_import(studio: Studio) -> None:
    assert "Choose one of: devices" in studio("lab", "nonsense", "nowhere", code=2).err
    assert "--seconds must be from 1 to 120" in studio("lab", "threads", "--seconds", "500", code=2).err
    assert "Use a name that ends in .html" in studio("lab", "threads", "--out", "report.pdf", code=2).err
    assert "nowhere" in studio("lab", "threads", "nowhere", code=1).err
    assert "There is no result 7" in studio("lab", "--compare", "7", code=2).err


def test_help_names_every_experiment(studio: Studio) -> None:
    said = studio("lab", "--help", "--recipe", "classifier").out
    assert "What is the largest useful batch size?" in said and "--label-smoothing" in said


def test_a_run_is_looked_into(
    studio: Studio, tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    run, report = tmp_path / "runs" / "trial", tmp_path / "report.html"
    run_to_end(train_classifier(run, sprites, steps=4))
    words = [str(run), "--checkpoint", "4", "--device", "cpu", "--seconds", "1"]
    done = studio("lab", "hardest", *words, "--out", str(report), "--json").objects()[-2]
    assert (done["result"]["run"], done["result"]["checkpoint"]) == ("trial", "4")
    assert "<td>trial, step 4</td>" in report.read_text()
    assert "Hardest sprites, trial, step 4: The hardest of 4 validation sprites" in studio("lab").out
    said = studio("lab", "from-noise", str(run), code=2).err
    assert "'From noise to sprite' can't" in said and "can't draw sprites" in said
    assert "its own recipe" in studio("lab", "layers", str(run), "--batch-size", "4", code=2).err


def test_lab_rejects_missing_runs_before_the_import(studio: Studio, folder: Path) -> None:
    assert "needs one run" in studio("lab", "layers", code=2).err
    assert "is not a run" in studio("lab", "layers", str(folder), code=2).err
    assert "does not analyse a run" in studio("lab", "threads", str(folder), "--checkpoint", "last", code=2).err
