"""The model that a new training starts from, chosen for each recipe."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.state.late import parents
from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.core.config import Value
from studio.core.errors import UsageError
from studio.engine.devices.types import NOTHING, STARTER, ParentSource
from studio.engine.runs.folder import RunRecord

if TYPE_CHECKING:
    from studio.recipes.base import Recipe


class ParentChoice:
    """Chooses for each recipe the parent, the model that a new training starts from.

    A parent is None (random weights), the recipe's bundled starter model or a run. The methods need torch.
    """

    def __init__(self, settings: Settings, open_sprites: OpenSprites, runs: RunList) -> None:
        self._settings, self._open_sprites, self._runs = settings, open_sprites, runs
        self._chosen: dict[str, ParentSource] = {}
        self._shown_runs: dict[str, ParentSource] = {}  # parents of resumed runs, until the next import

    def source_for(self, recipe: Recipe) -> ParentSource:
        """Return a recipe's parent model: a shown resumed run's parent, or the user's choice, or the suggestion."""
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
        """Return the parent model that suits the open sprites; None without open sprites."""
        sprites = self._open_sprites.sprites
        return None if sprites is None else parents.suggest_parent(recipe, sprites)

    def examples(self, recipe: Recipe) -> str:
        """Describe how many open sprites or characters the recipe learns from; '' without open sprites."""
        sprites = self._open_sprites.sprites
        return "" if sprites is None else parents.describe_examples(recipe, sprites)

    def choose(self, recipe: Recipe, source: ParentSource, *, remember: bool = True) -> None:
        """Choose `source` as the parent model of a recipe.

        remember: store the choice for the next session. A run is never stored, because its folder may be gone by then.
        """
        self._shown_runs.pop(recipe.name, None)
        self._chosen[recipe.name] = source
        if remember and not isinstance(source, Path):
            self._settings.set_text(f"{recipe.name} parent", source or NOTHING)

    def show_run(self, recipe: Recipe, record: RunRecord) -> None:
        """Show the parent model of a resumed run until the next import, unless the parent is another run."""
        if record.parent in ("", STARTER):
            self._shown_runs[recipe.name] = STARTER if record.parent else None

    def hide_runs(self) -> None:
        """Stop showing the parents of resumed runs."""
        self._shown_runs.clear()

    def forget(self, recipe: Recipe) -> None:
        """Forget the parent model that was chosen for a recipe in this session."""
        self._shown_runs.pop(recipe.name, None)
        self._chosen.pop(recipe.name, None)

    def options(self, recipe: Recipe) -> list[ParentSource]:
        """Return the possible parents: None, the recipe's starter model and runs of the recipe."""
        starter: list[ParentSource] = [] if _starter_settings(recipe) is None else [STARTER]
        return [None, *starter, *(run.path for run in self._runs.usable(recipe.name))]

    def is_missing(self, recipe: Recipe) -> bool:
        """Return whether the chosen run was deleted."""
        return self.source_for(recipe) not in self.options(recipe)

    def fixed_settings(self, recipe: Recipe) -> Mapping[str, Value] | None:
        """Return the settings that the chosen parent fixes; None without a parent."""
        source = self.source_for(recipe)
        if source == STARTER:
            return _starter_settings(recipe)
        record = next((run.record for run in self._runs.usable(recipe.name) if run.path == source), None)
        with contextlib.suppress(UsageError):  # unknown settings: Start reports the error
            return None if record is None else parents.settings_fixed_by(record, recipe)
        return None


def _starter_settings(recipe: Recipe) -> Mapping[str, Value] | None:
    """Return the settings that the starter model fixes; None if the recipe has no starter model."""
    info = parents.starter_info(recipe.name)
    return info.settings if info is not None else None
