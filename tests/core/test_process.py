"""Setup of a training process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from studio.core import limits, process
from studio.core.process import HeapTrimmer, prepare_for_training

MB = 1 << 20
_PAGES = 10_240  # of 4 KB in a block of 40 MB
_ROUNDS = 5
_PROGRAM = f"""
import resource, sys
if "prepared" in sys.argv:
    from studio.core.process import prepare_for_training
    prepare_for_training()
b"x" * (int(sys.argv[1]) * 4096)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({_ROUNDS}):
    b"x" * (int(sys.argv[1]) * 4096)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*arguments: str) -> int:
    command = [sys.executable, "-c", _PROGRAM, str(_PAGES), *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep freed memory in their own way")
def test_freed_memory_is_kept_for_the_next_step() -> None:
    assert page_faults() > _PAGES * _ROUNDS / 2  # otherwise prepare does nothing
    assert page_faults("prepared") < 2 * _PAGES


def test_environment_set_by_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    # Don't tune the allocator here: the change would outlast this test.
    monkeypatch.setattr(sys, "platform", "elsewhere")
    prepare_for_training()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    prepare_for_training()
    assert int(os.environ["GOMP_SPINCOUNT"]) > 0
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    prepare_for_training()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    prepare_for_training()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_the_process_is_set_up_before_numpy_reads_its_environment() -> None:
    code = (
        "import sys\n"
        "from studio.core import process\n"
        "process.prepare_for_training = lambda: sys.exit(40 + ('numpy' in sys.modules))\n"
        "from studio.cli import main\n"
        "main(['runs'])\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 40


@pytest.mark.parametrize(("share", "threads"), [(16, None), (2, "2")])
def test_fault_36_libraries_start_as_many_threads_as_a_container_may_use(
    monkeypatch: pytest.MonkeyPatch, share: int, threads: str | None
) -> None:
    monkeypatch.setattr(sys, "platform", "elsewhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(limits, "affinity_cpus", lambda: 16)
    monkeypatch.setattr(limits, "usable_cpus", lambda: share)
    prepare_for_training()
    assert os.environ.get("OMP_NUM_THREADS") == threads


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal is lost there")
def test_output_to_a_closed_terminal_is_discarded() -> None:
    code = (
        "import os\n"
        "from studio.core.process import detach_lost_terminal\n"
        "os.close(1), os.close(2)\n"
        "detach_lost_terminal()\n"
        "os._exit(40 + os.write(1, b'one') + os.write(2, b'two'))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 46


def test_memory_is_handed_back_only_after_the_process_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    used = [900 * MB]

    def trim(keep: int) -> int:
        trims.append(used[0] // MB)
        used[0] = min(used[0], 910 * MB)
        return 1

    monkeypatch.setattr(process, "_malloc_trim", lambda: trim)
    monkeypatch.setattr(process, "_used_bytes", lambda: used[0])
    trimmer = HeapTrimmer()
    for now in (900, 950, 2200, 960, 700, 760, 765):
        used[0] = now * MB
        trimmer.trim()
    assert trims == [900, 2200, 765]


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    HeapTrimmer().trim()
