"""The window's jobs in the engine and among the runs.

Each function is a generator for a worker; what it needs of torch it imports when it runs, in the worker's thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from studio.app.background.job_events import (
    EngineReady,
    FilesSaved,
    LibrariesLoaded,
    PlotsReady,
    QueueListed,
    ResultsListed,
    RunDescribed,
)
from studio.core import files, paths
from studio.core.config import TrainingConfig
from studio.core.errors import RunError
from studio.core.events import Event, Events, Notice, RunStarted
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.control.server import with_run_control
from studio.engine.devices.types import Device, ParentSource
from studio.engine.runs.listing import runs_by_name
from studio.lab.results import Result, kept

if TYPE_CHECKING:
    from studio.engine.runs.history import RunReader
    from studio.lab.experiments.base import Experiment
    from studio.recipes.base import Recipe

_log = logging.getLogger(__name__)


def warm_up() -> Events:
    """Import torch."""
    _load_libraries()
    yield LibrariesLoaded()
    import torch  # noqa: F401


def find_plugins() -> Events:
    """Import everything of the engine that stands on torch, and with it recipes and export formats.

    The first step of the first optimizer imports for another second or three, so take one now, before anybody waits.
    """
    import torch

    import studio.engine.models.exporting
    import studio.engine.steps.benchmark
    import studio.engine.training.loop  # noqa: F401
    from studio.engine import catalog
    from studio.lab.catalog import experiments

    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], fused=True).step()
    yield EngineReady(catalog.recipes(), catalog.model_exports(), experiments())


def import_plots() -> Events:
    """Import what plots are drawn with, beside the window and not in its way."""
    import pyqtgraph  # noqa: F401

    yield PlotsReady()


def find_devices() -> Events:
    """Every device, each proven by a training step."""
    from studio.engine.devices.detection import find_devices

    yield from find_devices()


def measure(recipe: Recipe, config: TrainingConfig, sprites: Sprites, devices: Sequence[Device]) -> Events:
    """Time real training steps on every device that works."""
    from studio.engine.steps.benchmark import measure
    from studio.recipes.base import Spec

    for device in devices:
        yield from measure(recipe, config, Spec.of(sprites), device)


def experiment(chosen: Experiment, recipe: Recipe, config: TrainingConfig, sprites: Sprites, device: Device) -> Events:
    """Find out, in a process of its own, what an experiment asks."""
    from studio.lab.experiments.base import ExperimentContext
    from studio.lab.running import run_experiment

    yield from run_experiment(chosen, ExperimentContext.of(recipe, config, sprites, device, chosen.seconds))


def look_inside(chosen: Experiment, run: Path, checkpoint: str, device: Device) -> Events:
    """Find out, in a process of its own, what an experiment asks of a run."""
    from studio.lab.running import look_inside

    yield from look_inside(chosen, run, checkpoint, device, chosen.seconds)


def list_results() -> Events:
    """What experiments have found out before."""
    results, problems = kept()
    for problem in problems:
        _log.warning("%s", problem)
    yield ResultsListed(results)


def save_report(path: Path, results: list[Result]) -> Events:
    """A page of HTML about results of experiments."""
    from studio.lab.report import save_report

    yield FilesSaved((save_report(path, results, replace=True),))


def save_run_report(paths: Sequence[Path], target: Path) -> Events:
    """A page of HTML about runs."""
    from studio.engine.runs.analysis.report import ReportSaved, report

    for event in report(runs_by_name(paths), target, replace=True):
        yield FilesSaved((event.path,)) if isinstance(event, ReportSaved) else event


def save_event_logs(paths: Sequence[Path], folder: Path) -> Events:
    """The history of runs for TensorBoard, a folder for each."""
    from studio.engine.runs.analysis.event_log import EventLogSaved, save_event_log

    logs = []
    for path in paths:
        for event in save_event_log(path, folder):
            if isinstance(event, EventLogSaved):
                logs.append(event.path)
            else:
                yield event
    yield FilesSaved(tuple(logs))


def find_outliers(sprites: Sprites, config: TrainingConfig, device: Device) -> Events:
    """Learn what trainings of these sprites are measured by, and which of them are odd."""
    from studio.engine.quality.outliers import find_outliers

    yield from find_outliers(sprites, config, device)


def train(
    sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, control: Control, source: ParentSource
) -> Events:
    """Train a new run in a folder of its own, starting from the model that `source` names, if it names one."""
    from studio.engine.training.loop import train_new
    from studio.engine.training.parents import load_parent

    parent = load_parent(source, recipe) if source is not None else None
    events = train_new(new_folder(sprites, recipe), sprites, recipe, config, device, control, parent)
    yield from _with_record(with_run_control(events, control, can_pause=False))  # here a pause is the worker's


def new_folder(sprites: Sprites, recipe: Recipe) -> Path:
    """Where a new run goes."""
    name = files.safe_name(f"{sprites.title} {recipe.name}".replace(".", " "))
    return files.free_path(paths.runs() / name)


def resume(path: Path, device: Device, control: Control, more_min: float) -> Events:
    """Go on with a run, for so many minutes more if any: first what it has so far, then what is new."""
    from studio.engine.runs.history import read_run
    from studio.engine.training.loop import train_resumed

    yield from read_run(path)
    yield from _with_record(with_run_control(train_resumed(path, device, control, more_min), control, can_pause=False))


def list_runs() -> Events:
    """Those of the runs that wait, then every run that there is."""
    from studio.engine.runs import queue
    from studio.engine.runs.listing import RunsListed, list_runs, remembered_runs

    for event in list_runs(remembered_runs()):
        if isinstance(event, RunsListed):
            yield QueueListed(queue.queued_runs(event.runs))
        yield event


def read_runs(reader: RunReader, paths: Sequence[Path]) -> Events:
    """Curves and samples of some runs; one that can't be read is told, and those after it are read."""
    for path in paths:
        try:
            yield from reader.read_run(path)
        except RunError as error:
            yield Notice("warning", error.title, error.hint)


def _with_record(events: Iterator[Event]) -> Events:
    """A training's events, with what run.json says after its start."""
    from studio.engine.runs.folder import RunDir

    with contextlib.closing(cast(Events, events)):  # the run's lock goes back when this generator is closed
        for event in events:
            yield event
            if isinstance(event, RunStarted):
                yield RunDescribed(RunDir(event.path).record())
                yield from events


def _load_libraries() -> None:
    """Map torch's shared libraries (1 GB) into the process.

    An import does that while it holds the interpreter, 0.4 s at a stretch; a foreign call does not. Where this does not
    work, the import does it as ever.
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
