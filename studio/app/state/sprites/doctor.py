"""The doctor's findings about the open sprites, and previews of their fixes."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.sprites.sprites import OpenSprites
from studio.core import paths
from studio.core.arrays import Rgba
from studio.core.events import Event
from studio.data.doctor import checks
from studio.data.doctor.findings import Finding, Fix, SpritesChecked, exclude_fix, include_fix, list_findings
from studio.data.doctor.preview import FixPreviewed, preview_fix
from studio.data.options import ImportOptions


class SpriteDoctor(QObject):
    """Checks imported sprites and fixes problems by changing import options."""

    changed = Signal()  # `findings` changed
    previewed = Signal(object)  # uint8 [k, S, S, 4]: the previewed sprites, first or all

    def __init__(self, job_queue: JobQueue, open_sprites: OpenSprites, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._open_sprites = job_queue, open_sprites
        self._job: Job | None = None
        self._preview: Job | None = None
        self._checked: list[SpritesChecked] = []  # up to two results: without and with neighbours
        self._checked_options = ImportOptions()
        self._checking: Rgba | None = None  # the pixels under check
        self.findings: tuple[Finding, ...] = ()
        open_sprites.imported.connect(self._on_imported)

    @property
    def is_checking(self) -> bool:
        """Whether checks are still running."""
        return self._job is not None

    def add(self, examined: SpritesChecked) -> None:
        """Add the results of a check; ignore results about pixels other than the open sprites'."""
        sprites, has_neighbours = self._open_sprites.sprites, examined.neighbours is not None
        if sprites is None or examined.sprites.rgba is not sprites.rgba:
            return
        others = (each for each in self._checked if (each.neighbours is not None) != has_neighbours)
        self._checked = [*others, examined]
        if examined.sprites is sprites:
            self._refresh()
        elif self._job is None:  # classes changed during the check
            self._start_checks()

    def apply(self, fix: Fix) -> None:
        """Import the open files again with the options that the fix changes."""
        self._open_sprites.apply_fix(fix)

    def preview(self, fix: Fix, indices: NDArray[np.int64]) -> None:
        """Compute how open sprites, int64 [n], look after a fix; `previewed` delivers the first, then all sprites."""
        found, options = self._open_sprites.result, self._open_sprites.options
        self._job_queue.abandon(self._preview)
        if found is not None:
            work = partial(preview_fix, found.read, indices, options, fix)
            title, receive = "Previewing a fix", self._on_preview_event
            self._preview = self._job_queue.start("files", title, work, receive, urgent=True, cancellable=False)

    def _on_preview_event(self, event: Event) -> None:
        if isinstance(event, FixPreviewed):
            self.previewed.emit(event.rgba)

    def exclude(self, names: list[str]) -> None:
        """Exclude sprites from the import."""
        self.apply(exclude_fix(names, self._open_sprites.latest.options))

    def include(self, names: list[str], excluded: list[str]) -> None:
        """Include some of the excluded sprites again."""
        self.apply(include_fix(names, excluded, self._open_sprites.latest.options))

    @Slot()
    def _on_imported(self) -> None:
        """Check the sprites; after class moves, check only the classes, and show the other results meanwhile."""
        self._job_queue.abandon(self._preview)
        sprites, options = self._open_sprites.sprites, self._open_sprites.options
        assert sprites is not None
        has_same_options, self._checked_options = options == self._checked_options, options
        self._checked = [each for each in self._checked if has_same_options and each.sprites.rgba is sprites.rgba]
        if self._job is None or not has_same_options or self._checking is not sprites.rgba:
            self._start_checks()  # else they start when the running check ends
        self._refresh()

    def _start_checks(self) -> None:
        self._job_queue.abandon(self._job)
        sprites, known = self._open_sprites.sprites, tuple(self._checked)
        assert sprites is not None
        self._checking = sprites.rgba
        check = partial(checks.update_checks, sprites, self._checked_options, known, paths.cache())
        self._job = self._job_queue.start("files", "Checking sprites", check, self._on_event, background=True)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, SpritesChecked):
            self.add(event)
        elif isinstance(event, JobEnded):
            self._job = None
            if any(each.sprites is not self._open_sprites.sprites for each in self._checked):
                self._start_checks()
            self.changed.emit()

    def _refresh(self) -> None:
        found = self._open_sprites.result
        assert found is not None
        self.findings = list_findings(found, self._open_sprites.options, self._checked)
        self.changed.emit()
