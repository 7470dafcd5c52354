"""The files that an installer carries, and the record of the installed environment.

An installer carries the studio's wheel, requirements.lock and uv, and an offline bundle also a folder of wheels. The
launcher runs from the wheel itself, so its own location leads to the other files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

APP = "Sprite Training Studio"
# PyTorch's and CUDA's packages, whose versions differ between PyTorch builds.
_TORCH_PACKAGES = re.compile(r"^(torch|torchvision|triton|nvidia-[\w-]+|cuda-[\w-]+)==")


@dataclass(frozen=True)
class Payload:
    """The folder of an installer's files."""

    folder: Path

    @property
    def wheel(self) -> Path:
        """The studio's wheel. Raises FileNotFoundError in an incomplete folder."""
        for path in sorted(self.folder.glob("sprite_training_studio-*.whl")):
            return path
        raise FileNotFoundError(f"No wheel of the studio in {self.folder}.")

    @property
    def version(self) -> str:
        """The studio's version, from the wheel's name."""
        return self.wheel.name.split("-")[1]

    @property
    def lock(self) -> Path:
        """The list of packages with versions and hashes."""
        return self.folder / "requirements.lock"

    @property
    def uv(self) -> Path:
        """The program that installs packages."""
        return self.folder / ("uv.exe" if os.name == "nt" else "uv")

    @property
    def start(self) -> Path:
        """The script that starts the launcher in a terminal."""
        return self.folder / ("studio.cmd" if os.name == "nt" else "start")

    @property
    def icon(self) -> Path:
        """The studio's icon, for the window of the first start."""
        return self.folder / "studio.spritetraining.SpriteTrainingStudio.png"

    @property
    def wheels(self) -> Path | None:
        """The folder of wheels in an offline bundle, else None. bundle.json beside it names build and Python."""
        folder = self.folder / "wheels"
        return folder if folder.is_dir() else None

    @property
    def bundled_build(self) -> str:
        """The name of PyTorch's build in an offline bundle, else ''."""
        return self._bundle("build")

    @property
    def bundled_python(self) -> str:
        """The Python version of an offline bundle's wheels, for example '3.11', else ''."""
        return self._bundle("python")

    def _bundle(self, key: str) -> str:
        path = self.folder / "bundle.json"
        return str(json.loads(path.read_bytes())[key]) if path.is_file() else ""


def own_payload() -> Payload:
    """Return the folder of the wheel that this code runs from. Tests set STUDIO_PAYLOAD."""
    chosen = os.environ.get("STUDIO_PAYLOAD")
    return Payload(Path(chosen) if chosen else Path(__file__).resolve().parents[3])


@dataclass(frozen=True)
class Installed:
    """The record of an environment that passed its test. folder: its name in the program folder.

    wheel, lock: SHA-256 of the installed wheel and lock.
    """

    folder: str
    version: str
    build: str
    wheel: str
    lock: str

    def is_current(self, payload: Payload) -> bool:
        """Return whether this environment has the payload's studio and packages."""
        return (self.wheel, self.lock) == (sha256(payload.wheel), sha256(payload.lock))


def program_folder() -> Path:
    """Return the folder of environments, cached wheels and the installation log, inside the user's data folder.

    Runs and settings lie beside this folder, and stay when it is deleted.
    """
    return data_folder() / APP / "program"


def data_folder() -> Path:
    """Return the folder that platformdirs calls the user's data folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    chosen = os.environ.get("XDG_DATA_HOME", "")
    return Path(chosen) if chosen.strip() else Path.home() / ".local" / "share"


def read_installed(program: Path) -> Installed | None:
    """Return the record of the installed environment; None without an environment or without its Python."""
    try:
        values = json.loads((program / "installed.json").read_bytes())
        installed = Installed(**{field.name: str(values[field.name]) for field in dataclasses.fields(Installed)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return installed if environment_python(program / installed.folder).exists() else None


def write_installed(program: Path, installed: Installed) -> None:
    """Write the record atomically: from now on the launcher starts this environment."""
    temporary = program / "installed.json.new"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(installed), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(program / "installed.json")


def environment_python(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def python_version() -> str:
    """Return the running Python's version, without the patch number: '3.11'."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def extended_path(text: str) -> str:
    """Return an absolute Windows path in the form that has no limit of 260 characters."""
    if text.startswith("\\\\?\\"):
        return text
    return f"\\\\?\\UNC\\{text[2:]}" if text.startswith("\\\\") else f"\\\\?\\{text}"


def delete_folder(folder: Path) -> None:
    """Delete a folder, also with very long paths. Files in use stay."""
    shutil.rmtree(extended_path(str(folder.absolute())) if os.name == "nt" else folder, ignore_errors=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def without_torch(lock: str) -> str:
    """Return a lock without the packages of PyTorch's build, for builds that bring their own."""
    kept, skipping = [], False
    for line in lock.splitlines(keepends=True):
        if not line.startswith((" ", "\t")):
            skipping = bool(_TORCH_PACKAGES.match(line))
        if not skipping:
            kept.append(line)
    return "".join(kept)


def locked_torch(lock: str) -> str:
    """Return the requirement of torch in a lock, such as 'torch==2.15.0'."""
    found = re.search(r"^torch==[\w.]+", lock, re.MULTILINE)
    return found[0] if found else "torch"
