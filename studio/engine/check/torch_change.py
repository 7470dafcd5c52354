"""Commands to change the build of PyTorch: with the installer's launcher, otherwise with uv."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from studio.engine.check.computer_part import locked_versions
from studio.installing.payload import Payload
from studio.installing.torch_builds import Build, builds


def available_builds() -> tuple[Build, ...]:
    """Return the builds of PyTorch for this system, the usual build first. An offline bundle has a single build."""
    start = launcher()
    bundled = Payload(start.parent).bundled_build if start else ""
    return tuple(each for each in builds(platform.system(), platform.machine()) if bundled in ("", each.name))


def launcher() -> Path | None:
    """Return the installer's script `start` for this studio; None without an installer."""
    start = Path(os.environ.get("STUDIO_LAUNCHER", ""))
    return start if start.is_file() else None


def setup_command(name: str) -> list[str]:
    """Return the command that opens the launcher's window for a build; empty without a launcher."""
    start = launcher()
    if start is None:
        return []
    if sys.platform == "win32":  # the script would open a console
        words = [str(Path(sys.base_prefix) / "pythonw.exe"), "-I", str(start.with_name("start.pyw"))]
    else:
        words = [str(start)]
    return [*words, "--setup", "--torch", name]


def change_commands(name: str) -> list[list[str]]:
    """Return the commands for the build `name` of PyTorch, as words; empty for an unknown build."""
    build = next((each for each in available_builds() if each.name == name), None)
    if build is None:
        return []
    if start := launcher():
        return [[str(start), "--setup", "--torch", name]]
    return commands_for(build, sys.executable, _uv(), locked_versions().get("torch", ""))


def commands_for(build: Build, python: str, uv: Sequence[str], locked: str) -> list[list[str]]:
    """Return the commands for installing `build` into the environment of `python`.

    uv: the words that start uv; if empty, the first command installs uv. locked: torch's version in the lock file, or
    ''.
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
