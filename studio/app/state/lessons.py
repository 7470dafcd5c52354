"""The lessons of the Lab page: the learner's records, measurements with predictions, and runs of code."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.catalog import EngineCatalog
from studio.app.state.lab import Lab
from studio.app.state.late import code_child, hand_in, learning, lesson_base, lesson_records
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.core.events import Event, Events


class CodeRun(QObject):
    """Runs one program at a time in a child process, and collects what the program prints."""

    changed = Signal()  # the program started, printed or ended

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self.output = ""
        self.is_loading = False  # whether the process still loads PyTorch
        self.is_cancelled = False
        self.done: code_child.CodeDone | None = None  # how the last program ended

    def is_running(self) -> bool:
        return self._job is not None

    def start(self, events: Callable[[], Events]) -> None:
        """Start a program, unless one is running. events: makes the generator of `learn.running`."""
        if self._job is None:
            self.output, self.is_loading, self.is_cancelled, self.done = "", True, False, None
            self._job = self._job_queue.start("files", "Your program", events, self._on_event)
            self.changed.emit()

    @Slot()
    def stop(self) -> None:
        if self._job is not None:
            self.is_cancelled = True
            self._job_queue.cancel(self._job)

    def clear(self) -> None:
        """Stop the program and forget its output."""
        self._job_queue.abandon(self._job)
        self._job, self.output, self.done, self.is_cancelled = None, "", None, False
        self.changed.emit()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, JobEnded):
            self._job = None
        elif isinstance(event, code_child.CodePrinted):
            self.output += event.text
        elif isinstance(event, code_child.CodeDone):
            self.done = event
        elif isinstance(event, code_child.CodeStarted) and event.is_running == self.is_loading:
            self.is_loading = not event.is_running
        else:
            return
        self.changed.emit()


class Lessons(QObject):
    """The path of lessons, with what the learner has predicted, measured and solved."""

    changed = Signal()  # records were loaded, or a record changed
    switched = Signal()  # the records of another learner were loaded

    def __init__(
        self, job_queue: JobQueue, settings: Settings, catalog: EngineCatalog, open_sprites: OpenSprites,
        devices: DeviceChoice, lab: Lab, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._job_queue, self._settings, self._catalog = job_queue, settings, catalog
        self._open_sprites, self._devices, self._lab = open_sprites, devices, lab
        self._records: dict[str, lesson_records.LessonRecord] = {}
        self._loaded = ""  # the learner of the records
        catalog.ready.connect(self.load_records)

    def known(self) -> list[lesson_base.Lesson]:
        """Return the lessons in the order of the path; none before the catalog is loaded."""
        return list(self._catalog.lessons.values())

    def learner(self) -> str:
        """Return the name for the answers: the typed name, or that of the user's account."""
        return self._settings.text("learner") or lesson_records.default_learner()

    def set_learner(self, name: str) -> None:
        """Store the learner's name, and load the learner's records. ''  for the name of the user's account."""
        if name != self._settings.text("learner"):
            self._settings.set_text("learner", name)
            self.load_records()

    def record(self, lesson: lesson_base.Lesson) -> lesson_records.LessonRecord | None:
        """Return the learner's record of a lesson; None before the records are loaded."""
        return self._records.get(lesson.name)

    @Slot()
    def load_records(self) -> None:
        """Load the learner's records, including those of the command line."""
        learner, names = self.learner(), [lesson.name for lesson in self.known()]

        def load() -> dict[str, lesson_records.LessonRecord]:
            return {name: lesson_records.load_record(learner, name) for name in names}

        on_loaded = partial(self._on_loaded, learner)
        self._job_queue.run("files", "Loading answers", load, on_loaded, background=True)

    def problem(self, lesson: lesson_base.Lesson) -> str:
        """Return why the lesson can't be measured now; empty if it can."""
        if self._lab.running is not None:
            return f"'{self._lab.running.title}' is running."
        device = self._devices.device
        return lesson.obstacle(device) if device is not None else "Searching for devices…"

    def measure(self, lesson: lesson_base.Lesson, answer: lesson_base.Answer | None) -> None:
        """Measure, with the open sprites or the demo sprites. answer: None if the learner skipped the prediction."""
        device, opened, learner = self._devices.device, self._open_sprites.sprites, self.learner()
        if device is None or self.problem(lesson):
            return

        def run() -> Events:
            sprites = opened if opened is not None else (yield from jobs.demo_sprites())
            context = learning.lesson_context(sprites, device, lesson.seconds)
            yield from learning.run_lesson(lesson, context, answer, learner)

        self._lab.launch(lesson, f"Lesson: {lesson.title}", run, self._on_event)

    def code_run(self) -> CodeRun:
        """Return a new runner of code."""
        return CodeRun(self._job_queue, self)

    def run_code(self, code_run: CodeRun, code: str) -> None:
        """Run code in a child process with a time limit."""
        code_run.start(lambda: learning.run_code(code))

    def check(self, code_run: CodeRun, lesson: lesson_base.Lesson, code: str) -> None:
        """Run a solution in a child process, check it, and keep it in the learner's record."""
        learner = self.learner()

        def check() -> Generator[Event, None, None]:
            yield from learning.check_exercise(lesson, code, learner)

        code_run.start(check)

    def save_page(self, path: Path) -> None:
        """Write the page to hand in."""
        learner = self.learner()
        self._job_queue.run("files", "Writing page", lambda: hand_in.save_page(path, learner), self._lab.announce_saved)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, learning.LessonDone):
            self._records[event.record.lesson] = event.record
            self.changed.emit()

    def _on_loaded(self, learner: str, records: dict[str, lesson_records.LessonRecord]) -> None:
        is_other, self._records, self._loaded = learner != self._loaded, records, learner
        self.changed.emit()
        if is_other:
            self.switched.emit()
