"""Jobs that start the engine, train runs, follow trainings in other processes, and read runs.

Functions import torch when they run, on a worker thread: the window's first paint must not wait for torch.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from studio.app.background.job_events import RunDescribed
from studio.app.background.late_import import LateModule
from studio.app.background.worker import JobIdle
from studio.core import files, paths
from studio.core.config import TrainingConfig
from studio.core.errors import BadInputError, RunError
from studio.core.events import Event, Events, Notice, RunFinished, RunStarted
from studio.core.observers import Observer
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.control.server import RunControlServer
from studio.engine.control.watcher import RunWatcher, TrainingLost, TrainingSeen
from studio.engine.devices.types import Device, ParentSource
from studio.engine.distributed.launching import TrainingProcesses
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import RunReader
from studio.engine.runs.listing import remember

if TYPE_CHECKING:
    from studio.engine.training import create, loop
    from studio.exports.base import ModelExport
    from studio.lab.experiments.base import Experiment
    from studio.lab.lessons.base import Lesson
    from studio.recipes.base import Recipe
else:
    create, loop = LateModule("studio.engine.training.create"), LateModule("studio.engine.training.loop")


def load_torch_libraries() -> None:
    """Map torch's shared libraries (1 GB) into the process.

    Importing torch would hold the interpreter lock meanwhile, for 0.4 s at a stretch; a ctypes call releases the lock.
    If mapping fails here, the import maps the libraries as usual.
    """
    spec = importlib.util.find_spec("torch")
    if sys.platform == "win32" or spec is None or spec.origin is None:
        return
    suffix = "dylib" if sys.platform == "darwin" else "so"
    library = Path(spec.origin).parent / "lib" / f"libtorch_python.{suffix}"
    if library.exists():
        loader = ctypes.CDLL(None).dlopen
        loader.argtypes, loader.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
        loader(os.fsencode(library), os.RTLD_NOW)


class Plugins(NamedTuple):
    """All plug-ins of the engine by name."""

    recipes: Mapping[str, Recipe]
    exports: Mapping[str, ModelExport]
    experiments: Mapping[str, Experiment]
    lessons: Mapping[str, Lesson]


def find_plugins() -> Plugins:
    """Import the engine and return all recipes, export formats, experiments and lessons."""
    import studio.engine.models.exporting
    import studio.engine.steps.benchmark
    import studio.engine.training.loop  # noqa: F401
    from studio.engine import catalog
    from studio.lab.catalog import experiments
    from studio.lab.learn.catalog import lessons

    return Plugins(catalog.recipes(), catalog.model_exports(), experiments(), lessons())


def read_folder(folder: Path) -> Generator[Event, None, Sprites]:
    """Import the sprites of a folder with the default options; yields Progress. Raises BadInputError."""
    from studio.data.importing.importing import import_sprites

    for event in import_sprites([folder], ImportOptions(), paths.cache()):
        if isinstance(event, SpritesImported):
            return event.sprites
        yield event
    raise BadInputError(f"The sprites of {folder} could not be imported.")


def find_devices() -> Events:
    """Find all devices and test each with a training step."""
    from studio.engine.devices.detection import find_devices

    yield from find_devices()


def measure(recipe: Recipe, config: TrainingConfig, sprites: Sprites, devices: Sequence[Device]) -> Events:
    """Measure the training speed of each device with real training steps."""
    from studio.engine.steps.benchmark import measure
    from studio.recipes.base import Spec

    for device in devices:
        yield from measure(recipe, config, Spec.of(sprites), device)


class TrainingRequest(NamedTuple):
    """The arguments of a new training. source: the model to start from; None for random weights."""

    sprites: Sprites
    recipe: Recipe
    config: TrainingConfig
    device: Device
    source: ParentSource = None
    processes: int = 1  # several: separate processes, each on a device of this kind


def queue_run(request: TrainingRequest) -> Events:
    """Create a run that waits in the training queue."""
    yield from create.create_queued_run(_new_run(request))


def prepare_run(request: TrainingRequest) -> Generator[Event, None, Path]:
    """Create a run for training in several processes, and return the run folder."""
    from studio.engine.distributed.ranks import Ranks

    Ranks(world_size=request.processes).check_batch_size(request.config)
    run = _new_run(request)
    yield from create.create_run(run)
    return run.path


def _new_run(request: TrainingRequest) -> create.NewRun:
    """Return the arguments for creating a run: load the model to start from and choose a free folder."""
    from studio.engine.training.parents import load_parent

    sprites, recipe, config, device, source, _ = request
    parent = load_parent(source, recipe) if source is not None else None
    path = files.free_path(paths.runs() / files.safe_name(f"{sprites.title} {recipe.name}".replace(".", " ")))
    return create.NewRun(path, sprites, recipe, config, device, parent)


def train(request: TrainingRequest, control: Control) -> Events:
    """Train a new run in a new folder."""
    path, sprites, recipe, config, device, parent = _new_run(request)
    yield from loop.train_new(path, sprites, recipe, config, device, control, parent, observers=_observers(control))


def resume(path: Path, device: Device, control: Control, more_min: float) -> Events:
    """Yield the history of a run, then resume its training with `more_min` additional minutes."""
    yield RunReader().read(path)
    yield from loop.train_resumed(path, device, control, more_min, observers=_observers(control))


def read_runs(reader: RunReader, paths: Sequence[Path]) -> Events:
    """Load curves and samples of runs; yield a Notice for each unreadable run. Skips runs in the trash by now."""
    for path in paths:
        try:
            yield reader.read(path)
        except RunError as error:
            if path.exists():
                yield Notice("warning", error.title, error.hint)


class _RecordReader(Observer):
    """A training observer that yields the run's record after the event `RunStarted`."""

    def after(self, event: Event) -> Events:
        if isinstance(event, RunStarted):
            yield RunDescribed(RunDir(event.path).record())


def _observers(control: Control) -> list[Observer]:
    return [RunControlServer(control, can_pause=False), _RecordReader()]  # the worker itself pauses the job


def save_event_logs(paths: Sequence[Path], folder: Path) -> Generator[Event, None, list[Path]]:
    """Write a TensorBoard log of each run into `folder` and return the written folders."""
    from studio.engine.runs.analysis.event_log import EventLogSaved, save_event_log

    logs = []
    for path in paths:
        for event in save_event_log(path, folder):
            if isinstance(event, EventLogSaved):
                logs.append(event.path)
            else:
                yield event
    return logs


def watch(run: Path) -> Events:
    """Follow a training: yield its events, and `JobIdle` after each read. Raises RunError if it fails or is lost."""
    watcher = RunWatcher(run)
    remember(run)
    yield RunDescribed(watcher.record)
    while True:
        for event in watcher.poll():
            if isinstance(event, TrainingLost):
                raise RunError(event.title, event.hint)
            yield event
        if isinstance(event, RunFinished):
            return
        folder = RunDir(run)
        is_silent = isinstance(event, TrainingSeen) and event.live is None
        if is_silent and not folder.is_busy() and folder.progress().state != "training":  # ended before a heartbeat
            yield _end(run)
            return
        yield JobIdle()


def launch(processes: TrainingProcesses) -> Events:
    """Launch processes that train a run, and follow the run until they have ended."""
    watcher = RunWatcher(processes.run)
    processes.start()
    yield RunDescribed(watcher.record)
    is_alive, is_finished = False, False
    while not is_finished or processes.is_running():
        were_running = processes.is_running()  # read before the events, to see the last events
        for event in watcher.poll():
            is_alive = isinstance(event, TrainingSeen) and event.live is not None
            is_finished = is_finished or isinstance(event, RunFinished)
            if not isinstance(event, TrainingLost):  # torchrun may restart the processes
                yield event
        if not (were_running or is_alive or is_finished):
            if processes.has_failed():
                raise processes.failure()
            yield _end(processes.run)
            return
        yield JobIdle()


def _end(run: Path) -> RunFinished:
    """Return the final event of a run that ended without a heartbeat. Raises RunError if the run failed."""
    progress = RunDir(run).progress()
    if progress.state == "failed":
        raise RunError(f"{run.name} has failed.", progress.message)
    is_finished = progress.state == "finished"
    return RunFinished("finished" if is_finished else "stopped", progress.step, progress.elapsed_s, run)
