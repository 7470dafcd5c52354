"""Build the environment: PyTorch, the other packages and the studio, in a new folder that replaces the old one at last.

`install` is a generator of `Progress`. Close the generator to cancel: the unfinished environment is deleted, fetched
wheels stay in uv's cache. The environment in use stays until the new environment has passed its test.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from studio.installing import failures, locks
from studio.installing.payload import (
    Installed,
    Payload,
    delete_folder,
    environment_python,
    locked_torch,
    read_installed,
    sha256,
    without_torch,
    write_installed,
)
from studio.installing.torch_builds import Build

SELF_TEST = """\
import torch, torchvision
from PySide6 import QtSvg, QtWidgets
import studio.app.launch
assert float(torch.ones(2).sum()) == 2
print("PyTorch", torch.__version__)
"""
_ENVIRONMENT = "env-"  # names of environments in the program folder begin with this


@dataclass(frozen=True)
class Progress:
    """One look at the installation. text: the present step; share: of the whole, 0 to 1."""

    text: str
    share: float


class InstallError(Exception):
    """A failed installation. str(): one sentence for the user."""


def log_file(program: Path) -> Path:
    """Return the file with the complete output of the last installation."""
    return program / "install.log"


def disk_needed(program: Path, build: Build) -> int:
    """Return the bytes that an installation adds to the disk: less if the cache has wheels of an earlier attempt."""
    installed = read_installed(program)
    if installed and installed.build != build.name:  # the cache has another PyTorch
        return build.disk
    return max(build.disk - folder_size(program / "cache"), build.disk // 10)


def disk_free(program: Path) -> int:
    """Return the free bytes of the disk that holds, or will hold, the program folder."""
    existing = next(folder for folder in (program, *program.parents) if folder.is_dir())
    return shutil.disk_usage(existing).free


def install(payload: Payload, build: Build, program: Path, *, afresh: bool = False) -> Generator[Progress, None, None]:
    """Build and test a new environment, then make it the installed one. Raises InstallError.

    afresh: delete the cache first and fetch every package again, to repair damaged files.
    """
    try:
        program.mkdir(parents=True, exist_ok=True)
        with locks.exclusive(program / "lock") as lock, log_file(program).open("w", encoding="utf-8") as log:
            delete_unused(program)
            if afresh:
                yield Progress("Deleting damaged files", 0)
                delete_folder(program / "cache")
            yield from _Installation(payload, build, program, log, lock).run()
            delete_unused(program)
    except locks.LockedError:
        raise InstallError("Another set-up is running: wait until it has finished.") from None
    except OSError as error:
        raise InstallError(failures.explain(f"{error.strerror}\n{error}", "The set-up failed")) from None


class _Installation:
    """One attempt to build an environment. `run` yields Progress."""

    def __init__(self, payload: Payload, build: Build, program: Path, log: IO[str], lock: int) -> None:
        self._payload, self._build, self._program, self._log = payload, build, program, log
        self._inherited = () if os.name == "nt" else (lock,)
        self._folder = program / f"{_ENVIRONMENT}{secrets.token_hex(4)}"
        self._needed = disk_needed(program, build)
        self._free = disk_free(program)
        self._share = 0.0

    def run(self) -> Generator[Progress, None, None]:
        """Build the environment. Deletes the unfinished folder after an error and when the generator is closed."""
        if self._free < self._needed:
            free, needed = (f"{size / 10**9:.1f} GB" for size in (self._free, self._needed))
            raise InstallError(f"The disk is too full: {free} are free, {needed} are needed in {self._program}.")
        try:
            yield from self._steps()
            files = (sha256(self._payload.wheel), sha256(self._payload.lock))
            record = Installed(self._folder.name, self._payload.version, self._build.name, *files)
            write_installed(self._program, record)
        except BaseException:
            delete_folder(self._folder)
            delete_unfinished_downloads(self._program)
            raise

    def _steps(self) -> Generator[Progress, None, None]:
        # The resolved path has the version in its name: a link to a Python that is gone later leads nowhere.
        python = os.path.realpath(sys.executable)
        yield from self._call("Creating the environment", self._uv("venv", "--python", python, self._folder))
        installed = read_installed(self._program)
        if installed and installed.lock == sha256(self._payload.lock):  # the cache may have all packages
            try:
                yield from self._packages("--offline")
            except InstallError:
                yield from self._packages()
        else:
            yield from self._packages()
        yield from self._call("Installing the studio", self._pip("--no-deps", self._payload.wheel))
        self._share = 0.95
        yield from self._call("Testing", [environment_python(self._folder), "-I", "-c", SELF_TEST])

    def _packages(self, *options: str) -> Generator[Progress, None, None]:
        """Install the locked packages, and PyTorch from its own index if the package index lacks the build."""
        lock = self._payload.lock.read_text(encoding="utf-8")
        chosen = self._folder / "requirements.lock"
        chosen.write_text(lock if self._build.on_index else without_torch(lock), encoding="utf-8")
        hashed = self._pip(*options, "--no-deps", "--require-hashes", "--requirement", chosen)
        yield from self._call("Fetching packages", hashed)
        if not self._build.on_index:
            torch = locked_torch(lock) if self._build.torch == "torch" else self._build.torch
            backend: list[str] = [] if self._payload.wheels else ["--torch-backend", self._build.name]
            yield from self._call("Fetching PyTorch", self._pip(*options, *backend, torch, "torchvision"))

    def _pip(self, *words: str | Path) -> list[str | Path]:
        wheels = self._payload.wheels
        source: list[str | Path] = ["--offline", "--no-index", "--find-links", wheels] if wheels else []
        python = environment_python(self._folder)
        return self._uv("pip", "install", "--python", python, "--compile-bytecode", *source, *words)

    def _uv(self, *words: str | Path) -> list[str | Path]:
        return [self._payload.uv, *words]

    def _call(self, step: str, command: Sequence[str | Path]) -> Generator[Progress, None, None]:
        """Run a command with its output in the log, and yield Progress ten times a second. Kills it when closed."""
        self._log.write(f"$ {' '.join(map(str, command))}\n")
        self._log.flush()
        start = self._log.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=_process_environment(self._program),
            cwd=self._program,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            pass_fds=self._inherited,
        )
        try:
            while process.poll() is None:
                yield Progress(step_text(step, self._output(start)), self._progress())
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        finally:
            _stop(process)
        if process.returncode:
            raise InstallError(failures.explain("\n".join(self._output(start)), f"{step} failed"))

    def _output(self, start: int) -> list[str]:
        """Return the lines that the running command has written to the log."""
        with log_file(self._program).open("rb") as file:
            file.seek(start)
            return file.read().decode("utf-8", "replace").splitlines()

    def _progress(self) -> float:
        """Return the share of the needed bytes that the disk has lost; never less than before, at most 0.95."""
        written = (self._free - disk_free(self._program)) / max(1, self._needed)
        self._share = max(self._share, min(written, 0.95))
        return self._share


def step_text(step: str, output: Sequence[str]) -> str:
    """Describe a running step by the last line of its output."""
    last = output[-1].strip() if output else ""
    if last.startswith("Installed "):  # uv is silent while it compiles, for a minute or two
        return "Compiling packages, for fast starts"
    return f"{step}: {last}" if last else step


def delete_unused(program: Path) -> None:
    """Delete old environments and unfinished downloads. An environment with a running studio stays."""
    delete_unfinished_downloads(program)
    installed = read_installed(program)
    for folder in program.glob(f"{_ENVIRONMENT}*"):
        if (installed is None or folder.name != installed.folder) and not locks.is_held(folder / "in-use"):
            delete_folder(folder)


def delete_unfinished_downloads(program: Path) -> None:
    """Delete the gigabytes that uv leaves in its cache when it is killed. Whole files stay."""
    for folder in (program / "cache").glob(".tmp*"):
        delete_folder(folder)


def _process_environment(program: Path) -> dict[str, str]:
    """Return the environment variables of uv. Proxies and the user's own index stay."""
    foreign = ("PYTHON", "PIP_", "VIRTUAL_ENV", "CONDA_")
    own = {
        "UV_CACHE_DIR": str(program / "cache"),
        # On a slow line, many downloads at once time out.
        "UV_CONCURRENT_DOWNLOADS": os.environ.get("UV_CONCURRENT_DOWNLOADS", "4"),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_SYSTEM_CERTS": "1",  # firewalls of companies bring certificates of their own
        "QT_QPA_PLATFORM": "offscreen",  # for the self-test
    }
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | own


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder; 0 without the folder. A file with several names counts once."""
    sizes = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(place, name))  # noqa: PTH118
                sizes[found.st_dev, found.st_ino or (place, name)] = found.st_size
    return sum(sizes.values())
