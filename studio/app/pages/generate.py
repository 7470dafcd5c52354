"""The Generate page: using a model."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QProgressBar, QSplitter, QStackedWidget, QWidget

from studio.app import asking, parts
from studio.app.answers import SpritesColoured
from studio.app.pages.base import Page
from studio.app.pages.model_choice import ModelChoice
from studio.app.pages.predict import PredictPanel
from studio.app.pages.request import RequestPanel
from studio.app.pages.results import Results
from studio.app.session import Session
from studio.app.widgets import labels
from studio.core.events import Progress

_GENERATE = "Make new sprites with these settings."


class GeneratePage(Page):
    """Left: which model and what of it. Right: what it made, or what it says of sprites where it draws none."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.choice = ModelChoice(session)
        self.request = RequestPanel(session, self.choice)
        self.results = Results()
        self.predict = PredictPanel(session, self.choice)
        self.generate = parts.button("Generate", _GENERATE, "generate", "primary")
        self.cancel = parts.button("Cancel", "Stop generating.")
        self._class_names: tuple[str, ...] = ()  # of the model that draws or drew, whichever is chosen by now
        self._reason = parts.text("", "muted")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._right = QStackedWidget()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        self._connect()
        self._refresh()

    def keep(self) -> None:
        """Remember the settings and the splitter."""
        self.request.keep()
        self.session.settings.keep_layout("generate", self._splitter.saveState())

    def show_run(self, path: Path) -> None:
        """Use the model of this run."""
        self.choice.choose(path)

    @Slot()
    def save_samples(self) -> bool:
        """Save the results, or those that are selected, as a sheet."""
        picked = self.results.to_save()
        if picked is None:
            return False
        name = f"{self.results.name()}.png"
        path = asking.for_new_file(self, self.session.settings, "Save a sheet", name, "PNG picture (*.png)")
        if path is not None:
            self.session.models.save_sheet(path, picked, max(1, math.isqrt(len(picked.sprites))))
        return True

    def _connect(self) -> None:
        models = self.session.models
        self.generate.clicked.connect(self._generate)
        self.cancel.clicked.connect(models.cancel)
        self.results.save_files.clicked.connect(self._save_files)
        self.results.save_sheet.clicked.connect(self.save_samples)
        self.choice.changed.connect(self._refresh)
        self.request.colours.changed.connect(self._recolour)
        self.session.workshop.ready.connect(self._refresh)
        self.session.workshop.devices_found.connect(self._refresh)
        models.busy_changed.connect(self._refresh_busy)
        models.progressed.connect(self._show_progress)
        models.generated.connect(self._show_results)

    def _lay_out(self) -> None:
        margin = 3 * parts.GRID
        form = parts.column(labels.title("Generate"), self.choice, self.request, 1, spacing=2 * parts.GRID)
        form.setContentsMargins(margin, margin, 2 * parts.GRID, parts.GRID)
        scroll = parts.scrolling(parts.panel(form))
        parts.keep_space(self._bar)
        buttons = parts.column(self._reason, self._bar, self.generate, self.cancel)
        buttons.setContentsMargins(margin, parts.GRID, 2 * parts.GRID, 2 * parts.GRID)
        side = parts.column(scroll, buttons, spacing=0)
        side.setStretch(0, 1)
        left = parts.panel(side)
        left.setMinimumWidth(312)
        for view in (self.results, self.predict):
            self._right.addWidget(self._padded(view))
        self._splitter.addWidget(left)
        self._splitter.addWidget(self._right)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([320, 900])
        self._splitter.restoreState(self.session.settings.layout("generate"))
        self.setLayout(parts.column(self._splitter))

    def _padded(self, view: QWidget) -> QWidget:
        box = parts.column(view)
        box.setContentsMargins(2 * parts.GRID, 3 * parts.GRID, 3 * parts.GRID, parts.GRID)
        return parts.panel(box)

    def _problem(self) -> str:
        if self.choice.source() is None or self.choice.record() is None:
            return "There is no model yet. Train one on the Train page."
        if self.choice.device() is None:
            return "Devices are still being looked for."
        return self.request.problem()

    @Slot()
    def _refresh(self) -> None:
        record = self.choice.record()
        predicts = self.choice.makes() in ("labels", "numbers")
        self._right.setCurrentIndex(1 if predicts else 0)
        self.request.setVisible(not predicts)
        self.request.show_classes(record.class_names if record else ())
        self._refresh_busy()

    @Slot()
    def _refresh_busy(self) -> None:
        busy, problem = self.session.models.is_busy(), self._problem()
        predicts = self.choice.makes() in ("labels", "numbers")
        shown, hidden = (self.cancel, self.generate) if busy else (self.generate, self.cancel)
        shown.setVisible(busy or not predicts)
        if hidden.hasFocus():
            shown.setFocus()
        hidden.setVisible(False)
        self._bar.setVisible(busy)
        self._bar.setRange(0, 0)
        parts.enable(self.generate, problem, _GENERATE)
        self._reason.setText(problem)
        self._reason.setVisible(bool(problem))

    @Slot(object)
    def _show_progress(self, progress: Progress) -> None:
        self._bar.setRange(0, progress.total)
        self._bar.setValue(progress.done)

    @Slot(object)
    def _show_results(self, made: SpritesColoured) -> None:
        self.results.show_sprites(made, self._class_names)

    @Slot()
    def _generate(self) -> None:
        source, device, record = self.choice.source(), self.choice.device(), self.choice.record()
        if not self._problem() and source is not None and device is not None and record is not None:
            self._class_names = record.class_names
            self.session.models.generate(source, device, self.request.next_settings(), self.request.colours.choice())

    @Slot()
    def _recolour(self) -> None:
        self.session.models.recolour(self.request.colours.choice())

    @Slot()
    def _save_files(self) -> None:
        picked = self.results.to_save()
        folder = asking.for_folder(self, self.session.settings, "Save one PNG file for each sprite")
        if folder is not None and picked is not None:
            self.session.models.save_files(folder, picked)
