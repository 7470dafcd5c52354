"""What deserves a look among the open sprites, found while the window goes on."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from studio.app import import_jobs
from studio.app.dispatcher import Dispatcher
from studio.app.importing import Importing
from studio.app.worker import Job, JobEnded
from studio.core.events import Event
from studio.data.findings import Examined, Finding, Fix, findings_of, leaving_out

_TITLE = "Looking the sprites over"


class Doctor(QObject):
    """Examines what was imported, and mends it by changing the import's options. changed: `findings` are new."""

    changed = Signal()

    def __init__(self, dispatcher: Dispatcher, importing: Importing, parent: QObject) -> None:
        super().__init__(parent)
        self._dispatcher, self._importing = dispatcher, importing
        self._job: Job | None = None
        self._examined: list[Examined] = []
        self.findings: tuple[Finding, ...] = ()
        importing.imported.connect(self._look_over)

    @property
    def is_looking(self) -> bool:
        """Whether more may be found in a moment."""
        return self._job is not None

    def add(self, examined: Examined) -> None:
        """Take in what was found elsewhere, if it is about the open sprites."""
        if examined.sprites is self._importing.sprites:
            self._examined.append(examined)
            self._refresh()

    def mend(self, fix: Fix) -> None:
        """Change the import as a fix says."""
        self._importing.change_options(self._importing.newest.options.replace(**fix.changes), fix.title)

    def leave_out(self, names: list[str]) -> None:
        """Leave sprites out of the import."""
        self.mend(leaving_out(names, self._importing.newest.options))

    @Slot()
    def _look_over(self) -> None:
        self._dispatcher.give_up(self._job)
        self._examined = []
        sprites = self._importing.sprites
        assert sprites is not None
        events = import_jobs.examine(sprites, self._importing.options)
        self._job = self._dispatcher.start("files", _TITLE, events, self._receive, background=True)
        self._refresh()

    def _receive(self, event: Event) -> None:
        if isinstance(event, Examined):
            self.add(event)
        elif isinstance(event, JobEnded):
            self._job = None
            self.changed.emit()

    def _refresh(self) -> None:
        found = self._importing.result
        assert found is not None
        self.findings = findings_of(found, self._importing.options, self._examined)
        self.changed.emit()
