"""Predictions of a classifier or regression model for dropped sprites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.predictions import PredictionsView
from studio.core import formatting
from studio.core.events import Classified, NumbersPredicted
from studio.data.options import ImportOptions, options_for_prediction
from studio.data.sprites import Sprites

_WAITS = "A model is busy. Try again in a moment."


class PredictPanel(QWidget):
    """Panel that predicts classes or numbers for dropped sprites."""

    def __init__(self, session: Session, choice: ModelChoice) -> None:
        super().__init__()
        self._session, self._choice = session, choice
        self.setAcceptDrops(True)
        self.view = PredictionsView()
        browse = "Choose image files to predict from."
        self.browse = factory.button("Choose sprites…", browse, "folder", slot=self._on_browse_clicked)
        open_sprites = "Predict the sprites that are open on the Sprites page."
        self.open_sprites = factory.button("Use open sprites", open_sprites, slot=self._on_open_sprites_clicked)
        self._title = factory.heading("")
        empty = factory.caption("Drop image files here to predict each sprite's class or numbers.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = factory.stack(factory.panel(factory.column(1, empty, 1)), factory.scroll_area(self.view))
        buttons = FlowLayout(factory.GRID, factory.GRID, self.browse, self.open_sprites)
        head = factory.row(self._title, buttons, grows=0)
        self.setLayout(factory.column(head, self._stack, spacing=2 * factory.GRID))
        session.inference.predicted.connect(self._on_predicted)
        session.open_sprites.imported.connect(self._refresh)
        session.inference.busy_changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        waits = _WAITS if self._session.inference.is_busy() else ""
        factory.set_enabled(self.browse, waits)
        none = "" if self._session.open_sprites.sprites else "The Sprites page is empty."
        factory.set_enabled(self.open_sprites, waits or none)

    @Slot()
    def _on_browse_clicked(self) -> None:
        self._predict(dialogs.choose_files(self, self._session.settings, "Choose sprites"))

    @Slot()
    def _on_open_sprites_clicked(self) -> None:
        self._predict(self._session.open_sprites.paths, self._session.open_sprites.options)

    def _predict(self, paths: Sequence[Path], options: ImportOptions | None = None) -> None:
        """Predict from files. options: import options; None reads the files with the training's import options."""
        source, device, record = self._choice.source(), self._choice.device(), self._choice.record()
        if self._session.inference.is_busy():
            self._session.notify(_WAITS, holds=self._session.inference.is_busy)
        elif source is None or device is None or record is None:
            title = "Models and devices are not listed yet."
            self._session.notify(title, "Try again in a moment.", holds=lambda: self._choice.device() is None)
        elif paths:
            chosen = options or options_for_prediction(record.size, record.data_origin)
            self._session.inference.predict(source, device, paths, chosen.replace(size=record.size))

    @Slot(object, object)
    def _on_predicted(self, sprites: Sprites, answer: Classified | NumbersPredicted) -> None:
        self._title.setText(formatting.count(len(sprites), "sprite"))
        if isinstance(answer, Classified):
            self.view.set_classes(sprites.rgba, answer.probabilities, answer.class_names)
        else:
            self.view.set_numbers(sprites.rgba, answer.numbers, answer.names, true_numbers(sprites, answer.names))
        self._stack.setCurrentIndex(1)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files even while predicting is impossible; `_predict` then shows why."""
        if factory.local_paths(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self._predict(factory.local_paths(event.mimeData()))


def true_numbers(sprites: Sprites, names: Sequence[str]) -> NDArray[np.float32]:
    """Return the sprites' true values for these names: float32 [N, T], NaN for unknown values."""
    known = dict(zip(sprites.target_names, sprites.targets.T, strict=True))
    unknown = np.full(len(sprites), np.nan, np.float32)
    return np.stack([known.get(name, unknown) for name in names], axis=1)
