"""Sprites on disk, and a run of each recipe trained by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.cli.boundary import DONE
from studio.engine import devices
from studio.exports.png import save_files
from tests.cli.tools import train
from tests.conftest import make_sprites
from tests.engine.tools import CPU


@pytest.fixture(autouse=True)
def _one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probing takes seconds on a busy machine."""
    monkeypatch.setattr(devices, "detect", lambda: (CPU,))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 sprites of 8x8 as files, in two classes."""
    sprites, target = make_sprites(), tmp_path_factory.mktemp("art") / "discs"
    for label, name in enumerate(sprites.class_names):
        save_files(target / name, sprites.rgba[sprites.labels == label])
    return target


def _trained(folder: Path, recipe: str, factory: pytest.TempPathFactory) -> Path:
    run = factory.mktemp("runs") / f"my {recipe}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(factory.mktemp("home")))
        patch.setattr(devices, "detect", lambda: (CPU,))
        assert train(folder, run, recipe) == DONE
    return run


@pytest.fixture(scope="session")
def generator_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator, trained for four steps."""
    return _trained(folder, "generator", tmp_path_factory)


@pytest.fixture(scope="session")
def classifier_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, trained for four steps."""
    return _trained(folder, "classifier", tmp_path_factory)
