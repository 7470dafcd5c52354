"""Exchange colour ramps in the selected results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.generate.batches import ResultBatch
from studio.app.pages.generate.results import Results
from studio.app.pages.recolour_dialog import RecolourDialog
from studio.app.state.session import Session
from studio.app.state.undo import UndoStep
from studio.app.widgets.menu import set_action_enabled
from studio.core import formatting
from studio.data.colour.ramp_exchange import RampExchange
from studio.data.pixels.editing import NamedSprite

_TIP = "Exchange colours of a material in the selected sprites, such as red for blue cloth."


class ResultRecolourer(QObject):
    """Shows recoloured results as a new batch, or adds recoloured kept sprites. page: the parent of the dialog."""

    def __init__(self, page: QWidget, session: Session, results: Results) -> None:
        super().__init__(page)
        self._page, self._session, self._results = page, session, results
        self._chosen: SpriteSelection | None = None  # the sprites in the dialog
        self._numbers: list[int] = []  # indices of the chosen sprites in `_batch`
        self._batch: ResultBatch | None = None  # None for kept sprites
        self._action = results.grid.menu.add("Recolour…", _TIP, self.open_dialog, "bucket")
        results.grid.selection_changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def open_dialog(self) -> None:
        """Let the user exchange ramps of the selected sprites."""
        content, numbers = self._results.content, self._results.grid.selected()
        chosen = content.selection(numbers) if numbers else None
        if chosen is not None:
            self._chosen, self._numbers, self._batch = chosen, numbers, content.batch()
            dialog = RecolourDialog(self._page, self._session, chosen)
            dialog.recoloured.connect(self._on_recoloured)
            dialog.open()

    @Slot(object)
    def _on_recoloured(self, exchange: RampExchange) -> None:
        if self._batch is not None:
            self._add_batch(exchange, self._batch, self._numbers)
        elif self._chosen is not None:
            self._keep(exchange, self._chosen)

    def _add_batch(self, exchange: RampExchange, before: ResultBatch, numbers: list[int]) -> None:
        """Show a batch's recoloured sprites as a new batch."""
        drawn, history = before.result, self._results.content.history
        title = f"{formatting.count(len(numbers), 'sprite')} recoloured"
        result = replace(
            drawn, sprites=exchange(drawn.sprites[numbers]), labels=drawn.labels[numbers], keep=None, titles=(),
            palette="", colours=None, badges=(), note="",
        )  # fmt: skip
        request = replace(before.request, title=title, origin=f"{before.file_name()} recoloured")
        after = history.add(result, request)
        self._results.show_batch(after)
        undo, redo = partial(self._results.show_batch, before), partial(self._results.show_batch, after)
        self._session.generate_history.add(UndoStep(f"recolour {formatting.count(len(numbers), 'sprite')}", undo, redo))

    def _keep(self, exchange: RampExchange, chosen: SpriteSelection) -> None:
        """Keep recoloured copies of kept sprites."""
        kept, new = self._session.kept_sprites, exchange(chosen.sprites)
        each = zip(new, chosen.names, chosen.classes, chosen.sources, strict=True)
        added = kept.add(NamedSprite(sprite, f"{name} recoloured", *rest) for sprite, name, *rest in each)
        if added:
            undo, redo = partial(kept.remove, added), partial(kept.restore, kept.indexed(added))
            title = f"recolour {formatting.count(len(added), 'sprite')}"
            self._session.generate_history.add(UndoStep(title, undo, redo))

    @Slot()
    def _refresh(self) -> None:
        set_action_enabled(self._action, "" if self._results.grid.selected_count() else "Select some sprites first.")
