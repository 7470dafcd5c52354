"""Create command-line flags from the settings of a config class: name, type, default, bounds and help."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from studio.core.config import Config, Setting, Value, settings_of
from studio.core.errors import UsageError
from studio.core.shell import command_line, quote
from studio.engine.sampling.class_choice import quoted

if TYPE_CHECKING:
    from studio.recipes.base import Recipe

_KINDS = {int: "N", float: "X", str: "TEXT"}
_PREFIX = "setting:"
_LARGEST_BOUND = 100_000  # the help omits larger upper bounds


def add_setting_flags(
    parser: argparse.ArgumentParser, config_type: type[Config], title: str, renamed: Mapping[str, str] | None = None,
    only: Collection[str] = (), repeated: Collection[str] = (),
    one_flag_each: Mapping[str, Mapping[str, tuple[str, str]]] | None = None,
) -> None:  # fmt: skip
    """Add a flag for every setting of a config class; advanced settings go into a second group.

    renamed: flag name by setting name, where they differ ({'class_name': 'class'}). only: the settings that get flags;
    empty for all. repeated: the settings whose flag may be given several times; commas join the texts,
    quoted as in CSV. one_flag_each: the settings with a flag for each value: the value and the help by flag.
    """
    plain = parser.add_argument_group(title)
    advanced = parser.add_argument_group(f"{title}, advanced")
    for item in settings_of(config_type):
        if only and item.name not in only:
            continue
        group = advanced if item.advanced else plain
        if values := (one_flag_each or {}).get(item.name):
            for flag, (value, about) in values.items():
                how: dict[str, Any] = {"dest": _PREFIX + item.name, "default": argparse.SUPPRESS, "const": value}
                group.add_argument(f"--{flag}", action="store_const", help=about, **how)
            continue
        action = _Join if item.name in repeated else "store"
        _add(group, item, (renamed or {}).get(item.name, item.name), action)
        if item.former_name:
            _add(group, item, item.former_name, action, hidden=True)


def named_recipe(words: list[str]) -> Recipe:
    """Return the recipe (kind of model) that --recipe in a command line names, or the default. Raises UsageError."""
    from studio.engine import catalog

    preparser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    preparser.add_argument("--recipe", default="", nargs="?")
    return catalog.recipe(preparser.parse_known_args(words)[0].recipe or "")


def typed_settings(args: argparse.Namespace, config_type: type[Config]) -> dict[str, Value]:
    """Return the settings that were typed on the command line, by setting name."""
    values = vars(args)
    names = [item.name for item in settings_of(config_type)]
    return {name: values[_PREFIX + name] for name in names if _PREFIX + name in values}


def setting_flags(changes: Mapping[str, Value], longest: int = 0) -> str:
    """Return the flags that set import settings, quoted for the shell.

    longest: a list of names with more letters is cut after the first name; 0 for no limit.
    """
    words = []
    for name, value in changes.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
            continue
        text = f"{value:g}" if isinstance(value, float) else str(value)
        if 0 < longest < len(text):
            text = f"{text.partition(';')[0]};…"
        words += [f"--{flag}", text]
    return command_line(*words)


class _Join(argparse.Action):
    """Joins the texts of a flag that is given several times with commas, quoted as in CSV."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        before = getattr(namespace, self.dest, "")
        setattr(namespace, self.dest, f"{before},{quoted(values)}" if before else quoted(values))


def _add(
    group: argparse._ArgumentGroup, item: Setting, name: str, action: str | type[argparse.Action] = "store", *,
    hidden: bool = False,
) -> None:  # fmt: skip
    flag, suppress = f"--{name.replace('_', '-')}", argparse.SUPPRESS
    help_text = suppress if hidden else _help_of(item).replace("%", "%%")
    options: dict[str, Any] = {"dest": _PREFIX + item.name, "default": suppress, "help": help_text}
    if item.kind is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, **options)
        return
    metavar = "{" + ",".join(map(quote, item.choices)) + "}" if item.choices else _KINDS[item.kind]
    group.add_argument(flag, type=_reader(item), metavar=metavar, action=action, **options)


def _help_of(item: Setting) -> str:
    """Return the setting's help with its default and bounds."""
    if item.kind is bool:
        return f"{item.help} (default: {'on' if item.default else 'off'})"
    bounds = f", {item.bounds()}" if item.bounds() and (item.high or 0) < _LARGEST_BOUND else ""
    default = f"{item.default:g}" if isinstance(item.default, float) else str(item.default)
    word = item.unit.removesuffix("s") if item.default == 1 and len(item.unit) > 2 else item.unit
    unit = f" {word}" if word else ""
    if item.low_text and item.low is not None:
        named = f"{item.low_text} ({item.low:g})"
        if item.default == item.low:
            default, unit = named, ""
        else:
            bounds += f", or {named}"
    return f"{item.help} (default: {default or 'none'}{unit}{bounds})"


def _reader(item: Setting) -> Callable[[str], Value]:
    """Return a function that converts an argument to a value of the setting."""

    def read(text: str) -> Value:
        try:
            return item.parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(f"{error.title} {error.hint}" if item.choices else error.title) from error

    return read
