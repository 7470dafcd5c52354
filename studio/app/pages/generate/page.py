"""The Generate page: using a model, and the sprites that it made."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QProgressBar, QSplitter, QStackedWidget, QWidget

from studio.app import dialogs
from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.base import Page
from studio.app.pages.generate.model_choice import ModelChoice
from studio.app.pages.generate.predict import PredictPanel
from studio.app.pages.generate.request import RequestPanel
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import Flow
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core import wording
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
        self.generate = factory.button("Generate", _GENERATE, "generate", "primary")
        self.cancel = factory.button("Cancel", "Stop generating.")
        self._class_names: tuple[str, ...] = ()  # of the model that draws or drew, whichever is chosen by now
        self._reason = factory.text("", "muted")
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
        path = dialogs.for_new_file(self, self.session.settings, "Save a sheet", name, "PNG picture (*.png)")
        if path is not None:
            self.session.inference.save_sheet(path, picked, max(1, math.isqrt(len(picked.sprites))))
        return True

    def _connect(self) -> None:
        models = self.session.inference
        self.generate.clicked.connect(self._generate)
        self.cancel.clicked.connect(models.cancel)
        self.results.save_files.clicked.connect(self._save_files)
        self.results.save_sheet.clicked.connect(self.save_samples)
        self.choice.changed.connect(self._refresh)
        self.request.recoloured.connect(self._recolour)
        self.session.catalog.ready.connect(self._refresh)
        self.session.catalog.devices_found.connect(self._refresh)
        models.busy_changed.connect(self._refresh_busy)
        models.progressed.connect(self._show_progress)
        models.generated.connect(self._show_results)

    def _lay_out(self) -> None:
        margin = 3 * factory.GRID
        form = factory.column(factory.title("Generate"), self.choice, self.request, 1, spacing=2 * factory.GRID)
        form.setContentsMargins(margin, margin, 2 * factory.GRID, factory.GRID)
        scroll = factory.scrolling(factory.panel(form))
        factory.keep_space(self._bar)
        buttons = factory.column(self._reason, self._bar, self.generate, self.cancel)
        buttons.setContentsMargins(margin, factory.GRID, 2 * factory.GRID, 2 * factory.GRID)
        side = factory.column(scroll, buttons, spacing=0)
        side.setStretch(0, 1)
        left = factory.panel(side)
        left.setMinimumWidth(312)
        for view in (self.results, self.predict):
            self._right.addWidget(self._padded(view))
        self._splitter.addWidget(left)
        self._splitter.addWidget(self._right)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([320, 900])
        self._splitter.restoreState(self.session.settings.layout("generate"))
        self.setLayout(factory.column(self._splitter))

    def _padded(self, view: QWidget) -> QWidget:
        box = factory.column(view)
        box.setContentsMargins(2 * factory.GRID, 3 * factory.GRID, 3 * factory.GRID, factory.GRID)
        return factory.panel(box)

    def _problem(self) -> str:
        if self.choice.source() is None or self.choice.record() is None:
            return "There is no model yet. Train one on the Train page."
        if self.choice.device() is None:
            return "Devices are still being looked for."
        return self.request.problem()

    def _predicts(self) -> bool:
        recipe = self.choice.recipe()
        return recipe is not None and recipe.makes != "sprites"

    @Slot()
    def _refresh(self) -> None:
        record = self.choice.record()
        predicts = self._predicts()
        self._right.setCurrentIndex(1 if predicts else 0)
        self.request.setVisible(not predicts)
        self.request.show_classes(record.class_names if record else ())
        self._refresh_busy()

    @Slot()
    def _refresh_busy(self) -> None:
        busy, problem = self.session.inference.is_busy(), self._problem()
        predicts = self._predicts()
        shown, hidden = (self.cancel, self.generate) if busy else (self.generate, self.cancel)
        shown.setVisible(busy or not predicts)
        if hidden.hasFocus():
            shown.setFocus()
        hidden.setVisible(False)
        self._bar.setVisible(busy)
        self._bar.setRange(0, 0)
        factory.enable(self.generate, problem, _GENERATE)
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
            self.session.inference.generate(source, device, self.request.next_settings(), self.request.colour_choice())

    @Slot()
    def _recolour(self) -> None:
        self.session.inference.recolour(self.request.colour_choice())

    @Slot()
    def _save_files(self) -> None:
        picked = self.results.to_save()
        folder = dialogs.for_folder(self, self.session.settings, "Save one PNG file for each sprite")
        if folder is not None and picked is not None:
            self.session.inference.save_files(folder, picked)


_FILES = "Save each sprite, or each selected one, as a PNG file."
_SHEET = "Save all sprites, or the selected ones, as one picture. (Ctrl+S)"


class Results(QWidget):
    """A grid with what it takes to keep what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self._made: SpritesColoured | None = None
        self._class_names: tuple[str, ...] = ()
        self.grid = SpriteGrid()
        self.grid.set_zoom(3)
        self.save_files = factory.button("Save PNG files…", _FILES, "save")
        self.save_sheet = factory.button("Save sheet…", _SHEET, "save")
        self._title = factory.heading("New sprites")
        self._facts = factory.caption("")
        self._stack = QStackedWidget()
        empty = factory.caption("Press Generate, and new sprites appear here. It works while a training runs, too.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, empty, 1)))
        self._stack.addWidget(self.grid)
        buttons = Flow(factory.GRID, factory.GRID)
        for button in (self.save_files, self.save_sheet):
            buttons.addWidget(button)
        head = factory.row(self._title, buttons)
        head.setStretch(0, 1)
        body = factory.column(head, self._facts, self._stack)
        body.setStretch(2, 1)
        self.setLayout(body)
        self.grid.selection_changed.connect(self._refresh)
        self._refresh()

    def show_sprites(self, made: SpritesColoured, class_names: tuple[str, ...]) -> None:
        """Show what was made; the same sprites in other colours take the place of those on show."""
        again = self._made is not None and made.labels is self._made.labels
        self._made = made
        of = f", in the colours of {made.palette}" if made.palette else ""
        self._facts.setText(f"{made.model}, seed {made.seed}{of}")
        if again:
            self.grid.replace_pixels(made.sprites)
            return
        self._class_names = class_names
        self.grid.set_sprites(made.sprites, names=self._names(), labels=made.labels, class_names=class_names)
        self._title.setText(wording.count(len(made.sprites), "new sprite"))
        self._stack.setCurrentIndex(1)
        self._refresh()

    def to_save(self) -> SpriteSelection | None:
        """The selected sprites, or all; None when there are none."""
        if self._made is None:
            return None
        chosen = self.grid.selected() or list(range(len(self._made.sprites)))
        names = self._names()
        about = {"Model": self._made.model, "Seed": str(self._made.seed)}
        if self._made.palette:
            about["Palette"] = self._made.palette
        return SpriteSelection(self._made.sprites[chosen], [names[index] for index in chosen], about)

    def name(self) -> str:
        """What to call a file of these sprites."""
        return f"{self._made.model.replace(',', '')} seed {self._made.seed}" if self._made else "sprites"

    def _class_of(self, label: int) -> str:
        return self._class_names[label] if 0 <= label < len(self._class_names) else "any"

    def _names(self) -> list[str]:
        assert self._made is not None
        stems = [self._class_of(label).rpartition("/")[2] for label in self._made.labels]
        return [f"{stem} {self._made.seed} {number:04d}" for number, stem in enumerate(stems)]

    @Slot()
    def _refresh(self) -> None:
        why_not = "" if self._made is not None else "There are no sprites yet: press Generate."
        factory.enable(self.save_files, why_not, _FILES)
        factory.enable(self.save_sheet, why_not, _SHEET)
        selected = self.grid.selected_count() if self._made is not None else 0
        files = wording.count(selected, "PNG file") if selected else "PNG files"
        factory.relabel(self.save_files, f"Save {files}…")
