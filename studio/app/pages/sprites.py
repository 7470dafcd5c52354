"""The Sprites page: what the model will learn from."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QProgressBar, QSplitter, QStackedWidget, QTabWidget, QWidget

from studio.app import asking, parts
from studio.app.answers import PaletteFound
from studio.app.form import ConfigForm
from studio.app.pages.base import Page
from studio.app.pages.classes import ClassList
from studio.app.pages.findings import FindingsView
from studio.app.session import Session
from studio.app.widgets import labels
from studio.app.widgets.disclosure import Disclosure
from studio.app.widgets.drop_zone import DropZone
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.app.widgets.swatches import Swatches
from studio.core import wording
from studio.core.events import Progress
from studio.data.importing import ImportOptions, SpritesImported


class SpritesPage(Page):
    """Empty: a place to drop sprites. Then: the sprites, their classes and colours, and what was left out."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.drop_zone = DropZone()
        self.grid = SpriteGrid()
        self.classes = ClassList()
        self.left_out = FindingsView("Every file could be used.")
        self.odd = FindingsView("Nothing odd was found.")
        self.tabs = QTabWidget()
        self.form = ConfigForm(ImportOptions())
        self._title = labels.title("")
        self._facts = labels.caption("")
        self._swatches = Swatches()
        self._colours = labels.heading("Colours")
        self.apply = parts.button("Apply", "Read the files again with these settings; the files stay as they are.")
        self.train = parts.button("Train on these", "Go to the Train page.", "train", "primary")
        self.reopen = parts.button("Open others…", "Open another folder of sprites.", "folder")
        self.cancel = parts.button("Cancel", "Stop reading; what was open before stays.")
        self._reading = labels.heading("")
        self._bar = QProgressBar()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._show_recent()

    def arrive(self) -> None:
        """Show what is recent now."""
        self._show_recent()

    def keep(self) -> None:
        """Remember where the splitter is, and the zoom."""
        self.session.settings.keep_layout("sprites", self._splitter.saveState())
        self.session.settings.keep_text("sprites_zoom", str(self.grid.zoom()))

    def _lay_out(self) -> None:
        margin = 3 * parts.GRID
        side = parts.column(
            self._title, self._facts, self.train, self.reopen, labels.heading("Classes"), self.classes,
            Disclosure("Canvas and classes", self._options()), self._colours, self._swatches, 1,
        )  # fmt: skip
        side.setContentsMargins(margin, margin, 2 * parts.GRID, parts.GRID)
        side.setStretchFactor(self.classes, 1)
        self.classes.setMinimumHeight(200)
        scroll = parts.scrolling(parts.panel(side))
        scroll.setMinimumWidth(280)
        for view, name in ((self.grid, "Sprites"), (self.left_out, "Left out"), (self.odd, "Worth a look")):
            self.tabs.addTab(view, name)
        body = parts.column(self.tabs)
        body.setContentsMargins(parts.GRID, 2 * parts.GRID, margin, parts.GRID)
        self._splitter.addWidget(scroll)
        self._splitter.addWidget(parts.panel(body))
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([320, 900])
        self._splitter.restoreState(self.session.settings.layout("sprites"))
        zoom = self.session.settings.text("sprites_zoom", "2")
        self.grid.set_zoom(int(zoom) if zoom.isdecimal() else 2)
        for page in (self.drop_zone, self._waiting(), self._splitter):
            self._stack.addWidget(page)
        self.setLayout(parts.column(self._stack))

    def _options(self) -> QWidget:
        self.apply.setEnabled(False)
        return parts.panel(parts.column(self.form, self.apply))

    def _waiting(self) -> QWidget:
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(320)
        self._reading.setAlignment(Qt.AlignmentFlag.AlignCenter)
        cancel = parts.row(1, self.cancel, 1)
        middle = parts.column(1, self._reading, parts.row(1, self._bar, 1), cancel, 1, spacing=2 * parts.GRID)
        return parts.panel(middle)

    def _connect(self) -> None:
        importing = self.session.importing
        self.drop_zone.paths_dropped.connect(self._open)
        self.drop_zone.browse_requested.connect(self._browse)
        self.drop_zone.demo_requested.connect(importing.open_demo)
        self.drop_zone.recent_chosen.connect(self._open_recent)
        self.reopen.clicked.connect(self._browse)
        self.cancel.clicked.connect(importing.cancel)
        self.train.clicked.connect(self._go_to_training)
        self.classes.chosen.connect(self.grid.set_visible)
        self.form.changed.connect(self._options_changed)
        self.apply.clicked.connect(self._apply)
        importing.started.connect(self._show_waiting)
        importing.progressed.connect(self._show_progress)
        importing.imported.connect(self._show_result)
        importing.palette_found.connect(self._show_palette)
        importing.ended.connect(self._show_what_there_is)

    @Slot(list)
    def _open(self, paths: list[str]) -> None:
        self.session.importing.open_paths([Path(path) for path in paths])

    @Slot(str)
    def _open_recent(self, path: str) -> None:
        self.session.importing.open_paths([Path(path)])

    @Slot()
    def _browse(self) -> None:
        path = asking.for_folder(self, self.session.settings, "Open a folder of sprites")
        if path is not None:
            self.session.importing.open_paths([path])

    @Slot()
    def _go_to_training(self) -> None:
        self.page_wanted.emit("train")

    @Slot()
    def _options_changed(self) -> None:
        parts.enable(self.apply, self.form.problem(), "Read the files again with these settings.")

    @Slot()
    def _apply(self) -> None:
        options = self.form.config()
        assert isinstance(options, ImportOptions)
        self.session.importing.change_options(options)

    @Slot()
    def _show_waiting(self) -> None:
        self._reading.setText("Reading sprites…")
        self._bar.setRange(0, 0)
        self._stack.setCurrentIndex(1)

    @Slot(object)
    def _show_progress(self, progress: Progress) -> None:
        of = f" of {progress.total:,}" if progress.total else ""
        self._reading.setText(f"{progress.done:,}{of} {progress.what}")
        self._bar.setRange(0, progress.total)
        self._bar.setValue(progress.done)

    @Slot()
    def _show_what_there_is(self) -> None:
        self._stack.setCurrentIndex(2 if self.session.importing.sprites is not None else 0)
        self._show_recent()

    @Slot(object)
    def _show_result(self, result: SpritesImported) -> None:
        sprites = result.sprites
        self._title.setText(sprites.title)
        classes = wording.count(len(sprites.class_names), "class", "classes")
        self._facts.setText(
            f"{wording.count(len(sprites), 'sprite')} of {sprites.size} × {sprites.size} pixels in {classes}"
        )
        classes_of = [sprites.class_names[label] for label in sprites.labels]
        self.grid.set_sprites(sprites.rgba, names=sprites.names, classes=classes_of)
        self.classes.show_classes(sprites)
        self.left_out.show_items(result.quarantine)
        self.odd.show_items(result.notes)
        self.tabs.setTabText(1, f"Left out ({len(result.quarantine):,})" if result.quarantine else "Left out")
        self.tabs.setTabText(2, f"Worth a look ({len(result.notes):,})" if result.notes else "Worth a look")
        self.form.set_config(self.session.importing.options)
        self.apply.setEnabled(False)
        self._swatches.set_palette(sprites.rgba[0, :0, 0])
        self._stack.setCurrentIndex(2)

    @Slot(object)
    def _show_palette(self, found: PaletteFound) -> None:
        self._colours.setText(f"Colours ({len(found.colours)})")
        self._swatches.set_palette(found.colours, found.counts)

    def _show_recent(self) -> None:
        self.drop_zone.set_recent(self.session.settings.recent())
