"""The commands that train: train, resume."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli import remote
from studio.cli.arguments import find_device, find_run, read_sprites, say_left_out
from studio.cli.distributed import has_begun, in_ranks
from studio.cli.flags import add_settings, given
from studio.cli.interrupts import stopping
from studio.cli.messages import DONE, INTERRUPTED, finished
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core import files, formatting, paths
from studio.core.config import LENGTH_SETTINGS, TrainingConfig, Value, settings_of
from studio.core.errors import UsageError
from studio.core.events import Events, Notice, RunFinished
from studio.core.shell import command_line
from studio.core.wake_lock import WakeLock
from studio.data.rights import Rights
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.control.server import with_run_control
from studio.engine.devices.types import NOTHING, STARTER, ParentSource
from studio.engine.remote.marker import raise_if_remote
from studio.engine.remote.training import check_remote
from studio.engine.runs import queue
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import remember, resume_hint

if TYPE_CHECKING:
    from studio.engine.distributed.ranks import Ranks
    from studio.engine.remote.ssh import RemoteTarget
    from studio.engine.training.create import NewRun
    from studio.recipes.base import Recipe, TrainingBudget


_SEVERAL = """\
several devices at once, on Linux:
  torchrun --nproc-per-node 4 --max-restarts 3 -m studio train PATH... [options]
  Four processes share every batch, each on a card of its own, or on its share of the CPU's cores. Learnt is what one
  process would learn, in the same run folder; presets and batches suit all cards together. 'resume' in place of 'train'
  goes on with a run, by as many processes as it is given to, and 'queue run' trains all that waits, run by run.
  When one of them dies, torchrun starts all of them again, and they go on from the last checkpoint.
"""


def add_recipe_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add a flag for every setting of the recipe that `words` name, and tell of its presets. Raises UsageError."""
    from studio.engine import catalog
    from studio.recipes.base import TrainingBudget

    first_look = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first_look.add_argument("--recipe", default="", nargs="?")
    recipe = catalog.recipe(first_look.parse_known_args(words)[0].recipe or "")
    add_settings(parser, Rights, "rights in the sprites")
    add_settings(parser, recipe.Config, f"settings of the {recipe.name}")
    presets = "\n".join(f"  {preset.title.lower():10}{preset.help}" for preset in recipe.presets(TrainingBudget()))
    recipes = "\n".join(f"  {other.name:12}{other.summary}" for other in catalog.recipes().values())
    parser.epilog = (
        f"recipes (each has its own settings: --recipe NAME --help):\n{recipes}\n\npresets:\n{presets}\n\n{_SEVERAL}"
    )


def train(args: argparse.Namespace) -> int:
    """Train a new run."""
    return in_ranks(_train, args) if args.on is None else _train_elsewhere(args)


def resume(args: argparse.Namespace) -> int:
    """Go on with a run."""
    return in_ranks(_resume, args) if args.on is None else _resume_elsewhere(args)


def _train(args: argparse.Namespace, ranks: Ranks) -> int:
    from studio.engine.training.loop import train_new

    reporter = reporter_for(args)
    begun = ranks.remembered()
    if begun is not None and has_begun(ranks):  # torchrun has started all of this again
        return _go_on(begun, args, ranks, reporter)
    new = new_run(args, reporter, ranks.devices)
    path = begun or new.path
    ranks.remember(path)
    control = Control()
    events = train_new(path, new.sprites, new.recipe, new.config, new.device, control, new.parent, ranks)
    return drive(events, path, control, reporter)


def new_run(args: argparse.Namespace, reporter: Reporter, devices: int = 1) -> NewRun:
    """What is to be trained by so many devices: sprites are read and one of them is probed. Raises StudioError."""
    from studio.engine import catalog
    from studio.engine.steps.benchmark import training_budget
    from studio.engine.training.create import NewRun
    from studio.engine.training.parents import load_parent, suggested
    from studio.recipes.base import TrainingBudget

    recipe = catalog.recipe(args.recipe)
    # A wrong parent or preset is said before sprites are read.
    source = _asked_parent(args)
    parent = load_parent(source, recipe) if source is not None else None
    chosen_config(recipe, args, TrainingBudget(given=parent.settings if parent else None))
    found = read_sprites(args, args.paths, reporter)
    say_left_out(found, reporter)
    sprites = Rights.for_sources(args.paths).replace(**given(args, Rights)).add_to(found.sprites)
    # Who asks for another network than the starter's can't have the starter.
    if args.parent is None and not given(args, recipe.Config).keys() & {*recipe.fixed_by_weights}:
        source = suggested(recipe, sprites)
        if source is not None:
            parent = load_parent(source, recipe)
            few = formatting.count(len(sprites), "sprite")
            reporter.say(f"Starting from the starter, which learnt from CC0 sprites only, as suits {few}.")
            reporter.say("--from nothing learns from your sprites alone.")
    fixed = parent.settings if parent else None
    device = find_device(args, probe=True)  # its speed decides what a preset suggests
    config = chosen_config(recipe, args, training_budget(recipe, sprites, device, fixed, devices))
    return NewRun(run_folder(args, sprites, recipe), sprites, recipe, config, device, parent)


def _asked_parent(args: argparse.Namespace) -> ParentSource:
    """What --from names; None for nothing, and where it is not given. Raises UsageError."""
    if args.parent in (None, NOTHING):
        return None
    return STARTER if args.parent == STARTER else find_run(args.parent)


def _resume(args: argparse.Namespace, ranks: Ranks) -> int:
    more_min = _more_min(args)
    if ranks.remembered() is not None:  # what torchrun has started again has been given them
        more_min = 0.0
    return _go_on(find_run(args.run_name), args, ranks, reporter_for(args), more_min)


def _more_min(args: argparse.Namespace) -> float:
    """What --more-minutes says; 0 without it. Raises UsageError."""
    minutes = next(item for item in settings_of(TrainingConfig) if item.name == "minutes")
    return 0.0 if args.more_minutes is None else float(minutes.check(args.more_minutes))


def _train_elsewhere(args: argparse.Namespace) -> int:
    """Make a new run and have it trained on another machine."""
    from studio.engine.training.create import keep_new

    place, reporter = remote.place_of(args), reporter_for(args)
    check_remote(place)  # before sprites are read
    # It is made on the CPU: what a preset or the choice of precision takes from a device is not asked there.
    new = new_run(argparse.Namespace(**{**vars(args), "device": "cpu"}), reporter)
    with contextlib.closing(keep_new(new)) as making:
        for event in making:
            reporter.show(event)
    reporter.clear()
    remember(new.path)
    return _drive_elsewhere(new.path, place, args, 0.0, reporter)


def _resume_elsewhere(args: argparse.Namespace) -> int:
    path, place, more_min = find_run(args.run_name), remote.place_of(args), _more_min(args)
    return _drive_elsewhere(path, place, args, more_min, reporter_for(args))


def _drive_elsewhere(
    path: Path, place: RemoteTarget, args: argparse.Namespace, more_min: float, reporter: Reporter
) -> int:
    end, interrupted = remote.to_the_end(path, place, args.device, more_min, reporter)
    return _say_ended(end, path, ("--on", str(place)), interrupted, reporter)


def _go_on(path: Path, args: argparse.Namespace, ranks: Ranks, reporter: Reporter, more_min: float = 0.0) -> int:
    from studio.engine.training.loop import train_resumed

    raise_if_remote(path)
    progress = RunDir(path).progress()
    if progress.state == "finished" and not more_min:
        title = f"{path.name} is finished: nothing is left to do."
        reporter.show(Notice("info", title, f"{progress.message} --more-minutes 10 trains it longer.".strip()))
        _say_what_next(path, reporter)
        return DONE
    control = Control()
    return drive(train_resumed(path, find_device(args), control, more_min, ranks), path, control, reporter)


def drive(events: Events, path: Path, control: Control, reporter: Reporter) -> int:
    """Train to the end, or until Ctrl+C; say where the work is and how to use it. Returns the exit code."""
    end, interrupted = to_the_end(events, path, control, reporter)
    return _say_ended(end, path, (), interrupted, reporter)


def _say_ended(end: RunFinished, path: Path, where: Sequence[str], interrupted: bool, reporter: Reporter) -> int:
    """Print how a training ended and what to do next; return the exit code. where: flags for resuming it."""
    reporter.say(finished(end))
    reporter.say(f"The run is in {path}")
    if end.reason == "stopped":
        reporter.say(f"Resume it:  {command_line('studio', 'resume', name_of(path), *where)}")
    else:
        _say_what_next(path, reporter)
    return INTERRUPTED if interrupted else DONE


def to_the_end(events: Events, path: Path, control: Control, reporter: Reporter) -> tuple[RunFinished, bool]:
    """Train until the run ends or Ctrl+C, the machine kept awake; the second value says that it was Ctrl+C.

    The run is remembered whatever happens, and leaves the queue when it has ended. Raises KeyboardInterrupt for a
    second Ctrl+C.
    """
    try:
        with WakeLock(f"'{path.name}' is being trained."), stopping(control) as interruption:
            end = follow(with_run_control(events, control, can_pause=True), reporter, RunFinished)
    except KeyboardInterrupt:
        if (path / "run.json").is_file():
            again = command_line("studio", "resume", str(path))
            sys.stderr.write(f"{resume_hint(RunDir(path).saved_step())} {again}\n")
        raise
    finally:
        if (path / "run.json").is_file():
            remember(path)
            queue.remove_if_ended(path)
    return end, interruption.asked and end.reason == "stopped"


def chosen_config(recipe: Recipe, args: argparse.Namespace, means: TrainingBudget) -> TrainingConfig:
    """The recipe's defaults, changed by the preset as it suits the means, changed by the flags. Raises UsageError."""
    flags = given(args, recipe.Config)
    preset = _preset_changes(recipe, args.preset, means)
    # A length that is asked for is not that of the preset, in whatever it counts.
    changes = {
        name: value
        for name, value in preset.items()
        if name not in LENGTH_SETTINGS or not flags.keys() & LENGTH_SETTINGS
    }
    return recipe.defaults(means).replace(**{**changes, **flags})  # type: ignore[no-any-return]


def run_folder(args: argparse.Namespace, sprites: Sprites, recipe: Recipe) -> Path:
    """Where a new run goes: --out, else a free name among the studio's runs."""
    if args.out is not None:
        return Path(args.out)
    today = datetime.date.today().isoformat()
    name = args.name or f"{today} {sprites.title} {recipe.name}"
    return files.free_path(paths.runs() / files.safe_name(name.replace(".", " ")))


def _preset_changes(recipe: Recipe, name: str | None, means: TrainingBudget) -> Mapping[str, Value]:
    """What the preset of this name changes, or the one in the middle. Raises UsageError."""
    if name is None:
        return recipe.usual_changes(means)
    presets = {preset.title.lower(): preset.changes for preset in recipe.presets(means)}
    if name.lower() not in presets:
        choice = f"Choose one of: {', '.join(presets) or 'none'}."
        raise UsageError(f"The {recipe.name} has no preset {name!r}.", choice)
    return presets[name.lower()]


def name_of(path: Path) -> str:
    """Return the shortest name of a run for the command line, not yet quoted."""
    return path.name if path.parent == paths.runs() else str(path)


def _say_what_next(path: Path, reporter: Reporter) -> None:
    from studio.engine import catalog

    name = name_of(path)
    if catalog.recipe(RunDir(path).record().recipe).makes == "sprites":
        reporter.say(f"Draw sprites:  {command_line('studio', 'generate', name, '--out', 'sheet.png')}")
    else:
        reporter.say(f"Predict sprites:  {command_line('studio', 'predict', name, 'FOLDER')}")
    reporter.say(f"Export the model:  {command_line('studio', 'export', name, '--out', 'model.safetensors')}")
