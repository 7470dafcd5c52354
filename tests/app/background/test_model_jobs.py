"""The model cache: it returns the requested model, even after another checkpoint became 'best'."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import (
    EditRequest,
    ModelCache,
    SavedModel,
    SpriteSelection,
    generate,
    recent,
    save_files,
    save_samples,
    save_sprites,
)
from studio.core.errors import BadInputError, RunError
from studio.core.events import LossChunk
from studio.core.generators import run_to_end
from studio.data.colour.recolouring import ColourMode
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.models.loading import load_model
from studio.engine.runs.checkpoints import add_metrics, list_checkpoints
from studio.engine.runs.folder import RunRecord
from studio.engine.sampling.settings import GenerateSettings
from studio.exports.png import read_provenance
from studio.exports.sprites.cells import Cells
from studio.exports.sprites.formats import sprite_exports
from tests.engine.tools import CPU, bare_run, train_generator

FIGURES = {"kid_error": 0.0, "kid_real": 0.0, "copies": 0.0, "copies_real": 0.0}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the requested names of loaded checkpoints."""
    asked: list[str] = []

    def watched(path: Path, checkpoint: str, *rest: object) -> object:
        asked.append(checkpoint)
        return load_model(path, checkpoint, CPU)

    monkeypatch.setattr("studio.engine.models.loading.load_model", watched)
    return asked


@pytest.fixture
def checkpoints(run_path: Path, sprites: Sprites) -> Path:
    """The checkpoints of a run with a checkpoint after each step."""
    control = Control()
    for event in train_generator(run_path, sprites, control, steps=4):
        control.checkpoint_now = isinstance(event, LossChunk)
    return run_path / "checkpoints"


@pytest.mark.parametrize(("recipe", "is_marked"), [("generator", True), ("classifier", False)])
def test_only_drawn_samples_are_saved_with_provenance(
    sprites: Sprites, tmp_path: Path, recipe: str, is_marked: bool
) -> None:
    record = RunRecord(
        "run", recipe, {}, 8, ("a",), "discs", 24, "1f", "cpu", "CPU", "fp32", 100, "2026-01-01", {}, "group"
    )
    run = bare_run(tmp_path / "run")
    run.create(record)
    picked, target = SpriteSelection(sprites.rgba[:1], ["one"], {"Model": "run, step 4"}), tmp_path / "one.png"
    run_to_end(save_samples(run.path, 4, target, sprite_exports()["sheet"], picked, 1, ["generator"]))
    with Image.open(target) as image:
        assert ("Model" in image.info) is is_marked
    if is_marked:
        assert read_provenance(target)[0][0].run == "run"
    else:
        with pytest.raises(BadInputError, match="does not say"):
            read_provenance(target)


def test_cells_name_files_and_frames(sprites: Sprites, tmp_path: Path) -> None:
    names = ("down/stand", "down/step", "up")
    picked = SpriteSelection(sprites.rgba[:3], ["a", "b", "c"], {}, cells=Cells.full(names, 3))
    folder = run_to_end(save_files(tmp_path, picked))
    assert [path.name for path in folder] == ["down-stand.png", "down-step.png", "up.png"]
    sheet = run_to_end(save_sprites(tmp_path / "sheet", sprite_exports()["sheet"], picked, 8))
    assert [frame["filename"] for frame in json.loads(sheet[1].read_bytes())["frames"]] == list(names)


def test_best_is_looked_up_each_time_and_loaded_once(run_path: Path, checkpoints: Path, loaded: list[str]) -> None:
    cache = ModelCache()
    first, *_, last = [info.step for _, info in list_checkpoints(checkpoints)]
    add_metrics(checkpoints, first, {**FIGURES, "kid": 0.3})
    add_metrics(checkpoints, last, {**FIGURES, "kid": 0.1})
    best = SavedModel(run_path, "best")
    model = run_to_end(cache.load(best, CPU))
    assert model.step == last and run_to_end(cache.load(best, CPU)) is model
    for same in ("last", str(last)):
        assert run_to_end(cache.load(SavedModel(run_path, same), CPU)) is model
    assert loaded == ["best"]
    add_metrics(checkpoints, last, {"kid": 0.5})  # a new measurement leaves the age of the checkpoint folder
    assert run_to_end(cache.load(best, CPU)).step == first and loaded == ["best", "best"]


def test_the_substitute_of_a_damaged_checkpoint_is_cached_apart_and_reported_once(
    run_path: Path, checkpoints: Path
) -> None:
    *_, (_, sound), (path, damaged) = list_checkpoints(checkpoints)
    (path / "average.safetensors").write_bytes(b"")
    cache, last = ModelCache(), SavedModel(run_path, "last")
    for said in ([f"Checkpoint {path.name} is damaged."], []):
        assert [notice.title for notice in cache.load(last, CPU)] == said
    model = run_to_end(cache.load(last, CPU))
    assert model.step == sound.step < damaged.step and run_to_end(cache.load(last, CPU)) is model
    with pytest.raises(RunError, match="is damaged"):
        run_to_end(cache.load(SavedModel(run_path, str(damaged.step)), CPU))


def test_inpainting_uses_the_last_checkpoint_if_the_best_has_not_learnt_it(
    run_path: Path, sprites: Sprites, loaded: list[str]
) -> None:
    """Filling is learnt in the last fifth, and the best may come before it: the picture says which one has drawn."""
    control = Control()
    for event in train_generator(run_path, sprites, control, steps=10, inpaint_share=1.0, batch_size=8):
        control.checkpoint_now = isinstance(event, LossChunk)
    first, *_, last = [info.step for _, info in list_checkpoints(run_path / "checkpoints")]
    add_metrics(run_path / "checkpoints", first, {**FIGURES, "kid": 0.1})
    add_metrics(run_path / "checkpoints", last, {**FIGURES, "kid": 0.3})
    cache, best, keep = ModelCache(), SavedModel(run_path, "best"), np.ones(sprites.rgba.shape[1:3], bool)
    keep[:2] = False
    request = EditRequest("redraw", sprites.rgba[:1], ("",), keep)

    def drawn(source: SavedModel, request: EditRequest | None) -> SpritesColoured:
        events = generate(cache, source, CPU, GenerateSettings(count=1, steps=2), ColourMode(), request)
        return next(event for event in events if isinstance(event, SpritesColoured))

    assert f"step {first}" in drawn(best, None).model
    for _ in range(2):
        filled = drawn(best, request)
        assert f"step {last}" in filled.model
        assert filled.note.startswith(f"The last checkpoint, step {last}")
    assert loaded == ["best", "last"]  # loaded once each
    assert "has not learnt to redraw selections" in drawn(SavedModel(run_path, str(first)), request).note
    assert not drawn(SavedModel(run_path, "last"), request).note


def test_recent_results_are_held_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.app.background.model_jobs.MOST_RECENT", 3)
    assert recent([1, 2, 3, 4], lambda one: one) == [2, 3, 4]
    assert recent([1, 50 * 2**20, 20 * 2**20], lambda one: one) == [20 * 2**20]
    assert recent([1, 2**40], lambda one: one) == [2**40]
