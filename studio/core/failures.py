"""What to say of an error, wherever one ends a job: in its own words, or by the plug-in that it arose in."""

from __future__ import annotations

import traceback
from importlib.metadata import entry_points

from studio.core.errors import StudioError

_PLUGIN_PACKAGES = ("studio.recipes", "studio.exports", "studio.data.sources")


def in_words(error: Exception, *, otherwise: str) -> tuple[str, str]:
    """Title and hint of an error; `otherwise` is the title of one that is the studio's own fault."""
    if isinstance(error, StudioError):
        return error.title, error.hint
    if isinstance(error, OSError) and error.filename:
        return f"Can't use {error.filename}.", f"{error.strerror or error}."
    plugin = _plugin_of(error)
    return f"The plug-in '{plugin}' failed." if plugin else otherwise, f"{type(error).__name__}: {error}"


def _plugin_of(error: Exception) -> str:
    """The name of the first plug-in on the way to the error; empty when there was none."""
    offered = {entry.module: entry.name for group in _PLUGIN_PACKAGES for entry in entry_points(group=group)}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        package, _, name = module.rpartition(".")
        if module in offered:
            return offered[module]
        if package in _PLUGIN_PACKAGES and name != "base":
            return name
    return ""
