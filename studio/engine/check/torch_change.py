"""The commands that install another build of PyTorch into the studio's environment."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from studio.engine.check.computer_part import locked_versions
from studio.installing.torch_builds import Build, builds


def available_builds() -> tuple[Build, ...]:
    """Return the builds of PyTorch for this system, the usual build first."""
    return builds(platform.system(), platform.machine())


def change_commands(name: str) -> list[list[str]]:
    """Return the commands that install a build of PyTorch, as words. name: of the build. Empty: an unknown build."""
    build = next((each for each in available_builds() if each.name == name), None)
    return [] if build is None else commands_for(build, sys.executable, _uv(), locked_versions().get("torch", ""))


def commands_for(build: Build, python: str, uv: Sequence[str], locked: str) -> list[list[str]]:
    """Return the commands that install `build` into the environment of `python`.

    uv: the words that start uv; empty if it is missing, then the first command installs it. locked: version of torch in
    the lock, or ''.
    """
    commands = [] if uv else [[python, "-m", "pip", "install", "uv"]]
    install = [*(uv or (python, "-m", "uv")), "pip", "install", "--python", python]
    torch = f"torch=={locked}" if locked and build.torch == "torch" else build.torch
    backend = [] if build.on_index else ["--torch-backend", build.name]
    replaced = ["--reinstall-package", "torch", "--reinstall-package", "torchvision"]
    return [*commands, [*install, *backend, *replaced, torch, "torchvision"]]


def _uv() -> list[str]:
    """Return the words that start uv: from the environment, or from PATH; empty if uv is missing."""
    if importlib.util.find_spec("uv") is not None:
        return [sys.executable, "-m", "uv"]
    beside = Path(sys.executable).with_name("uv")
    return [str(beside)] if beside.exists() else ["uv"] if shutil.which("uv") else []
