"""Previews of changed import options."""

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.sprites.sprites import OpenSprites
from studio.core import paths
from studio.core.events import Event
from studio.data.importing.import_preview import ImportPreviewed, can_change_pixels, preview_import
from studio.data.options import ImportOptions

_DELAY_MS = 300  # while the user still types


class ImportPreviewer(QObject):
    """Compares the open sprites with the sprites from changed import options, in a job."""

    previewed = Signal(object)  # ImportPreviewed, several times for many sprites

    def __init__(self, job_queue: JobQueue, open_sprites: OpenSprites, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._open_sprites = job_queue, open_sprites
        self._options = ImportOptions()  # to preview next
        self._job: Job | None = None
        self._delay = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._delay.timeout.connect(self._start)
        open_sprites.imported.connect(self.cancel)
        open_sprites.started.connect(self.cancel)

    def request(self, options: ImportOptions) -> bool:
        """Preview options soon, instead of the options requested before. Return False if no pixel can change."""
        self.cancel()
        found = self._open_sprites.result
        if found is None or not can_change_pixels(self._open_sprites.options, options):
            return False
        self._options = options
        self._delay.start()
        return True

    @Slot()
    def cancel(self) -> None:
        """Cancel the requested preview."""
        self._delay.stop()
        self._job_queue.abandon(self._job)
        self._job = None

    @Slot()
    def _start(self) -> None:
        opened, found = self._open_sprites.opened, self._open_sprites.result
        assert found is not None
        work = partial(preview_import, found, opened.paths, opened.options, self._options, paths.cache())
        self._job = self._job_queue.start(
            "files", "Previewing import settings", work, self._on_event, cancellable=False, quiet=True
        )

    def _on_event(self, event: Event) -> None:
        if isinstance(event, ImportPreviewed):
            self.previewed.emit(event)
        elif isinstance(event, JobEnded) and event.outcome == "failed":
            self.previewed.emit(ImportPreviewed(0, problem="There is no preview."))
