"""The part of the system check without torch: Python, packages, memory, disks, folders, locks and runs."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

import studio
from studio.core import file_systems, limits, paths
from studio.core.errors import RunError
from studio.core.events import Event, Progress
from studio.core.formatting import count, memory
from studio.engine.check.findings import Finding, State
from studio.engine.runs import listing
from studio.engine.runs.folder import LOCK_FILES

_DISTRIBUTION = "sprite-training-studio"
_LOCK_NAME = "requirements.lock"
_GB = 10**9
_AGAIN = "repair the studio, or install it again: see the guide's Install."
_MOST_NAMED = 6  # packages in a finding
# Bytes: below the first a notice, below the second a problem.
_FREE_DISK = (5 * _GB, _GB // 2)
_FREE_MEMORY = (3 * _GB // 2, _GB // 2)


def check_computer() -> Iterator[Event]:
    """Check the computer without importing torch. Yields Finding and Progress."""
    yield Progress(0, 0, "Python and packages")
    yield python_finding(platform.python_version(), is_64_bit=sys.maxsize > 2**32)
    yield packages_finding(installed_versions(), requirements(), locked_versions())
    yield memory_finding(limits.usable_memory())
    for title, folder in _folders():
        yield Progress(0, 0, title.lower())
        yield from folder_findings(title, folder)
    yield Progress(0, 0, "runs and locks")
    yield runs_finding()


def python_finding(version: str, *, is_64_bit: bool) -> Finding:
    """Return the finding about Python. Versions too old for the studio don't get here."""
    text = f"{version} on {platform.system()} ({platform.machine()}); studio {studio.__version__}."
    if is_64_bit:
        return Finding("python", "Python", "good", text)
    advice = "Install a 64-bit Python, then install the studio anew."
    return Finding("python", "Python", "problem", f"{text} PyTorch needs 64 bits.", advice, prevents_training=True)


def packages_finding(
    installed: Mapping[str, str], required: Iterable[Requirement], locked: Mapping[str, str]
) -> Finding:
    """Compare installed packages with the studio's requirements and lock file. Keys: names normalised by `_normal`."""
    needed = [each for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    unfit = [f"{each.name} is missing" for each in needed if _normal(each.name) not in installed]
    unfit += [
        f"{each.name} {version} is not {each.specifier}"
        for each in needed
        if (version := installed.get(_normal(each.name))) and not each.specifier.contains(version, prereleases=True)
    ]
    if unfit:
        words = f"{_some(unfit)}."
        return Finding("packages", "Packages", "problem", words, f"Please {_AGAIN}")
    others = [
        f"{name} {version} (lock: {locked[name]})"
        for name, version in installed.items()
        if name in locked and Version(version).public != Version(locked[name]).public
    ]
    if others:
        words = f"Other versions than in {_LOCK_NAME}, which is what was tested: {_some(others)}."
        return Finding("packages", "Packages", "notice", words, f"If something fails, {_AGAIN}")
    lock = f" and equal {_LOCK_NAME}" if locked else ""
    return Finding("packages", "Packages", "good", f"All fit the studio's requirements{lock}.")


def requirements() -> list[Requirement]:
    """Return the studio's requirements from the metadata of the installation."""
    try:
        return [Requirement(line) for line in metadata.requires(_DISTRIBUTION) or []]
    except metadata.PackageNotFoundError:  # run from a folder without an installation
        return []


def locked_versions() -> dict[str, str]:
    """Return the versions in requirements.lock that apply here; empty if the installation has no lock.

    The launcher leaves the lock of an environment in its folder; a clone has the lock beside the assets.
    """
    for folder in (Path(sys.prefix), paths.assets().parent):
        try:
            return parse_lock((folder / _LOCK_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
    return {}


def parse_lock(text: str) -> dict[str, str]:
    """Return the versions by package in the text of a lock, without packages for other systems. Raises ValueError."""
    found = {}
    for line in text.splitlines():
        if line[:1].isalnum():
            item = Requirement(line.removesuffix("\\"))
            if item.marker is None or item.marker.evaluate():
                found[_normal(item.name)] = next(iter(item.specifier)).version
    return found


def installed_versions() -> dict[str, str]:
    """Return the versions of installed packages, by name normalised with `_normal`."""
    return {_normal(each.metadata["Name"] or ""): each.version for each in metadata.distributions()}


def memory_finding(found: limits.Memory) -> Finding:
    """Return the finding about main memory."""
    text = f"{memory(found.free_bytes, found.total_bytes)} free. {count(limits.usable_cpus(), 'core')}."
    state = _state(found.free_bytes, _FREE_MEMORY)
    return Finding("memory", "Memory", state, text, "Close other programs." if state != "good" else "")


def folder_findings(title: str, folder: Path) -> Iterator[Finding]:
    """Yield findings about the permissions, the file system and the free space of a folder."""
    is_runs = title == "Runs folder"
    existing = next(parent for parent in (folder, *folder.parents) if os.path.lexists(parent))
    elsewhere = "Choose another folder under Edit > Settings." if is_runs else "Set STUDIO_HOME to another folder."
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
        free_bytes = shutil.disk_usage(existing).free
    except OSError as error:
        text = f"It can't be written: {error.strerror or error}."
        yield Finding("folder", title, "problem", text, elsewhere, prevents_training=is_runs)
        return
    state, text = _state(free_bytes, _FREE_DISK), f"Writable, {memory(free_bytes)} free."
    if state != "good":
        elsewhere = f"Free some space: 'studio free' lists what can be deleted. {elsewhere * is_runs}".strip()
        yield Finding("folder", title, state, text, elsewhere)
    elif lacking := file_systems.limitations(existing):
        yield Finding("folder", title, "notice", f"{text} {lacking}", elsewhere)
    else:
        yield Finding("folder", title, "good", text)


def runs_finding() -> Finding:
    """Return the finding about the runs: interrupted or damaged runs, and locks that no program holds."""
    title = "Runs and locks"
    try:
        runs = [listing.summarise(path) for path in listing.run_folders(listing.remembered_runs())]
    except RunError:
        return Finding("runs", title, "problem", "The runs folder can't be read.", "Check its drive and permissions.")
    counts = {name: sum(run.standing == name for run in runs) for name in ("training", "interrupted", "damaged")}
    described = [f"{number} {name}" for name, number in counts.items() if number]
    text = f"{count(len(runs), 'run')}{': ' if described else ''}{', '.join(described)}."
    locks = sum(run.standing == "training" and os.path.lexists(run.path / LOCK_FILES[1]) for run in runs)
    locks += sum(file_systems.is_locked(path) for path in _home_locks() if os.path.lexists(f"{path}-file"))
    if locks:
        advice = (
            "If no program on any computer uses these runs, a crash left the locks: delete the files that end in "
            "'.lock-file' in the folders of these runs and in the studio's home."
        )
        return Finding("runs", title, "notice", f"{text} {count(locks, 'lock')} on a drive without locks.", advice)
    if counts["interrupted"] or counts["damaged"]:
        advice = "Open Runs, or 'studio runs', for each run's state: resume the run, or move it to the trash."
        return Finding("runs", title, "notice", f"{text} No lock is left behind.", advice)
    return Finding("runs", title, "good", f"{text} No lock is left behind.")


def _folders() -> Iterator[tuple[str, Path]]:
    """Yield the folders that the studio writes, with titles: the runs, the rest of the home, and temporary files."""
    yield "Runs folder", paths.runs()
    yield "Studio's home", paths.home()
    yield "Temporary files", Path(tempfile.gettempdir())
    for title, folder in (
        ("Log folder", paths.logs()), ("Cache", paths.cache()), ("Quality features", paths.features()),
        ("Edits of sprites", paths.edits()), ("Lab results", paths.lab()), ("Pasted images", paths.pasted()),
    ):  # fmt: skip
        if os.path.lexists(folder) and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            yield title, folder


def _home_locks() -> Iterator[Path]:
    try:
        yield from sorted(path.with_name(path.name.removesuffix("-file")) for path in paths.home().glob(".*.lock-file"))
    except OSError:
        return


def _state(free_bytes: int, limits_bytes: tuple[int, int]) -> State:
    enough, least = limits_bytes
    return "good" if free_bytes >= enough else "notice" if free_bytes >= least else "problem"


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
