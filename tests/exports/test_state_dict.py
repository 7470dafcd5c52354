"""The .pt and its loader: torch alone is enough, and nothing but tensors is in it."""

from __future__ import annotations

import dataclasses
import runpy
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.engine import catalog
from studio.engine.steps.batches import to_rgba
from studio.exports.state_dict import StateDict, compose_loader, loader_path
from studio.recipes.generator import Generator
from tests.engine.tools import agreeing
from tests.exports.tools import ANCESTOR, CELLS, CLASS_NAMES, TARGET_NAMES, hidden, small_exportable

# Runs a loader as a program on a Python that finds torch and the standard library, and nothing else.
_ALONE = """
import sys, runpy
import torch, torch.nn
class Nothing:
    def find_spec(self, name, path=None, target=None):
        outer = name.partition(".")[0]
        if outer not in sys.stdlib_module_names and outer != "torch":
            raise ModuleNotFoundError(f"{name} must not be needed")
sys.meta_path.insert(0, Nothing())
for name in [name for name in sys.modules if name.partition(".")[0] in ("studio", "numpy", "PIL", "safetensors")]:
    del sys.modules[name]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _run_alone(loader: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-c", _ALONE, str(loader), *words]
    return subprocess.run(command, cwd=loader.parent, capture_output=True, text=True, encoding="utf-8", check=False)


def _run_alone_here(loader: Path, *words: str) -> None:
    """The same in this process, which has imported torch: two seconds less. What torch itself needs is not hidden."""
    kept = {*sys.stdlib_module_names, "__main__", "torch", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2"}
    with hidden(lambda package: package not in kept), pytest.MonkeyPatch.context() as patch:
        patch.chdir(loader.parent)
        patch.setattr(sys, "argv", [str(loader), *words])
        runpy.run_path(str(loader), run_name="__main__")


def test_the_generators_loader_needs_torch_alone(tmp_path: Path) -> None:
    model = small_exportable("generator")
    _, loader = StateDict().write(model, tmp_path / "my model.pt", Config())
    _run_alone_here(loader, "--count", "5", "--seed", "7", "--steps", "3", "--guidance", "2", "--out", "new.png")
    with Image.open(tmp_path / "new.png") as picture:
        assert picture.mode == "RGBA" and picture.size == (8 * 8, 8)
        drawn = np.asarray(picture).reshape(8, 8, 8, 4).swapaxes(0, 1)
    with torch.no_grad():
        *_, x = Generator.draw(model.network, torch.arange(5) % len(CLASS_NAMES), 2.0, 3, seed=7)  # type: ignore[arg-type]
    live = to_rgba(x).numpy()
    assert agreeing(drawn[:5], live) > 0.97
    assert not drawn[5:].any()


def test_the_set_models_loader_completes_characters(tmp_path: Path) -> None:
    weights, loader = StateDict().write(small_exportable("sets"), tmp_path / "heroes.pt", Config())
    _run_alone_here(loader, "--count", "3", "--rounds", "2", "--out", "new.png")  # new characters
    with Image.open(tmp_path / "new.png") as picture:
        assert picture.size == (8 * len(CELLS), 8 * 3) and np.asarray(picture)[..., 3].any()
    front = np.zeros((8, 8, 4), np.uint8)
    front[2:6, 2:6] = [[10, 20, 30, 255], [200, 0, 0, 255], [0, 99, 0, 255], [1, 1, 1, 255]]
    Image.fromarray(front).save(tmp_path / "front.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(loader), "--given", f"{CELLS[0]}={tmp_path}/front.png", "--out", "hero.png"])
        patch.chdir(tmp_path)
        space = runpy.run_path(str(loader), run_name="__main__")
    with Image.open(tmp_path / "hero.png") as picture:
        drawn = np.asarray(picture)
    assert np.array_equal(drawn[:, :8], front) and drawn[:, 8:].any()
    assert {tuple(colour) for colour in drawn.reshape(-1, 4)} <= {tuple(colour) for colour in front.reshape(-1, 4)}
    too_many = torch.arange(256, dtype=torch.uint8).view(1, 1, 8, 8, 4).expand(1, len(CELLS), 8, 8, 4)
    with pytest.raises(ValueError, match="colours; the model takes 15"):
        space["draw_rest"](space["load"](weights), too_many, torch.ones(1, len(CELLS)) > 0)


@pytest.mark.slow
def test_the_classifiers_loader_needs_torch_alone(tmp_path: Path) -> None:
    model = small_exportable("classifier")
    _, loader = StateDict().write(model, tmp_path / "1st.pt", Config())
    assert loader.name == "_1st_loader.py"
    done = _run_alone(loader)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(empty)") and done.stdout.count("%") == 3


def test_the_regressions_loader_knows_the_units(tmp_path: Path) -> None:
    model = small_exportable("regression")
    weights, loader = StateDict().write(model, tmp_path / "prices.pt", Config())
    space = runpy.run_path(str(loader))
    assert space["TARGET_NAMES"] == list(TARGET_NAMES) and "CLASS_NAMES" not in space
    found = space["predict"](space["load"](weights), torch.zeros(1, 8, 8, 4, dtype=torch.uint8))
    # The loader's network is in another memory format: other kernels, other last digits.
    torch.testing.assert_close(found, model.network(-torch.ones(1, 4, 8, 8)))
    saved = torch.load(weights, weights_only=True)
    assert all(torch.equal(saved[name], model.network.get_buffer(name)) for name in ("mean", "deviation"))
    assert saved["mean"][1] > 1000  # how red make_sprites are


def test_the_weights_are_a_plain_state_dict(tmp_path: Path) -> None:
    model = small_exportable("generator")
    path, _ = StateDict().write(model, tmp_path / "model.pt", Config())
    found = torch.load(path, map_location="cpu", weights_only=True)
    assert type(found) in {dict, OrderedDict} and found.keys() == model.network.state_dict().keys()
    assert all(tensor.is_contiguous() and tensor.dtype == torch.float32 for tensor in found.values())


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    model = small_exportable("classifier")
    first, second = (
        StateDict().write(model, tmp_path / f"{name}.pt", Config())[0] for name in ("a", "some other name")
    )
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("model.pt", "model_loader.py"),
        ("2026-11-21 dcss generator.pt", "_2026_11_21_dcss_generator_loader.py"),
        ("剣.pt", "__loader.py"),
    ],
)
def test_a_loader_can_be_imported_by_its_name(name: str, loader: str) -> None:
    assert loader_path(Path("/x") / name) == Path("/x") / loader
    assert loader_path(Path(name)).stem.isidentifier()


def test_the_loader_is_short_and_readable() -> None:
    for recipe in catalog.recipes():
        text = compose_loader(small_exportable(recipe), "model.pt")
        assert len(text.splitlines()) < (550 if recipe == "sets" else 445) and max(map(len, text.splitlines())) <= 120
        assert "# type: ignore" not in text and "# noqa" not in text and "studio." not in text
        assert "weights_only=True" in text and "map_location=device" in text
        compile(text, "loader", "exec")


def test_the_loader_names_the_initial_weights() -> None:
    model = small_exportable("generator")
    assert "Trained from scratch, on its own sprites only." in compose_loader(model, "model.pt")
    text = compose_loader(dataclasses.replace(model, ancestors=[ANCESTOR]), "model.pt")
    assert "Training started from the weights of _starter_ (trained on sprites" in text and '"starter"' not in text
    assert max(map(len, text.splitlines())) <= 120
    compile(text, "loader", "exec")


def test_code_with_other_imports_is_an_error(tmp_path: Path) -> None:
    model = small_exportable("generator")
    leaning = dataclasses.replace(model, portable=(*model.portable, np.fft.fftfreq))
    with pytest.raises(ExportError, match=r"also needs "):
        StateDict().write(leaning, tmp_path / "model.pt", Config())
    assert list(tmp_path.iterdir()) == []
