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
from pathlib import Path

import numpy as np

from studio.core.errors import BadInputError
from studio.data.colour.palette_files import load_palette, palette_formats
from studio.data.importing import all_sources, import_sprites
from studio.data.naming import shown
from studio.data.options import NOTE_GROUPS, QUARANTINE_GROUPS, ImportOptions, SpritesImported
from studio.data.palettes.base import Palette
from studio.data.reading.finding import files_under, roots_of
from studio.data.reading.read import read_all
from studio.data.sources.base import Source, SourceFile
from tests.data.making import png_of, sprite
from tests.fuzz.mutating import mutated, with_right_checksums
from tests.fuzz.specimens import SPECIMENS, Specimen, example_of

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
    return _tried([SPECIMENS[kind]()], cases, folder)


def try_example(source: str, cases: int, folder: Path) -> Trial:
    return _tried(example_of(source), cases, folder)


def _tried(specimens: list[Specimen], cases: int, folder: Path) -> Trial:
    for name, data in specimens[0].files.items():
        (folder / name).write_bytes(data)

    sources = all_sources()

    def read(number: int) -> bool:
        return _import(folder) if number % _WHOLE_IMPORT_EVERY == 0 else _read(folder, sources)

    return _measured(_cases(specimens, cases), folder, read)


def try_palette(form_name: str, cases: int, folder: Path) -> Trial:
    form = next(form for form in palette_formats() if form.name == form_name)
    colours = np.random.default_rng(0).integers(0, 256, (12, 4), np.uint8)
    colours[:, 3] = 255
    name = f"twin{form.suffixes[0]}"
    specimen = Specimen({name: form.write(Palette(colours, "Warm", ("Rust", *[""] * 11)))}, name)

    def read(_: int) -> bool:
        try:
            return len(load_palette(folder / name)) > 0
        except BadInputError as error:
            _check_text(error.title)
            return False

    return _measured(_cases([specimen], cases), folder, read)


def try_labels(cases: int, folder: Path) -> Trial:
    """Every case a whole import; read is one in which the table is used and nothing is said of it."""
    rows = b'file,class,price\nart.png,gem,12.5\n"sub/other, one.png",hat,-3e2\n'
    files = {"art.png": png_of(sprite(1)), "labels.csv": rows}
    (folder / "sub").mkdir()
    (folder / "sub" / "other, one.png").write_bytes(png_of(sprite(2)))
    for name, data in files.items():
        (folder / name).write_bytes(data)

    def read(number: int) -> bool:
        *_, last = import_sprites([folder], ImportOptions())
        assert isinstance(last, SpritesImported) and len(last.sprites) == 2, number
        for item in (*last.quarantine, *last.notes):
            _check(item.group, item.reason)
        return not last.quarantine and not last.notes

    return _measured(_cases([Specimen(files, "labels.csv")], cases), folder, read)


def _cases(specimens: list[Specimen], count: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Name, mutated and whole contents; the first one is whole. Other kinds are what is spliced onto it."""
    rng = np.random.default_rng(0)
    others = [specimen.files[specimen.target] for specimen in (make() for make in SPECIMENS.values())]
    for number in range(count):
        specimen = specimens[number % len(specimens)]
        whole = specimen.files[specimen.target]
        other = whole if rng.random() < 0.5 else others[int(rng.integers(len(others)))]
        data = mutated(whole, other, rng) if number >= len(specimens) else whole
        yield specimen.target, with_right_checksums(data) if _is_png(data) and rng.random() < 0.8 else data, whole


def _is_png(data: bytes) -> bool:
    return data.startswith(b"\x89PNG")


def _measured(cases: Iterator[tuple[str, bytes, bytes]], folder: Path, read: Callable[[int], bool]) -> Trial:
    warnings.simplefilter("ignore", UserWarning)  # Pillow's, about damaged TIFF tags
    trial = Trial()
    before = 0
    for number, (name, data, whole) in enumerate(cases):
        (folder / name).write_bytes(data)
        started = time.perf_counter()
        try:
            trial.read += read(number)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            trial.faults.append(f"case {number}: {error!r} for {data[:4000]!r}")
        taken = time.perf_counter() - started
        (folder / name).write_bytes(whole)
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


def _read(folder: Path, sources: list[Source]) -> bool:
    """Whether there is any picture; fails on anything but pictures and good reasons."""
    listed = list(files_under(*roots_of([folder])))
    shapes = 0
    for item in listed:
        if not isinstance(item, SourceFile):
            _check(item.group, item.reason)
    for reading in read_all([item for item in listed if isinstance(item, SourceFile)], sources, ImportOptions()):
        shapes += len(reading.sprites)
        for remark in [*reading.left_out, *reading.remarks]:
            _check(remark.group, remark.reason)
    return shapes > 0


def _import(folder: Path) -> bool:
    try:
        *_, last = import_sprites([folder], ImportOptions())
    except BadInputError as error:
        _check_text(error.title)
        return False
    assert isinstance(last, SpritesImported)
    for item in (*last.quarantine, *last.notes):
        _check(item.group, item.reason)
    return len(last.sprites) > 0


def _check(group: str, reason: str) -> None:
    assert group in (*QUARANTINE_GROUPS, *NOTE_GROUPS), group
    _check_text(reason)


def _check_text(text: str) -> None:
    assert shown(text) == text and "Error" not in text, text
