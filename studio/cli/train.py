"""`studio train` and `studio resume`: train a run, here or on another machine."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli.distributed import has_run_folder, run_distributed
from studio.cli.flags import add_setting_flags, named_recipe, typed_settings
from studio.cli.inputs import find_device, find_run, print_excluded, read_sprites
from studio.cli.messages import DONE, INTERRUPTED, finished
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.cli.signal_handlers import stop_on_signal
from studio.core import files, paths
from studio.core.config import LENGTH_SETTINGS, TrainingConfig, Value, settings_of
from studio.core.errors import SetsError, UsageError
from studio.core.events import Events, Notice, RunFinished
from studio.core.observers import observed
from studio.core.shell import command_line
from studio.core.wake_lock import WakeLock
from studio.data.rights import Rights
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.control.server import RunControlServer
from studio.engine.devices.types import NOTHING, STARTER, ParentSource
from studio.engine.remote.marker import raise_if_remote, remote_target_of
from studio.engine.remote.ssh import RemoteTarget
from studio.engine.remote.training import check_remote, train_remotely
from studio.engine.runs import queue
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import remember, resume_hint

if TYPE_CHECKING:
    from studio.engine.distributed.ranks import Ranks
    from studio.engine.training.create import NewRun
    from studio.recipes.base import Recipe, TrainingBudget


_TORCHRUN_HELP = """\
several devices at once, on Linux:
  torchrun --nproc-per-node 4 --max-restarts 3 -m studio train PATH... [options]
  Four processes share every batch, each on its own GPU or its share of the CPU cores. The result equals that of a
  single process with the same batch size; presets choose settings for all GPUs together. 'resume RUN' and 'queue run'
  work the same way, with any number of processes. If a process dies, torchrun restarts all of them, and they resume
  from the last checkpoint.
"""


def add_recipe_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add a flag for every setting of the recipe in the command line `words` and list presets. Raises UsageError."""
    from studio.engine import catalog
    from studio.recipes.base import TrainingBudget

    recipe = named_recipe(words)
    add_setting_flags(parser, Rights, "licence of the sprites")
    add_setting_flags(parser, recipe.Config, f"{recipe.name} settings")
    presets = "\n".join(f"  {preset.title.lower():10}{preset.help}" for preset in recipe.presets(TrainingBudget()))
    recipes = "\n".join(f"  {other.name:12}{other.summary}" for other in catalog.recipes().values())
    parser.epilog = f"recipes (--recipe NAME --help lists the settings of each):\n{recipes}\n\n"
    parser.epilog += f"presets:\n{presets}\n\n{_TORCHRUN_HELP}"


def train(args: argparse.Namespace) -> int:
    """Create a run from the command line and train it."""
    return run_distributed(_train, args) if args.on is None else _train_remote(args)


def resume(args: argparse.Namespace) -> int:
    """Continue the training of the named run."""
    if args.on is None:
        return run_distributed(_resume, args)
    path, target, more_min = find_run(args.run_name), _target_of(args), _extra_minutes(args)
    return _run_remote(path, target, args, more_min, reporter_for(args))


def _train(args: argparse.Namespace, ranks: Ranks) -> int:
    from studio.engine.training.loop import train_new

    reporter = reporter_for(args)
    begun = ranks.current_run()
    if begun is not None and has_run_folder(ranks):  # after a restart by torchrun
        return _continue_run(begun, args, ranks, reporter)
    new = new_run(args, reporter, ranks.devices)
    path = begun or new.path
    ranks.set_current_run(path)
    control = Control()
    events = train_new(path, new.sprites, new.recipe, new.config, new.device, control, new.parent, ranks)
    return _train_and_report(events, path, control, reporter)


def new_run(args: argparse.Namespace, reporter: Reporter, devices: int = 1) -> NewRun:
    """Import the sprites and prepare a new run. devices: number that share a batch. Raises StudioError."""
    from studio.engine import catalog
    from studio.engine.steps.benchmark import training_budget
    from studio.engine.training.create import NewRun
    from studio.engine.training.parents import describe_examples, load_parent, suggest_parent
    from studio.recipes.base import TrainingBudget

    recipe = catalog.recipe(args.recipe)
    # Fail on a wrong --from or --preset before the import, which may take minutes.
    source = _typed_parent(args)
    parent = load_parent(source, recipe) if source is not None else None
    chosen_config(recipe, args, TrainingBudget(parent_settings=parent.settings if parent else None))
    found = read_sprites(args, args.paths, reporter)
    print_excluded(found, reporter)
    if recipe.makes == "sets" and not found.sprites.sets and found.proposed_sets is not None:
        title = f"These pictures look like unsliced sheets: {found.proposed_sets.describe()}."
        raise SetsError(title, "Add --sets sheets to slice them.")
    sprites = Rights.for_sources(args.paths).replace(**typed_settings(args, Rights)).add_to(found.sprites)
    # The starter model only fits networks of its own shape.
    if args.parent is None and not typed_settings(args, recipe.Config).keys() & {*recipe.fixed_by_weights}:
        source = suggest_parent(recipe, sprites)
        if source is not None:
            parent = load_parent(source, recipe)
            few = describe_examples(recipe, sprites)
            reporter.print(f"Starting from the bundled starter model (CC0 sprites), which helps with {few}.")
            reporter.print("To train on your sprites only, add --from nothing.")
    fixed = parent.settings if parent else None
    device = find_device(args, probe=True)  # presets depend on the device's speed
    config = chosen_config(recipe, args, training_budget(recipe, sprites, device, fixed, devices))
    return NewRun(new_run_folder(args, sprites, recipe), sprites, recipe, config, device, parent)


def _typed_parent(args: argparse.Namespace) -> ParentSource:
    """Return the model of --from; None for 'nothing' and without the flag. Raises UsageError."""
    if args.parent in (None, NOTHING):
        return None
    return STARTER if args.parent == STARTER else find_run(args.parent)


def _resume(args: argparse.Namespace, ranks: Ranks) -> int:
    # Before a restart by torchrun, the run already got the extra minutes.
    more_min = _extra_minutes(args) if ranks.current_run() is None else 0.0
    return _continue_run(find_run(args.run_name), args, ranks, reporter_for(args), more_min)


def _extra_minutes(args: argparse.Namespace) -> float:
    """Return --more-minutes; 0 without the flag. Raises UsageError."""
    minutes = next(item for item in settings_of(TrainingConfig) if item.name == "minutes")
    return 0.0 if args.more_minutes is None else float(minutes.check(args.more_minutes))


def _train_remote(args: argparse.Namespace) -> int:
    """Create a new run here and train it on another machine."""
    from studio.engine.training.create import create_run

    target, reporter = _target_of(args), reporter_for(args)
    check_remote(target)  # fail before the import
    # Presets and precision come from this machine's CPU: the other machine's device is not probed.
    new = new_run(argparse.Namespace(**{**vars(args), "device": "cpu"}), reporter)
    with contextlib.closing(create_run(new)) as making:
        for event in making:
            reporter.show(event)
    reporter.clear()
    remember(new.path)
    return _run_remote(new.path, target, args, 0.0, reporter)


def _target_of(args: argparse.Namespace) -> RemoteTarget:
    """Return the machine and folder of --on. Raises UsageError, also under torchrun."""
    from studio.engine.distributed.ranks import is_torchrun_launched

    if is_torchrun_launched():
        raise UsageError("torchrun can't be combined with --on.", "Start torchrun on the other machine.")
    return RemoteTarget.parse(args.on)


def _run_remote(path: Path, target: RemoteTarget, args: argparse.Namespace, more_min: float, reporter: Reporter) -> int:
    end, interrupted = _follow_remote_training(path, target, args.device, more_min, reporter)
    return _print_end(end, path, ("--on", str(target)), interrupted, reporter)


def _continue_run(path: Path, args: argparse.Namespace, ranks: Ranks, reporter: Reporter, more_min: float = 0.0) -> int:
    from studio.engine.training.loop import train_resumed

    raise_if_remote(path)
    progress = RunDir(path).progress()
    if progress.state == "finished" and not more_min:
        title = f"{path.name} is finished."
        reporter.show(Notice("info", title, f"{progress.message} --more-minutes 10 trains it longer.".strip()))
        _print_next_steps(path, reporter)
        return DONE
    control = Control()
    return _train_and_report(train_resumed(path, find_device(args), control, more_min, ranks), path, control, reporter)


def _train_and_report(events: Events, path: Path, control: Control, reporter: Reporter) -> int:
    """Train until the end or Ctrl+C, print what to do next, and return the exit code."""
    end, interrupted = train_until_stopped(events, path, control, reporter)
    return _print_end(end, path, (), interrupted, reporter)


def _print_end(end: RunFinished, path: Path, where: Sequence[str], interrupted: bool, reporter: Reporter) -> int:
    """Print how a training ended and what to do next; return the exit code. where: extra flags for `studio resume`."""
    reporter.print(finished(end))
    reporter.print(f"The run is in {path}")
    if end.reason == "stopped":
        reporter.print(f"Resume it:  {command_line('studio', 'resume', run_argument(path), *where)}")
    else:
        _print_next_steps(path, reporter)
    return INTERRUPTED if interrupted else DONE


def train_until_stopped(events: Events, path: Path, control: Control, reporter: Reporter) -> tuple[RunFinished, bool]:
    """Train until the run ends or Ctrl+C, and prevent sleep; also return whether Ctrl+C stopped the run.

    Always adds the run to the list of known runs, and removes an ended run from the queue. A second Ctrl+C raises
    KeyboardInterrupt.
    """
    try:
        with WakeLock(f"Training '{path.name}'."), stop_on_signal(control) as stop_request:
            end = run_job(observed(events, [RunControlServer(control, can_pause=True)]), reporter, RunFinished)
    except KeyboardInterrupt:
        if (path / "run.json").is_file():
            again = command_line("studio", "resume", str(path))
            sys.stderr.write(f"{resume_hint(RunDir(path).saved_step())} {again}\n")
        raise
    finally:
        if (path / "run.json").is_file():
            remember(path)
            queue.remove_if_ended(path)
    return end, stop_request.received and end.reason == "stopped"


def _follow_remote_training(
    path: Path, target: RemoteTarget, device: str, more_min: float, reporter: Reporter
) -> tuple[RunFinished, bool]:
    """Train a run on `target` until it ends and its folder is copied back; also return whether Ctrl+C stopped the run.

    A second Ctrl+C and other signals raise KeyboardInterrupt; the training then continues on `target`.
    """
    control = Control()
    again = f"Reconnect with: {command_line('studio', 'resume', str(path), '--on', str(target))}"
    message = f"Asking {target} to stop and save the run.\nCtrl+C again quits this command only; the run continues on "
    message += f"{target}. {again}"
    try:
        with stop_on_signal(control, message=message, signals=[signal.SIGINT]) as stop_request:
            events = train_remotely(path, target, control, device=device, more_min=more_min)
            end = run_job(events, reporter, RunFinished)
    except KeyboardInterrupt:
        if not remote_target_of(path):
            state = f"The run was not started on {target}."
        elif control.stop:
            state = f"{target} may not have received the request to stop."
        else:
            state = f"The run continues on {target}."
        sys.stderr.write(f"{state} {again}\n")
        raise
    finally:
        remember(path)
        queue.remove_if_ended(path)
    return end, stop_request.received and end.reason == "stopped"


def chosen_config(recipe: Recipe, args: argparse.Namespace, budget: TrainingBudget) -> TrainingConfig:
    """Return the recipe's defaults, overridden by the preset for this budget, then by the flags. Raises UsageError."""
    flags = typed_settings(args, recipe.Config)
    preset = _preset_changes(recipe, args.preset, budget)
    # A typed length (minutes, steps or epochs) replaces the preset's length, whatever its unit.
    if flags.keys() & LENGTH_SETTINGS:
        preset = {name: value for name, value in preset.items() if name not in LENGTH_SETTINGS}
    return recipe.defaults(budget).replace(**{**preset, **flags})  # type: ignore[no-any-return]


def new_run_folder(args: argparse.Namespace, sprites: Sprites, recipe: Recipe) -> Path:
    """Return the folder of a new run: --out, or a free name in the runs folder."""
    if args.out is not None:
        return Path(args.out)
    today = datetime.date.today().isoformat()
    name = args.name or f"{today} {sprites.title} {recipe.name}"
    return files.free_path(paths.runs() / files.safe_name(name.replace(".", " ")))


def _preset_changes(recipe: Recipe, name: str | None, budget: TrainingBudget) -> Mapping[str, Value]:
    """Return the settings that the preset `name` changes; without a name, the standard preset. Raises UsageError."""
    if name is None:
        return recipe.usual_changes(budget)
    presets = {preset.title.lower(): preset.changes for preset in recipe.presets(budget)}
    if name.lower() not in presets:
        choice = f"Choose one of: {', '.join(presets) or 'none'}."
        raise UsageError(f"The {recipe.name} has no preset {name!r}.", choice)
    return presets[name.lower()]


def run_argument(path: Path) -> str:
    """Return the shortest argument that names a run: its folder's name or its path, without quotes."""
    return path.name if path.parent in paths.runs_folders() else str(path)


def _print_next_steps(path: Path, reporter: Reporter) -> None:
    from studio.engine import catalog

    name, record = run_argument(path), RunDir(path).record()
    makes = catalog.recipe(record.recipe).makes
    if makes == "sets":
        words = ("studio", "complete", name, "--given", f"{record.cells[0]}=FILE", "--out", "hero.png")
        reporter.print(f"Draw the rest of a character:  {command_line(*words)}")
        reporter.print(f"Draw new characters:  {command_line('studio', 'generate', name, '--out', 'sheet.png')}")
    elif makes == "sprites":
        reporter.print(f"Draw sprites:  {command_line('studio', 'generate', name, '--out', 'sheet.png')}")
    else:
        reporter.print(f"Predict sprites:  {command_line('studio', 'predict', name, 'FOLDER')}")
    reporter.print(f"Export the model:  {command_line('studio', 'export', name, '--out', 'model.safetensors')}")
