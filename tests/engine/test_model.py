from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import RunError
from studio.data.colour.true_pixels import PixelStyle
from studio.engine.generate import generate, load_model
from studio.engine.model import load_style
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import split_by_group
from studio.engine.types import GenerateSettings
from tests.conftest import make_sprites
from tests.engine.tools import CPU, kept_run, train_generator


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory, make_sprites(), steps=1)


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> RunDir:
    return RunDir(shutil.copytree(trained, tmp_path / "run"))


def _alike(first: PixelStyle, second: PixelStyle) -> bool:
    return first.colours == second.colours and np.array_equal(first.palette, second.palette)


def test_a_run_keeps_the_style_of_its_sprites(run: RunDir) -> None:
    kept = load_style(run, run.record())
    (run.path / "style.json").unlink()
    assert _alike(load_style(run, run.record()), kept)


def test_a_colour_that_is_held_out_is_none_of_the_styles(run_path: Path) -> None:
    art = make_sprites(20)
    art.rgba[split_by_group(art, 0.5, 0).validation, 4, 4] = (1, 2, 3, 255)  # no two are twins: each is a group
    list(train_generator(run_path, art, steps=1, holdout=0.5))
    run = RunDir(run_path)
    style = load_style(run, run.record())
    assert [1, 2, 3] not in style.palette.tolist() and len(style.palette)
    (run_path / "style.json").unlink()
    assert _alike(load_style(run, run.record()), style)


@pytest.mark.parametrize("text", ["", "{}", '{"colours": [1], "palette": "xyz", "soft_alpha": true}', "[]"])
def test_a_damaged_file_is_said(run: RunDir, text: str) -> None:
    (run.path / "style.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"style\.json"):
        load_style(run, run.record())


def test_new_sprites_have_the_palette_unless_it_is_switched_off(run: RunDir) -> None:
    model = load_model(run.path, "last", CPU)
    palette = {tuple(colour) for colour in model.style.palette.tolist()}
    for on in (True, False):
        *_, made = generate(model, GenerateSettings(count=8, steps=2, true_pixels=on))
        sprites: np.ndarray = made.sprites  # type: ignore[attr-defined]
        seen = sprites[sprites[..., 3] > 0][:, :3]
        assert len(seen)
        assert ({tuple(colour) for colour in seen.tolist()} <= palette) is on
