"""Sprites on disk, and a run of each recipe trained by the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli import main
from studio.cli.messages import DONE
from studio.engine.devices import detection
from studio.exports.png import save_files
from tests.cli.tools import Said, Studio, training
from tests.conftest import make_sprites
from tests.engine.tools import CPU


@pytest.fixture(autouse=True)
def _one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probing takes seconds on a busy machine."""
    for name in ("probe_devices", "list_devices"):
        monkeypatch.setattr(detection, name, lambda: (CPU,))


@pytest.fixture
def studio(capfd: pytest.CaptureFixture[str]) -> Studio:
    """Run a command, which must end with `code`, and return what it said."""

    def run(*words: object, code: int = DONE) -> Said:
        capfd.readouterr()
        found = main([str(word) for word in words])
        said = Said(*capfd.readouterr())
        assert found == code, said
        return said

    return run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 sprites of 8x8 as files, in two classes."""
    sprites, target = make_sprites(), tmp_path_factory.mktemp("art") / "discs"
    for label, name in enumerate(sprites.class_names):
        save_files(target / name, sprites.rgba[sprites.labels == label])
    return target


@pytest.fixture(scope="session")
def labelled_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with two numbers for each sprite but one: the share of visible pixels, and that in per cent."""
    target = shutil.copytree(folder, tmp_path_factory.mktemp("labelled") / "discs")
    lines = ["file;visible;per cent"]
    for path in sorted(target.rglob("*.png"))[1:]:
        visible = np.asarray(Image.open(path).convert("RGBA"))[..., 3].mean() / 255
        lines.append(f"{path.relative_to(target).as_posix()};{visible:.4f};{100 * visible:.2f}".replace(".", ","))
    (target / "labels.csv").write_text("\n".join(lines).replace(",png", ".png"))
    return target


def _trained(folder: Path, recipe: str, factory: pytest.TempPathFactory) -> Path:
    run = factory.mktemp("runs") / f"my {recipe}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(factory.mktemp("home")))
        patch.setattr(detection, "list_devices", lambda: (CPU,))
        assert main(training(folder, run, recipe)) == DONE
    return run


@pytest.fixture(scope="session")
def generator_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator, trained for four steps."""
    return _trained(folder, "generator", tmp_path_factory)


@pytest.fixture(scope="session")
def classifier_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, trained for four steps."""
    return _trained(folder, "classifier", tmp_path_factory)


@pytest.fixture(scope="session")
def regression_run(labelled_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression, trained for four steps."""
    return _trained(labelled_folder, "regression", tmp_path_factory)


@pytest.fixture(scope="session")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten sheets of characters: two views of two frames, 8x8 each, in five colours."""
    folder, rng = tmp_path_factory.mktemp("art") / "characters", np.random.default_rng(0)
    colours = np.array([[0, 0, 0, 0], [20, 20, 30, 255], [200, 60, 40, 255], [250, 220, 90, 255], [60, 90, 200, 90]])
    for index in (rng.integers(0, 5, (16, 16)) for _ in range(10)):
        index[::8], index[:, ::8] = 0, 0
        save_files(folder, colours[index][None].astype(np.uint8))
    return folder


@pytest.fixture(scope="session")
def sets_run(characters: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of sets, trained for four steps."""
    return _trained(characters, "sets", tmp_path_factory)
