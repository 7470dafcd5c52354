"""The commands of `studio` with their help and flags, as data. parser.py turns this table into an argument parser.

Importing this module is cheap: `studio --help` loads neither torch nor a command's own module.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from studio.core.names import existing_path


class Flag(NamedTuple):
    """The arguments of one `ArgumentParser.add_argument` call."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


class SettingFlags(NamedTuple):
    """A flag for every setting of a config class. config: 'module.Class' in studio. title: of the group in the help."""

    config: str
    title: str


Flags = Flag | tuple[Flag, ...] | SettingFlags | str
"""A flag; mutually exclusive flags; flags of settings; or 'module.function' in studio.cli, which adds other flags."""


@dataclass(frozen=True)
class Command:
    """A command, or an action of a command. `parser.parse` builds the flags of the typed command only."""

    topic: str  # of the guide
    about: str  # one line of help
    flags: tuple[Flags, ...] = ()
    run: str = ""  # 'module.function' in studio.cli that executes it; by default named like the command
    usage: str = ""  # the positional arguments in the usage line; by default from the flags
    aliases: tuple[str, ...] = ()
    epilog: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    actions: Mapping[str, Command] = field(default_factory=dict)


def _command(topic: str, about: str, *flags: Flags, **options: Any) -> Command:
    return Command(topic, about, flags, **options)


def _flag(name: str, help_text: str, metavar: str | None = None, **options: Any) -> Flag:
    return Flag((name,), {"help": help_text, **({} if metavar is None else {"metavar": metavar}), **options})


def _switch(name: str, help_text: str) -> Flag:
    return _flag(name, help_text, action="store_true")


def _out(help_text: str, metavar: str = "PATH") -> Flag:
    return _flag("--out", help_text, metavar, type=Path)


def _paths(help_text: str, nargs: str = "+") -> Flag:
    return _flag("paths", help_text, "PATH", nargs=nargs, type=existing_path)


_TORCHRUN = """\
several devices at once, on Linux ('studio train --help' explains how):
  torchrun --nproc-per-node 4 --max-restarts 3 -m studio {}
"""
_SPRITES = "folders, zip archives, image files or sprite sheets"
_RUN_LIST = "run folders, or names from 'studio runs'"

_RUN = _flag("run_name", "a run's folder, or its name in 'studio runs'", "RUN")
_RUNS = _flag("run_names", _RUN_LIST, "RUN", nargs="+")
_CHECKPOINT = _flag("--checkpoint", "checkpoint to use: best, last or a step (default: best)", "STEP", default="best")
_DEVICE = _flag("--device", "auto, cpu, cuda, cuda:1, mps, xpu (default: auto)", "NAME", default="auto")
_ON = _flag(
    "--on",
    "train in this folder of another machine, through ssh and rsync. The run is copied back during training; --device "
    "names a device of HOST. HOST needs the same versions of the studio and of torch, in FOLDER/.venv or the PATH of "
    "a login shell",
    "USER@HOST:FOLDER",
)
_IMPORT_FLAGS = SettingFlags("data.options.ImportOptions", "import")
_SPRITES_OUT = _out(
    "a file: .png (a sheet with JSON), .gif, .apng, .aseprite or .tres (Godot); or a folder for one PNG per sprite"
)
_SPRITE_FORMAT = _flag("--format", "format of --out by name, for example indexed_sheet", "NAME", default="")
_NO_TEXTS = _flag(
    "--no-texts", "don't write model, seed and settings into the files ('studio verify' reads them)", dest="texts",
    action="store_false",
)  # fmt: skip
_NEW_RUN = (
    _paths(f"sprites: {_SPRITES}"),
    _IMPORT_FLAGS,
    _flag("--recipe", "type of model (default: the first listed below)", "NAME", default=""),
    _flag("--preset", "preset, listed below; flags override its settings (default: the middle preset)", "NAME"),
    _flag(
        "--from",
        "initial weights: a run, 'starter' (the bundled model, trained on CC0 sprites) or 'nothing' (default: starter "
        "for few sprites, if the recipe has one, otherwise nothing)",
        "MODEL",
        dest="parent",
    ),
    _DEVICE,
    (
        _flag("--name", "name of the run (default: date, sprites and recipe)"),
        _out("folder of the run (default: a new folder in the runs folder)", "RUN"),
    ),
    "train.add_recipe_flags",
)

COMMANDS = {
    "demo": _command(
        "first-model", "train on the demo sprites: in the window, or in the terminal if there is no screen",
        _switch("--sets", "train on the demo characters instead, then draw the other views of new ones"),
        _flag("--minutes", "training time in the terminal (default: 2.5)", "X", type=float, default=2.5),
        _out("folder for the results in the terminal (default: ./demo-output, or the next free name)", "FOLDER"),
        _switch("--terminal", "stay in the terminal even if there is a screen"),
    ),
    "devices": _command(
        "troubleshooting", "list the devices that can train",
        _switch("--measure", "time training steps on each device"),
        _flag("--recipe", "model to measure, as in 'studio train'", "NAME", default=""),
        _flag("--size", "canvas size to measure, in pixels (default: 32)", "N", type=int, default=32),
    ),
    "check": _command(
        "system-check",
        "check this computer: PyTorch, graphics cards, disks, folders, and real training steps on each device",
        run="check.check",
    ),
    "inspect": _command(
        "sprites", "import sprites, list problems, and show the flags that fix them",
        _switch("--all", "list every file, not only the first few of each problem"),
        _switch("--learn", "also train a small network (about 20 s) to find outliers and wrong classes"),
        _paths(f"sprites: {_SPRITES}"),
        _IMPORT_FLAGS,
    ),
    "train": _command("train", "train a model on sprites", _ON, *_NEW_RUN),
    "resume": _command(
        "runs", "resume a stopped or interrupted run",
        _RUN, _DEVICE,
        _flag("--more-minutes", "minutes to train longer, also if the run was finished", "X", type=float),
        _ON,
        run="train.resume",
        epilog=_TORCHRUN.format("resume RUN"),
    ),
    "queue": _command(
        "runs", "add, list, move, remove or train the runs of the queue, which the window shares",
        run="queue.show",
        usage="[add | list | move | remove | run]",
        actions={
            "add": _command(
                "runs", "create a queued run; takes the flags of 'studio train'", *_NEW_RUN, run="queue.add"
            ),
            "list": _command("runs", "list the queue in order", run="queue.show"),
            "move": _command(
                "runs", "move a run to another position",
                _RUN,
                _flag("position", "new position; 1 is first", "POSITION", type=int),
                run="queue.move",
            ),
            "remove": _command(
                "runs", "remove runs from the queue; their folders stay, and 'studio resume' trains them",
                _RUNS,
                run="queue.remove",
            ),
            "run": _command(
                "runs", "train all queued runs in order; Ctrl+C saves the current run, which stays in the queue",
                run="queue.train_all",
                epilog=_TORCHRUN.format("queue run"),
                defaults={"device": "auto"},  # for torchrun; a single process uses the device stored in each run
            ),
        },
    ),
    "generate": _command(
        "generate", "draw new sprites with a trained generator, or new characters with a model of sets",
        _RUN, _CHECKPOINT, _SPRITES_OUT, _SPRITE_FORMAT,
        _flag("--columns", "columns of a sheet (default: 8; an animation is one row)", "N", type=int),
        _flag("--palette", "palette file to draw with (default: the run's palette)", "FILE", type=Path),
        _switch("--dither", "with --palette: mix the colours of the palette in a dither pattern"),
        _NO_TEXTS, _DEVICE,
        "generate.add_generate_flags",
    ),
    "complete": _command(
        "sets", "draw the other views and frames of characters with a model of sets",
        _RUN,
        _flag(
            "--given",
            "a picture of one cell (--given down=front.png), or a sheet whose empty cells are drawn; a folder of "
            "pictures or sheets completes many characters. Repeat the flag for more cells",
            "CELL=FILE", action="append", default=[],
        ),
        _CHECKPOINT, _SPRITES_OUT, _SPRITE_FORMAT, _NO_TEXTS, _DEVICE,
        SettingFlags("engine.sampling.settings.CompleteSettings", "completion"),
    ),
    "distil": _command(
        "generate", "prepare fast mode: distil a generator into a network that draws about five times as fast",
        _RUN, _CHECKPOINT, _DEVICE,
        SettingFlags("engine.sampling.distil.DistilSettings", "distillation"),
        run="generate.distil",
    ),
    "predict": _command(
        "generate", "predict the class of sprites (classifier) or their numbers (regression)",
        _RUN, _CHECKPOINT,
        _paths(f"sprites: {_SPRITES}"),
        _DEVICE,
        aliases=("classify",),
    ),
    "evaluate": _command(
        "quality", "measure the quality of a model: of a generator's sprites, or of predictions for the validation set",
        _RUN, _CHECKPOINT,
        _paths(f"sprites to evaluate instead of the generator's: {_SPRITES}", "*"),
        _DEVICE,
        SettingFlags("engine.quality.evaluate.EvaluateSettings", "evaluation"),
    ),
    "export": _command(
        "export", "export a trained model and verify the file; or export a run's curves to TensorBoard",
        _RUN, _CHECKPOINT,
        _flag("--format", "file format (default: from the suffix of --out)", "NAME"),
        _out("file or folder (default: the run's exports folder)"),
        "export.add_export_flags",
    ),
    "verify": _command(
        "export", "check whether an exported model or a saved sprite was changed, and which run made it",
        _flag("file", "an exported file next to its card, a card, or an image saved by the studio", "FILE",
            type=existing_path),
        _flag("--run", "run to compare with (default: the run named in the file, if it is in the runs folder)", "RUN",
            dest="run_name"),
    ),
    "plot": _command(
        "runs", "save a plot of the loss, or another curve, for one or more runs",
        _RUNS,
        _switch("--log", "logarithmic Y axis"),
        _out(".png, .svg or .pdf file, or a folder (default: a PNG named after the run and the curve)"),
        "plot.add_plot_flags",
    ),
    "report": _command(
        "runs", "write an HTML report of one or more runs: curves, samples, metrics and settings",
        _RUNS,
        _out(".html file or folder (default: named after the run)"),
    ),
    "film": _command(
        "generate", "save a timelapse of a run's samples as an animation",
        _RUN,
        _out(".gif, .apng or .aseprite file, or a folder (default: a GIF named after the run)"),
        _flag("--seconds", "total duration (default: 0.25 seconds per sample)", "X", type=float),
        _flag("--scale", "integer pixel scale (default: about 512 pixels wide)", "N", type=int),
    ),
    "map": _command(
        "learn", "draw a map of a run's sprites with similar sprites side by side, and list outliers",
        _RUN, _CHECKPOINT,
        _out(".png file or folder (default: named after the run)"),
        _flag("--size", "longer side of the image in pixels; a larger image shows more sprites (default: 2048)", "N",
            type=int, default=2048),
        _DEVICE,
        run="map.draw_map",
    ),
    "palette": _command(
        "sprites", "show or convert a palette, extract palette or ramps from sprites, or recolour sprites",
        _paths(f"a palette file; with --extract, --ramps, --ramp or --snap: {_SPRITES}"),
        _IMPORT_FLAGS,
        (
            _switch("--extract", "extract the palette from the sprites"),
            _flag("--snap", "write copies of the files, recoloured with the palette in FILE", "FILE",
                type=existing_path),
            _switch("--ramps", "order the colours of the palette or sprites into ramps"),
            _flag("--ramp", "write copies of the files with another ramp: red=blue, red=warm.gpl or red=db32.gpl#blue "
                "for a ramp of a palette file; repeat the flag for several ramps", "OLD=NEW", action="append",
                default=[]),
        ),
        _flag("--colours", "with --extract: max. colours, up to 256 (default: 32)", "N", type=int),
        _switch("--dither", "with --snap: mix colours in a dither pattern"),
        _out("palette file to save: .gpl, .pal, .hex, .json, .txt, .png or .act; with --snap or --ramp: a new folder"),
    ),
    "runs": _command(
        "runs", "list all runs",
        _flag("--tag", "list only runs with this tag; repeat the flag to require several tags", "TAG", action="append",
            default=[]),
        _switch("--starred", "only starred runs"),
        _switch("--disk", "also show disk usage per run and in total"),
    ),
    "note": _command(
        "runs", "show or edit a run's name, note, star and tags",
        _RUN,
        _flag("--name", "display name, which commands accept too; '' restores the name of the folder", "NAME"),
        _flag("--note", "note; '' removes it", "TEXT"),
        _flag("--tag", "tags to add, one word each", "A,B", default=""),
        _flag("--untag", "tags to remove", "A,B", default=""),
        _flag("--star", "add or remove the star", action=argparse.BooleanOptionalAction),
        run="cleanup.note",
    ),
    "free": _command(
        "files", "list files that runs no longer need and their size; --yes deletes them",
        _flag("run_names", f"{_RUN_LIST} (default: all runs)", "RUN", nargs="*"),
        "cleanup.add_free_flags",
        _switch("--yes", "delete the files permanently"),
        run="cleanup.free",
    ),
    "help": _command(
        "command-line", "print a topic of the guide, or list all topics",
        _flag("topic", "name of a topic, or TOPIC#SECTION", "TOPIC", nargs="?"),
        run="help.show_help",
    ),
    "learn": _command(
        "lessons", "lessons: predict, measure on this device, compare, and solve an exercise",
        _flag("lesson", "number or name of a lesson; without one: list the lessons", "LESSON", nargs="?"),
        _paths(f"sprites: {_SPRITES} (default: the demo sprites)", "*"),
        (
            _flag("--answer", "your prediction: a letter, a number, or 'skip' (default: ask on the terminal)", "TEXT"),
            _flag("--exercise", "write the exercise of the lesson to a new file, or check the file", "FILE",
                type=Path),
            _flag("--collect", "make a table of the pages that learners have handed in", "FOLDER", type=Path),
        ),
        _flag("--name", "the learner's name (default: your account's)"),
        _flag("--class", "class settings by a teacher: which lessons, which sprites, how long", "FILE", type=Path,
            dest="class_file"),
        _DEVICE, _IMPORT_FLAGS,
        _out(".html file or folder for the page to hand in; with --collect: .html or .csv file"),
        usage="[LESSON [PATH...]]",
    ),
    "lab": _command(
        "learn", "run an experiment on this device (batch size, learning rate, threads, ...) or analyse a run",
        _flag("experiment", "experiment, listed below; without a name: list all experiments and earlier results",
            "EXPERIMENT", nargs="?"),
        _paths(f"sprites: {_SPRITES} (default: the demo sprites); or the run to analyse", "*"),
        _IMPORT_FLAGS,
        _flag("--checkpoint", "checkpoint to analyse: best, last or a step (default: best)", "STEP"),
        _flag("--recipe", "type of model (default: the first)", "NAME", default=""),
        _DEVICE,
        _out(".html file for a report of the results", "FILE"),
        _flag("--compare", "show earlier results by their numbers in the list", "N", type=int, nargs="+"),
        "lab.add_lab_flags",
        usage="[EXPERIMENT [PATH... | RUN]]",
    ),
}  # fmt: skip
