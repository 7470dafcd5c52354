"""What a training starts from, as it is chosen for each recipe."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.core.config import Value
from studio.core.errors import UsageError
from studio.engine.devices.types import NOTHING, STARTER, ParentSource

if TYPE_CHECKING:
    from studio.engine.runs.folder import RunRecord
    from studio.recipes.base import Recipe


class ParentChoice:
    """By recipe: nothing, the starter, or a run. Needs torch, which comes with the recipes."""

    def __init__(self, settings: Settings, open_sprites: OpenSprites, runs: RunList) -> None:
        self._settings, self._open_sprites, self._runs = settings, open_sprites, runs
        self._chosen: dict[str, ParentSource] = {}
        self._shown_runs: dict[str, ParentSource] = {}  # of a run that goes on, until other sprites are opened

    def source_for(self, recipe: Recipe) -> ParentSource:
        """What was chosen for this recipe, now or the last time; else what suits the open sprites. While a run goes on,
        what that started from.
        """
        for known in (self._shown_runs, self._chosen):
            if recipe.name in known:
                return known[recipe.name]
        remembered = self._settings.text(f"{recipe.name} parent")
        if remembered == NOTHING:
            return None
        if remembered == STARTER and _starter_settings(recipe) is not None:
            return STARTER
        return self.suggested(recipe)

    def suggested(self, recipe: Recipe) -> ParentSource:
        """What suits the open sprites."""
        from studio.engine.training.parents import suggest_parent

        sprites = self._open_sprites.sprites
        return None if sprites is None else suggest_parent(recipe, sprites)

    def choose(self, recipe: Recipe, source: ParentSource, *, remember: bool = True) -> None:
        """Start trainings of this recipe from `source`.

        remember: store the choice for the next session. A run is never stored, because its folder may be gone by then.
        """
        self._shown_runs.pop(recipe.name, None)
        self._chosen[recipe.name] = source
        if remember and not isinstance(source, Path):
            self._settings.set_text(f"{recipe.name} parent", source or NOTHING)

    def show_run(self, recipe: Recipe, record: RunRecord) -> None:
        """Show what a run started from, for as long as its sprites are those that matter."""
        if record.parent in ("", STARTER):
            self._shown_runs[recipe.name] = STARTER if record.parent else None

    def hide_runs(self) -> None:
        """Other sprites are open: what runs started from says nothing of them."""
        self._shown_runs.clear()

    def forget(self, recipe: Recipe) -> None:
        """Start trainings of this recipe from what was remembered, or from what suits the open sprites."""
        self._shown_runs.pop(recipe.name, None)
        self._chosen.pop(recipe.name, None)

    def options(self, recipe: Recipe) -> list[ParentSource]:
        """What can be chosen: nothing, the starter where the recipe has one, and runs of the recipe."""
        starter: list[ParentSource] = [] if _starter_settings(recipe) is None else [STARTER]
        return [None, *starter, *(run.path for run in self._runs.usable(recipe.name))]

    def is_missing(self, recipe: Recipe) -> bool:
        """Whether the run that is chosen has gone."""
        return self.source_for(recipe) not in self.options(recipe)

    def fixed_settings(self, recipe: Recipe) -> Mapping[str, Value] | None:
        """The settings that follow from what is chosen; None for nothing."""
        source = self.source_for(recipe)
        if source == STARTER:
            return _starter_settings(recipe)
        from studio.engine.training.parents import settings_fixed_by

        record = next((run.record for run in self._runs.usable(recipe.name) if run.path == source), None)
        with contextlib.suppress(UsageError):  # settings that this version does not know: Start says so
            return None if record is None else settings_fixed_by(record, recipe)
        return None


def _starter_settings(recipe: Recipe) -> Mapping[str, Value] | None:
    """The settings that follow from the starter; None where there is none for this recipe."""
    from studio.engine.training.parents import starter_info

    info = starter_info()
    return info.settings if info.recipe == recipe.name else None
