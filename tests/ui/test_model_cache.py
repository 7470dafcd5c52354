"""The model that the window keeps: it is the one that was asked for, also when 'best' has become another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.app.background.model_jobs import ModelCache, SavedModel
from studio.core.errors import RunError
from studio.core.events import LossChunk
from studio.core.generators import returned
from studio.data.sprites import Sprites
from studio.engine.control import Control
from studio.engine.loading import load_model
from studio.engine.runs.checkpoints import add_metrics, find
from tests.engine.tools import CPU, train_generator

FIGURES = {"kid_error": 0.0, "kid_real": 0.0, "copies": 0.0, "copies_real": 0.0}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which checkpoints are loaded, as they were asked for."""
    asked: list[str] = []

    def watched(path: Path, checkpoint: str, *rest: object) -> object:
        asked.append(checkpoint)
        return load_model(path, checkpoint, CPU)

    monkeypatch.setattr("studio.engine.loading.load_model", watched)
    return asked


@pytest.fixture
def checkpoints(run_path: Path, sprites: Sprites) -> Path:
    """Those of a run that has one a step."""
    control = Control()
    for event in train_generator(run_path, sprites, control, steps=4):
        control.checkpoint_now = isinstance(event, LossChunk)
    return run_path / "checkpoints"


def test_best_is_looked_up_each_time_and_loaded_once(run_path: Path, checkpoints: Path, loaded: list[str]) -> None:
    cache = ModelCache()
    first, *_, last = [info.step for _, info in find(checkpoints)]
    add_metrics(checkpoints, first, {**FIGURES, "kid": 0.3})
    add_metrics(checkpoints, last, {**FIGURES, "kid": 0.1})
    best = SavedModel(run_path, "best")
    model = returned(cache.load(best, CPU))
    assert model.step == last and returned(cache.load(best, CPU)) is model
    for same in ("last", str(last)):
        assert returned(cache.load(SavedModel(run_path, same), CPU)) is model
    assert loaded == ["best"]
    add_metrics(checkpoints, last, {"kid": 0.5})  # measured again: the folder of checkpoints is as old as before
    assert returned(cache.load(best, CPU)).step == first and loaded == ["best", "best"]


def test_what_stands_in_for_a_damaged_checkpoint_is_not_taken_for_it_and_is_said_once(
    run_path: Path, checkpoints: Path
) -> None:
    *_, (_, sound), (path, damaged) = find(checkpoints)
    (path / "average.safetensors").write_bytes(b"")
    cache, last = ModelCache(), SavedModel(run_path, "last")
    for said in ([f"Checkpoint {path.name} is damaged."], []):
        assert [notice.title for notice in cache.load(last, CPU)] == said
    model = returned(cache.load(last, CPU))
    assert model.step == sound.step < damaged.step and returned(cache.load(last, CPU)) is model
    with pytest.raises(RunError, match="is damaged"):
        returned(cache.load(SavedModel(run_path, str(damaged.step)), CPU))
