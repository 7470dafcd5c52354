"""What a training starts from, as it is chosen for each recipe."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.state.runs import RunList
from studio.app.state.settings import Settings
from studio.core.config import Value
from studio.core.errors import UsageError
from studio.engine.types import STARTER, ParentSource

if TYPE_CHECKING:
    from studio.recipes.base import Recipe


class ParentChoice:
    """By recipe: nothing, the starter, or a run. Needs torch, which comes with the recipes."""

    def __init__(self, settings: Settings, runs: RunList) -> None:
        self._settings, self._runs = settings, runs
        self._chosen: dict[str, ParentSource] = {}

    def of(self, recipe: Recipe) -> ParentSource:
        """What is chosen for this recipe; at first the starter where it was chosen the last time, else nothing."""
        if recipe.name not in self._chosen:
            remembered = self._settings.text(f"{recipe.name} parent") == STARTER
            self._chosen[recipe.name] = STARTER if remembered and _starter_settings(recipe) is not None else None
        return self._chosen[recipe.name]

    def choose(self, recipe: Recipe, source: ParentSource) -> None:
        """Start trainings of this recipe from another model."""
        self._chosen[recipe.name] = source

    def keep(self, recipe: Recipe) -> None:
        """Remember what is chosen, unless it is a run, which may be gone the next time."""
        if not isinstance(self.of(recipe), Path):
            self._settings.keep_text(f"{recipe.name} parent", str(self.of(recipe) or ""))

    def offered(self, recipe: Recipe) -> list[ParentSource]:
        """What can be chosen: nothing, the starter where the recipe has one, and runs of the recipe."""
        starter: list[ParentSource] = [] if _starter_settings(recipe) is None else [STARTER]
        return [None, *starter, *(run.path for run in self._runs.usable(recipe.name))]

    def is_lost(self, recipe: Recipe) -> bool:
        """Whether the run that is chosen has gone."""
        return self.of(recipe) not in self.offered(recipe)

    def settings(self, recipe: Recipe) -> Mapping[str, Value] | None:
        """The settings that follow from what is chosen; None for nothing."""
        source = self.of(recipe)
        if source == STARTER:
            return _starter_settings(recipe)
        from studio.engine.parents import settings_fixed_by

        record = next((run.record for run in self._runs.usable(recipe.name) if run.path == source), None)
        with contextlib.suppress(UsageError):  # settings that this version does not know: Start says so
            return None if record is None else settings_fixed_by(record, recipe)
        return None


def _starter_settings(recipe: Recipe) -> Mapping[str, Value] | None:
    """The settings that follow from the starter; None where there is none for this recipe."""
    from studio.engine.parents import starter_info

    info = starter_info()
    return info.settings if info.recipe == recipe.name else None
