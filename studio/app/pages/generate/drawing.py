"""Connects the results, the editor and the chosen model of the Generate page."""

from __future__ import annotations

from typing import Literal

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import EditRequest
from studio.app.pages.generate.batches import DrawRequest, origin_of
from studio.app.pages.generate.editing import COUNT, EditorPanel
from studio.app.pages.generate.request import RequestPanel
from studio.app.pages.generate.results import Results
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.core import formatting
from studio.data.colour.constraints import NONE
from studio.data.pixels.editing import EditedSprite, NamedSprite
from studio.engine.sampling.settings import MIN_LIKED, GenerateSettings


class DrawController(QObject):
    """Sends drawing requests to the chosen model, or shows why it can't; passes results to grid and editor."""

    edited = Signal()  # a result was opened in the editor

    def __init__(
        self, session: Session, choice: ModelChoice, request: RequestPanel, results: Results, editing: EditorPanel
    ) -> None:
        super().__init__(results)
        self._session, self._choice, self._request = session, choice, request
        self._results, self._editing = results, editing
        self._last_request: DrawRequest | None = None  # the running or last request
        session.inference.generated.connect(self._on_generated)

    def problem(self) -> str:
        """Return why the chosen model can't draw with the page's settings; '' if possible."""
        if not self._choice.is_known():
            return "Loading models…"
        if self._choice.source() is None or self._choice.record() is None:
            return "No model yet. Train one on the Train page."
        if self._choice.device() is None:
            return "Searching for devices…"
        return self._request.problem()

    @Slot()
    def draw_again(self) -> None:
        """Draw the shown request with another seed. Do nothing while a model is busy.

        A tween does not depend on the seed, so after a tween draw new sprites.
        """
        batch = self._results.content.history.current
        if batch is None or self._session.inference.is_busy():
            return
        if batch.request.kind == "between":
            self.draw()
        elif self._can_draw():
            request = batch.request
            settings = request.settings.replace(seed=self._request.next_seed())
            self._submit(settings, request.request, request.title, request.origin)

    @Slot()
    def draw(self) -> None:
        if self._can_draw():
            settings = self._request.next_settings()
            if settings.tiles != NONE:
                given = self._request.tiles.given()
                request = None if given is None else EditRequest("given_tiles", given, ())
                self._submit(settings.replace(best_of=1), request, title="Tile set")
            elif settings.best_of > 1:
                self._draw_best(settings)
            else:
                self._submit(settings)

    def _can_draw(self) -> bool:
        """Return whether drawing is possible; notify the user if not."""
        problem = self.problem()
        if problem:
            self._session.notify(problem, holds=lambda: self.problem() == problem)
        return not problem

    def _draw_best(self, settings: GenerateSettings) -> None:
        """Draw extra sprites, and show only the sprites most similar to the kept sprites."""
        record = self._choice.record()
        kept = self._session.kept_sprites.of_size(record.size) if record is not None else []
        if len(kept) < MIN_LIKED:
            self._session.notify(
                f"'Best of' needs {MIN_LIKED} kept sprites of this size; you have {len(kept)}.",
                "Select more sprites and press Keep, or set 'Best of' to 1.",
                holds=lambda: record is not None and len(self._session.kept_sprites.of_size(record.size)) < MIN_LIKED,
            )
            return
        liked, classes = np.stack([each.edit.sprite for each in kept]), tuple(each.class_name for each in kept)
        title = f"Best {settings.count:,} of {settings.count * settings.best_of:,} new sprites"
        self._submit(settings, EditRequest("best_of", liked, classes), title)

    @Slot()
    def draw_from_sprite(self) -> None:
        """Draw variations of the edited sprite, or redraw its selected pixels."""
        if self._can_draw():
            request, origin = self._editing.request(), origin_of([self._editing.sprite()])
            settings = self._settings_for(COUNT).replace(strength=self._editing.options.share())
            kind = "variations" if request.keep is None else "redrawn"
            self._submit(settings, request, f"{COUNT} {kind}", origin)

    @Slot(QAction)
    def draw_between(self, chosen: QAction) -> None:
        """Draw frames between two selected sprites, or the edited and the selected one. chosen: has their number."""
        count, ends = chosen.data(), self._selected()
        if len(ends) == 1:
            ends.insert(0, self._editing.sprite())
        self._draw_from("between", ends, count, f"{count + len(ends)} frames")

    @Slot()
    def draw_like(self) -> None:
        """Draw sprites similar to the selected sprites."""
        chosen = self._selected()
        self._draw_from("more_like", chosen, COUNT, f"{COUNT} similar to {formatting.count(len(chosen), 'sprite')}")

    @Slot()
    def recolour(self) -> None:
        """Show the newest sprites in the chosen colours."""
        result = self._results.result() if not self._session.inference.is_busy() else None
        labels = result.labels if result is not None else None
        self._session.inference.recolour(self._request.colours.choice(), labels)

    @Slot()
    def edit_selected(self) -> None:
        self.edit(self._results.grid.selected()[0])

    @Slot(int)
    def edit(self, number: int) -> None:
        """Open a result in the editor; a redrawn version of the edited sprite replaces it as an undoable step."""
        if "vary" not in self._choice.capabilities():
            return
        sprite, batch = self._results.content.sprite(number), self._results.content.history.current
        editor = self._editing.editor
        is_candidate = batch is not None and batch.request.kind == "redraw" and self._editing.is_open()
        if is_candidate and editor.edit().sprite.shape == sprite.rgba.shape:
            editor.replace(EditedSprite(sprite.rgba, editor.edit().keep))
        else:
            self._editing.open_sprite(sprite)
        self.edited.emit()

    def _selected(self) -> list[NamedSprite]:
        return [self._results.content.sprite(number) for number in self._results.grid.selected()]

    def _draw_from(
        self, kind: Literal["between", "more_like"], chosen: list[NamedSprite], count: int, title: str
    ) -> None:
        """Draw sprites that start from the chosen sprites."""
        if len({one.rgba.shape for one in chosen}) > 1:
            self._session.notify("These sprites differ in size.", "Choose sprites of one size, or close the editor.")
        elif self._can_draw():
            sprites, classes = np.stack([one.rgba for one in chosen]), tuple(one.class_name for one in chosen)
            settings = self._settings_for(count).replace(mix="")
            self._submit(settings, EditRequest(kind, sprites, classes), title, origin_of(chosen))

    def _settings_for(self, count: int) -> GenerateSettings:
        """Return the page's settings, adapted to drawing `count` sprites from other sprites."""
        settings = self._request.next_settings().replace(count=count, quick=False, in_proportion=False)
        return settings.replace(tiles=NONE, best_of=1)

    def _submit(
        self, settings: GenerateSettings, request: EditRequest | None = None, title: str = "", origin: str = ""
    ) -> None:
        source, device, record = self._choice.source(), self._choice.device(), self._choice.record()
        if source is not None and device is not None and record is not None:
            self._last_request = DrawRequest(settings, request, title, origin, self._choice.name(), record.class_names)
            self._session.inference.generate(source, device, settings, self._request.colours.choice(), request)

    @Slot(object)
    def _on_generated(self, result: SpritesColoured) -> None:
        request = self._last_request or DrawRequest(GenerateSettings(), None, "", "", result.model, ())
        self._results.show_sprites(result, request)
