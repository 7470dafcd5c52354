"""The commands and their flags. Flags that come from a recipe are added only for the command that has them."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from studio.core.errors import UsageError
from studio.core.names import existing_path
from studio.core.versions import versions_line

_ABOUT = (
    "Train small models on your own pixel art. Without a command, the window opens, with the sprites that are named."
)
_EXAMPLES = """\
examples:
  studio my-sprites                            open the window with what is in a folder
  studio demo                                  see the whole thing in three minutes
  studio train my-sprites --minutes 10         learn to draw what is in a folder
  studio queue add my-sprites --minutes 60     a training for the night; 'studio queue run' trains all that wait
  studio generate "my run" --count 64 --out sheet.png
  studio distil "my run"                       then 'studio generate --quick' draws four times as fast
  studio evaluate "my run"                     how good its sprites are, beside real ones
  studio export "my run" --out model.safetensors
  studio export "my run" --format tensorboard --out logs
  studio verify model.safetensors --run "my run"
  studio plot "my run" other-run --out loss.png
  studio film "my run" --out learning.gif      how its samples got better, as an animation
  studio map "my run" --out map.png            its sprites, like ones near to one another
  studio note "my run" --name dragons --star   what it is called in every list; also --note, --tag
  studio free                                  what of the runs can go, and how much that frees
  studio lab batch-size my-sprites             which batch size suits this device
  studio lab hardest "my run"                  which sprites it gets most wrong
  studio palette my-sprites --snap warm.gpl    copies of the files in the colours of a palette
  torchrun --nproc-per-node 4 -m studio train my-sprites    with four devices at once (Linux)

'studio COMMAND --help' tells all about a command.
exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with the work saved
"""


def parse(words: list[str]) -> argparse.Namespace:
    """The parsed command line; `run` in it is a function that does the job and returns the exit code.

    Raises SystemExit after --help, --version and wrong usage, UsageError for a recipe that does not exist.
    """
    parser = argparse.ArgumentParser(
        prog="studio",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the versions of the studio and of torch")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(run=_lazily("studio.cli.window", "open_window"), paths=[])
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add in (
        _demo, _devices, _inspect, _train, _resume, _queue, _generate, _distil, _predict, _evaluate, _export, _verify,
        _plot, _report, _film, _map, _palette, _runs, _note, _free, _lab,
    ):  # fmt: skip
        add(commands, words)
    if words and words[0] not in commands.choices and existing_path(words[0]).exists():
        return _with_sprites(parser, words)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        command = f"studio {next((word for word in words if not word.startswith('-')), '')}".rstrip()
        raise UsageError(f"'{command}' does not know {unknown[0]!r}.", f"'{command} --help' lists all that it does.")
    return args


def _with_sprites(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """To open the window with the sprites that are named in place of a command. Raises UsageError."""
    if flag := next((word for word in words if word.startswith("-")), ""):
        raise UsageError(f"The window does not know {flag!r}.", "'studio --help' lists the commands; they take flags.")
    return argparse.Namespace(run=parser.get_default("run"), paths=[existing_path(word) for word in words])


class _Version(argparse.Action):
    """Prints what is looked up only where it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(versions_line())  # noqa: T201
        parser.exit()


class _Help(argparse.RawDescriptionHelpFormatter):
    """Room for long flags, so that most take one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


_TOGETHER = """\
several devices at once, on Linux ('studio train --help' says how):
  torchrun --nproc-per-node 4 --max-restarts 3 -m studio {}
"""
_SPRITES = "sprites: folders, zip archives, files or sheets"

Commands = argparse._SubParsersAction  # mypy: the parsers are plain ArgumentParsers


def _lazily(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """A function that is imported when it is called."""

    def run(args: argparse.Namespace) -> int:
        return int(getattr(importlib.import_module(module), function)(args))

    return run


def _command(
    commands: Commands[argparse.ArgumentParser],
    name: str,
    about: str,
    module: str,
    wants: str = "",
    *,
    aliases: Sequence[str] = (),
    of: str = "",
    function: str = "",
) -> argparse.ArgumentParser:
    """A command, or a part of the command `of`; `function` of the module does its job, else the one of its name."""
    parser = commands.add_parser(
        name,
        aliases=aliases,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        usage=f"studio {of} {name} {wants}[options]".replace("  ", " "),
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    unsaid = argparse.SUPPRESS if of else False  # a part takes nothing back that was said before its name
    parser.add_argument("--json", action="store_true", default=unsaid, help="print one JSON object a line")
    parser.set_defaults(run=_lazily(f"studio.cli.{module}", function or name))
    return parser


def _demo(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "the main job on the demo sprites: in the window, or in the terminal where there is no screen"
    parser = _command(commands, "demo", about, "demo")
    parser.add_argument(
        "--minutes", type=float, default=2.5, metavar="X", help="in the terminal: how long to train (default: 2.5)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="in the terminal: where the results go (default: ./demo-output, or the next free name)",
    )
    parser.add_argument("--terminal", action="store_true", help="stay in the terminal, also where there is a screen")


def _devices(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(commands, "devices", "list the devices that can train here", "runs")
    parser.add_argument("--measure", action="store_true", help="time real training steps on each")
    parser.add_argument("--recipe", default="", metavar="NAME", help="what to measure, as for 'studio train'")
    parser.add_argument(
        "--size", type=int, default=32, metavar="N", help="canvas to measure at, in pixels (default: 32)"
    )


def _inspect(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(
        commands,
        "inspect",
        "say what an import finds, what is wrong with it and how to mend it",
        "inspect",
        "PATH... ",
    )
    parser.add_argument("--all", action="store_true", help="name every file, not only the first few of each kind")
    about = "also learn to see the sprites, about 20 s, to find odd ones and those of the wrong class"
    parser.add_argument("--learn", action="store_true", help=about)
    _add_sources(parser)


def _train(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(commands, "train", "train a model on sprites", "train", "PATH... ")
    _add_on(parser)
    _add_training(parser, words, is_meant=_is_command(words, "train"))


def _add_training(parser: argparse.ArgumentParser, words: list[str], *, is_meant: bool) -> None:
    """All that a new run can be given; what depends on the recipe only if this command `is_meant`."""
    _add_sources(parser)
    parser.add_argument("--recipe", default="", metavar="NAME", help="kind of model (default: the first below)")
    about = "settings that belong together, as listed below; flags win over it (default: the one in the middle)"
    parser.add_argument("--preset", metavar="NAME", help=about)
    about = "start from the weights of 'starter', which learnt from CC0 sprites only, or of a run, or from 'nothing' "
    about += "(default: the starter where the generator is to learn from few sprites, else nothing)"
    parser.add_argument("--from", dest="parent", default=None, metavar="MODEL", help=about)
    _add_device(parser)
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--name", help="name of the run (default: date, sprites and recipe)")
    place.add_argument("--out", type=Path, metavar="RUN", help="folder for the run (default: among the studio's runs)")
    if is_meant:
        from studio.cli.train import add_recipe_flags

        add_recipe_flags(parser, words)


def _resume(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(commands, "resume", "go on with a run that was stopped or interrupted", "train", "RUN ")
    _add_run(parser)
    _add_device(parser)
    parser.epilog = _TOGETHER.format("resume RUN")
    about = "train so much longer, from where the run is, whatever it was to train for; a finished one, too"
    parser.add_argument("--more-minutes", type=float, metavar="X", help=about)
    _add_on(parser)


def _queue(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "trainings that wait for their turn, the same in the window: add, list, move or remove them, or train all"
    parser = _command(commands, "queue", about, "queue", "[add | list | move | remove | run] ", function="show")
    actions = parser.add_subparsers(title="what to do (default: list)", metavar="ACTION")
    about = (
        "freeze sprites and settings in the folder of a new run, which waits: as 'studio train', to be trained later"
    )
    part = _command(actions, "add", about, "queue", "PATH... ", of="queue")
    _add_training(part, words, is_meant=_is_command(words, "queue", "add"))
    _command(actions, "list", "list what waits, in its order", "queue", of="queue", function="show")
    part = _command(actions, "move", "give a run another place", "queue", "RUN PLACE ", of="queue")
    _add_run(part)
    part.add_argument("place", type=int, metavar="PLACE", help="its new place: 1 is the first")
    about = "take runs out of the queue; they are kept, and 'studio resume' trains them"
    part = _command(actions, "remove", about, "queue", "RUN... ", of="queue")
    part.add_argument("run_names", nargs="+", metavar="RUN", help="runs' folders, or their names")
    about = "train all that waits, one run after the other; Ctrl+C saves the current one, which keeps its place"
    part = _command(actions, "run", about, "queue", of="queue", function="train_all")
    part.set_defaults(device="auto")  # of several processes that torchrun starts; a single one takes each run's own
    part.epilog = _TOGETHER.format("queue run")


def _generate(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(commands, "generate", "draw new sprites with a trained generator", "generate", "RUN ")
    _add_run(parser, checkpoint=True)
    parser.add_argument(
        "--out", type=Path, metavar="PATH",
        help="a file: .png (a sheet with JSON beside it), .gif, .apng, .aseprite or .tres (Godot); or a folder for one "
        "file each",
    )  # fmt: skip
    parser.add_argument("--format", default="", metavar="NAME", help="the format of --out, such as indexed_sheet")
    parser.add_argument(
        "--columns", type=int, default=8, metavar="N", help="sprites side by side in a sheet (default: 8)"
    )
    parser.add_argument(
        "--palette",
        type=Path,
        metavar="FILE",
        help="file of the palette to draw in (default: the run's own)",
    )
    parser.add_argument("--dither", action="store_true", help="with --palette, make colours up of two, in a pattern")
    about = "leave out of the files which model, seed and settings made them, which 'studio verify' reads"
    parser.add_argument("--no-texts", dest="texts", action="store_false", help=about)
    _add_device(parser)
    if _is_command(words, "generate"):
        from studio.cli.generate import add_generate_flags

        add_generate_flags(parser)


def _distil(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "teach a second network to draw as a generator does, about four times as fast: 'generate --quick'"
    parser = _command(commands, "distil", about, "generate", "RUN ")
    _add_run(parser, checkpoint=True)
    _add_device(parser)
    if _is_command(words, "distil"):
        from studio.cli.generate import add_distil_flags

        add_distil_flags(parser)


def _predict(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "name the class of sprites with a trained classifier, or their numbers with a trained regression"
    parser = _command(commands, "predict", about, "generate", "RUN PATH... ", aliases=("classify",))
    _add_run(parser, checkpoint=True)
    parser.add_argument("paths", nargs="+", type=existing_path, metavar="PATH", help=_SPRITES)
    _add_device(parser)


def _evaluate(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "say how good a model is: a generator's new sprites (or those in other folders), others on held-out sprites"
    parser = _command(commands, "evaluate", about, "evaluate", "RUN [PATH...] ")
    _add_run(parser, checkpoint=True)
    parser.add_argument(
        "paths",
        nargs="*",
        type=existing_path,
        metavar="PATH",
        help="sprites to judge instead of the run's own: folders, zip archives, files or sheets",
    )
    _add_device(parser)
    if _is_command(words, "evaluate"):
        from studio.cli.evaluate import add_evaluate_flags

        add_evaluate_flags(parser)


def _export(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(
        commands,
        "export",
        "write a trained model for other programs, and check it; or a run's history for TensorBoard",
        "generate",
        "RUN ",
    )
    _add_run(parser, checkpoint=True)
    parser.add_argument("--format", metavar="NAME", help="kind of file (default: what --out ends in)")
    parser.add_argument("--out", type=Path, metavar="PATH", help="file or folder (default: the run's exports folder)")
    if _is_command(words, "export"):
        from studio.cli.generate import add_export_flags

        add_export_flags(parser, words)


def _verify(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "say whether an exported model or a saved sprite is as it was, and belongs to its run"
    parser = _command(commands, "verify", about, "verify", "FILE ")
    about = "an exported file with its card beside it, a card, or a PNG that the studio has saved"
    parser.add_argument("file", type=existing_path, metavar="FILE", help=about)
    about = "the run to compare it with (default: the one that it names, if that is among the studio's runs)"
    parser.add_argument("--run", dest="run_name", default=None, metavar="RUN", help=about)


def _plot(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "draw one curve of one or more runs into a picture, to compare them"
    parser = _command(commands, "plot", about, "plot", "RUN... ")
    help_text = "folders of runs, or their names as 'studio runs' lists them"
    parser.add_argument("run_names", nargs="+", metavar="RUN", help=help_text)
    parser.add_argument("--log", action="store_true", help="a logarithmic axis")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="a .png, .svg or .pdf, or a folder (default: a PNG named after the run and the curve)",
    )
    if _is_command(words, "plot"):
        from studio.cli.plot import add_plot_flags

        add_plot_flags(parser)


def _report(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "write a report of one or more runs: curves, samples, figures and settings in one page of HTML"
    parser = _command(commands, "report", about, "report", "RUN... ")
    help_text = "folders of runs, or their names as 'studio runs' lists them"
    parser.add_argument("run_names", nargs="+", metavar="RUN", help=help_text)
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="an .html, or a folder (default: an HTML named after the run)"
    )


def _film(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "show how the samples of a run got better, as an animation"
    parser = _command(commands, "film", about, "film", "RUN ")
    _add_run(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="a .gif, an .apng or an .aseprite, or a folder (default: a GIF named after the run)",
    )
    parser.add_argument(
        "--seconds", type=float, metavar="X", help="how long all samples take (default: a quarter of a second each)"
    )
    parser.add_argument(
        "--scale", type=int, metavar="N", help="enlarge pixels so many times (default: to about 512 pixels across)"
    )


def _map(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "lay the sprites of a run out in a picture, like ones near to one another, and name the odd ones out"
    parser = _command(commands, "map", about, "map", "RUN ")
    _add_run(parser, checkpoint=True)
    parser.add_argument("--out", type=Path, metavar="PATH", help="a .png, or a folder (default: named after the run)")
    about = "pixels of the picture's longer side; a larger one has room for more sprites (default: 2048)"
    parser.add_argument("--size", type=int, default=2048, metavar="N", help=about)
    _add_device(parser)
    parser.set_defaults(run=_lazily("studio.cli.map", "draw_map"))


def _palette(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "show a palette or save it in another format; take one from sprites, or bring sprites into one"
    parser = _command(commands, "palette", about, "palette", "PATH... ")
    _add_sources(parser, f"a palette file; with --extract or --snap {_SPRITES}")
    job = parser.add_mutually_exclusive_group()
    job.add_argument("--extract", action="store_true", help="take the palette from the sprites")
    job.add_argument(
        "--snap", type=existing_path, metavar="FILE", help="write copies of the files in the colours of FILE"
    )
    parser.add_argument(
        "--colours", type=int, metavar="N", help="with --extract, at most so many, up to 256 (default: 32)"
    )
    parser.add_argument("--dither", action="store_true", help="with --snap, make colours up of two, in a pattern")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="save the palette as .gpl, .pal, .hex, .json, .txt, .png or .act; with --snap, a new folder",
    )


def _runs(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    parser = _command(commands, "runs", "list every run", "runs")
    about = "only those with this tag; given more than once, with all of them"
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help=about)
    parser.add_argument("--starred", action="store_true", help="only those with a star")
    parser.add_argument("--disk", action="store_true", help="also what each takes on the disk, and all together")


def _note(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "give a run a name, a note, a star or tags, or show those that it has"
    parser = _command(commands, "note", about, "cleanup", "RUN ")
    _add_run(parser)
    about = "what it is called from now on, in lists and for commands; '' for the name of its folder, which stays"
    parser.add_argument("--name", metavar="NAME", help=about)
    parser.add_argument("--note", metavar="TEXT", help="what is to be remembered of it; '' removes the note")
    parser.add_argument("--tag", default="", metavar="A,B", help="add these tags, of one word each")
    parser.add_argument("--untag", default="", metavar="A,B", help="take these tags away")
    parser.add_argument("--star", action=argparse.BooleanOptionalAction, help="give it a star, or take it away")


def _free(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    from studio.engine.runs.maintenance.disk_use import CLEANUP_KINDS

    about = "list what of runs can go without harm, and what that frees; --yes removes it"
    parser = _command(commands, "free", about, "cleanup", "[RUN...] ")
    about = "folders of runs, or their names as 'studio runs' lists them (default: all runs)"
    parser.add_argument("run_names", nargs="*", metavar="RUN", help=about)
    names = [", ".join(kind.name for kind in CLEANUP_KINDS if kind.is_usual == usual) for usual in (True, False)]
    parser.add_argument("--also", default="", metavar="A,B", help=f"let these kinds go, too: {names[1]}")
    parser.add_argument("--keep", default="", metavar="A,B", help=f"let these kinds stay: {names[0]}")
    parser.add_argument("--yes", action="store_true", help="remove it; what is gone does not come back")


def _lab(commands: Commands[argparse.ArgumentParser], words: list[str]) -> None:
    about = "try out what training does on this device: batch size, learning rate, threads and more; or look into a run"
    parser = _command(commands, "lab", about, "lab", "[EXPERIMENT [PATH... | RUN]] ")
    about = "one of those below; without one, they are listed, and what was found out before"
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help=about)
    _add_sources(parser, f"{_SPRITES} (default: the demo sprites); or the run to look into", nargs="*")
    about = "of the run to look into: best, last or a step (default: best)"
    parser.add_argument("--checkpoint", metavar="STEP", help=about)
    parser.add_argument("--recipe", default="", metavar="NAME", help="kind of model (default: the first)")
    _add_device(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="also write a report, an .html that needs nothing else"
    )
    parser.add_argument(
        "--compare", type=int, nargs="+", metavar="N", help="show what was found out before, by its numbers in the list"
    )
    if _is_command(words, "lab"):
        from studio.cli.lab import add_lab_flags

        add_lab_flags(parser, words)


def _add_sources(parser: argparse.ArgumentParser, about: str = _SPRITES, nargs: str = "+") -> None:
    from studio.cli.flags import add_settings
    from studio.data.options import ImportOptions

    parser.add_argument("paths", nargs=nargs, type=existing_path, metavar="PATH", help=about)
    add_settings(parser, ImportOptions, "reading sprites")


def _add_run(parser: argparse.ArgumentParser, *, checkpoint: bool = False) -> None:
    parser.add_argument("run_name", metavar="RUN", help="a run's folder, or its name as 'studio runs' lists it")
    if checkpoint:
        parser.add_argument("--checkpoint", default="best", metavar="STEP", help="best, last or a step (default: best)")


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:1, mps, xpu (default: auto)"
    )


def _add_on(parser: argparse.ArgumentParser) -> None:
    about = (
        "train on another machine, in this folder there, by ssh and rsync: the run is sent and comes home as it grows; "
        "--device is one of that machine's. The studio there is FOLDER/.venv/bin/studio, or the 'studio' that a login "
        "shell finds, of the same version and with the same torch"
    )
    parser.add_argument("--on", metavar="USER@HOST:FOLDER", help=about)


def _is_command(words: list[str], *names: str) -> bool:
    """Whether the command line is about this command: its first words that are no flags."""
    return [word for word in words if not word.startswith("-")][: len(names)] == [*names]
