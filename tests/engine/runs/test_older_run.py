"""A run folder as an earlier version wrote it, kept in tests/older_run, is listed, resumed, drawn from and exported.

There `losses.json` holds what that version went on with, and `drawn.png` what it drew with seed 5.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studio.core import former_names
from studio.core.config import settings_of
from studio.core.errors import UsageError
from studio.core.events import Exported, LossChunk, SpritesGenerated
from studio.core.pictures import untile
from studio.engine.catalog import recipes
from studio.engine.control.control import Control
from studio.engine.models.exporting import export
from studio.engine.models.loading import load_model
from studio.engine.runs.analysis.comparison import differences
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import RunsListed, list_runs
from studio.engine.sampling.generate import generate
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_rgba
from studio.engine.training.loop import train_resumed
from studio.recipes.flow import draw_noise
from tests.engine.tools import CPU

KEPT = Path(__file__).parents[2] / "older_run"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    return shutil.copytree(KEPT / "run", tmp_path / "runs" / "older")


def test_it_is_listed_and_its_curves_are_read(older: Path) -> None:
    (listed,) = list_runs([older])
    assert isinstance(listed, RunsListed)
    (summary,) = listed.runs
    assert summary.progress is not None and (summary.progress.state, summary.progress.step) == ("stopped", 6)
    np.testing.assert_array_equal(read_history(older).series["loss"].steps, np.arange(6))


def test_it_is_compared_by_the_current_names_of_its_settings(older: Path) -> None:
    record = RunDir(older).record()
    current = dataclasses.replace(record, config={**record.config, "class_dropout": 0.2})
    (row,) = differences([record, current])
    assert (row.title, row.texts) == ("Class dropout", ("0.1", "0.2"))


def test_run_json_is_read_with_all_former_names_of_settings() -> None:
    for name, recipe in recipes().items():
        declared = {item.former_name: item.name for item in settings_of(recipe.Config) if item.former_name}
        assert declared == former_names.SETTINGS[""] | former_names.SETTINGS.get(name, {})


def test_it_goes_on_as_it_would_have(older: Path) -> None:
    losses = [
        loss for event in train_resumed(older, CPU, Control()) if isinstance(event, LossChunk) for loss in event.losses
    ]
    np.testing.assert_allclose(losses, json.loads((KEPT / "losses.json").read_text()), rtol=1e-3)  # another machine's


def test_it_draws_as_it_did(older: Path) -> None:
    """With the solver of that version: second order up to the end, guided from the beginning."""
    model = load_model(older, "last", CPU)
    x, labels, v_before, t_before = draw_noise(6, 8, seed=5), torch.arange(6) % 2, None, 0.0
    for step in range(10):
        t, t_next = step / (step + 4 * (10 - step)), (step + 1) / (step + 1 + 4 * (9 - step))
        with torch.no_grad():
            own, of_any = (model.network(x, torch.full((6,), t), label) for label in (labels, torch.full((6,), 2)))
        v = of_any + 1.5 * (own - of_any)
        ahead = v if v_before is None else v + (t_next - t) / 2 * (v - v_before) / (t - t_before)
        x, v_before, t_before = x + (t_next - t) * ahead, v, t
    expected = untile(np.asarray(Image.open(KEPT / "drawn.png")), 8)
    assert np.ptp(expected.astype(int)) > 100
    np.testing.assert_allclose(to_rgba(x).numpy().astype(int), expected.astype(int), atol=2)


def test_it_draws_in_the_style_that_it_kept(older: Path) -> None:
    *_, drawn = generate(load_model(older, "last", CPU), GenerateSettings(count=6))
    assert isinstance(drawn, SpritesGenerated)
    palette = bytes.fromhex(json.loads((older / "style.json").read_text())["palette"])
    known = {palette[place : place + 3] for place in range(0, len(palette), 3)}
    seen = drawn.sprites[drawn.sprites[..., 3] > 0][:, :3]
    assert len(seen) and {colour.tobytes() for colour in seen} <= known


def test_it_draws_by_class_and_has_no_attributes(older: Path) -> None:
    model = load_model(older, "last", CPU)
    of_class = GenerateSettings(count=2, steps=2, class_name=model.spec.class_names[1])
    *_, drawn = generate(model, of_class)
    assert isinstance(drawn, SpritesGenerated) and drawn.labels.tolist() == [1, 1]
    with pytest.raises(UsageError, match="has no attributes"):
        list(generate(model, of_class.replace(attributes="element=fire")))


@pytest.mark.parametrize("name", ["safetensors", "state_dict"])
def test_it_is_exported(older: Path, tmp_path: Path, name: str) -> None:
    *_, exported = export(load_model(older, "best", CPU), name, tmp_path)
    assert isinstance(exported, Exported)
    assert all(path.exists() for path in exported.paths)
