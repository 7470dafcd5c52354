"""The files of an installer, and the record of what is installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import platformdirs
import pytest

from studio.installing import payload
from studio.installing.payload import Installed, Payload, read_installed, write_installed

LOCK = Path(__file__).parents[2] / "requirements.lock"


def test_the_program_folder_lies_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = platformdirs.user_data_path("Sprite Training Studio", appauthor=False)
    assert payload.program_folder() == folder / "program"
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", " ")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    for system, inside in (
        ("linux", ".local/share"),
        ("darwin", "Library/Application Support"),
        ("win32", "AppData/Local"),
    ):
        monkeypatch.setattr(sys, "platform", system)
        assert payload.program_folder() == tmp_path / inside / "Sprite Training Studio" / "program"


def test_another_build_brings_its_own_packages() -> None:
    text = LOCK.read_text(encoding="utf-8")
    kept = payload.without_torch(text)
    names = {line.partition("==")[0] for line in kept.splitlines() if line[:1].isalnum()}
    assert {"numpy", "sympy", "pyside6-essentials"} <= names
    assert not {"torch", "torchvision", "triton", "nvidia-cublas", "cuda-toolkit", "cuda-bindings"} & names
    assert payload.locked_torch(text) == "torch==2.15.0"
    assert all(line in text for line in kept.splitlines())


@pytest.mark.parametrize("damage", ["", "[]", '{"folder": "env-1"}', "\0", None])
def test_a_damaged_record_is_no_installation(tmp_path: Path, damage: str | None) -> None:
    if damage is not None:
        (tmp_path / "installed.json").write_text(damage)
    assert read_installed(tmp_path) is None


def test_an_environment_whose_python_is_gone_is_no_installation(tmp_path: Path) -> None:
    record = Installed("env-1", "1.0", "cpu", "a", "b")
    write_installed(tmp_path, record)
    assert read_installed(tmp_path) is None
    python = payload.environment_python(tmp_path / "env-1")
    python.parent.mkdir(parents=True)
    python.touch()
    assert read_installed(tmp_path) == record


def test_the_files_of_an_installer(tmp_path: Path) -> None:
    found = Payload(tmp_path)
    assert (found.wheels, found.bundled_build, found.bundled_python) == (None, "", "")
    with pytest.raises(FileNotFoundError, match="No wheel"):
        _ = found.wheel
    (tmp_path / "sprite_training_studio-1.2.0-py3-none-any.whl").touch()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "bundle.json").write_text(json.dumps({"build": "cpu", "python": "3.11"}))
    assert (found.version, found.wheels, found.bundled_build) == ("1.2.0", tmp_path / "wheels", "cpu")
