"""The status bar: the running job with its progress, the device, and the memory in use."""

import psutil
from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QStatusBar

from studio.app.background.worker import Job
from studio.app.pages import run_texts
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core import formatting, limits
from studio.core.events import Event, LossChunk, Progress

_SHOW_AFTER_MS = 400  # shorter jobs would only flicker
_MEMORY_MS = 5000


class StatusBar(QStatusBar):
    """The status bar: a job or the training, the device, and the memory in use.

    The newest job that the user started comes first, then the training, then jobs that the studio started.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._shown: Job | None = None
        self._shows_training = False  # instead of a job
        self._progress_text = ""
        self._total_bytes = limits.usable_memory().total_bytes  # read once: it reads dozens of small files
        self._text = factory.ElidedLabel()
        self._bar = factory.ProgressBar()
        self._bar.setFixedWidth(160)
        self._cancel = factory.button("Cancel", "Cancel this job.", role="flat", slot=self._on_cancel_clicked)
        self._device, self._memory = factory.text(wrap=False), factory.text(wrap=False)
        self._device.setToolTip("Device of the open run, or the device chosen for the next run.")
        self.setSizeGripEnabled(False)
        self.setContentsMargins(8, 0, 8, 0)
        self.addWidget(self._bar)
        self.addWidget(self._cancel)
        self.addWidget(self._text, 1)
        self.addPermanentWidget(self._device)
        self.addPermanentWidget(self._memory)
        self._delay = QTimer(self, singleShot=True, interval=_SHOW_AFTER_MS)
        self._delay.timeout.connect(self._show_job)
        self._memory_timer = QTimer(self, interval=_MEMORY_MS)
        self._memory_timer.timeout.connect(self._show_memory)
        self._memory_timer.start()
        session.job_queue.jobs_changed.connect(self._on_jobs_changed)
        session.job_queue.progressed.connect(self._on_progress)
        session.training.event_received.connect(self._on_training_event)
        session.training.state_changed.connect(self._on_jobs_changed)
        session.training.state_changed.connect(self._show_device)
        session.training.state_changed.connect(self._show_memory)
        session.setup.changed.connect(self._show_device)
        self._show_job()
        self._show_device()
        self._show_memory()

    @Slot()
    def _show_device(self) -> None:
        training, found = self._session.training, self._session.catalog.devices
        device = training.device if training.is_busy() else self._session.device_choice.device
        self._device.setText(device.name if device else "" if found else "Searching for devices…")

    @Slot()
    def _on_jobs_changed(self) -> None:
        jobs = self._session.job_queue.running()
        shown = next((job for job in reversed(jobs) if not job.is_quiet), None)
        self._shows_training = shown is None and self._session.training.is_busy()
        if shown is None and jobs and not self._shows_training:
            shown = next((job for job in reversed(jobs) if not job.background), jobs[-1])
        if shown is not self._shown:
            self._progress_text = ""
        self._shown = shown
        if shown is None or shown.background:
            self._delay.stop()
            self._show_job()
        elif not self._delay.isActive():
            self._delay.start()

    @Slot()
    def _show_job(self) -> None:
        job = self._shown
        self._bar.setVisible(job is not None or self._shows_training)
        self._cancel.setVisible(job is not None and job.cancellable and not job.is_cancelled)
        self._bar.show_busy()
        if self._shows_training:
            self._show_training()
        elif job is None:
            self._text.show_text("Ready")
        elif job.is_cancelled:
            self._text.show_text(f"Cancelling: {job.title}…")
        else:
            self._text.show_text(self._progress_text or f"{job.title}…", job.about)

    @Slot(object, object)
    def _on_progress(self, job: Job, progress: Progress) -> None:
        if job is not self._shown or job.is_cancelled:
            return
        self._progress_text = f"{job.title}: {progress.text()}"
        if not self._delay.isActive():
            self._bar.show_progress(progress)
            self._text.show_text(self._progress_text, job.about)

    @Slot(object)
    def _on_training_event(self, event: Event) -> None:
        if isinstance(event, LossChunk):
            self._show_memory()
            if self._shows_training:
                self._show_training()

    def _show_training(self) -> None:
        training = self._session.training
        doing = "Saving" if training.state == "stopping" else training.state.capitalize()
        text = f"{doing if training.owns_run() else 'Watching'} '{training.title}'"
        chunk = training.chunk
        if chunk is None:
            self._text.show_text(f"{text}…")
            return
        step, left = f"step {chunk.first_step + len(chunk.losses):,}", formatting.time_left(chunk.eta_s)
        self._text.show_text(f"{text}: {step}, {left}" if left else f"{text}: {step}")
        if (total_s := chunk.eta_s + chunk.elapsed_s) > 0:
            self._bar.setRange(0, 1000)
            self._bar.setValue(round(1000 * chunk.elapsed_s / total_s))

    @Slot()
    def _show_memory(self) -> None:
        """Show the memory of the training on its device, or without a training the memory of the studio."""
        training = self._session.training
        if not training.is_busy():
            used_bytes = psutil.Process().memory_info().rss
            self._memory.setText(f"Memory {formatting.memory(used_bytes, self._total_bytes)}")
            self._memory.setToolTip("Memory used by the studio.")
        elif training.chunk is not None:
            total_bytes = training.device.memory_total_bytes if training.device else 0
            self._memory.setText(f"Memory {formatting.memory(training.chunk.memory_bytes, total_bytes)}")
            self._memory.setToolTip(run_texts.memory_tip(training.device))

    @Slot()
    def _on_cancel_clicked(self) -> None:
        if self._shown is not None:
            self._session.job_queue.cancel(self._shown)
