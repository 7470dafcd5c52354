"""A run folder as an earlier version wrote it, kept in tests/older_run, is listed, resumed, drawn from and exported.

There `losses.json` holds what that version went on with, and `drawn.png` what it drew with seed 5.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core.events import Exported, LossChunk, SpritesGenerated
from studio.core.pictures import untile
from studio.engine.control import Control
from studio.engine.exporting import export
from studio.engine.generate import generate, load_model
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import RunsListed, list_runs
from studio.engine.train import train_resumed
from studio.engine.types import GenerateSettings
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


def test_it_goes_on_as_it_would_have(older: Path) -> None:
    losses = [
        loss for event in train_resumed(older, CPU, Control()) if isinstance(event, LossChunk) for loss in event.losses
    ]
    np.testing.assert_allclose(losses, json.loads((KEPT / "losses.json").read_text()), rtol=1e-3)  # another machine's


def test_it_draws_as_it_did(older: Path) -> None:
    settings = GenerateSettings(count=6, seed=5, true_pixels=False)
    *_, drawn = generate(load_model(older, "last", CPU), settings)
    assert isinstance(drawn, SpritesGenerated)
    expected = untile(np.asarray(Image.open(KEPT / "drawn.png")), 8)
    assert np.ptp(expected.astype(int)) > 100
    np.testing.assert_allclose(drawn.sprites.astype(int), expected.astype(int), atol=2)


@pytest.mark.parametrize("name", ["safetensors", "state_dict"])
def test_it_is_exported(older: Path, tmp_path: Path, name: str) -> None:
    *_, exported = export(load_model(older, "best", CPU), name, tmp_path)
    assert isinstance(exported, Exported)
    assert all(path.exists() for path in exported.paths)
