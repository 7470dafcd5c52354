"""Find and delete unneeded files: resuming, drawing and exporting work without them. Skips runs in training."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from studio.core import files, paths
from studio.core.errors import RunError, UsageError
from studio.core.events import Events, Notice, Progress
from studio.engine import catalog
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import EXPORTS_FOLDER, RunDir, wrap_read_errors
from studio.engine.runs.maintenance.disk_use import KEPT_SAMPLES, Removable, SpaceFound, SpaceFreed, disk_use
from studio.engine.runs.samples import sample_paths, thin_steps


def find_space(runs: Sequence[Path], *, with_cache: bool = False) -> Events:
    """Find deletable files; yields Progress, SpaceFound. Skips runs in training. with_cache: include cached imports."""
    found, busy = list[Removable](), list[Path]()
    for done, path in enumerate(runs, 1):
        if RunDir(path).is_busy():
            busy.append(path)
        else:
            found += _removable(RunDir(path))
        yield Progress(done, len(runs), "runs searched")
    yield SpaceFound((*found, *(_removable_cache() if with_cache else ())), tuple(busy))


def free_space(items: Sequence[Removable]) -> Events:
    """Delete files found by `find_space`: yields Progress, a Notice per skipped run, then SpaceFreed.

    Locks a run and searches the run again, then verifies the essential checkpoints before deleting others.
    """
    freed_bytes = done = 0
    by_run: dict[Path | None, list[Removable]] = {}
    for item in items:
        by_run.setdefault(item.run, []).append(item)
    for run, chosen in by_run.items():
        try:
            for size_bytes in _free_in(RunDir(run), chosen) if run is not None else _remove(chosen):
                freed_bytes += size_bytes
                done += 1
                yield Progress(done, len(items), "files deleted")
        except RunError as error:
            yield Notice("warning", error.title, f"{error.hint} The other files of this run were kept.".strip())
    yield SpaceFreed(freed_bytes)


def _free_in(run: RunDir, chosen: Sequence[Removable]) -> Iterator[int]:
    """Delete a run's files; yields the freed bytes per file. Raises RunError."""
    if not run.path.is_dir():
        return
    with run.held(wait_s=0.0):
        still = {item.path for item in _removable(run)}  # the run may have trained since the search
        if any(item.kind == "checkpoints" for item in chosen):
            _verify_essential(run)
        yield from _remove([item for item in chosen if item.path in still])


def _remove(items: Sequence[Removable]) -> Iterator[int]:
    """Delete files and folders; yields the freed bytes per file or folder."""
    for item in items:
        rest: Path | None = item.path
        with contextlib.suppress(OSError):  # in use by another program, or access denied
            rest = files.remove(item.path)
        yield item.size_bytes - (disk_use(rest).own_bytes if rest is not None else 0)


def _removable(run: RunDir) -> list[Removable]:
    """Return a run's deletable files; an empty list for an unreadable run."""
    try:
        with wrap_read_errors(run.path):
            found, essential = _checkpoints(run)
            samples, exports = sample_paths(run), run.path / EXPORTS_FOLDER
            # Distilling takes minutes, so checkpoints with a distilled network stay.
            essential |= {path for path, info in found if checkpoints.DISTILLED in info.sha256}
            by_kind = {
                "checkpoints": [path for path, _ in found if path not in essential],
                "leftovers": checkpoints.leftovers(run.checkpoints) if found else [],
                "samples": [samples[step] for step in samples.keys() - set(thin_steps(list(samples), KEPT_SAMPLES))],
                "exports": sorted(exports.iterdir()) if exports.is_dir() else [],
            }
    except (RunError, UsageError, FileNotFoundError):
        return []
    return [_removable_at(path, kind, run.path) for kind, paths in by_kind.items() for path in paths]


def _removable_at(path: Path, kind: str, run: Path | None) -> Removable:
    return Removable(kind, run, path, disk_use(path).own_bytes)


def _checkpoints(run: RunDir) -> tuple[checkpoints.Checkpoints, set[Path]]:
    """Return a run's checkpoints, and the essential checkpoints' paths. Raises RunError, UsageError, OSError."""
    found = checkpoints.list_checkpoints(run.checkpoints)
    return found, checkpoints.essential_checkpoints(found, catalog.recipe(run.record().recipe).best_by)


def _verify_essential(run: RunDir) -> None:
    """Verify the essential checkpoints, before deleting other checkpoints. Raises DamagedError."""
    with wrap_read_errors(run.path):
        found, essential = _checkpoints(run)
        for path, info in found:
            if path in essential:
                checkpoints.verify(path, info)


def _removable_cache() -> list[Removable]:
    """Return the cached imports as deletable files; an empty list for an unreadable cache."""
    try:
        return [_removable_at(path, "cache", None) for path in sorted(paths.cache().iterdir())]
    except OSError:
        return []
