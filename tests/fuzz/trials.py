"""One kind of file, mutated thousands of times and read each time, with the time and the memory that it took.

Runs in a process of its own, so that a decoder's crash is a failure and the peak of memory is that of the trial. A
process that a server forks begins with its own peak; a spawned one would take over that of whoever started it.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.fuzz.specimens import SPECIMENS, damaged, import_all, read_pictures

_WHOLE_IMPORT_EVERY = 20  # cases: it takes many times as long as the reading alone
_MOST_FAULTS = 5  # kept


@dataclass
class Trial:
    """read: cases that gave something. seconds: of the slowest one, number `slowest`. grown_bytes: of memory."""

    cases: int = 0
    read: int = 0
    seconds: float = 0.0
    slowest: int = 0
    grown_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def in_own_process(job: Callable[..., Trial], *arguments: object) -> Trial:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        return pool.submit(job, *arguments).result()


def try_specimen(kind: str, cases: int, folder: Path) -> Trial:
    specimen = SPECIMENS[kind]()
    specimen.write(folder)

    def read(number: int) -> bool:
        whole_import = specimen.read is read_pictures and number % _WHOLE_IMPORT_EVERY == 0
        return import_all(folder) if whole_import else specimen.read(folder)

    return _measured(islice(damaged(specimen), cases), folder / specimen.target, read)


def _measured(cases: Iterator[bytes], path: Path, read: Callable[[int], bool]) -> Trial:
    warnings.simplefilter("ignore", UserWarning)  # Pillow's, about damaged TIFF tags
    trial = Trial()
    before = 0
    for number, data in enumerate(cases):
        path.write_bytes(data)
        started = time.perf_counter()
        try:
            trial.read += read(number)
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
