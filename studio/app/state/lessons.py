"""The lessons of the Lab page: the class, the learner's records, measurements with predictions, and runs of code."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.catalog import EngineCatalog
from studio.app.state.code_run import CodeRun
from studio.app.state.lab import Lab
from studio.app.state.late import class_files, hand_in, learning, lesson_base, lesson_records
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.core import paths
from studio.core.events import Event, Events, JobFailed

_CLASS, _LEARNER = "class_file", "learner"  # names in the settings
_KIND = "class file"


class Lessons(QObject):
    """The path of lessons, with what the learner has predicted, measured and solved."""

    listed = Signal()  # the path has other lessons: those of a class, or all
    changed = Signal()  # records were loaded, or a record changed
    switched = Signal()  # the records of another learner were loaded

    def __init__(
        self, job_queue: JobQueue, settings: Settings, catalog: EngineCatalog, open_sprites: OpenSprites,
        devices: DeviceChoice, lab: Lab, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._job_queue, self._settings, self._catalog = job_queue, settings, catalog
        self._open_sprites, self._devices, self._lab = open_sprites, devices, lab
        self.in_class: class_files.ClassSettings | None = None  # None before the catalog is loaded
        self.class_problem = ""  # why the remembered class file can't be used, as a sentence
        self._reading: Job | None = None  # of a class file
        self._known: list[lesson_base.Lesson] = []
        self._records: dict[str, lesson_records.LessonRecord] = {}
        self._drafts: dict[tuple[str, str], str] = {}  # stored code of exercises, by learner and lesson
        self._exercises: dict[tuple[str, str], CodeRun] = {}  # by learner and lesson
        self._programs: dict[tuple[str, str], CodeRun] = {}  # by learner and lesson
        self._loaded = ""  # the learner of the records
        catalog.ready.connect(self._on_catalog_ready)

    # The class

    def known(self) -> list[lesson_base.Lesson]:
        """Return the lessons in the order of the path; none before the catalog and the class file are loaded."""
        return self._known

    def class_file(self) -> str:
        """Return the path of the remembered class file, '' without a class."""
        return self._settings.text(_CLASS)

    def open_class(self, path: Path) -> None:
        """Read a class file, show its lessons and remember the file; a wrong file changes nothing."""
        self._read_class(path, partial(self._on_opened, path))

    def leave_class(self) -> None:
        """Forget the class file and show all lessons."""
        self._settings.set_text(_CLASS, "")
        self._job_queue.abandon(self._reading)  # a file on a lost drive is read for long
        self._job_queue.withdraw(_KIND)
        self._set_class(class_files.ClassSettings())

    @Slot()
    def _on_catalog_ready(self) -> None:
        remembered = self.class_file()
        if remembered:
            self._read_class(Path(remembered), self._on_remembered)
        else:
            self._set_class(class_files.ClassSettings())

    def _read_class(self, path: Path, receive: Callable[[Event], None]) -> None:
        def read() -> class_files.ClassSettings:
            return class_files.read_class(path)

        self._job_queue.abandon(self._reading)
        self._reading = self._job_queue.run("files", "Reading class file", read, self._set_class, receive, kind=_KIND)

    def _on_opened(self, path: Path, event: Event) -> None:
        if isinstance(event, JobEnded) and event.outcome == "done":
            self._settings.set_text(_CLASS, str(path))

    def _on_remembered(self, event: Event) -> None:
        """Show all lessons if the remembered class file can't be used, but do not forget the file."""
        if isinstance(event, JobFailed):
            self._set_class(class_files.ClassSettings(), event.title)

    def _set_class(self, found: class_files.ClassSettings, problem: str = "") -> None:
        self.in_class, self.class_problem = found, problem
        self._known = [lesson for _, lesson in found.lessons()]
        self.listed.emit()
        self.load_records()

    # The learner

    def learner(self) -> str:
        """Return the name for the answers: the typed name, or that of the user's account."""
        return self._settings.text(_LEARNER) or lesson_records.default_learner()

    def set_learner(self, name: str) -> None:
        """Store the learner's name, and load the learner's records. ''  for the name of the user's account."""
        if name != self._settings.text(_LEARNER):
            self._settings.set_text(_LEARNER, name)
            self.load_records()

    def name_problem(self) -> str:
        """Return why a name must be typed before an answer is handed in; empty if none is missing."""
        is_missing = self._hand_in_folder() is not None and not self._settings.text(_LEARNER)
        return "Type your name first." if is_missing else ""

    def record(self, lesson: lesson_base.Lesson) -> lesson_records.LessonRecord | None:
        """Return the learner's record of a lesson; None before the records are loaded."""
        return self._records.get(lesson.name)

    @Slot()
    def load_records(self) -> None:
        """Load the learner's records, including those of the command line."""
        learner, names = self.learner(), [lesson.name for lesson in self.known()]

        def load() -> _Loaded:
            records = {name: lesson_records.load_record(learner, name) for name in names}
            return records, {name: lesson_records.load_draft(learner, name) for name in names}

        on_loaded = partial(self._on_loaded, learner)
        self._job_queue.run("files", "Loading answers", load, on_loaded, background=True)

    # Measurements

    def problem(self, lesson: lesson_base.Lesson) -> str:
        """Return why the lesson can't be measured now; empty if it can."""
        if self._lab.running is not None:
            return f"'{self._lab.running.title}' is running."
        device = self._devices.device
        if device is None:
            return "Searching for devices…"
        return lesson.obstacle(device) or self.name_problem()

    def measure(self, lesson: lesson_base.Lesson, answer: lesson_base.Answer | None) -> None:
        """Measure with the class's sprites, the open sprites or the demo sprites.

        answer: None if the learner skipped the prediction.
        """
        device, opened, learner = self._devices.device, self._open_sprites.sprites, self.learner()
        settings = self.in_class
        if device is None or settings is None or self.problem(lesson):
            return

        def run() -> Events:
            sprites = opened
            if sprites is None or settings.sprites is not None:
                sprites = yield from jobs.read_folder(settings.sprites or paths.demo_sprites())
            context = learning.lesson_context(sprites, device, settings.seconds or lesson.seconds)
            yield from learning.run_lesson(lesson, context, answer, learner)
            _write_page(settings, learner)

        self._lab.launch(lesson, f"Lesson: {lesson.title}", run, partial(self._on_event, learner))

    # Programs

    def code_run(self) -> CodeRun:
        """Return a new runner of code."""
        return CodeRun(self._job_queue, self)

    def program(self, lesson: lesson_base.Lesson) -> CodeRun:
        """Return the runner of the lesson's program, as the learner has edited it."""
        key = (self.learner(), lesson.name)
        if key not in self._programs:
            self._programs[key] = self.code_run()
        return self._programs[key]

    def exercise(self, lesson: lesson_base.Lesson) -> CodeRun:
        """Return the runner of the learner's exercise, with the learner's code."""
        key = (self.learner(), lesson.name)
        if key not in self._exercises:
            self._exercises[key] = self.code_run()
        run = self._exercises[key]
        if run.code is None:
            run.code = self._drafts.get(key)
        return run

    def run_code(self, code_run: CodeRun, code: str) -> None:
        """Run code in a child process with a time limit."""
        code_run.start(lambda: learning.run_code(code))

    def check(self, lesson: lesson_base.Lesson, code: str) -> None:
        """Run a solution in a child process, check it, and keep it in the learner's record."""
        learner, settings = self.learner(), self.in_class

        def check() -> Generator[Event, None, None]:
            yield from learning.check_exercise(lesson, code, learner)
            if settings is not None:
                _write_page(settings, learner)

        run = self.exercise(lesson)
        run.code = code
        run.start(check, partial(self._on_event, learner))

    def save_drafts(self) -> None:
        """Store the edited code of exercises. Raises OSError."""
        for (learner, lesson), run in self._exercises.items():
            if run.code is not None and run.code != self._drafts.get((learner, lesson)):
                lesson_records.save_draft(learner, lesson, run.code)
                self._drafts[learner, lesson] = run.code

    # The page to hand in

    def save_page(self, path: Path) -> None:
        """Write the page to hand in."""
        learner = self.learner()
        self._job_queue.run("files", "Writing page", lambda: hand_in.save_page(path, learner), self._lab.announce_saved)

    def _hand_in_folder(self) -> Path | None:
        return self.in_class.hand_in if self.in_class is not None else None

    def _on_event(self, learner: str, event: Event) -> None:
        """Show a new record, unless another learner has typed a name meanwhile."""
        if not isinstance(event, learning.LessonDone | learning.ExerciseChecked):
            return
        if learner == self._loaded:
            self._records[event.record.lesson] = event.record
            self.changed.emit()
        elif learner == self.learner():  # the records are still being loaded, perhaps without this one
            self.load_records()

    def _on_loaded(self, learner: str, loaded: _Loaded) -> None:
        records, drafts = loaded
        for name, draft in drafts.items():
            key = (learner, name)
            if draft is not None and key not in self._drafts:
                self._drafts[key] = draft
        is_other, self._records, self._loaded = learner != self._loaded, records, learner
        self.changed.emit()
        if is_other:
            self.switched.emit()


_Loaded = tuple[dict[str, "lesson_records.LessonRecord"], dict[str, str | None]]  # by lesson: records, drafts


def _write_page(settings: class_files.ClassSettings, learner: str) -> None:
    """Write the learner's page into the folder of the class, if the class has a folder. Raises ExportError."""
    if settings.hand_in is not None:
        hand_in.save_page(settings.hand_in, learner)
