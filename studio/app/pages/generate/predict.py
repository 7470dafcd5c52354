"""Predictions of a classifier or regression model for dropped sprites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Slot
from PySide6.QtWidgets import QMenu, QWidget

from studio.app import dialogs, theme
from studio.app.background.model_jobs import SavedModel
from studio.app.pages.generate.prediction_table import ClassTable, NumberTable, prediction_table
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.pasted import paths_in
from studio.app.widgets.sprites.predictions import PredictionsView
from studio.core.events import Classified, NumbersPredicted
from studio.data.options import ImportOptions, options_for_prediction
from studio.data.sprites import Sprites
from studio.engine.control.control import Control

_WAITS = "A model is busy. Try again in a moment."
_WRONG = "Show only sprites whose class was predicted wrongly."
_SAVE = "Save all predictions as a CSV table."
_AGAIN = "Predict the same files with the chosen model."
_SHOW = "Show the sprite's file in the file manager."
_TOTALS = "Sprites that the model was trained on are counted too."


@dataclass(frozen=True)
class _Request:
    """A request to predict from files. source, title: the model and its name for the user.

    options: import options; None reads the files with the options of the model's training.
    """

    paths: Sequence[Path]
    options: ImportOptions | None
    source: SavedModel | Control
    title: str


class PredictPanel(QWidget):
    """Panel that predicts classes or numbers for dropped sprites."""

    def __init__(self, session: Session, choice: ModelChoice) -> None:
        super().__init__()
        self._session, self.choice = session, choice
        self.view = PredictionsView()
        self.view.menu.add("Show in folder", _SHOW, self._on_show_in_folder, "folder")
        browse = "Choose images or a folder. Sub-folders named like classes are compared."
        self.browse = factory.button("Choose sprites…", browse, "folder")
        menu = QMenu(self.browse)
        menu.addAction("Folder…", self._on_folder_clicked)
        menu.addAction("Files…", self._on_files_clicked)
        self.browse.setMenu(menu)
        open_sprites = "Predict the sprites that are open on the Sprites page."
        self.open_sprites = factory.button("Use open sprites", open_sprites, slot=self._on_open_sprites_clicked)
        self.summary = factory.ElidedLabel("heading")
        self.summary.setAccessibleName("Totals")
        self.shown = factory.combo("Predicted", "Choose the class or an attribute.")
        self.shown.hide()
        self.wrong_only = factory.check_box("Wrong only", _WRONG)
        self.order = factory.combo("Sort", "Sort the predictions.")
        self.order.setMinimumContentsLength(14)
        self.save = factory.tool_button("save", "Save as CSV", _SAVE, self._on_save_clicked)
        again, self.made_by = "Predict again", factory.ElidedLabel("muted")
        self.again = factory.button(again, _AGAIN, "refresh", slot=self._on_again_clicked)
        self._table: ClassTable | NumberTable | None = None
        self._requested: _Request | None = None  # the running or last request
        self._shown: _Request | None = None  # the request of the shown predictions
        tools = FlowLayout(factory.GRID, factory.GRID, self.shown, self.wrong_only, self.order)
        model = factory.row(self.made_by, self.again, self.save, grows=0)
        self._found = factory.panel(factory.column(self.summary, model, tools))
        self._found.hide()
        empty = factory.caption("Drop images or a folder here to predict each sprite's class or numbers.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = factory.stack(factory.panel(factory.column(1, empty, 1)), factory.scroll_area(self.view))
        buttons = FlowLayout(factory.GRID, factory.GRID, self.browse, self.open_sprites)
        self.setLayout(factory.column(buttons, self._found, self._stack, spacing=2 * factory.GRID, grows=2))
        self.shown.activated.connect(self._show_table)
        self.wrong_only.toggled.connect(self._refresh_order)
        self.order.activated.connect(self._refresh_order)
        session.inference.predicted.connect(self._on_predicted)
        session.open_sprites.imported.connect(self._refresh)
        session.inference.busy_changed.connect(self._refresh)
        choice.changed.connect(self._refresh_made_by)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        waits = _WAITS if self._session.inference.is_busy() else ""
        for button in (self.browse, self.again):
            factory.set_enabled(button, waits)
        none = "" if self._session.open_sprites.sprites else "The Sprites page is empty."
        factory.set_enabled(self.open_sprites, waits or none)

    @Slot()
    def _on_folder_clicked(self) -> None:
        folder = dialogs.choose_folder(self, self._session.settings, "Choose a folder of sprites")
        self._predict([folder] if folder is not None else [])

    @Slot()
    def _on_files_clicked(self) -> None:
        self._predict(dialogs.choose_files(self, self._session.settings, "Choose sprites"))

    @Slot()
    def _on_open_sprites_clicked(self) -> None:
        self._predict(self._session.open_sprites.paths, self._session.open_sprites.options)

    def _predict(self, paths: Sequence[Path], options: ImportOptions | None = None) -> None:
        """Predict from files. options: import options; None reads the files with the training's import options."""
        source, device, record = self.choice.source(), self.choice.device(), self.choice.record()
        if self._session.inference.is_busy():
            self._session.notify(_WAITS, holds=self._session.inference.is_busy)
        elif source is None or device is None or record is None:
            title = "Models and devices are not listed yet."
            self._session.notify(title, "Try again in a moment.", holds=lambda: self.choice.device() is None)
        elif paths:
            chosen = options or options_for_prediction(record.size, record.data_origin)
            self._requested = _Request(paths, options, source, self.choice.title())
            self._session.inference.predict(source, device, paths, chosen.replace(size=record.size))

    @Slot()
    def _on_again_clicked(self) -> None:
        if self._shown is not None:
            self._predict(self._shown.paths, self._shown.options)

    @Slot()
    def _on_show_in_folder(self) -> None:
        row = self.view.current_row()
        if self._shown is not None and row >= 0:
            self._session.open_sprites.locate([self.view.shown_sprite(row).name], self._shown.paths)

    @Slot()
    def _refresh_made_by(self) -> None:
        """Name the model of the shown predictions; warn if another model is chosen."""
        if self._shown is not None:
            is_other = self._shown.source != self.choice.source()
            theme.set_role(self.made_by, "warning" if is_other else "muted")
            self.made_by.show_text(f"{'Other model:' if is_other else 'By'} {self._shown.title}")

    @Slot(object, object)
    def _on_predicted(self, sprites: Sprites, answer: Classified | NumbersPredicted) -> None:
        self._table, self._shown = prediction_table(sprites, answer), self._requested
        names = {"Class": ""}
        if isinstance(answer, Classified) and answer.attributes:
            names = {**(names if len(answer.class_names) > 1 else {}), **{name: name for name in answer.attributes}}
        factory.fill_combo(self.shown, list(names.items()), self.shown.currentData())
        self.shown.setVisible(len(names) > 1)
        self._found.show()
        self._refresh_made_by()
        self._stack.setCurrentIndex(1)
        self._show_table()

    def _chosen_table(self) -> ClassTable | NumberTable | None:
        """Return the table of the classes, of the numbers, or of the chosen attribute; None before a prediction."""
        if isinstance(self._table, ClassTable):
            return self._table.attributes.get(self.shown.currentData(), self._table)
        return self._table

    @Slot()
    def _show_table(self) -> None:
        """Show the predicted classes, numbers, or values of the chosen attribute."""
        table = self._chosen_table()
        if table is None:
            return
        sprites = table.sprites
        if isinstance(table, ClassTable):
            true = table.true if (table.true >= 0).any() else None
            self.view.set_classes(
                sprites.rgba, table.answer.probabilities, table.answer.class_names, true, sprites.names
            )
        else:
            self.view.set_numbers(sprites.rgba, table.answer.numbers, table.answer.names, table.true, sprites.names)
        self.summary.show_text(table.summary(), _TOTALS)
        reason = table.why_not_wrong_only()
        if reason:
            self.wrong_only.setChecked(False)
        factory.set_enabled(self.wrong_only, reason)
        factory.fill_combo(self.order, [(order, order) for order in table.orders], self.order.currentText())
        self._refresh_order()

    @Slot()
    def _refresh_order(self) -> None:
        """Show the predictions in the chosen order, or only the wrong predictions."""
        table = self._chosen_table()
        if table is not None:
            order = table.order(self.order.currentText(), wrong_only=self.wrong_only.isChecked())
            self.view.set_order(order)

    @Slot()
    def _on_save_clicked(self) -> None:
        if self._table is not None:
            kinds, settings = "CSV table (*.csv)", self._session.settings
            path = dialogs.choose_save_file(self, settings, "Save predictions", "predictions.csv", kinds)
            if path is not None:
                self._session.saving.save_table(path, self._table.csv())

    def take(self, data: QMimeData) -> bool:
        """Predict dropped or pasted files, or an image; show why if that is impossible. Return False for other data."""
        try:
            paths = paths_in(data)
        except OSError as error:
            self._session.show_error(error)
            return True
        self._predict(paths)
        return bool(paths)
