"""A confusion matrix and the sprites behind the chosen cell, for the pages Train and Runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QByteArray, Qt, Slot
from PySide6.QtWidgets import QSplitter, QWidget

from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.confusion import ConfusionView
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core.events import ClassPredictions, ValueConfusion
from studio.engine.runs.analysis.confused import ConfusedSprites

NO_MATRICES: Mapping[str, ValueConfusion] = MappingProxyType({})
NO_VALUES: Mapping[str, Sequence[str]] = MappingProxyType({})
_CLICK = "Click a cell to see its sprites."
_NONE = "No validation sprite is in this cell."
_NOT_RECORDED = "This run recorded only the numbers. Train it longer to see sprites."


class ConfusionPanel(QWidget):
    """Shows a run's confusion matrix for classes or an attribute, and the chosen cell's sprites at the right."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._run: Path | None = None
        self._predictions: ClassPredictions | None = None  # counted in the shown matrix
        self._matrices: Mapping[str, tuple[ValueConfusion, Sequence[str]]] = {}  # by attribute; '' for the classes
        self._wanted: tuple[int, int] | None = None  # the chosen cell while the sprites load
        self._names: Sequence[str] = ()  # names of the shown sprites
        self.matrix = ConfusionView()
        self.shown = factory.combo("Matrix", "Choose the class or an attribute.")
        self.title = factory.ElidedLabel("heading", Qt.TextElideMode.ElideMiddle)
        self.note = factory.caption(_CLICK)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.grid = SpriteGrid()
        self.grid.view.setAccessibleName("Sprites of the chosen cell of the confusion matrix")
        self._stack = factory.stack(factory.panel(factory.column(1, self.note, 1)), self.grid)
        right = factory.panel(
            factory.column(self.title, self._stack, margin=(factory.GRID, factory.GRID, 0, 0), grows=1)
        )
        right.setMinimumWidth(160)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        left = factory.panel(factory.column(self.shown, self.matrix, grows=1))
        factory.fill_splitter(splitter, (left, right), (480, 480), QByteArray())
        self.setLayout(factory.column(splitter))
        self.shown.hide()
        self.shown.currentIndexChanged.connect(self._show_chosen)
        self.matrix.matrix.cell_chosen.connect(self._on_cell_chosen)
        session.runs.confused_found.connect(self._on_found)

    def show_matrix(
        self, run: Path | None, counts: NDArray[np.int64], class_names: Sequence[str],
        predictions: ClassPredictions | None, attributes: Mapping[str, ValueConfusion] = NO_MATRICES,
        values: Mapping[str, Sequence[str]] = NO_VALUES,
    ) -> None:  # fmt: skip
        """Show a run's confusion matrix and the chosen cell's sprites.

        counts: int64 [K, K], validation sprites by true and predicted class. predictions: predicted class by validation
        sprite; None if not recorded. attributes: confusion by attribute, for the user to choose instead. values: value
        names by attribute.
        """
        if run != self._run:
            self.matrix.matrix.set_chosen(None)
        known = [(name, found, values.get(name, ())) for name, found in attributes.items()]
        fitting = {name: (found, names) for name, found, names in known if len(names) == len(found.counts)}
        self._run, self._matrices = run, {"": (ValueConfusion(counts, predictions), class_names), **fitting}
        factory.fill_combo(self.shown, [("Class", ""), *zip(fitting, fitting, strict=True)], self.shown.currentData())
        self.shown.setVisible(bool(fitting))
        self._show()

    @Slot()
    def _show_chosen(self) -> None:
        self.matrix.matrix.set_chosen(None)
        self._show()

    def _show(self) -> None:
        found, names = self._matrices[self.shown.currentData() or ""]
        self._predictions = found.predictions
        self.matrix.set_confusion(found.counts, names)
        chosen = self.matrix.matrix.chosen()
        if chosen is None:
            self._show_note(_CLICK)
        elif self.isVisible():  # don't read the data again for a hidden panel
            self._on_cell_chosen(*chosen)

    def clear(self) -> None:
        self.show_matrix(None, np.zeros((0, 0), np.int64), (), None)

    @Slot(int, int)
    def _on_cell_chosen(self, true: int, predicted: int) -> None:
        """Load a cell's sprites, or show why the cell has no sprites to show."""
        matrix = self.matrix.matrix
        matrix.set_chosen((true, predicted))
        self._wanted = None
        if self._run is None or self._predictions is None:
            self._show_note(_NOT_RECORDED, matrix.describe(true, predicted))
        elif not matrix.count(true, predicted):
            self._show_note(_NONE, matrix.describe(true, predicted))
        else:
            self._wanted = (true, predicted)
            self.title.show_text(matrix.describe(true, predicted))
            attribute = str(self.shown.currentData() or "")
            self._session.runs.find_confused(self._run, self._predictions, true, predicted, attribute)

    @Slot(object)
    def _on_found(self, found: ConfusedSprites) -> None:
        is_shown = found.run == self._run and found.attribute == (self.shown.currentData() or "")
        if is_shown and (found.true, found.predicted) == self._wanted:
            self._wanted = None
            if found.sprites.names != self._names:  # else keep the selection and the scroll position
                self._names = found.sprites.names
                self.grid.set_sprites(found.sprites.rgba, self._names, self._names)
            self._stack.setCurrentIndex(1)

    def _show_note(self, note: str, title: str = "") -> None:
        self._wanted = None
        self.title.show_text(title)
        self.note.setText(note)
        self._stack.setCurrentIndex(0)
