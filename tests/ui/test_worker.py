"""The thread that drives jobs: their order, pausing, cancelling, failing, and floods."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QObject, QThread, QTimer, Slot
from pytestqt.qtbot import QtBot

from studio.app.background import worker
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded, JobPaused, Mailbox
from studio.core.errors import UsageError
from studio.core.events import Event, Events, JobFailed, LossChunk, Notice, Progress
from studio.data.reading.read import all_sources


class Log(QObject):
    """Collects what jobs say, and in which thread it arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.threads: set[QThread] = set()
        self.failures: list[JobFailed] = []

    @Slot(object)
    def take(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(QThread.currentThread())

    @Slot(object)
    def fail(self, failure: JobFailed) -> None:
        self.failures.append(failure)

    def ended(self) -> bool:
        return any(isinstance(event, JobEnded) for event in self.events)

    def outcome(self) -> str:
        return next(event.outcome for event in self.events if isinstance(event, JobEnded))

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


@pytest.fixture
def log() -> Log:
    return Log()


def says(*words: str, then: Callable[[], object] | None = None) -> Events:
    for word in words:
        yield Notice("info", word)
    if then is not None:
        then()


def ticks(seconds: float = 0.002, closed: list[float] | None = None, started: threading.Event | None = None) -> Events:
    """A training without end: a loss a tick."""
    step = 0
    try:
        while True:
            time.sleep(seconds)
            yield chunk(step)
            step += 1
            if started is not None:
                started.set()
    finally:
        if closed is not None:
            closed.append(time.perf_counter())


def chunk(step: int, count: int = 1) -> LossChunk:
    losses = np.arange(step, step + count, dtype=np.float32)
    return LossChunk(step, losses, losses, 0.1, 1.0, 1.0, 1.0, 0.0, 0)


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
    started = threading.Event()
    job = job_queue.start("engine", "training", ticks(started=started), training.take, background=True)
    qtbot.waitUntil(started.is_set)
    order: list[str] = []
    job_queue.start("engine", "first", says("x", "y", then=lambda: order.append("first")), log.take)
    job_queue.start("engine", "second", says("z", then=lambda: order.append("second")), log.take)
    qtbot.waitUntil(lambda: log.count(JobEnded) == 2)
    assert order == ["first", "second"]
    before = training.count(LossChunk)
    qtbot.waitUntil(lambda: training.count(LossChunk) > before)
    job_queue.cancel(job)
    qtbot.waitUntil(training.ended)


def test_the_window_draws_between_events_that_take_long_to_receive(qtbot: QtBot, job_queue: JobQueue) -> None:
    order: list[str] = []

    def receive(event: Event) -> None:
        order.append(event.title if isinstance(event, Notice) else "end")
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.02:
            pass

    job = Job("slow", says(), receive)
    job_queue._running[job] = "files"
    for event in (Notice("info", "a"), Notice("info", "b"), JobEnded("done")):
        job_queue._workers["files"]._mailbox.put(job, event)
    QTimer.singleShot(0, lambda: order.append("drawn"))
    job_queue.deliver()
    assert order == ["a"]
    qtbot.waitUntil(lambda: order == ["a", "drawn", "b", "end"])


def test_a_background_job_lets_the_window_show_what_came_before_it(qtbot: QtBot, job_queue: JobQueue) -> None:
    background, order = Log(), list[str]()
    job_queue._submit_timer.setInterval(100)  # as in the application
    QTimer.singleShot(20, lambda: order.append("shown"))
    job_queue.start("files", "looking", says(then=lambda: order.append("begun")), background.take, background=True)
    qtbot.waitUntil(background.ended)
    assert order == ["shown", "begun"]


def test_a_background_job_that_waits_at_the_shut_down_never_begins(log: Log) -> None:
    job_queue = JobQueue()
    begun = threading.Event()
    job_queue.start("files", "looking", says(then=begun.set), log.take, background=True)
    assert job_queue.shut_down(2000)
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


def test_a_hurried_job_goes_before_all_others(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    training, ending = Log(), threading.Event()

    def events() -> Events:
        while not ending.wait(0.002):
            yield Notice("info", "tick")

    job = job_queue.start("engine", "training", events(), training.take, background=True)
    qtbot.waitUntil(lambda: training.count(Notice) > 0)
    endless = job_queue.start("engine", "generating", ticks(), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 0)
    assert not training.ended()
    ending.set()
    job_queue.prioritize(job)
    qtbot.waitUntil(training.ended)
    assert not log.ended()
    job_queue.cancel(endless)
    qtbot.waitUntil(log.ended)


def test_a_job_that_is_given_up_ends_and_says_no_more(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    closed: list[float] = []
    job = job_queue.start("engine", "search", ticks(closed=closed), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 0)
    job_queue.give_up(job)
    received = len(log.events)
    qtbot.waitUntil(lambda: not job_queue.running())
    assert closed
    assert len(log.events) == received


def test_a_job_that_is_given_up_does_not_complain(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    begun, failing = threading.Event(), threading.Event()
    failures: list[JobFailed] = []
    job_queue.failed.connect(failures.append)

    def events() -> Events:
        yield Progress(1, 2, "things")
        begun.set()
        failing.wait()
        raise UsageError("No such class.", "Choose another.")

    job = job_queue.start("files", "old", events(), log.take)
    qtbot.waitUntil(begun.is_set)
    job_queue.give_up(job)
    failing.set()
    qtbot.waitUntil(lambda: not job_queue.running())
    assert failures == [] and log.count(JobFailed) == 0


def test_mail_that_waits_to_be_handed_out_leaves_the_rest_in_its_box(qtbot: QtBot, job_queue: JobQueue) -> None:
    received: list[Event] = []

    def receive(event: Event) -> None:
        received.append(event)
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.02:
            pass

    job, box = Job("fast", says(), receive), job_queue._workers["engine"]._mailbox
    job_queue._running[job] = "engine"
    for title in ("a", "b"):
        box.put(job, Notice("info", title))
    job_queue.deliver()
    for step in range(3):
        box.put(job, chunk(step))
    box.put(job, JobEnded("done"))
    qtbot.waitUntil(lambda: not job_queue.running())
    assert [type(event) for event in received] == [Notice, Notice, LossChunk, JobEnded]
    assert len(received[2].losses) == 3  # type: ignore[attr-defined]


def test_cancelling_closes_the_generator_within_a_tick(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    closed: list[float] = []
    job = job_queue.start("files", "import", ticks(0.02, closed), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 0)
    asked = time.perf_counter()
    job_queue.cancel(job)
    qtbot.waitUntil(log.ended)
    assert log.outcome() == "cancelled"
    assert closed[0] - asked < 0.1


def test_an_error_of_the_studio_keeps_its_words(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    def events() -> Events:
        yield Progress(1, 2, "things")
        raise UsageError("No such class.", "Choose another.")

    job_queue.failed.connect(log.fail)
    job_queue.start("engine", "generating", events(), log.take)
    qtbot.waitUntil(log.ended)
    assert log.failures == [JobFailed("No such class.", "Choose another.")]
    assert log.outcome() == "failed"


def test_fault_31_a_bug_comes_with_its_traceback_and_the_worker_lives(
    qtbot: QtBot, job_queue: JobQueue, log: Log
) -> None:
    def events() -> Events:
        yield Progress(1, 2, "things")
        raise ZeroDivisionError("by zero")

    job_queue.failed.connect(log.fail)
    job_queue.start("engine", "generating", events(), log.take)
    qtbot.waitUntil(log.ended)
    assert "ZeroDivisionError" in log.failures[0].details
    assert "Traceback" not in log.failures[0].title + log.failures[0].hint
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


def test_a_failure_while_closing_is_told(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    def events() -> Events:
        try:
            while True:
                yield Progress(1, 2, "things")
        finally:
            raise UsageError("It would not end.")

    job_queue.failed.connect(log.fail)
    job = job_queue.start("files", "stubborn", events(), log.take)
    qtbot.waitUntil(lambda: log.count(Progress) > 0)
    job_queue.cancel(job)
    qtbot.waitUntil(log.ended)
    assert log.failures == [JobFailed("It would not end.")]


def test_shutting_down_closes_what_runs_and_what_is_paused(qtbot: QtBot, log: Log) -> None:
    job_queue = JobQueue()
    closed: list[float] = []
    paused = Log()
    job = job_queue.start("engine", "a", ticks(closed=closed), paused.take, background=True)
    job_queue.start("files", "b", ticks(closed=closed), log.take)
    qtbot.waitUntil(lambda: log.count(LossChunk) > 2 and paused.count(LossChunk) > 2)
    job_queue.pause(job)
    assert job_queue.shut_down(2000)
    assert len(closed) == 2


def test_nothing_begins_after_the_shut_down(qtbot: QtBot, log: Log) -> None:
    job_queue = JobQueue()
    assert job_queue.shut_down(2000)
    job_queue.start("files", "late", ticks(), log.take)
    job_queue.start("engine", "late, in the background", ticks(), log.take, background=True)
    job_queue._submit_delayed()
    assert not any(worker.isRunning() for worker in job_queue._workers.values())


def test_a_job_that_hangs_does_not_hold_the_shut_down(qtbot: QtBot, log: Log) -> None:
    job_queue, free = JobQueue(), threading.Event()

    def events() -> Events:
        yield Notice("info", "begun")
        free.wait(20)

    job_queue.start("engine", "stuck", events(), log.take)
    qtbot.waitUntil(lambda: log.count(Notice) == 1)
    assert not job_queue.shut_down(100)
    free.set()
    assert job_queue.shut_down(5000)


def test_a_full_disk_is_told_by_its_name() -> None:
    failure = worker.failure(OSError(28, "No space left on device", "/runs/trial"))
    assert failure.title == "Can't use /runs/trial."
    assert failure.hint == "No space left on device."


def test_fault_32_a_flood_of_losses_stays_flat_and_loses_none(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
    count = 20_000

    def events() -> Events:
        for step in range(count):
            yield chunk(step)

    job_queue.start("engine", "training", events(), log.take, background=True)
    qtbot.waitUntil(log.ended, timeout=20_000)
    chunks = [event for event in log.events if isinstance(event, LossChunk)]
    assert len(chunks) < count / 50
    np.testing.assert_array_equal(np.concatenate([one.losses for one in chunks]), np.arange(count, dtype=np.float32))


def test_fault_32_losses_that_nobody_takes_need_no_more_room_than_their_numbers() -> None:
    box, job, count = Mailbox(), Job("training", says(), lambda event: None), 20_000
    tracemalloc.start()
    try:
        for step in range(count):
            box.put(job, chunk(step))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(box) == 1 and held_bytes < 4 * (2 * 4 * count)


def test_fault_32_a_job_that_says_more_than_can_be_heard_waits(qtbot: QtBot, job_queue: JobQueue, log: Log) -> None:
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
    job_queue.set_quiet_interval(0.3)
    job = job_queue.start("engine", "training", ticks(0.001), log.take, background=True)
    qtbot.waitUntil(lambda: log.count(LossChunk) >= 4)
    begun = time.perf_counter()
    qtbot.waitUntil(lambda: log.count(LossChunk) >= 7)
    assert time.perf_counter() - begun > 0.5
    job_queue.cancel(job)
    qtbot.waitUntil(log.ended)


def test_the_mailbox_keeps_the_newest_progress_only() -> None:
    box = Mailbox()
    job = Job("import", says(), lambda event: None)
    other = Job("other", says(), lambda event: None)
    for done in range(1000):
        box.put(job, Progress(done, 1000, "files"))
        box.put(other, chunk(done))
    assert len(box) == 2
    mail = box.take()
    assert mail[0] == (job, Progress(999, 1000, "files"))
    losses = mail[1][1]
    assert isinstance(losses, LossChunk)
    assert len(losses.losses) == 1000
    assert losses.first_step == 0


def test_the_mailbox_does_not_join_what_is_apart() -> None:
    box = Mailbox()
    job = Job("training", says(), lambda event: None)
    for event in (chunk(0, 3), chunk(5), Progress(1, 2, "a"), Progress(1, 2, "b")):
        box.put(job, event)
    assert len(box.take()) == 4
    assert box.claim_announcement()
    assert not box.claim_announcement()
