"""Former names of the plug-in API: a plug-in that was written for version 0.1 still works."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import studio
from studio.cli import main
from studio.cli.messages import DONE
from studio.core import former_names
from studio.core.events import Events
from studio.data.reading.read import all_sources
from studio.engine import catalog
from studio.exports.sprites.formats import sprite_exports
from studio.lab.catalog import experiments
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome
from studio.recipes.base import Recipe
from studio.recipes.capabilities import EditsSprites, Student
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from tests.lab.tools import context_of_run, small_context

OLDER_PLUGINS = Path(__file__).parents[1] / "older_plugins"  # the toy plug-ins as they were for version 0.1

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

USE_OLDER_PLUGINS = """
import sys

from studio.cli import main
from studio.core.generators import run_to_end
from studio.engine.devices.detection import find_device
from studio.lab.catalog import experiments
from studio.lab.experiments.base import ExperimentContext
from toy_plugins.npy import NpySource


def studio(*words):
    sys.argv = ["studio", *map(str, words)]
    assert not main(), words


folder, sprites = sys.argv[1], NpySource().example(Path(sys.argv[1]))
small = ("--recipe", "vae", "--hidden", "16", "--code", "4", "--batch-size", "2")
small = (*small, "--device", "cpu", "--threads", "1", "--precision", "fp32")
studio("train", sprites, *small, "--holdout", "0", "--steps", "2", "--label-drop", "0.5", "--out", f"{folder}/run")
studio("generate", f"{folder}/run", "--count", "2", "--device", "cpu", "--out", f"{folder}/new.npy")
studio("export", f"{folder}/run", "--format", "npz", "--out", f"{folder}/weights.npz")
context = run_to_end(ExperimentContext.of_run(Path(folder, "run"), "last", find_device("cpu"), 1.0))
*_, outcome = experiments()["kernels"].run(context)
print(*outcome.sentences)
"""


@pytest.fixture
def older_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy plug-ins of version 0.1, found in the place of the present ones."""
    catalogs: list[dict[str, Any]] = [catalog.recipes(), catalog.model_exports(), sprite_exports(), experiments()]
    finders: list[Any] = [catalog.recipes, catalog.model_exports, sprite_exports, experiments]
    before = [dict(plugins) for plugins in catalogs]

    def replace_all(new: list[dict[str, Any]]) -> None:
        for plugins, others in zip(catalogs, new, strict=True):
            plugins.clear()
            plugins.update(others)

    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] == "toy_plugins"]:
            patch.delitem(sys.modules, name)
        patch.syspath_prepend(OLDER_PLUGINS)
        with pytest.warns(
            DeprecationWarning, match="Bench is now ExperimentContext; version 0.3 drops the former name."
        ):
            replace_all([find.__wrapped__() for find in finders])
        all_sources.cache_clear()
        yield
        replace_all(before)
        all_sources.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "toy_plugins"]:
            del sys.modules[name]


@pytest.mark.usefixtures("older_plugins")
def test_plugins_of_version_0_1_are_found_and_work(tmp_path: Path) -> None:
    def studio_does(*words: object) -> None:
        assert main([str(word) for word in words]) == DONE, words

    older = importlib.import_module("toy_plugins.npy")
    assert str(OLDER_PLUGINS) in str(older.__file__)
    sprites, run = older.NpySource().example(tmp_path), tmp_path / "run"
    small = ("--recipe", "vae", "--hidden", 16, "--code", 4, "--batch-size", 2, "--device", "cpu", "--threads", 1)
    studio_does("train", sprites, *small, "--holdout", 0, "--steps", 2, "--label-drop", 0.5, "--out", run)
    studio_does("generate", run, "--count", 2, "--device", "cpu", "--out", tmp_path / "new.npy")
    studio_does("export", run, "--format", "npz", "--out", tmp_path / "weights.npz")
    assert (tmp_path / "new.npy").exists() and (tmp_path / "weights.npz").exists()
    outcome = list(experiments()["kernels"].run(context_of_run(run, "last")))[-1]
    assert isinstance(outcome, Outcome) and "A kernel of 5 x 5 takes" in outcome.sentences[0]


@pytest.mark.slow
def test_plugins_of_version_0_1_work_in_a_process_of_their_own(tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (Path(__file__).parents[2], OLDER_PLUGINS)))
    code = f"from pathlib import Path\n{USE_OLDER_PLUGINS}"
    done = subprocess.run(
        [sys.executable, "-W", "default::DeprecationWarning", "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new.npy").exists() and (tmp_path / "weights.npz").exists()
    assert "A kernel of 5 x 5 takes" in done.stdout
    assert "Bench is now ExperimentContext; version 0.3 drops the former name." in done.stderr


@pytest.mark.parametrize(("former", "present"), former_names.MODULES.items())
def test_former_modules_lead_to_present_ones(former: str, present: str) -> None:
    module, names = importlib.import_module(former), vars(importlib.import_module(present))
    for name in [name for name in names if not name.startswith("_")]:
        assert getattr(module, name) is names[name]
    with pytest.raises(AttributeError):
        _ = module.no_such_name


@pytest.mark.parametrize(("module", "names"), former_names.NAMES.items())
def test_former_names_lead_to_present_ones(module: str, names: Mapping[str, str]) -> None:
    paths = [module, *(former for former, present in former_names.MODULES.items() if present == module)]
    for former in names:
        assert any(hasattr(importlib.import_module(path), former) for path in paths)
    with pytest.raises((AttributeError, ImportError)):
        _ = importlib.import_module(module).no_such_name


def test_former_names_warn() -> None:
    sys.modules.pop("studio.data.source_files", None)
    with pytest.warns(DeprecationWarning, match="source_files is now studio.data.files.source_files; version 0.3"):
        module = importlib.import_module("studio.data.source_files")
    with pytest.warns(DeprecationWarning, match="Refused is now UnreadableFile"):
        assert issubclass(module.Refused, Exception)


def test_members_of_a_plugin_may_have_former_names() -> None:
    class Older(Experiment):
        name, plain = "older", "{device} {side}"

        def run(self, bench: ExperimentContext) -> Events:
            yield from ()

        def misfit(self, recipe: Recipe) -> str:
            return f"{recipe.title} is no generator."

        def told(self, bench: ExperimentContext) -> dict[str, object]:
            return {"side": 3}

    assert Older().unsupported_reason(Classifier()) == "Classifier is no generator."
    assert Older().code(small_context()) == "cpu 3"


def test_capabilities_of_a_plugin_may_have_former_names() -> None:
    class Older(Generator):
        can = frozenset({"fill"})

        @staticmethod
        def knows_filling(network: object) -> bool:
            return True

    recipe: Recipe = Older()
    assert recipe.capabilities == {"fill"} and recipe.can == {"fill"}
    assert isinstance(recipe, EditsSprites) and recipe.knows_inpainting(None)


def test_exports_of_a_plugin_read_capabilities_by_the_former_name() -> None:
    assert Generator().can == Generator.capabilities


def test_a_student_of_a_plugin_may_count_strides() -> None:
    class Older(Student):
        @property
        def strides(self) -> int:
            return 4

        def forward(self, x: Tensor, step: int, labels: Tensor) -> Tensor:
            return x

    assert Older().steps == 4  # type: ignore[abstract]


def test_former_names_are_dropped_in_time() -> None:
    """From the version on that they name, MODULES, NAMES, MEMBERS and this file have to go."""
    version, dropped = (tuple(map(int, text.split(".")[:2])) for text in (studio.__version__, former_names.DROPPED_IN))
    assert version < dropped
