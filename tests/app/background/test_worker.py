"""The thread that drives jobs: their order, pausing, cancelling, failing, and floods."""

from __future__ import annotations

import itertools
import threading
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import QThread, QTimer
from pytestqt.qtbot import QtBot

from studio.app.background import worker
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded, JobPaused, Mailbox
from studio.core.errors import UsageError
from studio.core.events import Blocked, Event, Events, JobFailed, LossChunk, Notice, Progress
from studio.data.reading.read import all_sources
from tests.app.conftest import chunk, endless


class Log:
    """Collects the events of a job and the threads that deliver them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.threads: set[QThread] = set()

    def take(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(QThread.currentThread())

    def ended(self) -> bool:
        return self.count(JobEnded) > 0

    def outcome(self) -> str:
        return next(event.outcome for event in self.events if isinstance(event, JobEnded))

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def failures(job_queue: JobQueue) -> list[JobFailed]:
    """The failures that the queue reports."""
    told: list[JobFailed] = []
    job_queue.failed.connect(told.append)
    return told


def says(*words: str, then: Callable[[], object] | None = None) -> Events:
    for word in words:
        yield Notice("info", word)
    if then is not None:
        then()


def ticks(seconds: float = 0.002, closed: list[float] | None = None) -> Events:
    """A training without end: a loss a tick. closed: gets the time at which it is closed."""
    try:
        for step in itertools.count():
            time.sleep(seconds)
            yield chunk(step)
    finally:
        if closed is not None:
            closed.append(time.perf_counter())


def fails(error: Exception) -> Events:
    yield Progress(1, 2, "things")
    raise error


def test_events_come_in_order_and_in_the_main_thread(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    in_job: list[QThread] = []
    job_queue.start("files", "one", says("a", "b", then=lambda: in_job.append(QThread.currentThread())), log.take)
    qtbot.waitUntil(log.ended)
    assert log.events == [Notice("info", "a"), Notice("info", "b"), JobEnded("done")]
    assert log.threads == {QThread.currentThread()}
    assert in_job != [QThread.currentThread()]
    assert job_queue.running() == []


def test_a_background_job_gives_way(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    training = Log()
    job = job_queue.start("engine", "training", ticks(), training.take, background=True)
    qtbot.waitUntil(lambda: training.count(LossChunk) > 0)
    order: list[str] = []
    job_queue.start("engine", "first", says("x", "y", then=lambda: order.append("first")), log.take)
    job_queue.start("engine", "second", says("z", then=lambda: order.append("second")), log.take)
    qtbot.waitUntil(lambda: log.count(JobEnded) == 2)
    assert order == ["first", "second"]
    before = training.count(LossChunk)
    qtbot.waitUntil(lambda: training.count(LossChunk) > before)
    job_queue.cancel(job)
    qtbot.waitUntil(training.ended)


def test_the_window_paints_between_slow_events_while_the_mailbox_joins_the_rest(
    qtbot: QtBot, job_queue: JobQueue
) -> None:
    order: list[object] = []

    def receive(event: Event) -> None:
        order.append(event)
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.02:
            pass

    job, box = Job("slow", says(), receive), job_queue._workers["files"].mailbox
    job_queue._running[job] = "files"
    first, second = Notice("info", "a"), Notice("info", "b")
    box.put(job, first)
    box.put(job, second)
    QTimer.singleShot(0, lambda: order.append("drawn"))
    job_queue.deliver()
    assert order == [first]
    for event in (chunk(0), chunk(1), chunk(2), JobEnded("done")):
        box.put(job, event)
    qtbot.waitUntil(lambda: not job_queue.running())
    assert order[:3] + order[4:] == [first, "drawn", second, JobEnded("done")]
    assert isinstance(order[3], LossChunk) and len(order[3].losses) == 3


def test_a_background_job_starts_after_the_window_has_painted(qtbot: QtBot, job_queue: JobQueue) -> None:
    background, order = Log(), list[str]()
    job_queue._submit_timer.setInterval(100)  # as in the application
    QTimer.singleShot(20, lambda: order.append("shown"))
    job_queue.start("files", "looking", says(then=lambda: order.append("begun")), background.take, background=True)
    qtbot.waitUntil(background.ended)
    assert order == ["shown", "begun"]


def test_waiting_jobs_never_start_after_the_shut_down(log: Log) -> None:
    job_queue = JobQueue()
    begun = threading.Event()
    job_queue.start("files", "waiting", says(then=begun.set), log.take, background=True)
    assert job_queue.shut_down(2000)
    job_queue.start("files", "late", says(then=begun.set), log.take)
    job_queue.start("engine", "late, in the background", says(then=begun.set), log.take, background=True)
    job_queue._submit_delayed()
    assert not begun.is_set()
    assert not any(worker.isRunning() for worker in job_queue._workers.values())


def test_others_run_while_the_training_is_paused(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    training = Log()
    job = job_queue.start("engine", "training", ticks(), training.take, background=True)
    qtbot.waitUntil(lambda: training.count(LossChunk) > 0)
    job_queue.pause(job)
    qtbot.waitUntil(lambda: training.count(JobPaused) == 1)
    losses = training.count(LossChunk)
    job_queue.start("engine", "generating", says("a", "b"), log.take)
    qtbot.waitUntil(log.ended)
    assert training.count(LossChunk) == losses
    job_queue.resume(job)
    qtbot.waitUntil(lambda: training.count(LossChunk) > losses)
    job_queue.pause(job)
    qtbot.waitUntil(lambda: training.count(JobPaused) == 2)
    job_queue.cancel(job)
    qtbot.waitUntil(training.ended)
    assert training.outcome() == "cancelled"


@pytest.mark.parametrize("wish", ["resume", "prioritize"])
def test_a_request_between_halt_and_pause_is_kept(qtbot: QtBot, job_queue: JobQueue, log: Log, wish: str) -> None:
    def events() -> Events:
        getattr(job_queue, wish)(job)  # the user does so after the training has found the disk full
        yield Blocked("error", "Can't write.", "The disk is full.")
        yield Notice("info", "It goes on.")
        yield Blocked("error", "Can't write.", "The disk is full.")

    job = job_queue.start("engine", "training", events(), log.take, background=True)
    qtbot.waitUntil(lambda: log.count(JobPaused) == 1)
    assert [event.title for event in log.events if isinstance(event, Notice)] == [
        "Can't write.", "It goes on.", "Can't write.",
    ]  # fmt: skip
    job_queue.resume(job)
    qtbot.waitUntil(log.ended)


def test_a_prioritized_job_runs_before_others(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    training, ending = Log(), threading.Event()

    def events() -> Events:
        while not ending.wait(0.002):
            yield Notice("info", "tick")

    job = job_queue.start("engine", "training", events(), training.take, background=True)
    qtbot.waitUntil(lambda: training.count(Notice) > 0)
    other = job_queue.start("engine", "generating", ticks(), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 0)
    assert not training.ended()
    ending.set()
    job_queue.prioritize(job)
    qtbot.waitUntil(training.ended)
    assert not log.ended()
    job_queue.cancel(other)
    qtbot.waitUntil(log.ended)


def test_an_abandoned_job_ends_and_delivers_no_more_events(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    closed: list[float] = []
    job = job_queue.start("engine", "search", ticks(closed=closed), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 0)
    job_queue.abandon(job)
    received = len(log.events)
    qtbot.waitUntil(lambda: not job_queue.running())
    assert closed
    assert len(log.events) == received


def test_an_abandoned_job_reports_no_error(
    qtbot: QtBot, job_queue: JobQueue, log: Log, failures: list[JobFailed]
) -> None:
    begun, failing = threading.Event(), threading.Event()

    def events() -> Events:
        begun.set()
        failing.wait()
        yield from fails(UsageError("No such class."))

    job = job_queue.start("files", "old", events(), log.take)
    qtbot.waitUntil(begun.is_set)
    job_queue.abandon(job)
    failing.set()
    qtbot.waitUntil(lambda: not job_queue.running())
    assert failures == [] and log.events == []


def test_cancelling_closes_the_generator_within_a_tick(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    closed: list[float] = []
    job = job_queue.start("files", "import", ticks(0.02, closed), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 0)
    asked = time.perf_counter()
    job_queue.cancel(job)
    qtbot.waitUntil(log.ended)
    assert log.outcome() == "cancelled"
    assert closed[0] - asked < 0.1


def test_a_studio_error_keeps_title_and_hint(
    qtbot: QtBot, job_queue: JobQueue, log: Log, failures: list[JobFailed]
) -> None:
    job_queue.start("engine", "generating", fails(UsageError("No such class.", "Choose another.")), log.take)
    qtbot.waitUntil(log.ended)
    assert failures == [JobFailed("No such class.", "Choose another.")] and log.outcome() == "failed"


def test_fault_31_a_bug_comes_with_its_traceback_and_the_worker_lives(
    qtbot: QtBot, job_queue: JobQueue, log: Log, failures: list[JobFailed]
) -> None:
    job_queue.start("engine", "generating", fails(ZeroDivisionError("by zero")), log.take)
    qtbot.waitUntil(log.ended)
    assert "ZeroDivisionError" in failures[0].details
    assert "Traceback" not in failures[0].title + failures[0].hint
    after = Log()
    job_queue.start("engine", "another", says("a"), after.take)
    qtbot.waitUntil(after.ended)
    assert after.outcome() == "done"


def test_fault_31_a_plugin_that_fails_is_named() -> None:
    assert all_sources()  # plug-ins have been looked for
    module: dict[str, object] = {"__name__": "studio.data.sources.idx"}
    exec("def loss():\n    raise ValueError('odd')", module)
    with pytest.raises(ValueError, match="odd") as caught:
        module["loss"]()  # type: ignore[operator]
    assert worker.failure(caught.value).title == "The plug-in 'idx' failed."


def test_the_next_job_of_a_kind_withdraws_the_messages_of_the_last(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    withdrawn: list[Notice] = []
    job_queue.withdrawn.connect(withdrawn.append)
    for kind in ("Opening", ""):
        job_queue.start("files", "fails", fails(UsageError("Odd.", f"Of {kind}.")), log.take, kind=kind)
    for kind in ("Generating", "", "Opening", "Opening"):
        job_queue.start("files", "goes well", says("Hello."), log.take, kind=kind)
    qtbot.waitUntil(lambda: log.count(JobEnded) == 6)
    assert withdrawn == [Notice("error", "Odd.", "Of Opening."), Notice("info", "Hello.")]
    job_queue.start("files", "goes well", says("Hello again."), log.take, kind="Opening")
    assert withdrawn[2:] == [Notice("info", "Hello.")]


def test_a_failure_while_closing_is_reported(
    qtbot: QtBot, job_queue: JobQueue, log: Log, failures: list[JobFailed]
) -> None:
    def events() -> Events:
        try:
            yield from endless()
        finally:
            raise UsageError("It would not end.")

    job = job_queue.start("files", "stubborn", events(), log.take)
    qtbot.waitUntil(lambda: log.count(Progress) > 0)
    job_queue.cancel(job)
    qtbot.waitUntil(log.ended)
    assert failures == [JobFailed("It would not end.")]


def test_shutting_down_closes_running_and_paused_jobs(qtbot: QtBot, log: Log) -> None:
    job_queue = JobQueue()
    closed: list[float] = []
    paused = Log()
    job = job_queue.start("engine", "a", ticks(closed=closed), paused.take, background=True)
    job_queue.start("files", "b", ticks(closed=closed), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 2 and paused.count(LossChunk) > 2)
    job_queue.pause(job)
    assert job_queue.shut_down(2000)
    assert len(closed) == 2


def start_hanging(qtbot: QtBot, job_queue: JobQueue, log: Log) -> threading.Event:
    """Start a job that hangs in the engine until the returned event is set."""
    free = threading.Event()

    def events() -> Events:
        yield Notice("info", "begun")
        free.wait(20)

    job_queue.start("engine", "stuck", events(), log.take)
    qtbot.waitUntil(lambda: log.count(Notice) == 1)
    return free


def test_a_job_that_hangs_does_not_hold_the_shut_down(qtbot: QtBot, log: Log) -> None:
    job_queue = JobQueue()
    free = start_hanging(qtbot, job_queue, log)
    assert not job_queue.shut_down(100)
    free.set()
    assert job_queue.shut_down(5000)


def test_a_queue_that_is_deleted_while_a_job_hangs_does_not_abort_the_process(qtbot: QtBot, log: Log) -> None:
    job_queue = JobQueue()
    free = start_hanging(qtbot, job_queue, log)
    engine = job_queue._workers["engine"]
    assert not job_queue.shut_down(10)
    shiboken6.delete(job_queue)  # as the collection of the session does; Qt deletes the children of the queue
    assert engine.isRunning()
    free.set()
    assert engine.shut_down(5000)


def test_both_workers_close_their_jobs_while_one_of_them_is_awaited(qtbot: QtBot, log: Log) -> None:
    job_queue, free = JobQueue(), threading.Event()

    def waits() -> Events:
        yield Notice("info", "begun")
        free.wait(20)

    def frees() -> Events:
        try:
            yield from endless()
        finally:
            free.set()

    job_queue.start("files", "freeing", frees(), log.take)
    job_queue.start("engine", "stuck", waits(), log.take)
    qtbot.waitUntil(lambda: log.count(Notice) == 1 and log.count(Progress) > 0)
    assert job_queue.shut_down(5000)


def test_fault_32_a_flood_of_losses_stays_flat_and_loses_none(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    count = 20_000
    job_queue.start("engine", "training", (chunk(step) for step in range(count)), log.take, background=True)
    qtbot.waitUntil(log.ended, timeout=20_000)
    chunks = [event for event in log.events if isinstance(event, LossChunk)]
    assert len(chunks) < count / 50
    np.testing.assert_array_equal(np.concatenate([one.losses for one in chunks]), np.arange(count, dtype=np.float32))


def test_fault_32_undelivered_losses_need_little_memory() -> None:
    box, job, count = Mailbox(), Job("training", says(), lambda event: None), 20_000
    tracemalloc.start()
    try:
        for step in range(count):
            box.put(job, chunk(step))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(box) == 1 and held_bytes < 4 * (2 * 4 * count)


def test_fault_32_a_full_mailbox_slows_the_job(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    said = []

    def events() -> Events:
        for number in range(10_000):
            said.append(number)
            yield Notice("info", str(number))

    job_queue.start("engine", "chatter", events(), log.take)
    threading.Event().wait(0.3)  # the main thread is away
    assert len(said) < 3000
    qtbot.waitUntil(log.ended, timeout=20_000)
    assert log.count(Notice) == 10_000


def test_losses_of_a_training_wake_the_window_rarely(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    job_queue.set_wakeup_interval(0.3)
    job = job_queue.start("engine", "training", ticks(0.001), log.take, background=True)
    qtbot.waitUntil(lambda: log.count(LossChunk) >= 4)
    begun = time.perf_counter()
    qtbot.waitUntil(lambda: log.count(LossChunk) >= 7)
    assert time.perf_counter() - begun > 0.5
    job_queue.cancel(job)
    qtbot.waitUntil(log.ended)


def test_the_mailbox_keeps_the_newest_progress_and_joins_losses() -> None:
    box = Mailbox()
    job, other = (Job(title, says(), lambda event: None) for title in ("import", "training"))
    for done in range(1000):
        box.put(job, Progress(done, 1000, "files"))
        box.put(other, chunk(done))
    assert len(box) == 2
    newest, (_, losses) = box.drain()
    assert newest == (job, Progress(999, 1000, "files"))
    assert isinstance(losses, LossChunk) and len(losses.losses) == 1000 and losses.first_step == 0


def test_the_mailbox_joins_only_consecutive_losses() -> None:
    box = Mailbox()
    job = Job("training", says(), lambda event: None)
    for event in (chunk(0, 3), chunk(5), Progress(1, 2, "a"), Progress(1, 2, "b")):
        box.put(job, event)
    assert len(box.drain()) == 4
    assert box.needs_wakeup()
    assert not box.needs_wakeup()


def test_an_ended_job_returns_its_memory(
    qtbot: QtBot, job_queue: JobQueue, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[str] = []
    monkeypatch.setattr(
        "studio.core.process.HeapTrimmer.trim", lambda self: given_back.append(threading.current_thread().name)
    )
    for place in ("engine", "files"):
        job_queue.start(place, "Work", says("a"), log.take)
    qtbot.waitUntil(lambda: len(given_back) == 2)
    assert threading.main_thread().name not in given_back
