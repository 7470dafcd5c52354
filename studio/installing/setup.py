"""The questions and texts of the first start, for the window and for the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Literal

from studio.installing import environment, torch_builds
from studio.installing.environment import Progress
from studio.installing.payload import APP, Installed, Payload, delete_folder, python_version, read_installed
from studio.installing.torch_builds import Build, Computer

Answer = Literal["installed", "later", "closed"]  # later: start the older version
INSTALLED: Answer = "installed"
LATER: Answer = "later"
CLOSED: Answer = "closed"


class Setup:
    """The installation that is offered to the user.

    repair: fetch every package again. problem: why the studio can't start, or ''. wanted: the name of a build, or ''.
    """

    def __init__(
        self,
        payload: Payload,
        program: Path,
        computer: Computer,
        *,
        repair: bool = False,
        problem: str = "",
        wanted: str = "",
    ) -> None:
        self.payload, self.program, self.repair, self.problem = payload, program, repair, problem
        self._wanted = wanted
        self.installed: Installed | None = read_installed(program)
        self._choice = torch_builds.choose(computer)
        every = torch_builds.builds(computer.system, computer.machine)
        bundled = payload.bundled_build
        self.builds = tuple(build for build in every if bundled in ("", build.name))

    @property
    def verb(self) -> str:
        """'Set up', 'Update' or 'Repair'."""
        return "Repair" if self.repair else "Update" if self._is_update else "Set up"

    @property
    def title(self) -> str:
        """The verb, the name and the version."""
        return f"{self.verb} {APP} {self.payload.version}"

    @property
    def suggested(self) -> Build | None:
        """The build chosen for this computer; in an update the installed build. None if no build fits."""
        names = [build.name for build in self.builds]
        chosen = self._choice.build.name if self._choice else ""
        wanted = self._wanted or (self.installed.build if self.installed else chosen)
        return self.builds[names.index(wanted) if wanted in names else 0] if self.builds else None

    @property
    def advice(self) -> str:
        """Why the build was chosen, and what makes PyTorch use the graphics card."""
        return f"{self._choice.reason} {self._choice.remedy}".strip() if self._choice else ""

    @property
    def older_version(self) -> str:
        """The version that can start without this update, else ''."""
        return self.installed.version if self.installed and self._is_update and not self.repair else ""

    @property
    def _is_update(self) -> bool:
        return self.installed is not None and not self.installed.is_current(self.payload)

    def why_not(self, build: Build | None) -> str:
        """Return a sentence that says why the set-up can't work on this computer; '' if it can."""
        if build is None:
            return "PyTorch has no build for this system."
        python = self.payload.bundled_python
        if python and python != python_version():
            return f"This bundle is for Python {python}; this computer has Python {python_version()}."
        needed, free = environment.disk_needed(self.program, build), environment.disk_free(self.program)
        if needed > free:
            return f"The disk is too full: {gigabytes(free)} are free, {gigabytes(needed)} are needed."
        return ""

    def describe(self, build: Build) -> str:
        """Say how much is fetched from where, and how much disk space is needed and free."""
        needed = build.disk if self.repair else environment.disk_needed(self.program, build)
        fetched = build.download * needed // build.disk
        free = f"{gigabytes(environment.disk_free(self.program))} are free"
        space = f"The disk needs {gigabytes(needed)} in {self.program}; {free}."
        if self.payload.wheels:
            return f"Nothing is fetched: this bundle has all packages. {space}"
        if self.installed and not self.repair and build.name == self.installed.build:
            return f"At most {gigabytes(fetched)} are fetched from the Python package index, often nothing. {space}"
        index = "the Python package index" if build.on_index else "PyTorch's index and the Python package index"
        return f"About {gigabytes(fetched)} are fetched from {index}. {space}"

    def run(self, build: Build) -> Generator[Progress, None, None]:
        """Install; yields Progress, raises InstallError."""
        return environment.install(self.payload, build, self.program, afresh=self.repair)

    @property
    def log_path(self) -> Path:
        """The file with the output of the last installation."""
        return environment.log_file(self.program)

    def log(self) -> str:
        """Return the output of the last installation."""
        try:
            return self.log_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def gigabytes(size: int) -> str:
    """Format a size: '3.2 GB'."""
    return f"{size / 10**9:.1f} GB"


def uninstall(program: Path) -> None:
    """Delete environments, cached wheels and the log. Runs and settings stay.

    The files of the self-extracting installer go last: an interrupted uninstall can be repeated.
    """
    with contextlib.suppress(OSError):
        (program / "installed.json").unlink()
    for folder in (program / "cache", *program.glob("env-*"), program):
        delete_folder(folder)
