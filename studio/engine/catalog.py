"""The installed recipes and export formats, by name."""

from functools import cache

import studio.exports
import studio.recipes
from studio.core.discovery import discover, find_plugin
from studio.exports.base import ModelExport
from studio.recipes.base import Recipe


@cache
def recipes() -> dict[str, Recipe]:
    """Return every recipe by name. The first draws sprites and is the default."""
    return discover(studio.recipes, Recipe)  # type: ignore[type-abstract]


@cache
def model_exports() -> dict[str, ModelExport]:
    """Return every export format for models by name."""
    return discover(studio.exports, ModelExport)  # type: ignore[type-abstract]


def recipe(name: str = "") -> Recipe:
    """Return the recipe with this name, or the default recipe. Raises UsageError for an unknown name."""
    return find_plugin(recipes(), name or next(iter(recipes())), "recipe")
