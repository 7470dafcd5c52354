"""Operations with a result, urgent jobs, and modules that are imported at their first use."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Generator

import pytest
from pytestqt.qtbot import QtBot

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import JobEnded
from studio.core.errors import BadInputError
from studio.core.events import Event, JobFailed, Progress
from tests.app.conftest import LONG_MS, endless


def test_an_operation_runs_on_a_worker_and_its_result_arrives_on_the_main_thread(
    qtbot: QtBot, job_queue: JobQueue
) -> None:
    threads: list[threading.Thread] = []

    def operation() -> int:
        threads.append(threading.current_thread())
        return 7

    results: list[int] = []

    def on_success(result: int) -> None:
        threads.append(threading.current_thread())
        results.append(result)

    job_queue.run("files", "Adding", operation, on_success)
    qtbot.waitUntil(lambda: bool(results) and not job_queue.running(), timeout=LONG_MS)
    assert results == [7]
    assert threads[0] is not threading.main_thread() and threads[1] is threading.main_thread()


def test_a_generator_yields_events_and_returns_the_result(qtbot: QtBot, job_queue: JobQueue) -> None:
    def operation() -> Generator[Event, None, str]:
        yield Progress(1, 2, "steps")
        return "done"

    received: list[object] = []
    job_queue.run("files", "Counting", operation, received.append, received.append)
    qtbot.waitUntil(lambda: len(received) == 3, timeout=LONG_MS)
    assert received == [Progress(1, 2, "steps"), "done", JobEnded("done")]


def test_a_failed_operation_has_no_result(qtbot: QtBot, job_queue: JobQueue) -> None:
    def operation() -> int:
        raise BadInputError("The file is damaged.", "Choose another file.")

    results: list[int] = []
    events: list[Event] = []
    with qtbot.waitSignal(job_queue.failed, timeout=LONG_MS) as failed:
        job_queue.run("files", "Reading", operation, results.append, events.append)
    qtbot.waitUntil(lambda: not job_queue.running(), timeout=LONG_MS)
    assert failed.args == [JobFailed("The file is damaged.", "Choose another file.", "", BadInputError.topic)]
    assert not results and events[-1] == JobEnded("failed")


def test_an_urgent_job_runs_before_a_long_job(qtbot: QtBot, job_queue: JobQueue) -> None:
    long_job = job_queue.start("files", "Importing", endless(), lambda event: None)
    results: list[int] = []
    job_queue.run("files", "Listing", lambda: 1, results.append, urgent=True)
    qtbot.waitUntil(lambda: results == [1], timeout=LONG_MS)
    assert long_job in job_queue.running()
    job_queue.cancel(long_job)


@pytest.mark.parametrize("is_background", [False, True])
def test_background_jobs_can_not_be_cancelled_by_default(
    qtbot: QtBot, job_queue: JobQueue, is_background: bool
) -> None:
    job = job_queue.start("files", "Reading", iter_nothing(), lambda event: None, background=is_background)
    assert job.cancellable is not is_background
    qtbot.waitUntil(lambda: not job_queue.running(), timeout=LONG_MS)


def iter_nothing() -> Generator[Event, None, None]:
    """A job without events."""
    yield from ()


def test_a_late_module_is_imported_at_the_first_use_of_an_attribute() -> None:
    code = (
        "import sys\n"
        "from studio.app.background.late_import import LateModule\n"
        "module = LateModule('studio.core.curves')\n"
        "assert 'studio.core.curves' not in sys.modules\n"
        "assert module.TINTS is sys.modules['studio.core.curves'].TINTS\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
