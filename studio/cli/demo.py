"""`studio demo`: import the demo sprites, train a generator, draw new sprites and export the model.

With --sets: import the demo characters, train a model of sets and complete held-out characters.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli import window
from studio.cli.generate import to_sprite_set
from studio.cli.inputs import run_import
from studio.cli.messages import DONE, INTERRUPTED, finished
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.cli.train import train_until_stopped
from studio.core import files
from studio.core.errors import UsageError
from studio.core.events import Exported, RunFinished, SpritesGenerated
from studio.core.formatting import count, describe_agreement
from studio.core.shell import command_line
from studio.data.demo import DemoKind, demo_art
from studio.data.rights import Rights
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs.history import TRAINING_LOSS, read_history
from studio.engine.sampling.settings import GenerateSettings

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel
    from studio.recipes.base import Recipe

RUN, MODELS = "demo-run", "models"
COUNT, COLUMNS = 64, 8
SCALE = 6  # of the enlarged sheet


def demo(args: argparse.Namespace) -> int:
    """Run the demo in the window, or without a screen in the terminal. Raises UsageError."""
    if not 0.05 <= args.minutes <= 1000:
        raise UsageError("--minutes must be from 0.05 to 1000.", "2 minutes give a first impression.")
    kind: DemoKind = "sets" if args.sets else "sprites"
    if not args.terminal and not args.json:
        obstacle = window.obstacle()
        if not obstacle:
            return window.open_demo(kind)
        reporter_for(args).print(f"{obstacle}\nRunning the demo in the terminal instead.\n")
    return in_terminal(kind, args.minutes, args.out, reporter_for(args))


def in_terminal(kind: DemoKind, minutes: float, out: Path | None, reporter: Reporter) -> int:
    """Run the whole demo in the terminal, with its results in a new folder; return the exit code."""
    from studio.engine import catalog
    from studio.engine.devices import detection

    art = demo_art(kind)
    reporter.print(f"1  Importing the {art.folder.name} from {art.folder}")
    imported = run_import([art.folder], art.options, reporter)
    sprites = Rights.for_sources([art.folder]).add_to(imported.sprites)
    what = sprites.sets.describe() if kind == "sets" else ", ".join(sprites.class_names)
    reporter.print(f"   {count(len(sprites), 'sprite')} of {sprites.size} x {sprites.size} pixels: {what}")
    device = detection.find_device(detection.AUTO)
    folder = files.free_path(out or Path("demo-output"))
    folder.mkdir(parents=True)
    recipe = catalog.recipe(art.recipe)
    model = "a model of sets" if kind == "sets" else f"a {recipe.title.lower()}"
    reporter.print(f"2  Training {model} on {device.name} for {minutes:g} min; Ctrl+C stops early")
    end, interrupted = _train(folder / RUN, recipe, minutes, device, sprites, reporter)
    reporter.print(f"   {finished(end)}")
    if interrupted:
        reporter.print(f"   Resume it:  {command_line('studio', 'resume', str(folder / RUN))}")
        return INTERRUPTED
    if kind == "sets":
        _complete_characters(folder, device, reporter)
    else:
        _make_results(folder, device, reporter)
    return DONE


def _train(
    path: Path, recipe: Recipe, minutes: float, device: Device, sprites: Sprites, reporter: Reporter
) -> tuple[RunFinished, bool]:
    from studio.engine.training.loop import train_new

    control = Control()
    events = train_new(path, sprites, recipe, recipe.Config(minutes=minutes), device, control)
    return train_until_stopped(events, path, control, reporter)


def _complete_characters(folder: Path, device: Device, reporter: Reporter) -> None:
    """Complete held-out characters, save their pictures, and plot the loss."""
    from studio.cli.demo_sets import complete_heldout
    from studio.engine.models.loading import load_model

    model = load_model(folder / RUN, "best", device)
    saved, rows = complete_heldout(folder, folder / RUN, model, reporter)
    plot = _plot(folder, model)
    reporter.write_json({"type": "FilesSaved", "paths": [*saved, plot]})
    again = command_line("studio", "complete", str(folder / RUN), "--given", f"{model.spec.cells[0]}=FRONT.png")
    rows += [(plot.name, "the training loss"), (RUN, f"the run: {again}")]
    reporter.print(f"   The pictures are in {folder}")
    reporter.print_table(("file", "contents"), rows)


def _make_results(folder: Path, device: Device, reporter: Reporter) -> None:
    """Draw a sheet of new sprites, plot the loss, and export the model in every available format."""
    from studio.engine import catalog
    from studio.engine.models.exporting import export
    from studio.engine.models.loading import load_model
    from studio.engine.sampling.generate import generate
    from studio.exports.png import save_enlarged
    from studio.exports.sprites.formats import sprite_exports

    model, settings = load_model(folder / RUN, "last", device), GenerateSettings(count=COUNT)
    reporter.print(f"3  Drawing {COUNT} new sprites")
    made = run_job(generate(model, settings), reporter, SpritesGenerated)
    as_saved = to_sprite_set(made, model, settings.to_json(), COLUMNS)
    sheet, _ = sprite_exports()["sheet"].write(as_saved, folder / "new sprites.png")
    enlarged = save_enlarged(folder / "new sprites enlarged.png", made.sprites, COLUMNS, SCALE, as_saved.about)
    reporter.print("4  Exporting and verifying the model")
    exported: dict[Path, str] = {}
    models = folder / MODELS
    models.mkdir()
    worst = 0.0
    for name, form in catalog.model_exports().items():
        if form.missing() or form.problem(model.recipe):
            continue
        done = run_job(export(model, name, models / f"model{form.suffix}"), reporter, Exported)
        exported |= dict.fromkeys(done.paths, f"part of {done.paths[0].name}")
        exported[done.paths[0]] = form.help
        worst = max(worst, done.difference)
    plot = _plot(folder, model)
    reporter.write_json({"type": "FilesSaved", "paths": [sheet, enlarged, plot, *exported]})
    reporter.print(f"   exported and live model: {describe_agreement(worst)}")
    rows = [
        (enlarged.name, f"{COUNT} new sprites, enlarged"),
        (sheet.name, "the same sprites at their own size, with JSON"),
        (plot.name, "the training loss"),
        *((f"{MODELS}/{path.name}", about) for path, about in exported.items()),
        (f"{MODELS}/...card.html", "model cards; 'studio verify' checks files against them"),
        (RUN, f"the run: {command_line('studio', 'generate', str(folder / RUN))}"),
    ]
    reporter.print_table(("file", "contents"), rows)


def _plot(folder: Path, model: TrainedModel) -> Path:
    from studio.engine.runs.analysis.report import plot_line
    from studio.exports.plot import save_plot

    line = plot_line(TRAINING_LOSS, read_history(folder / RUN), "loss")
    title = f"Demo: {model.recipe.title.lower()}, {count(model.step, 'step')}"
    lines = [line] if line is not None else []
    steps = TRAINING_LOSS.smoothing_steps
    return save_plot(folder / "loss.png", lines, title, TRAINING_LOSS.title, smoothing_steps=steps)
