"""A training script: short, of the studio's own sources, reads what the studio reads, and is checked."""

from __future__ import annotations
import __future__

import ast
import csv
import dataclasses
import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from studio.core import files
from studio.core.config import Config
from studio.core.errors import ExportError
from studio.data.attributes.attributes import Attributes
from studio.data.store import packed
from studio.engine import catalog
from studio.engine.models.exporting import exportable_copy
from studio.engine.runs.split import split_by_group
from studio.exports.base import ExportableModel, TrainingCode
from studio.exports.script import Script
from studio.exports.scripts.compose import as_python, compose_cells, weights_path
from studio.exports.source_code import first_paragraphs
from tests.conftest import make_sprites, with_numbers
from tests.exports.tools import ANCESTOR, read_back, small_exportable, small_model, small_model_with_attributes

pytestmark = pytest.mark.usefixtures("made_once")
MOST_LINES = {"generator": 614, "autoencoder": 476, "sets": 705}  # of code; 330 of any other


def _text(model: ExportableModel, target: Path = Path("trial.py")) -> str:
    return as_python(compose_cells(model, target))


def _code_lines(text: str) -> int:
    """Lines that are not empty, comments or docstrings."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            docs |= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in docs for number, line in lines)


def _trained(model: ExportableModel, **changes: Any) -> ExportableModel:
    """The same model, trained otherwise."""
    return dataclasses.replace(model, training=dataclasses.replace(model.training, **changes))


def _of_a_run(recipe: str, **changes: Any) -> ExportableModel:
    """A model of a run of so few sprites that its statistics are of all, with other settings."""
    model = small_exportable(recipe)
    portable = tuple(item for item in model.training.portable if item.__name__ != "subsample")
    return _trained(model, config=model.training.config.replace(**changes), portable=portable)


LONGEST = {"optimizer": "muon", "shift_px": 2, "flip": True, "threads": 2}


@pytest.mark.parametrize(
    "changes", [{}, {"optimizer": "adamw"}, {"optimizer": "adam"}, LONGEST], ids=["default", "adamw", "adam", "longest"]
)
@pytest.mark.parametrize("recipe", catalog.recipes())
def test_it_is_short_and_readable(recipe: str, changes: dict[str, Any]) -> None:
    text = _text(_of_a_run(recipe, **changes))
    assert _code_lines(text) <= MOST_LINES.get(recipe, 330) and max(map(len, text.splitlines())) <= 120
    assert "# type: ignore" not in text and "# noqa" not in text and "studio." not in text.replace("the studio.", "")
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    has_convolutions = "Conv2d" in text
    assert ("Muon" in text) == (
        changes.get("optimizer", "muon") == "muon" and has_convolutions
    )  # no more than the run used
    assert {"torch", "numpy", "PIL"} <= imported and not imported & {"studio", "safetensors", "torchvision"}


@pytest.mark.parametrize("recipe", ["generator", "classifier"])
def test_attributes_add_few_lines(recipe: str) -> None:
    text = _text(exportable_copy(small_model_with_attributes(recipe)))
    assert _code_lines(text) <= MOST_LINES.get(recipe, 330) + 50 and max(map(len, text.splitlines())) <= 120
    assert "def loss(network" in text and "_attribute_loss" not in text


def test_it_reads_the_attributes_of_the_run(tmp_path: Path) -> None:
    sprites = make_sprites(2)
    table = np.array([[0, -1], [1, 0], [-1, -1], [1, -1]], np.int16)
    tagged = dataclasses.replace(sprites, attributes=Attributes(("element", "x"), (("fire", "ice"), ("small",)), table))
    packed.save(tagged, tmp_path / "data.safetensors")
    target = tmp_path / "trial.py"
    script = Script().write(exportable_copy(small_model_with_attributes("classifier")), target, Config())[0]
    run = runpy.run_path(str(script))
    expected = [[3, -1], [4, 5], [-1, -1], [4, -1]]  # after three classes
    assert run["read_run"](tmp_path / "data.safetensors").targets.tolist() == expected
    rows = [["file", "class", "element", "x"]]
    for number, (rgba, element) in enumerate(zip(sprites.rgba, ("fire", "ice", "", "ice"), strict=True)):
        Image.fromarray(rgba).save(tmp_path / f"{number}.png")
        rows.append([f"{number}.png", "item/sword", element, "small" if number == 1 else ""])
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    found = run["read_folder"](tmp_path)
    assert found.targets.tolist() == expected and np.array_equal(found.rgba, sprites.rgba)


@pytest.mark.parametrize("recipe", catalog.recipes())
def test_the_notebook_has_the_same_cells(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_exportable(recipe)
    script, notebook, _ = Script().write(model, tmp_path / "trial.py", Config())
    book = json.loads(notebook.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 4)
    kernel = types.ModuleType("kernel")
    monkeypatch.setitem(sys.modules, "kernel", kernel)  # where dataclasses look for their module
    flags = 0
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert source in script.read_text("utf-8")
            exec(compile(source, "cell", "exec", flags, dont_inherit=True), vars(kernel))
            flags = __future__.annotations.compiler_flag  # which a notebook keeps
    monkeypatch.chdir(tmp_path)  # there a notebook looks for what is beside it
    for name, weight in kernel.load_trained().state_dict().items():
        assert torch.equal(weight, model.weights()[name])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A run's sprites, in groups of two."""
    sprites = with_numbers(make_sprites(per_class=20))
    groups = np.arange(len(sprites)) // 2
    packed.save(dataclasses.replace(sprites, groups=groups, is_test=groups > 15), tmp_path / "data.safetensors")
    return tmp_path / "data.safetensors"


@pytest.mark.parametrize("recipe", ["generator", "regression"])
def test_it_reads_the_runs_sprites_and_holds_out_the_same(recipe: str, data: Path, tmp_path: Path) -> None:
    model = small_exportable(recipe)
    config = model.training.config.replace(holdout=0.3, seed=5)
    script = Script().write(_trained(model, data=data, config=config), tmp_path / "exports/trial.py", Config())[0]
    assert "DATA = HERE / '../data.safetensors'" in script.read_text("utf-8")  # the run may be moved
    run, sprites = runpy.run_path(str(script)), packed.load(data)
    found = run["read_run"](run["DATA"])
    for name in ("rgba", "labels", "targets", "groups", "is_test"):
        assert np.array_equal(getattr(found, name), getattr(sprites, name)), name
    assert (found.class_names, found.target_names) == ([*sprites.class_names], [*sprites.target_names])
    assert np.array_equal(run["training_indices"](found), split_by_group(sprites, 0.3, 5).training)


def test_a_staged_script_names_the_data_from_its_final_folder(data: Path, tmp_path: Path) -> None:
    with files.staged(tmp_path / "exports" / "trial.py") as draft:
        assert "DATA = HERE / '../data.safetensors'" in _text(
            _trained(small_exportable("regression"), data=data), draft
        )


def test_elsewhere_it_names_the_whole_path(data: Path) -> None:
    text = _text(_trained(small_exportable("generator"), data=data), data.parent.parent / "trial.py")
    assert f"DATA = Path({str(data)!r})" in text


def test_it_reads_folders_of_classes(tmp_path: Path) -> None:
    sprites = make_sprites(per_class=2)
    for rgba, name in zip(sprites.rgba, sprites.names, strict=True):
        (tmp_path / "sprites" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.pad(rgba, ((3, 3), (3, 3), (0, 0)))).save(tmp_path / "sprites" / name)
    script = Script().write(small_exportable("classifier"), tmp_path / "trial.py", Config())[0]
    run = runpy.run_path(str(script))
    found = run["read_folder"](run["DATA"])
    assert np.array_equal(found.rgba, sprites.rgba) and np.array_equal(found.labels, sprites.labels)
    assert found.class_names == [*sprites.class_names] and len(set(found.groups.tolist())) == 4


def test_it_reads_numbers_beside_pictures(tmp_path: Path) -> None:
    sprites = make_sprites(per_class=1)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["file", "price", "size"], ["b.png", "2.5", ""], ["a.png", "1", "7"]])
    for name, rgba in zip(("a.png", "b.png"), sprites.rgba, strict=True):
        Image.fromarray(rgba).save(tmp_path / name)
    run = runpy.run_path(str(Script().write(small_exportable("regression"), tmp_path / "trial.py", Config())[0]))
    found = run["read_folder"](tmp_path)
    assert np.array_equal(found.rgba, sprites.rgba[::-1]) and found.target_names == ["price", "size"]
    np.testing.assert_array_equal(found.targets, np.array([[2.5, np.nan], [1, 7]], np.float32))


@pytest.mark.slow
def test_a_script_with_another_loss_is_an_error(tmp_path: Path) -> None:
    model, form = small_exportable("vae"), Script()
    paths = form.write(model, tmp_path / "trial.py", Config())
    honest = model.training.loss
    other = _trained(model, loss=lambda *inputs: 1.01 * honest(*inputs))
    with pytest.raises(ExportError, match="does not train like the studio"):
        read_back(form, paths, other, Config())


@pytest.mark.slow
@pytest.mark.parametrize("time_mean", [-5.0, -1.2])  # the first as in a run of an older version
def test_the_script_trains_at_the_noise_focus_of_the_run(time_mean: float, tmp_path: Path) -> None:
    model, form = small_model(catalog.recipe("generator")), Script()
    exportable = exportable_copy(dataclasses.replace(model, config=model.config.replace(time_mean=time_mean)))
    paths = form.write(exportable, tmp_path / "trial.py", Config())
    assert read_back(form, paths, exportable, Config()).isfinite().all()  # raises if the losses differ


@pytest.mark.slow
def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    model, form = small_exportable("vae"), Script()
    paths = form.write(model, tmp_path / "trial.py", Config())
    whole = weights_path(paths[0]).read_bytes()
    weights_path(paths[0]).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExportError, match="does not run"):
        read_back(form, paths, model, Config())


def test_the_script_states_differences_from_the_run() -> None:
    model = dataclasses.replace(small_exportable("generator"), ancestors=[ANCESTOR])
    text = _text(model)
    assert "started from the weights of _starter_" in text and "This script starts from random weights" in text
    assert "had a time limit and took 123 steps" in text and "steps: int = 123" in text
    of_steps = _text(_trained(model, config=model.training.config.replace(steps=40)))
    assert "time limit" not in of_steps and "steps: int = 40" in of_steps


def test_only_the_first_paragraphs_of_docstrings_stay() -> None:
    code = 'def f():\n    """One\n    more.\n\n    Two.\n    """\n    return 1\n\ndef g():\n    """One."""\n'
    assert (
        first_paragraphs(code) == 'def f():\n    """One\n    more.\n    """\n    return 1\n\ndef g():\n    """One."""'
    )


def test_training_code_contains_the_recipes_functions() -> None:
    training: TrainingCode = small_exportable("regression").training
    names = {item.__name__ for item in training.portable}
    assert {"loss", "arguments", "statistics", "subsample"} <= names
    assert "statistics" not in {item.__name__ for item in small_exportable("classifier").training.portable}
