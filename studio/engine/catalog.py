"""The plug-ins that there are: recipes and export formats by name."""

from __future__ import annotations

from functools import cache

import studio.exports
import studio.recipes
from studio.core.discovery import discover, find_plugin
from studio.exports.base import ModelExport
from studio.recipes.base import Recipe


@cache
def recipes() -> dict[str, Recipe]:
    """Every recipe by its name, in their order: the first draws sprites, and is proposed."""
    return discover(studio.recipes, Recipe)  # type: ignore[type-abstract]


@cache
def model_exports() -> dict[str, ModelExport]:
    """Every format that a model can be exported to, by its name."""
    return discover(studio.exports, ModelExport)  # type: ignore[type-abstract]


def recipe(name: str = "") -> Recipe:
    """The recipe of that name; without one, the first. Raises UsageError."""
    return find_plugin(recipes(), name or next(iter(recipes())), "recipe")
