"""The lessons of the Lab page: the learner's records, measurements with predictions, and runs of code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue
from studio.app.state.class_file import ClassFile
from studio.app.state.code_run import CodeRun
from studio.app.state.lab import Lab
from studio.app.state.late import class_settings, hand_in, learning, lesson_base, lesson_records
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.core import paths
from studio.core.events import Event, Events

_NAME = "learner"  # settings key: the typed name
_Records = dict[str, "lesson_records.LessonRecord"]  # by lesson
_Loaded = tuple[_Records, dict[str, str | None]]  # records and drafts, by lesson
_Key = tuple[str, str]  # learner, and name of a lesson


class Lessons(QObject):
    """The path of lessons, with the learner's predictions, measurements and exercises."""

    listed = Signal()  # `known` returns other lessons
    changed = Signal()  # records were loaded, or a record changed
    switched = Signal()  # records of another learner were loaded

    def __init__(
        self, job_queue: JobQueue, settings: Settings, class_file: ClassFile, open_sprites: OpenSprites,
        devices: DeviceChoice, lab: Lab, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._job_queue, self._settings, self._class_file = job_queue, settings, class_file
        self._open_sprites, self._devices, self._lab = open_sprites, devices, lab
        self._known: list[lesson_base.Lesson] = []
        self._records: _Records = {}
        self._drafts: dict[_Key, str] = {}  # stored code by exercise
        self._exercises = defaultdict[_Key, CodeRun](self.code_run)
        self._programs = defaultdict[_Key, CodeRun](self.code_run)
        self._loaded = ""  # learner of `_records`
        class_file.changed.connect(self._on_class_changed)

    def known(self) -> list[lesson_base.Lesson]:
        """Return the lessons in the order of the path; none before the catalog and the class file are loaded."""
        return self._known

    def learner(self) -> str:
        """Return the name for the answers: the typed name, or the name of the user's account."""
        return self.typed_name() or lesson_records.default_learner()

    def typed_name(self) -> str:
        """Return the name that the learner has typed, or ''."""
        return self._settings.text(_NAME)

    def set_learner(self, name: str) -> None:
        """Store the learner's name, and load the learner's records. '' for the name of the user's account."""
        if name != self.typed_name():
            self._settings.set_text(_NAME, name)
            self.load_records()

    def name_problem(self) -> str:
        """Return a sentence if the class collects pages and no name is typed; else ''."""
        content = self._class_file.content
        collects_pages = content is not None and content.hand_in is not None
        return "Type your name first." if collects_pages and not self.typed_name() else ""

    def record(self, lesson: lesson_base.Lesson) -> lesson_records.LessonRecord | None:
        """Return the learner's record of a lesson; None before the records are loaded."""
        return self._records.get(lesson.name)

    @Slot()
    def load_records(self) -> None:
        """Load the learner's records, including records from the command line."""
        learner, names = self.learner(), [lesson.name for lesson in self.known()]

        def load() -> _Loaded:
            records = {name: lesson_records.load_record(learner, name) for name in names}
            return records, {name: lesson_records.load_draft(learner, name) for name in names}

        on_loaded = partial(self._on_loaded, learner, self._records)
        self._job_queue.run("files", "Loading answers", load, on_loaded, background=True)

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
        content = self._class_file.content
        if device is None or content is None or self.problem(lesson):
            return

        def run() -> Events:
            sprites = opened
            if sprites is None or content.sprites is not None:
                sprites = yield from jobs.read_folder(content.sprites or paths.demo_sprites())
            context = learning.lesson_context(sprites, device, content.seconds or lesson.seconds)
            yield from learning.run_lesson(lesson, context, answer, learner)
            _hand_in_page(content, learner)

        self._lab.launch(lesson, f"Lesson: {lesson.title}", run, partial(self._on_event, learner))

    def code_run(self) -> CodeRun:
        """Return a new runner for programs."""
        return CodeRun(self._job_queue, self)

    def program(self, lesson: lesson_base.Lesson) -> CodeRun:
        """Return the runner of the lesson's program, with the learner's edits."""
        return self._programs[self.learner(), lesson.name]

    def exercise(self, lesson: lesson_base.Lesson) -> CodeRun:
        """Return the runner of the lesson's exercise, with the learner's code."""
        key = self.learner(), lesson.name
        run = self._exercises[key]
        if run.code is None:
            run.code = self._drafts.get(key)
        return run

    def check(self, lesson: lesson_base.Lesson, code: str) -> None:
        """Run a solution in a child process, check the result, and store both in the learner's record."""
        learner, content = self.learner(), self._class_file.content

        def check() -> Generator[Event, None, None]:
            yield from learning.check_exercise(lesson, code, learner)
            if content is not None:
                _hand_in_page(content, learner)

        run = self.exercise(lesson)
        run.code = code
        run.start(check, partial(self._on_event, learner))

    def save_drafts(self) -> None:
        """Store the edited code of exercises. Raises OSError."""
        for (learner, lesson), run in self._exercises.items():
            if run.code is not None and run.code != self._drafts.get((learner, lesson)):
                lesson_records.save_draft(learner, lesson, run.code)
                self._drafts[learner, lesson] = run.code

    def save_page(self, path: Path) -> None:
        """Write the page to hand in."""
        learner = self.learner()
        self._job_queue.run("files", "Writing page", lambda: hand_in.save_page(path, learner), self._lab.announce_saved)

    @Slot()
    def _on_class_changed(self) -> None:
        content = self._class_file.content
        self._known = [lesson for _, lesson in content.lessons()] if content is not None else []
        self.listed.emit()
        self.load_records()

    def _on_event(self, learner: str, event: Event) -> None:
        """Store a new record, unless another learner has typed a name meanwhile."""
        if not isinstance(event, learning.LessonDone | learning.ExerciseChecked):
            return
        if learner == self._loaded:
            self._records = {**self._records, event.record.lesson: event.record}
            self.changed.emit()
        elif learner == self.learner():  # the records are still being loaded, perhaps without this record
            self.load_records()

    def _on_loaded(self, learner: str, before: _Records, loaded: _Loaded) -> None:
        """Show the loaded records. before: value of `_records` before the load; if it has changed, load again."""
        if self._records is not before:
            self.load_records()
            return
        records, drafts = loaded
        for name, draft in drafts.items():
            key = (learner, name)
            if draft is not None and key not in self._drafts:
                self._drafts[key] = draft
        is_other, self._records, self._loaded = learner != self._loaded, records, learner
        self.changed.emit()
        if is_other:
            self.switched.emit()


def _hand_in_page(content: class_settings.ClassSettings, learner: str) -> None:
    """Write the learner's page into the folder of the class, if the class has a folder. Raises ExportError."""
    if content.hand_in is not None:
        hand_in.save_page(content.hand_in, learner)
