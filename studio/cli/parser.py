"""Parse a command line: build an argparse parser from the table in commands.py."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from studio.cli.commands import COMMANDS, Command, Flag, Flags, SettingFlags
from studio.core.errors import UsageError
from studio.core.names import existing_path
from studio.core.versions import versions_line

_ABOUT = (
    "Train small models on your own pixel art. Without a command, open the window; PATHs are opened there as sprites."
)
_EXAMPLES = """\
examples:
  studio my-sprites                            open a folder of sprites in the window
  studio demo                                  a three-minute tour: train, draw, export
  studio train my-sprites --minutes 10         train a generator on a folder of sprites
  studio queue add my-sprites --minutes 60     queue a run for the night; start with 'studio queue run'
  studio generate "my run" --count 64 --out sheet.png
  studio complete "my run" --given down=front.png --out hero.png    the other views of a character
  studio distil "my run"                       prepare fast mode, then 'studio generate --quick'
  studio evaluate "my run"                     measure quality against real sprites
  studio export "my run" --out model.safetensors
  studio export "my run" --format tensorboard --out logs
  studio verify model.safetensors --run "my run"
  studio plot "my run" other-run --out loss.png
  studio film "my run" --out timelapse.gif     a timelapse of the samples
  studio map "my run" --out map.png            a map of the sprites, similar ones side by side
  studio note "my run" --name dragons --star   rename and star a run; also --note, --tag
  studio free                                  list files that can be deleted, and their size
  studio lab batch-size my-sprites             find the best batch size for this device
  studio lab hardest "my run"                  find the sprites with the largest errors
  studio palette my-sprites --snap warm.gpl    recolour copies of the files with a palette
  torchrun --nproc-per-node 4 -m studio train my-sprites    train on four devices at once (Linux)

'studio COMMAND --help' explains a command; 'studio help' prints the guide.
exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with the work saved
"""
_RUN_WINDOW = "window.open_window"


def parse(words: list[str]) -> argparse.Namespace:
    """Parse a command line. Call `run` of the result to execute the command; it returns the exit code.

    Raises SystemExit after --help, --version and wrong usage; UsageError for unknown flags and recipes.
    """
    parser = argparse.ArgumentParser(
        prog="studio", usage="studio [--version] [--debug] [COMMAND | PATH...] ...", description=_ABOUT,
        epilog=_EXAMPLES, formatter_class=_Help, allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument("--version", action=_Version, nargs=0, help="show the versions of the studio and of torch")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(run=_import_late(_RUN_WINDOW), paths=[])
    first = words[0] if words else ""
    typed = {name: command for name, command in COMMANDS.items() if first in (name, *command.aliases)}
    # After a command, no help lists the other commands: their parsers would take 5 ms.
    _add_commands(parser, "commands", "COMMAND", typed or COMMANDS, words)
    if words and not typed and existing_path(first).exists():
        return _window_arguments(words)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        command = f"studio {next((word for word in words if not word.startswith('-')), '')}".rstrip()
        raise UsageError(f"'{command}' does not know {unknown[0]!r}.", f"'{command} --help' lists all flags.")
    return args


def _window_arguments(words: list[str]) -> argparse.Namespace:
    """Return arguments that open the window with sprites. words: paths of the sprites. Raises UsageError for flags."""
    if flag := next((word for word in words if word.startswith("-")), ""):
        raise UsageError(f"The window does not take the flag {flag!r}.", "'studio --help' lists the commands.")
    return argparse.Namespace(run=_import_late(_RUN_WINDOW), paths=[existing_path(word) for word in words])


class _Version(argparse.Action):
    """The action of --version: prints the versions and exits. Unlike argparse's action, looks them up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(versions_line())  # noqa: T201
        parser.exit()


class _Help(argparse.RawDescriptionHelpFormatter):
    """Formats help texts with a wide first column, where most flags fit on one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


def _import_late(name: str) -> Callable[..., Any]:
    """Return a function that imports and calls 'module.function' of studio.cli when called."""
    module, _, function = name.partition(".")

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(f"studio.cli.{module}"), function)(*arguments)

    return call


def _usage(path: Sequence[str], command: Command) -> str:
    """Return the usage line of a command: 'studio predict RUN PATH... [options]'. path: names up to the command."""
    forms = {"+": "{}...", "*": "[{}...]", "?": "[{}]"}
    positional = [item for item in command.flags if isinstance(item, Flag) and not item.names[0].startswith("-")]
    words = [forms.get(item.options.get("nargs", ""), "{}").format(item.options["metavar"]) for item in positional]
    return " ".join(["studio", *path, *([command.usage] if command.usage else words), "[options]"])


def _add_commands(
    parser: argparse.ArgumentParser, title: str, metavar: str, commands: Mapping[str, Command], words: list[str],
    path: Sequence[str] = (),
) -> None:  # fmt: skip
    """Add a subparser per command, with flags only for the typed command. path: names of the parent commands."""
    subparsers = parser.add_subparsers(title=title, metavar=metavar)
    typed = [word for word in words if not word.startswith("-")][len(path) : len(path) + 1]
    for name, command in commands.items():
        part = subparsers.add_parser(
            name, aliases=command.aliases, help=command.about, epilog=command.epilog, formatter_class=_Help,
            description=f"{command.about[0].upper()}{command.about[1:]}.", usage=_usage((*path, name), command),
            allow_abbrev=False,
        )  # fmt: skip
        suppress = argparse.SUPPRESS
        part.add_argument("--debug", action="store_true", default=suppress, help="show the traceback of an error")
        # An action must not overwrite a --json typed before its name.
        json_default = suppress if path else False
        part.add_argument("--json", action="store_true", default=json_default, help="print one JSON object per line")
        part.set_defaults(run=_import_late(command.run or f"{name}.{name}"), **command.defaults)
        if typed and typed[0] in (name, *command.aliases):
            for item in command.flags:
                _add_flags(part, item, words)
            part.epilog = "\n".join(filter(None, (part.epilog, f"guide: studio help {command.topic}")))
            if command.actions:
                _add_commands(part, "actions (default: list)", "ACTION", command.actions, words, (*path, name))


def _add_flags(parser: argparse.ArgumentParser, item: Flags, words: list[str]) -> None:
    """Add the flags of an entry in the table. words: the command line."""
    if isinstance(item, str):
        _import_late(item)(parser, words)
    elif isinstance(item, SettingFlags):
        from studio.cli.flags import add_setting_flags

        module, _, name = item.config.rpartition(".")
        add_setting_flags(parser, getattr(importlib.import_module(f"studio.{module}"), name), item.title)
    elif isinstance(item, Flag):
        parser.add_argument(*item.names, **item.options)
    else:
        group = parser.add_mutually_exclusive_group()
        for flag in item:
            group.add_argument(*flag.names, **flag.options)
