"""The class file of a teacher, which chooses the lessons and is remembered between sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.catalog import EngineCatalog
from studio.app.state.late import class_settings
from studio.app.state.settings import Settings
from studio.core.events import Event, JobFailed

_PATH = "class_file"  # settings key: path of the class file, '' without a class
_KIND = "class file"  # kind of the jobs that read class files


class ClassFile(QObject):
    """Opens, remembers and leaves a class.

    content: the settings in the class file, or the default settings without a class; None before the catalog is
    loaded. problem: why the remembered file can't be used, as a sentence; '' without a problem.
    """

    changed = Signal()  # `content` and `problem`

    def __init__(
        self, job_queue: JobQueue, settings: Settings, catalog: EngineCatalog, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._job_queue, self._settings = job_queue, settings
        self._reading: Job | None = None
        self.content: class_settings.ClassSettings | None = None
        self.problem = ""
        catalog.ready.connect(self._on_catalog_ready)

    def path(self) -> str:
        """Return the path of the remembered class file, '' without a class."""
        return self._settings.text(_PATH)

    def open(self, path: Path) -> None:
        """Read a class file and remember its path; a wrong file changes nothing."""
        self._read(path, partial(self._on_opened, path))

    @Slot()
    def leave(self) -> None:
        """Forget the class file, and return to the default settings."""
        self._settings.set_text(_PATH, "")
        self._job_queue.abandon(self._reading)  # a file on a lost drive is read for long
        self._job_queue.withdraw(_KIND)
        self._set_content(class_settings.ClassSettings())

    @Slot()
    def _on_catalog_ready(self) -> None:
        remembered = self.path()
        if remembered:
            self._read(Path(remembered), self._on_remembered)
        else:
            self._set_content(class_settings.ClassSettings())

    def _read(self, path: Path, receive: Callable[[Event], None]) -> None:
        """Read a class file in the background. receive: called with each event of the job."""

        def read() -> class_settings.ClassSettings:
            return class_settings.read_class(path)

        self._job_queue.abandon(self._reading)
        self._reading = self._job_queue.run("files", "Reading class file", read, self._set_content, receive, kind=_KIND)

    def _on_opened(self, path: Path, event: Event) -> None:
        if isinstance(event, JobEnded) and event.outcome == "done":
            self._settings.set_text(_PATH, str(path))

    def _on_remembered(self, event: Event) -> None:
        """Use the default settings if the remembered class file can't be used, but do not forget the file."""
        if isinstance(event, JobFailed):
            self._set_content(class_settings.ClassSettings(), event.title)

    def _set_content(self, content: class_settings.ClassSettings, problem: str = "") -> None:
        self.content, self.problem = content, problem
        self.changed.emit()
