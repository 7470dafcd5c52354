"""Fuzz tests of every input format: damaged files give sprites or a reason, in little time and little memory.

A separate process runs every format, so that a crash fails only one test and the memory peak belongs to the trial.
Processes are forked by a server: a spawned process would inherit the memory peak of its parent.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz.specimens import SPECIMENS, damaged, import_all, read_pictures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process, and does not say the peak of memory"),
]

_CASES = 3000
_WHOLE_IMPORT_EVERY = 20  # cases: it takes many times as long as the reading alone
_MOST_FAULTS = 5  # kept
_MOST_SECONDS = 5.0  # for one case
_MOST_GROWN = 300 << 20  # bytes: the frames of an animation may lawfully take 128 MB


@dataclass
class Trial:
    """Result of a trial. read: cases with sprites. seconds: duration of the slowest case, number `slowest`."""

    cases: int = 0
    read: int = 0
    seconds: float = 0.0
    slowest: int = 0
    grown_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def try_specimen(kind: str, folder: Path) -> Trial:
    """Mutate a file thousands of times and read every mutation."""
    warnings.simplefilter("ignore", UserWarning)  # Pillow's, about damaged TIFF tags
    specimen, trial = SPECIMENS[kind](), Trial()
    specimen.write(folder)
    before = 0
    for number, data in enumerate(islice(damaged(specimen), _CASES)):
        (folder / specimen.target).write_bytes(data)
        is_whole_import = specimen.read is read_pictures and number % _WHOLE_IMPORT_EVERY == 0
        read: Callable[[Path], bool] = import_all if is_whole_import else specimen.read
        started = time.perf_counter()
        try:
            trial.read += read(folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            trial.faults.append(f"case {number}: {error!r} for {data[:4000]!r}")
        taken = time.perf_counter() - started
        trial.cases += 1
        if number == 0:
            before = _peak_bytes()  # with everything loaded that reading needs
        elif taken > trial.seconds:
            trial.seconds, trial.slowest = taken, number
        if len(trial.faults) == _MOST_FAULTS:
            break
    trial.grown_bytes = _peak_bytes() - before
    return trial


def _peak_bytes() -> int:
    import resource  # Windows has none: it is needed, and missed, only here

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.parametrize("kind", SPECIMENS)
def test_every_kind_of_input(kind: str, tmp_path: Path) -> None:
    specimen = SPECIMENS[kind]()
    others = [Path(name).suffix for name in specimen.files if name != specimen.target]
    is_missed = not {".png", Path(specimen.target).suffix} & set(others)  # a picture stays without its description
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        trial = pool.submit(try_specimen, kind, tmp_path).result()
    print(trial)  # noqa: T201 - figures for whoever runs it with -s
    assert not trial.faults, "\n".join(trial.faults)
    assert trial.cases == _CASES and 0 < trial.read <= _CASES - is_missed  # else a second one of its kind gives sprites
    assert trial.seconds < _MOST_SECONDS, f"case {trial.slowest} took {trial.seconds:.1f} s"
    assert trial.grown_bytes < _MOST_GROWN, f"{trial.grown_bytes >> 20} MB"
