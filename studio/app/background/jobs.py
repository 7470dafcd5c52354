"""The few places where the window names an engine job.

Every function here is a generator for a worker: what it imports is imported in the worker's thread, when the job runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from studio.app.background.job_events import (
    CheckpointsListed,
    DevicesListed,
    EngineReady,
    FilesSaved,
    LibrariesLoaded,
    Measured,
    PlotsReady,
    RunDescribed,
    RunTrashed,
    SpritesColoured,
)
from studio.core import files, places
from studio.core.config import TrainingConfig
from studio.core.errors import RunError, StudioError
from studio.core.events import Event, Events, Notice, Progress, Rgba, RunStarted, SpritesGenerated
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from studio.data.colour.recolouring import ColourChoice
    from studio.data.colour.true_pixels import PixelStyle
    from studio.engine.control import Control
    from studio.engine.devices import Device
    from studio.engine.generate import GenerateSettings
    from studio.engine.model import TrainedModel
    from studio.engine.runs.history import RunReader
    from studio.recipes.base import Recipe


import ctypes
import importlib.util
import os
import sys

_FILES_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class SpriteSelection:
    """Sprites to be saved, with a name for each and what to say about them in the files."""

    sprites: Rgba
    names: Sequence[str]
    about: Mapping[str, str]


@dataclass(frozen=True)
class SavedModel:
    """A model as a run has it on disk. `checkpoint` is 'best', 'last' or a step."""

    path: Path
    checkpoint: str


class ModelCache:
    """The model that was loaded last, kept for the next job. Used in the engine's thread alone.

    drawn: the sprites that were made last, as the model drew them, and the style of those that it learnt from.
    """

    def __init__(self) -> None:
        self.drawn: tuple[SpritesGenerated, PixelStyle] | None = None
        self._key: tuple[Path, str, str, str] | None = None  # run, the weights' hash, device, and see `get`
        self._model: TrainedModel | None = None
        self._news: list[Notice] = []

    def get(self, source: SavedModel | Control, device: Device) -> TrainedModel:
        """The live model of a training, or one loaded from a run. Raises StudioError."""
        if not isinstance(source, SavedModel):
            if source.live is None:
                raise StudioError(
                    "The model is not at hand: the training has ended, or is taking a step back.",
                    "Try again shortly, or choose the run and a checkpoint.",
                )
            return source.live
        from studio.engine.generate import find_checkpoint, load_model

        _, info = find_checkpoint(source.path, source.checkpoint)  # figures that are measured later move 'best'
        about = (source.path, info.sha256.get("average", ""), device.id)
        exact, asked = (*about, str(info.step)), (*about, source.checkpoint)
        if self._model is None or self._key not in (exact, asked):
            self._model = load_model(source.path, source.checkpoint, device)
            self._news += self._model.notices
            # In place of a damaged one it stands for what was asked for ('best' or 'last'), and for no step.
            self._key = exact if self._model.step == info.step else asked
        return self._model

    def news(self) -> list[Notice]:
        """What is to be said of the model that was loaded last; nothing when it has been said."""
        news, self._news = self._news, []
        return news


def warm_up() -> Events:
    """Import torch."""
    load_libraries()
    yield LibrariesLoaded()
    import torch  # noqa: F401


def find_plugins() -> Events:
    """Import everything of the engine that stands on torch, and with it recipes and export formats.

    The first step of the first optimizer imports for another second or three, so take one now, before anybody waits.
    """
    import torch

    import studio.engine.exporting
    import studio.engine.measure
    import studio.engine.train  # noqa: F401
    from studio.engine import catalogue
    from studio.engine.generate import GenerateSettings

    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], fused=True).step()
    yield EngineReady(catalogue.recipes(), catalogue.model_exports(), GenerateSettings)


def import_plots() -> Events:
    """Import what plots are drawn with, beside the window and not in its way."""
    import pyqtgraph  # noqa: F401

    yield PlotsReady()


def find_devices() -> Events:
    """Every device, each proven by a training step."""
    from studio.engine.devices import DevicesFound, find_devices

    for event in find_devices():
        yield DevicesListed(event.devices, event.fastest) if isinstance(event, DevicesFound) else event


def measure(recipe: Recipe, config: TrainingConfig, sprites: Sprites, devices: Sequence[Device]) -> Events:
    """Time real training steps on every device that works."""
    from studio.engine.measure import DeviceMeasured, measure
    from studio.recipes.base import Spec

    for device in devices:
        for event in measure(recipe, config, Spec.of(sprites), device):
            yield Measured(event) if isinstance(event, DeviceMeasured) else event


def get_to_know(sprites: Sprites, config: TrainingConfig, device: Device) -> Events:
    """Learn what trainings of these sprites are measured by, and which of them are odd."""
    from studio.engine.quality.outliers import find_outliers

    yield from find_outliers(sprites, config, device)


def train(sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, control: Control) -> Events:
    """Train a new run in a folder of its own."""
    from studio.engine.train import train_new

    name = files.safe_name(f"{sprites.title} {recipe.name}".replace(".", " "))
    yield from _described(train_new(files.free_path(places.runs() / name), sprites, recipe, config, device, control))


def resume(path: Path, device: Device, control: Control) -> Events:
    """Go on with a run: first what it has so far, then what is new."""
    from studio.engine.runs.history import read_run
    from studio.engine.train import train_resumed

    yield from read_run(path)
    yield from _described(train_resumed(path, device, control))


def generate(
    shelf: ModelCache, source: SavedModel | Control, device: Device, settings: GenerateSettings, colours: ColourChoice
) -> Events:
    """New sprites from a model, in the chosen colours. As drawn they stay on the shelf, to be recoloured."""
    from studio.engine.generate import generate

    model = shelf.get(source, device)
    yield from shelf.news()
    with contextlib.closing(generate(model, settings.replace(true_pixels=False))) as events:
        for event in events:
            if isinstance(event, SpritesGenerated):
                shelf.drawn = (event, model.style)
                yield from recolour(shelf, colours)
            else:
                yield event


def recolour(shelf: ModelCache, colours: ColourChoice) -> Events:
    """The sprites that were drawn last, in other colours."""
    from studio.data.colour.recolouring import recoloured

    if shelf.drawn is not None:
        drawn, style = shelf.drawn
        sprites = yield from recoloured(drawn.sprites, drawn.labels, style, colours)
        name = colours.palette.name if colours.palette is not None else ""
        yield SpritesColoured(sprites, drawn.labels, drawn.model, drawn.seed, name)


def predict(shelf: ModelCache, source: SavedModel | Control, device: Device, rgba: Rgba) -> Events:
    """What a model says of sprites."""
    from studio.engine.generate import predict

    model = shelf.get(source, device)
    yield from shelf.news()
    yield from predict(model, rgba)


def export(shelf: ModelCache, source: SavedModel | Control, device: Device, format_name: str, target: Path) -> Events:
    """Write a model in a format, read it back and compare."""
    from studio.engine.exporting import export

    model = shelf.get(source, device)
    yield from shelf.news()
    yield from export(model, format_name, target)


def list_runs() -> Events:
    """Every run that there is."""
    from studio.engine.runs.history import list_runs
    from studio.engine.runs.known import known_runs

    yield from list_runs(known_runs())


def read_runs(reader: RunReader, paths: Sequence[Path]) -> Events:
    """Curves and samples of some runs; one that can't be read is told, and those after it are read."""
    for path in paths:
        try:
            yield from reader.read_run(path)
        except RunError as error:
            yield Notice("warning", error.title, error.hint)


def list_checkpoints(path: Path) -> Events:
    """The checkpoints of a run."""
    from studio.engine.generate import checkpoint_names

    yield CheckpointsListed(path, tuple(checkpoint_names(path)))


def trash_run(path: Path) -> Events:
    """Move a run to the trash, unless some window trains it. The user can take it back from there.

    Where there is no trash (drives of a network, some containers) the run stays as it is. Raises StudioError.
    """
    from PySide6.QtCore import QFile

    from studio.engine.runs.folder import RunDir

    if not path.is_dir():
        raise StudioError(
            f"The folder of '{path.name}' is no longer there.", "It was moved or removed, or its drive is gone."
        )
    if RunDir(path).is_busy():
        raise StudioError(f"'{path.name}' is being trained.", "Stop it first.")
    if not QFile(str(path)).moveToTrash():  # what the system says of it ('Bad file descriptor') helps nobody
        title = f"'{path.name}' can't be moved to the trash: there is none for that drive, or it can't be written."
        raise StudioError(title, f"Nothing was removed. To be rid of it, delete the folder {path} yourself.")
    yield RunTrashed(path)


def save_files(folder: Path, picked: SpriteSelection) -> Events:
    """One PNG for each sprite."""
    from studio.exports.png import save_files

    paths: list[Path] = []
    for start in range(0, len(picked.sprites), _FILES_AT_ONCE):
        part = slice(start, start + _FILES_AT_ONCE)
        paths += save_files(folder, picked.sprites[part], picked.names[part], picked.about)
        yield Progress(len(paths), len(picked.sprites), "files written")
    yield FilesSaved(tuple(paths))


def save_sheet(path: Path, picked: SpriteSelection, columns: int) -> Events:
    """All sprites in one PNG, with a JSON beside it that says where each one is."""
    from studio.exports.png import save_sheet

    yield FilesSaved(tuple(save_sheet(path, picked.sprites, columns, picked.names, metadata=picked.about)))


def _described(events: Iterator[Event]) -> Events:
    """Hand on a training's events; what run.json says comes with its start."""
    from studio.engine.runs.folder import RunDir

    with contextlib.closing(cast(Events, events)):  # the run's lock goes back when this generator is closed
        for event in events:
            yield event
            if isinstance(event, RunStarted):
                yield RunDescribed(RunDir(event.path).record())


def load_libraries() -> None:
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
