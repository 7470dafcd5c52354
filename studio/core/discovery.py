"""Find plug-ins: the modules of a package, and modules that other packages offer through an entry-point group."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import traceback
from importlib.metadata import entry_points
from types import ModuleType
from typing import Protocol, TypeVar

from studio.core.errors import StudioError, UsageError


class Plugin(Protocol):
    """A plug-in class: created without arguments and known by `name`. Lower values of `order` come first."""

    name: str

    @property
    def order(self) -> int: ...


P = TypeVar("P", bound=Plugin)

_names: dict[str, str] = {}  # plug-in names by module


def discover(package: ModuleType, base: type[P]) -> dict[str, P]:
    """Return one instance of every concrete subclass of `base`, by name, sorted by `order` and name.

    Searches every module of `package` and the entry-point group with the package's name ('studio.recipes'), where other
    packages list their modules. Raises StudioError if two plug-ins have the same name.
    """
    own = {f"{package.__name__}.{info.name}": info.name for info in pkgutil.iter_modules(package.__path__)}
    own.pop(f"{package.__name__}.base", None)
    names = own | {entry.module: entry.name for entry in entry_points(group=package.__name__)}
    _names.update(names)
    found: dict[str, P] = {}
    for module in map(importlib.import_module, names):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if not issubclass(kind, base) or inspect.isabstract(kind) or kind.__module__ != module.__name__:
                continue
            plugin = kind()
            if plugin.name in found:
                hint = f"Remove or rename the plug-in in {module.__name__}."
                raise StudioError(f"Two plug-ins are named {plugin.name!r}.", hint)
            found[plugin.name] = plugin
    return {plugin.name: plugin for plugin in sorted(found.values(), key=lambda plugin: (plugin.order, plugin.name))}


def find_plugin(plugins: dict[str, P], name: str, what: str) -> P:
    """Return the plug-in named `name`. Raises UsageError that lists all names. what: kind of plug-in, for the error."""
    if name not in plugins:
        raise UsageError(f"There is no {what} named {name!r}.", f"Choose one of: {', '.join(plugins)}.")
    return plugins[name]


def failing_plugin(error: Exception) -> str:
    """Return the name of the first plug-in in the error's traceback; '' without a plug-in."""
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__))
    return next((_names[module] for module in modules if module in _names), "")
