"""`studio demo`: the main job on the demo sprites, from pictures on disk to new ones and a model to take away."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli import window
from studio.cli.arguments import import_with
from studio.cli.generate import as_set
from studio.cli.messages import DONE, INTERRUPTED, finished
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.cli.train import to_the_end
from studio.core import files, paths
from studio.core.errors import UsageError
from studio.core.events import Exported, RunFinished, SpritesGenerated
from studio.core.formatting import count, describe_agreement
from studio.core.shell import command_line
from studio.data.options import ImportOptions
from studio.data.rights import Rights
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices.types import Device, GenerateSettings
from studio.engine.runs.history import TRAINING_LOSS, read_history

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel

RUN, MODELS = "demo-run", "models"
COUNT, COLUMNS = 64, 8
ENLARGED = 6  # screen pixels for each of a sprite's


def demo(args: argparse.Namespace) -> int:
    """Show the demo in the window, or do the same job in the terminal where there is no screen."""
    if not 0.05 <= args.minutes <= 1000:
        raise UsageError("--minutes must be from 0.05 to 1000.", "Two give a first impression.")
    if not args.terminal and not args.json:
        obstacle = window.obstacle()
        if not obstacle:
            return window.open_demo()
        reporter_for(args).say(f"{obstacle}\nThe demo runs here in the terminal instead.\n")
    return in_terminal(args.minutes, args.out, reporter_for(args))


def in_terminal(minutes: float, out: Path | None, reporter: Reporter) -> int:
    """Import, train, draw, plot and export; everything goes into one new folder. Returns the exit code."""
    from studio.engine.devices import detection

    reporter.say(f"1  Reading the demo sprites in {paths.demo_sprites()}")
    imported = import_with([paths.demo_sprites()], ImportOptions(), reporter)
    sprites = Rights.for_sources([paths.demo_sprites()]).add_to(imported.sprites)
    kinds = ", ".join(sprites.class_names)
    reporter.say(f"   {count(len(sprites), 'sprite')} of {sprites.size} x {sprites.size} pixels: {kinds}")
    device = detection.find_device(detection.AUTO)
    folder = files.free_path(out or Path("demo-output"))
    folder.mkdir(parents=True)
    reporter.say(f"2  Training a generator on {device.name} for {minutes:g} min; Ctrl+C ends it sooner")
    end, interrupted = _train(folder / RUN, minutes, device, sprites, reporter)
    reporter.say(f"   {finished(end)}")
    if interrupted:
        reporter.say(f"   Resume it:  {command_line('studio', 'resume', str(folder / RUN))}")
        return INTERRUPTED
    _make_results(folder, device, reporter)
    return DONE


def _train(
    path: Path, minutes: float, device: Device, sprites: Sprites, reporter: Reporter
) -> tuple[RunFinished, bool]:
    from studio.engine import catalog
    from studio.engine.training.loop import train_new

    recipe = catalog.recipe()
    config = recipe.Config(minutes=minutes)
    control = Control()
    return to_the_end(train_new(path, sprites, recipe, config, device, control), path, control, reporter)


def _make_results(folder: Path, device: Device, reporter: Reporter) -> None:
    """From the trained run: a sheet of new sprites, the loss as a picture, and the model in all formats that can be."""
    from studio.engine import catalog
    from studio.engine.models.exporting import export
    from studio.engine.models.loading import load_model
    from studio.engine.sampling.generate import generate
    from studio.exports.png import save_enlarged
    from studio.exports.sprites.formats import sprite_exports

    model, settings = load_model(folder / RUN, "last", device), GenerateSettings(count=COUNT)
    reporter.say(f"3  Drawing {COUNT} new sprites")
    made = follow(generate(model, settings), reporter, SpritesGenerated)
    as_saved = as_set(made, model, settings.to_json(), COLUMNS)
    sheet, _ = sprite_exports()["sheet"].write(as_saved, folder / "new sprites.png")
    enlarged = save_enlarged(folder / "new sprites enlarged.png", made.sprites, COLUMNS, ENLARGED, as_saved.about)
    reporter.say("4  Exporting the model, reading it back and comparing")
    exported: dict[Path, str] = {}
    models = folder / MODELS
    models.mkdir()
    worst = 0.0
    for name, form in catalog.model_exports().items():
        if form.missing() or form.problem(model.recipe):
            continue
        done = follow(export(model, name, models / f"model{form.suffix}"), reporter, Exported)
        exported |= dict.fromkeys(done.paths, f"goes with {done.paths[0].name}")
        exported[done.paths[0]] = form.help
        worst = max(worst, done.difference)
    plot = _plot(folder, model)
    reporter.record({"type": "FilesSaved", "paths": [sheet, enlarged, plot, *exported]})
    reporter.say(
        f"   compared with the live model: {describe_agreement(worst)}\n\nDone. All of it is in {folder.resolve()}"
    )
    rows = [
        (enlarged.name, f"{COUNT} new sprites, large enough to look at"),
        (sheet.name, "the same, pixel for pixel, with JSON beside it"),
        (plot.name, "how the loss fell"),
        *((f"{MODELS}/{path.name}", about) for path, about in exported.items()),
        (f"{MODELS}/...card.html", "where each of them comes from; studio verify says whether it is as it was"),
        (RUN, f"the run: {command_line('studio', 'generate', str(folder / RUN))}"),
    ]
    reporter.table(("file", "what it is"), rows)


def _plot(folder: Path, model: TrainedModel) -> Path:
    from studio.engine.runs.analysis.report import plot_line
    from studio.exports.plot import save_plot

    line = plot_line(TRAINING_LOSS, read_history(folder / RUN), "loss")
    title = f"Demo: {model.recipe.title.lower()}, {count(model.step, 'step')}"
    lines = [line] if line is not None else []
    return save_plot(
        folder / "loss.png", lines, title, TRAINING_LOSS.title, smoothing_steps=TRAINING_LOSS.smoothing_steps
    )
