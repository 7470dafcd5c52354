"""Tests of reading on threads and in processes: equal results, and closing ends everything at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import studio
from studio.core import limits, threads
from studio.core.events import Event, Progress
from studio.core.threads import run_workers
from studio.data.files.source_files import SourceFile, SourceImage, SourceIssue
from studio.data.importing import importing
from studio.data.importing.importing import ImportOptions, import_sprites
from studio.data.reading import reader_pool
from studio.data.reading.finding import FoundFiles, resolve_roots, walk_files
from studio.data.reading.read import ReadResult, all_sources
from studio.data.reading.reader_pool import ReaderPool, Worker, process_count
from studio.data.sources.picture import PictureSource
from tests.data.making import all_sorts, everything, imported, sprite, write, write_many

PATIENCE_S = 0.2
STUDIO = Path(studio.__file__).parents[1]
ODD_SOURCE = '''
import os, sys, threading
import numpy as np
from studio.data.files.source_files import SourceImage, SourceIssue
from studio.data.sources.picture import PictureSource

class OddSource(PictureSource):
    """What a file of another maker's kind does to its reader is its name."""
    name, order = "odd", 0

    def claims(self, file):
        return file.suffix == ".odd"

    def read(self, file):
        elsewhere = os.getpid() != int(os.environ["TEST_PID"])
        if file.stem == "talks":
            print("Reading!", sys.stdin.read() if elsewhere else "")
            os.write(1, b"Reading!")
        if file.stem == "dies" and elsewhere:
            os._exit(9)
        if file.stem == "stumbles" and elsewhere:
            raise ZeroDivisionError
        if file.stem == "fails":
            raise ZeroDivisionError("odd indeed")
        if file.stem == "hangs" and elsewhere:
            open(os.environ["TEST_MARK"], "x").close()
            threading.Event().wait()
        rgba = np.zeros((8, 8, 4), np.uint8)
        rgba[1:7, 2:7] = len(file.stem), 90, 200, 255
        yield SourceIssue("mended", "made up\\ud800", file.stem)
        yield SourceImage(rgba, file.stem, ("odd", "ones"), "third")
'''


class OnlyProcesses(ReaderPool):
    """The thread would have read the few files of a test before a process is up."""

    def workers(self) -> list[Worker]:
        return super().workers()[1:]


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[ReaderPool]:
    """The pools of every import of the test, in which one process reads everything."""
    made: list[ReaderPool] = []

    def make(*about: Any) -> ReaderPool:
        made.append(OnlyProcesses(*about))
        return made[-1]

    monkeypatch.setattr(reader_pool, "process_count", lambda count: 1)
    monkeypatch.setattr(reader_pool, "ReaderPool", make)
    return made


@pytest.fixture
def odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A source of a third party, and where it looks for a mark."""
    about = tmp_path / "plugins" / "odd-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[studio.data.sources]\nodd = odd_source\n")
    (about.parent / "odd_source.py").write_text(ODD_SOURCE)
    monkeypatch.syspath_prepend(str(about.parent))
    monkeypatch.setenv("TEST_PID", str(os.getpid()))
    monkeypatch.setenv("TEST_MARK", str(tmp_path / "mark"))
    all_sources.cache_clear()
    yield tmp_path / "mark"
    all_sources.cache_clear()
    sys.modules.pop("odd_source", None)


def folder_of(path: Path, *odd: str, count: int = 40) -> Path:
    write_many(path / "plain", count, 16)
    for name in odd:
        (path / f"{name}.odd").write_bytes(b"?")
    return path


def processes_of(pools: list[ReaderPool]) -> list[subprocess.Popen[bytes]]:
    return [process for each in pools for process in each._processes]


def assert_gone(pools: list[ReaderPool]) -> None:
    assert processes_of(pools)
    assert not [process for process in processes_of(pools) if psutil.pid_exists(process.pid)]


def close_at_once(job: Generator[Event, None, None]) -> None:
    started = time.perf_counter()
    job.close()
    assert time.perf_counter() - started < PATIENCE_S


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reader"]


@pytest.mark.parametrize("sheets", ["as they are", "grid"])
def test_processes_and_threads_give_equal_imports(
    tmp_path: Path, odd_files: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, sheets: str
) -> None:
    folder = all_sorts(folder_of(tmp_path / "set", "talks", "b"))
    (folder / "notes.txt").write_text("none")
    write(folder / os.fsdecode(b"caf\xe9.png"), sprite(300, 16))
    write(folder / "plain.png", np.full((300, 290, 4), 255, np.uint8))
    lost = np.zeros((300, 300, 4), np.uint8)
    lost[250:258, 30:40] = 70, 80, 90, 255
    write(folder / "lost.png", lost)
    for seed in range(3):
        cells = [sprite(10 * seed + 400 + cell, 16) for cell in range(6)]
        write(folder / f"strip {seed}.png", np.concatenate([*cells, np.zeros((16, 32, 4), np.uint8)], axis=1))
    here = everything(imported(folder, sheets=sheets))
    pools: list[ReaderPool] = request.getfixturevalue("pools")
    monkeypatch.setattr(reader_pool, "_MAX_KNOWN_NAMES", 40)  # is forgotten now and then
    monkeypatch.setattr(reader_pool, "read_all", None)
    monkeypatch.setattr(reader_pool, "_CHUNK", 7)
    assert everything(imported(folder, sheets=sheets)) == here
    assert len(processes_of(pools)) == (2 if sheets == "grid" else 1)  # looked at all files, and cut the sheets
    assert len(here[1]) > 70 and "third" in here[2] and ("strip 2.png#r1 c6" in here[1]) is (sheets == "grid")
    assert_gone(pools)


def test_files_of_a_dead_process_are_read_on_the_thread(
    tmp_path: Path, odd_files: Path, pools: list[ReaderPool]
) -> None:
    for fate in ("dies", "stumbles"):
        event = imported(folder_of(tmp_path / fate, fate))
        assert len(event.sprites) == 41 and f"{fate}.odd#{fate}" in event.sprites.names
    with pytest.raises(ZeroDivisionError, match="odd indeed"):
        imported(folder_of(tmp_path / "set", "fails"))
    assert_gone(pools)


def test_closing_kills_a_process_with_a_hanging_file(tmp_path: Path, odd_files: Path, pools: list[ReaderPool]) -> None:
    job = import_sprites([folder_of(tmp_path / "set", "hangs")], ImportOptions())
    seen = 0
    for event in job:
        if odd_files.exists() and isinstance(event, Progress):
            if not seen and os.name != "nt":  # which would end the process
                os.kill(processes_of(pools)[0].pid, signal.SIGINT)  # as Ctrl+C does: not its business
            seen += 1
        if seen == 6:
            break
    assert processes_of(pools)[0].poll() is None
    close_at_once(job)
    assert_gone(pools)


@pytest.mark.parametrize("least", [0, 1])
def test_closing_ends_the_processes(
    tmp_path: Path, pools: list[ReaderPool], monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """While they start, and while they read."""
    monkeypatch.setattr(reader_pool, "_CHUNK", 4)
    job = import_sprites([folder_of(tmp_path / "set", count=300)], ImportOptions())
    for event in job:
        if processes_of(pools) and isinstance(event, Progress) and event.done >= least:
            break
    close_at_once(job)
    assert_gone(pools)


def test_processes_read_only_a_few_chunks_ahead(
    tmp_path: Path, pools: list[ReaderPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_MAX_WAITING", 1)
    asked, ask = 0, reader_pool._ReaderProcess.send_chunk

    def counted(process: Any, chunk: range) -> None:
        nonlocal asked
        asked += len(chunk)
        ask(process, chunk)

    monkeypatch.setattr(reader_pool._ReaderProcess, "send_chunk", counted)
    files = FoundFiles()
    for file in walk_files(resolve_roots([folder_of(tmp_path / "set", count=120)])[0]):
        assert isinstance(file, SourceFile)
        files.add(file)
    chunks = [range(start, start + 2) for start in range(0, 120, 2)]
    taken: list[tuple[int, ReadResult]] = []
    with closing(OnlyProcesses(files, all_sources(), ImportOptions())) as readers:
        for batch in run_workers(readers.workers(), chunks):
            taken += batch
            assert asked <= len(taken) + 2 * (2 + 1 + 1 + 1)  # ahead, that wait, in hand, and taken just now
    assert [number for number, _ in taken] == list(range(120))


def test_without_processes_the_thread_reads_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def not_allowed(*_: Any, **__: Any) -> None:
        tried.append(1)
        raise PermissionError

    folder = folder_of(tmp_path / "set")
    monkeypatch.setattr(reader_pool, "process_count", lambda count: 3)
    monkeypatch.setattr(subprocess, "Popen", not_allowed)
    assert len(imported(folder).sprites) == 40 and tried


def test_a_process_with_other_sources_reads_nothing(tmp_path: Path, pools: list[ReaderPool]) -> None:
    files = FoundFiles()
    readers = OnlyProcesses(files, all_sources()[:-1], ImportOptions())
    with closing(readers), pytest.raises(EOFError):
        reader_pool._ReaderProcess(readers)
    assert_gone([readers])


def test_fault_36_process_count_by_cpus_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for cpus, free_bytes, expected in (
        (200, 64 << 30, {1_000_000: 16}),
        (1, 64 << 30, {1_000_000: 0}),
        (8, 512 << 20, {1_000_000: 4}),
        (8, 64 << 30, {0: 0, 1999: 0, 2000: 4, 3000: 6, 50_000: 7}),
    ):
        monkeypatch.setattr(limits, "usable_cpus", lambda cpus=cpus: cpus)
        monkeypatch.setattr(limits, "usable_memory", lambda free_bytes=free_bytes: limits.Memory(64 << 30, free_bytes))
        assert {count: process_count(count) for count in expected} == expected
    for executable in (None, "", "/opt/Sprite Studio/studio"):
        monkeypatch.setattr(sys, "executable", executable)
        assert process_count(1_000_000) == 0


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """The script must also end without a resource warning."""
    folder_of(tmp_path / "set")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom studio.data.importing import importing\n"
        "from studio.data.reading import reader_pool\n"
        f"sys.path.append({str(STUDIO)!r})\n"
        "class OnlyProcesses(reader_pool.ReaderPool):\n"
        "    def workers(self):\n        return super().workers()[1:]\n"
        "reader_pool.ReaderPool, reader_pool.process_count = OnlyProcesses, lambda count: 1\n"
        "reader_pool.read_all = None\n"
        f"*_, last = importing.import_sprites([Path({str(tmp_path / 'set')!r})], importing.ImportOptions())\n"
        "print(len(last.sprites))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(STUDIO), "PYTHONWARNINGS": "always::ResourceWarning"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("40\n", "", 0)


def test_a_process_loads_neither_torch_nor_qt() -> None:
    code = (
        "import sys\nimport studio.data.reading.reader_process as child\nchild.all_sources()\n"
        "import studio.data.sources.sheet as sheet\nsheet.atlas_formats()\n"
        "late = {'torch', 'PySide6', 'matplotlib', 'multiprocessing', 'studio.data.importing.importing'}\n"
        "assert not late & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=STUDIO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class HangingSource(PictureSource):
    """A drive that has gone to sleep: reading waits until the test ends."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.woken = threading.Event()

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        self.asked.set()
        self.woken.wait(30)
        yield from super().read(file)


@pytest.mark.parametrize("stage", ["files found", "files read", "sprites cached", "after the last"])
def test_closing_leaves_nothing_running(tmp_path: Path, stage: str) -> None:
    folder = write_many(tmp_path / "set", 300, 16)
    close_at_once(import_sprites([folder], ImportOptions()))  # before the first event
    job = import_sprites([folder], ImportOptions(), tmp_path / "cache")
    for event in job:
        if isinstance(event, Progress) and event.what == stage:
            break
    close_at_once(job)
    for reader in readers():
        reader.join(PATIENCE_S)  # a finished thread may still be running its last line
    assert not readers()


def test_a_hanging_file_blocks_neither_progress_nor_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = HangingSource()
    monkeypatch.setattr(importing, "all_sources", lambda: [source])
    job = import_sprites([write_many(tmp_path / "set", 300)], ImportOptions())
    seen = 0
    for event in job:
        seen += source.asked.is_set() and isinstance(event, Progress)
        if seen == 4:
            break
    close_at_once(job)
    waiting = readers()
    assert waiting and all(thread.daemon for thread in waiting)  # they can't keep the program from ending
    source.woken.set()
    for thread in waiting:
        thread.join(5)
    assert not readers()
