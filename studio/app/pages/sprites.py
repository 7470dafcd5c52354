"""The Sprites page: what the model will learn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QSplitter, QStackedWidget, QTabWidget

from studio.app import asking, parts
from studio.app.pages.base import Page
from studio.app.pages.findings import FindingsView
from studio.app.pages.summary import Summary
from studio.app.pages.waiting import Waiting
from studio.app.session import Session
from studio.app.widgets.drop_zone import DropZone
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.data.importing import SpritesImported

_EMPTY, _WAITING, _OPEN = range(3)


class SpritesPage(Page):
    """Empty: a place to drop sprites. Then: the sprites, their classes and colours, and what was left out."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.drop_zone = DropZone()
        self.waiting = Waiting(session.importing)
        self.summary = Summary(session)
        self.grid = SpriteGrid()
        self.left_out = FindingsView("Every file could be used.")
        self.odd = FindingsView("Nothing odd was found.")
        self.tabs = QTabWidget()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self.arrive()

    def arrive(self) -> None:
        """Offer the folders that are recent now."""
        self.drop_zone.set_recent(self.session.settings.recent())

    def keep(self) -> None:
        """Remember where the splitter is, and the zoom."""
        self.session.settings.keep_layout("sprites", self._splitter.saveState())
        self.session.settings.keep_text("sprites_zoom", str(self.grid.zoom()))
        self.summary.palette_view.keep()

    def _lay_out(self) -> None:
        side = parts.scrolling(self.summary)
        side.setMinimumWidth(280)
        for view, name in ((self.grid, "Sprites"), (self.left_out, "Left out"), (self.odd, "Worth a look")):
            self.tabs.addTab(view, name)
        body = parts.column(self.tabs)
        body.setContentsMargins(parts.GRID, 2 * parts.GRID, 3 * parts.GRID, parts.GRID)
        self._splitter.addWidget(side)
        self._splitter.addWidget(parts.panel(body))
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([320, 900])
        self._splitter.restoreState(self.session.settings.layout("sprites"))
        zoom = self.session.settings.text("sprites_zoom", "2")
        self.grid.set_zoom(int(zoom) if zoom.isdecimal() else 2)
        for page in (self.drop_zone, self.waiting, self._splitter):
            self._stack.addWidget(page)
        self.setLayout(parts.column(self._stack))

    def _connect(self) -> None:
        importing = self.session.importing
        self.drop_zone.paths_dropped.connect(self._open)
        self.drop_zone.browse_requested.connect(self._browse)
        self.drop_zone.demo_requested.connect(importing.open_demo)
        self.drop_zone.recent_chosen.connect(self._open_recent)
        self.summary.reopen.clicked.connect(self._browse)
        self.summary.train.clicked.connect(self._go_to_training)
        self.summary.filtered.connect(self._filter)
        escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self._splitter)
        escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        escape.activated.connect(self.summary.palette_view.clear)
        importing.started.connect(self._show_waiting)
        importing.imported.connect(self._show_result)
        importing.ended.connect(self._show_what_there_is)

    @Slot(object)
    def _filter(self, indices: NDArray[np.int64] | None) -> None:
        self.grid.set_visible(indices)
        of = "" if indices is None else f" ({len(indices):,})"
        self.tabs.setTabText(0, f"Sprites{of}")

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
    def _show_waiting(self) -> None:
        self._stack.setCurrentIndex(_WAITING)

    @Slot()
    def _show_what_there_is(self) -> None:
        self._stack.setCurrentIndex(_OPEN if self.session.importing.sprites is not None else _EMPTY)
        self.arrive()

    @Slot(object)
    def _show_result(self, result: SpritesImported) -> None:
        sprites = result.sprites
        self.grid.set_sprites(sprites.rgba, names=sprites.names, labels=sprites.labels, class_names=sprites.class_names)
        self.summary.show_result(result)
        self.left_out.show_items(result.quarantine)
        self.odd.show_items(result.notes)
        self.tabs.setTabText(1, f"Left out ({len(result.quarantine):,})" if result.quarantine else "Left out")
        self.tabs.setTabText(2, f"Worth a look ({len(result.notes):,})" if result.notes else "Worth a look")
        self._stack.setCurrentIndex(_OPEN)
