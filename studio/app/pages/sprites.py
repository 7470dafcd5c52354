"""The Sprites page: what the model will learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QSplitter, QStackedWidget, QTabWidget

from studio.app import parts
from studio.app.pages.base import Page
from studio.app.pages.cutting import CutView
from studio.app.pages.doctor import DoctorView
from studio.app.pages.opener import Opener
from studio.app.pages.selection import SelectionBar
from studio.app.pages.sheet_proposal import SheetProposal
from studio.app.pages.summary import Summary
from studio.app.pages.waiting import Waiting
from studio.app.pages.ways_to_cut import WaysToCut
from studio.app.session import Session
from studio.app.widgets.drop_zone import DropZone
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.core import wording
from studio.data.importing import SpritesImported

_EMPTY, _WAITING, _OPEN, _CUTTING = range(4)


class SpritesPage(Page):
    """Empty: a place to drop sprites. Then: the sprites, their classes and colours, and what deserves a look."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.drop_zone = DropZone()
        self._opener = Opener(session, self)
        self.waiting = Waiting(session.importing)
        self.summary = Summary(session)
        self.grid = SpriteGrid()
        self.selection = SelectionBar(self.grid, session.importing, session.doctor)
        self.doctor = DoctorView(session.importing, session.doctor)
        self.cutting = CutView(session.importing, session.dispatcher)
        self.proposal = SheetProposal(session.importing)
        self.tabs = QTabWidget()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._stack = QStackedWidget()
        self._ways = WaysToCut(session.importing, self.cutting, self.grid, self.summary.see_cells, self)
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
        self.tabs.addTab(parts.panel(parts.column(self.grid, self.selection, margin=parts.GRID)), "Sprites")
        self.tabs.addTab(self.doctor, "Doctor")
        body = parts.column(self.proposal, self.tabs)
        body.setStretchFactor(self.tabs, 1)
        body.setContentsMargins(parts.GRID, 2 * parts.GRID, 3 * parts.GRID, parts.GRID)
        self._splitter.addWidget(side)
        self._splitter.addWidget(parts.panel(body))
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([320, 900])
        self._splitter.restoreState(self.session.settings.layout("sprites"))
        zoom = self.session.settings.text("sprites_zoom", "2")
        self.grid.set_zoom(int(zoom) if zoom.isdecimal() else 2)
        for page in (self.drop_zone, self.waiting, self._splitter, self.cutting):
            self._stack.addWidget(page)
        self.setLayout(parts.column(self._stack))

    def _connect(self) -> None:
        importing = self.session.importing
        self.drop_zone.paths_dropped.connect(self._opener.open_paths)
        self.drop_zone.browse_requested.connect(self._opener.browse)
        self.drop_zone.demo_requested.connect(importing.open_demo)
        self.drop_zone.recent_chosen.connect(self._opener.open_path)
        self.summary.reopen.clicked.connect(self._opener.browse)
        self.summary.train.clicked.connect(self._go_to_training)
        self.summary.filtered.connect(self._filter)
        escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self._splitter)
        escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        escape.activated.connect(self.summary.palette_view.clear)
        self.doctor.files.cut_wanted.connect(self._ways.cut)
        self.proposal.cells_wanted.connect(self._ways.cut)
        self._ways.opened.connect(self._show_cutting)
        self.cutting.closed.connect(self._stop_cutting)
        importing.started.connect(self._show_waiting)
        importing.imported.connect(self._show_result)
        importing.ended.connect(self._show_what_there_is)
        self.session.doctor.changed.connect(self._count_findings)

    @Slot(object)
    def _filter(self, indices: NDArray[np.int64] | None) -> None:
        self.grid.set_visible(indices)
        of = "" if indices is None else f" ({len(indices):,})"
        self.tabs.setTabText(0, f"Sprites{of}")

    @Slot()
    def _go_to_training(self) -> None:
        self.page_wanted.emit("train")

    @Slot()
    def _show_waiting(self) -> None:
        self._stack.setCurrentIndex(_WAITING)

    @Slot()
    def _show_what_there_is(self) -> None:
        if self.cutting.is_open:
            self._stack.setCurrentIndex(_CUTTING)
            return
        self._stack.setCurrentIndex(_OPEN if self.session.importing.sprites is not None else _EMPTY)
        self.arrive()

    @Slot(object)
    def _show_result(self, result: SpritesImported) -> None:
        sprites = result.sprites
        self.grid.set_sprites(sprites.rgba, names=sprites.names, labels=sprites.labels, class_names=sprites.class_names)
        self.summary.show_result(result)
        if self.cutting.is_open:
            self.cutting.close_view()
            self.tabs.setCurrentIndex(0)
        self._stack.setCurrentIndex(_OPEN)

    @Slot()
    def _count_findings(self) -> None:
        found = len(self.session.doctor.findings)
        self.tabs.setTabText(1, f"Doctor ({found})" if found else "Doctor")
        self.tabs.setTabToolTip(1, f"{wording.count(found, 'kind')} of files and sprites that deserve a look.")

    @Slot()
    def _show_cutting(self) -> None:
        self._stack.setCurrentIndex(_CUTTING)

    @Slot()
    def _stop_cutting(self) -> None:
        self.cutting.close_view()
        self._show_what_there_is()
