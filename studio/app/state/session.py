"""The session: owner of the window's state."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_events import FilesSaved, StateNotice
from studio.app.background.job_queue import JobQueue
from studio.app.background.jobs import TrainingRequest
from studio.app.state.catalog import EngineCatalog
from studio.app.state.class_file import ClassFile
from studio.app.state.feature_training import FeatureTraining
from studio.app.state.lab import Lab
from studio.app.state.lessons import Lessons
from studio.app.state.models.characters import CharacterDrafts
from studio.app.state.models.editing import SpriteEditing
from studio.app.state.models.given_tiles import GivenTiles
from studio.app.state.models.inference import Inference
from studio.app.state.models.kept_sprites import KeptSprites
from studio.app.state.models.saving import DragFiles, SpriteSaving
from studio.app.state.models.sprite_map import SpriteMap
from studio.app.state.runs.disk_space import RunSpace
from studio.app.state.runs.notes import NotesEditor
from studio.app.state.runs.runs import RunList, RunTrash
from studio.app.state.settings import Settings
from studio.app.state.sprites.doctor import SpriteDoctor
from studio.app.state.sprites.import_preview import ImportPreviewer
from studio.app.state.sprites.palettes import PaletteTools
from studio.app.state.sprites.sheets import SheetLoader
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.queue import TrainingQueue
from studio.app.state.training.setup import TrainingSetup
from studio.app.state.training.training import CurrentTraining
from studio.app.state.undo import UndoHistory
from studio.core import formatting
from studio.core.errors import StudioError
from studio.core.events import CheckpointSaved, Event, JobFailed, Notice
from studio.data.demo import DemoKind, demo_art
from studio.data.files.source_files import is_archive
from studio.engine.runs.listing import resume_hint

_SHUT_DOWN_TIMEOUT_MS = 10_000
_DEMO_MINUTES = 3.0


class Session(QObject):
    """Owns the objects that hold the application's state. Pages read these objects and call their methods."""

    noticed = Signal(object)  # Notice from a state object or a job
    failed = Signal(object)  # JobFailed from a state object or a job
    run_offered = Signal(object, object)  # Path and Notice: the user can resume this interrupted run
    queue_offered = Signal(str)  # message about runs queued in the last session

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.settings = settings
        self.job_queue = JobQueue(self)
        self.open_sprites = OpenSprites(self.job_queue, self)
        self.doctor = SpriteDoctor(self.job_queue, self.open_sprites, self)
        self.import_preview = ImportPreviewer(self.job_queue, self.open_sprites, self)
        self.sheets = SheetLoader(self.job_queue, self)
        self.catalog = EngineCatalog(self.job_queue, self)
        self.training = CurrentTraining(self.job_queue, self)
        self.run_history, self.generate_history = UndoHistory(self), UndoHistory(self)
        self.runs = RunList(self.job_queue, self)
        self.run_notes = NotesEditor(self.job_queue, self.runs, self.run_history)
        self.run_space = RunSpace(self.job_queue, self.runs, self)
        self.run_trash = RunTrash(self.job_queue, self.runs, self.run_history, self)
        self.queue = TrainingQueue(self.job_queue, self.training, self.runs, self.run_history, self)
        self.device_choice = DeviceChoice(settings, self.catalog, self.training, self)
        self.setup = TrainingSetup(
            settings, self.open_sprites, self.catalog, self.training, self.runs, self.device_choice, self
        )
        self.lab = Lab(
            self.job_queue, self.catalog, self.open_sprites, self.setup, self.device_choice, self.training, self.runs,
            self,
        )  # fmt: skip
        self.class_file = ClassFile(self.job_queue, settings, self.catalog, self)
        self.lessons = Lessons(
            self.job_queue, settings, self.class_file, self.open_sprites, self.device_choice, self.lab, self
        )
        self.feature_training = FeatureTraining(
            self.job_queue, self.open_sprites, self.doctor, self.catalog, self.device_choice, self.training, self.lab,
            self,
        )  # fmt: skip
        self.inference = Inference(self.job_queue, self)
        self.saving = SpriteSaving(self.job_queue, settings, self.catalog, self)
        self.sprite_map = SpriteMap(self.job_queue, self)
        self.palettes = PaletteTools(self.job_queue, self)
        self.editing = SpriteEditing(self.job_queue, self.generate_history, self)
        self.characters = CharacterDrafts(self.job_queue, self.generate_history, self)
        self.given_tiles = GivenTiles(self.job_queue, self)
        self.kept_sprites = KeptSprites(self)
        self.drag_files = DragFiles(settings)
        self._offered = False
        self._queue_offered = False
        self._demo: DemoKind | None = None  # demo art to train on after the import
        self.job_queue.noticed.connect(self.noticed)
        self.job_queue.failed.connect(self.failed)
        for saved in (self.saving.saved, self.lab.saved, self.runs.saved, self.palettes.saved):
            saved.connect(self.notify_saved)
        self.run_trash.noticed.connect(self.noticed)
        self.editing.noticed.connect(self.noticed)
        self.open_sprites.imported.connect(self._on_imported)
        for loaded in (self.open_sprites.imported, self.catalog.devices_found, self.catalog.ready):
            loaded.connect(self._start_demo_training)
        for known in (self.catalog.devices_found, self.runs.listed):
            known.connect(self._offer_interrupted)
            known.connect(self._offer_queue)
        self.queue.due.connect(self._on_run_due)
        self.training.state_changed.connect(self.runs.list_runs)
        self.training.state_changed.connect(self._cancel_measuring)
        self.training.event_received.connect(self._on_training_event)
        self.lab.changed.connect(self._cancel_measuring)

    def open(self, *, demo: DemoKind | None = None) -> None:
        """Start the background jobs. Call this after the first paint. demo: the demo art to open and to train on."""
        self.catalog.open()
        self.runs.list_runs()
        if demo is not None:
            self._demo = demo
            art = demo_art(demo)
            self.open_sprites.open_paths([art.folder], art.options if demo == "sets" else None)

    def notify(self, title: str, hint: str = "", *, holds: Callable[[], bool] | None = None) -> None:
        """Show an info message. holds: the window removes the message when this returns False."""
        notice = StateNotice("info", title, hint, holds=holds) if holds is not None else Notice("info", title, hint)
        self.noticed.emit(notice)

    @Slot(object)
    def notify_saved(self, paths: Sequence[Path]) -> None:
        """Show the names and the folder of saved files."""
        more = f" and {formatting.count(len(paths) - 1, 'file')} more" if len(paths) > 1 else ""
        self.noticed.emit(
            FilesSaved("info", f"Saved as {paths[0].name}{more}.", str(paths[0].parent), paths=tuple(paths))
        )

    def show_error(self, error: StudioError | OSError) -> None:
        """Show an error message."""
        if isinstance(error, StudioError):
            self.failed.emit(JobFailed(error.title, error.hint, topic=error.topic))
        else:
            title = f"Can't write {error.filename or 'the file'}."
            self.failed.emit(JobFailed(title, error.strerror or str(error)))

    def resume_run(self, path: Path, more_min: float = 0.0) -> None:
        """Resume a run with `more_min` additional minutes and show its settings; if impossible, show why."""
        run = self.runs.at(path)
        if not self.training.owns_run():
            self.training.withdraw_messages()
        if self._resume_on_device(path, more_min, all_gpus=True) and run is not None and run.record is not None:
            self.setup.show_run(run.record)

    def watch(self, path: Path) -> None:
        """Follow a run that trains in another process. If this window trains a run itself, show a message."""
        if self.training.is_busy() and self.training.path == path:
            return
        if self.training.owns_run():
            title, hint = "This window is training a run.", "Wait until it ends or stop it, then watch another run."
            self.notify(title, hint, holds=self.training.owns_run)
            return
        self.training.watch(path)

    def _resume_on_device(self, path: Path, more_min: float = 0.0, *, all_gpus: bool = False) -> bool:
        """Resume a run on its device, or on the fastest device; if impossible, show why and return False.

        all_gpus: train on all GPUs if the user has enabled this option.
        """
        if self.training.owns_run():
            same = self.training.path == path
            title = "This run is training already." if same else "Stop the running training first."
            hint = "" if same else f"Then resume '{self.runs.title_of(path)}' on the Runs page."
            self.notify(title, hint, holds=self.training.owns_run)
            return False
        run = self.runs.at(path)
        record = run.record if run is not None else None
        fastest = self.catalog.device(self.catalog.fastest)
        device = (self.catalog.device(record.device) if record is not None else None) or fastest
        if device is None:
            self.notify("Searching for devices…", "Try again shortly.", holds=lambda: not self.catalog.devices)
            return False
        if record is not None and device.id != record.device:
            self.notify(f"{record.device_name} is not available; the run resumes on {device.name}.")
        processes = self.device_choice.processes(device) if all_gpus else 1
        self.training.resume_run(path, device, more_min, processes)
        return True

    @Slot()
    def queue_training(self) -> None:
        """Append a training with the chosen settings to the queue, unless the setup has a `problem`."""
        if (request := self.setup.request()) is not None:
            self.setup.store()
            self._queue_offered = True  # the user knows that runs wait
            self.queue.add(request, self.setup.history)

    def close(self) -> bool:
        """Store the settings and end both threads. Return False if a thread is still busy after a timeout."""
        self.settings.sync()
        self.editing.release()
        self.characters.release()
        self.given_tiles.release()
        self.drag_files.close()
        return self.job_queue.shut_down(_SHUT_DOWN_TIMEOUT_MS)

    @Slot(object)
    def _on_training_event(self, event: Event) -> None:
        if isinstance(event, CheckpointSaved):
            self.runs.list_runs()

    @Slot()
    def _cancel_measuring(self) -> None:
        """Cancel the speed measurement of devices when a training or an experiment starts."""
        if self.training.owns_run() or self.lab.running is not None:
            self.catalog.cancel_measuring()

    @Slot()
    def _on_imported(self) -> None:
        paths = self.open_sprites.paths
        if len(paths) == 1 and (paths[0].is_dir() or is_archive(paths[0].name)):
            self.settings.add_recent(paths[0])

    @Slot()
    def _start_demo_training(self) -> None:
        """Start the demo training when sprites, recipes and a device are loaded."""
        sprites, device = self.open_sprites.sprites, self.catalog.device(self.catalog.fastest)
        named = demo_art(self._demo).recipe if self._demo is not None else ""
        recipe = self.catalog.recipes.get(named) if named else self.catalog.drawing_recipe()
        if self._demo is not None and sprites is not None and device is not None and recipe is not None:
            self._demo = None
            if named:
                self.setup.choose_recipe(named)
            self.training.start(TrainingRequest(sprites, recipe, recipe.Config(minutes=_DEMO_MINUTES), device))

    @Slot()
    def _offer_interrupted(self) -> None:
        run = self.runs.interrupted()
        if self._offered or not self.catalog.devices or run is None:
            return
        self._offered = True
        if not self.training.is_busy():
            offer = Notice("info", f"'{run.title}' was interrupted.", resume_hint(run.saved_step))
            self.run_offered.emit(run.path, offer)

    @Slot()
    def _offer_queue(self) -> None:
        """Offer to start the queue, once per session. The queue never starts without the user."""
        waiting = self.queue.waiting()
        if self._queue_offered or not self.catalog.devices or not waiting:
            return
        self._queue_offered = True
        if not self.queue.is_on:
            wait = "waits" if waiting == 1 else "wait"
            self.queue_offered.emit(f"{formatting.count(waiting, 'run')} {wait} in the queue.")

    @Slot(object)
    def _on_run_due(self, path: Path) -> None:
        """Resume a queued run. The shown settings stay, because the user may be editing settings."""
        self._resume_on_device(path)
