"""The Sprites page: open a folder, view the sprites, check them and slice sheets."""

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QSplitter, QTabWidget, QWidget

from studio.app import dialogs, keys
from studio.app.pages.base import Page
from studio.app.pages.sprites.attribute_offer import AttributeOffer
from studio.app.pages.sprites.browser import SpriteBrowser
from studio.app.pages.sprites.doctor import DoctorView
from studio.app.pages.sprites.reopened_line import ReopenedLine
from studio.app.pages.sprites.settings_bar import ChangedSettingsBar
from studio.app.pages.sprites.slice_proposals import SliceOpener, SliceProposal
from studio.app.pages.sprites.slice_view import SliceView
from studio.app.pages.sprites.summary import ImportSummary
from studio.app.state.session import Session
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.drop_zone import DropZone
from studio.core.events import Progress
from studio.core.formatting import count
from studio.data.importing.importing import SpritesImported

_EMPTY, _WAITING, _OPEN, _CUTTING = range(4)


class SpritesPage(Page):
    """The Sprites page: a drop zone while empty, else the sprites, their classes and colours, and the doctor."""

    topic = "sprites"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.history = session.open_sprites.history
        self.drop_zone = DropZone()
        self.waiting = ImportProgress(session.open_sprites)
        self.summary = ImportSummary(session)
        self.browser = SpriteBrowser(session)
        self.grid, self.selection = self.browser.grid, self.browser.selection
        self.doctor = DoctorView(session.open_sprites, session.doctor)
        self.cutting = SliceView(session.open_sprites, session.sheets)
        self.proposal = SliceProposal(session.open_sprites)
        self.attribute_offer = AttributeOffer(session.open_sprites)
        self.reopened = ReopenedLine(session.open_sprites)
        self.tabs = QTabWidget()
        factory.name_tabs(self.tabs, "Sprite tabs", "Switch between the sprites and their problems.")
        self.changed_settings = ChangedSettingsBar(self.summary, session.open_sprites, session.import_preview)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._stack = factory.stack(self.drop_zone, self.waiting, self._splitter, self.cutting)
        self._shown_paths: tuple[Path, ...] = ()
        self._ways = SliceOpener(session.open_sprites, self.cutting, self.grid, self.summary.preview_slicing, self)
        side = factory.scroll_area(self.summary)
        side.setMinimumWidth(280)
        self.tabs.addTab(self.browser, "Sprites")
        self.tabs.addTab(self.doctor, "Doctor")
        margin = (factory.GRID, factory.GRID, 3 * factory.GRID, factory.GRID)
        lines = (self.reopened, self.proposal, self.attribute_offer)
        body = factory.column(*lines, self.tabs, self.changed_settings, margin=margin, grows=len(lines))
        parts, layout = (side, factory.panel(body)), self.session.settings.layout("sprites")
        factory.fill_splitter(self._splitter, parts, (320, 900), layout, stretch=1)
        self.setLayout(factory.column(self._stack))
        self._connect(session.open_sprites)
        session.doctor.changed.connect(self._on_doctor_changed)
        self.before_show()

    def _connect(self, open_sprites: OpenSprites) -> None:
        self.drop_zone.paths_chosen.connect(open_sprites.open_paths)
        self.drop_zone.browse_requested.connect(self._on_browse_requested)
        self.drop_zone.demo_requested.connect(open_sprites.open_demo)
        self.summary.reopen.clicked.connect(self._on_browse_requested)
        self.summary.train.clicked.connect(self._on_train_clicked)
        self.selection.edit_requested.connect(self._on_edit_requested)
        self.summary.filtered.connect(self._on_filtered)
        self.summary.classes.accept_drops_from(self.grid.view)
        self.summary.classes.sprites_dropped.connect(self.selection.move_to_class)
        self.browser.filtered.connect(self._on_browser_filtered)
        self.browser.all_requested.connect(self.summary.show_all)
        keys.fixed_shortcut("Esc", self._splitter, self._on_escape)
        keys.shortcut("find", self._splitter, self._on_find)
        self.doctor.slice_requested.connect(self._ways.open_sheet)
        self.proposal.show_table.clicked.connect(self._on_show_table_clicked)
        self.proposal.characters_sliced.connect(self._on_show_table_clicked)
        self.proposal.orders.chosen.connect(self.browser.refresh_names)
        self.browser.view_changed.connect(self._on_view_changed)
        self.proposal.cells_requested.connect(self._ways.open_sheet)
        self._ways.opened.connect(self._on_slicing_opened)
        self.cutting.closed.connect(self._on_slicing_closed)
        open_sprites.started.connect(self._on_import_started)
        open_sprites.imported.connect(self._on_imported)
        open_sprites.ended.connect(self._on_import_ended)

    def before_show(self) -> None:
        self.drop_zone.set_recent(self.session.settings.recent())

    def save_state(self) -> None:
        self.session.settings.set_layout("sprites", self._splitter.saveState())
        self.browser.save_state()
        self.summary.palette_view.save_state()

    @Slot()
    def _on_browse_requested(self) -> None:
        path = dialogs.choose_folder(self, self.session.settings, "Open folder")
        if path is not None:
            self.session.open_sprites.open_paths([path])

    @Slot()
    def _on_filtered(self) -> None:
        self.browser.choose(self.summary.indices)

    @Slot()
    def _on_browser_filtered(self) -> None:
        shown = self.browser.shown_count()
        self.tabs.setTabText(0, "Sprites" if shown is None else f"Sprites ({shown:,})")

    @Slot()
    def _on_escape(self) -> None:
        """Clear the search, or else the chosen colour."""
        if self.browser.clear_search():
            self.grid.setFocus()
        else:
            self.summary.palette_view.clear()

    @Slot()
    def _on_find(self) -> None:
        self.tabs.setCurrentIndex(0)
        self.browser.focus_search()

    @Slot()
    def _on_show_table_clicked(self) -> None:
        self.tabs.setCurrentIndex(0)
        self.browser.show_table()

    @Slot()
    def _on_view_changed(self) -> None:
        self.proposal.set_table_shown(self.browser.shows_table())

    @Slot()
    def _on_train_clicked(self) -> None:
        self.page_requested.emit("train")

    @Slot()
    def _on_edit_requested(self) -> None:
        self.page_requested.emit("generate")

    @Slot()
    def _on_import_started(self) -> None:
        self._stack.setCurrentIndex(_WAITING)

    @Slot()
    def _on_import_ended(self) -> None:
        if self.cutting.is_open:
            self._stack.setCurrentIndex(_CUTTING)
            return
        self._stack.setCurrentIndex(_OPEN if self.session.open_sprites.sprites is not None else _EMPTY)
        self.before_show()

    @Slot(object)
    def _on_imported(self, result: SpritesImported) -> None:
        paths = self.session.open_sprites.paths
        is_same = paths == self._shown_paths
        with QSignalBlocker(self.summary):  # the browser does not show the chosen sprites yet
            self.summary.show_result(result, keeps_class=is_same)
        self.browser.show_sprites(result.sprites, self.summary.indices, is_same=is_same)
        if self.cutting.is_open or not is_same:
            self.tabs.setCurrentIndex(0)
        if self.cutting.is_open:
            self.cutting.close_view()
        self._shown_paths = paths
        self._stack.setCurrentIndex(_OPEN)

    @Slot()
    def _on_doctor_changed(self) -> None:
        found = len(self.session.doctor.findings)
        self.tabs.setTabText(1, f"Doctor ({found})" if found else "Doctor")
        self.tabs.setTabToolTip(1, f"{count(found, 'kind')} of problems found.")

    @Slot()
    def _on_slicing_opened(self) -> None:
        self._stack.setCurrentIndex(_CUTTING)

    @Slot()
    def _on_slicing_closed(self) -> None:
        self.cutting.close_view()
        self._on_import_ended()


class ImportProgress(QWidget):
    """The import's progress, with a Cancel button."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        super().__init__()
        tip = "Stop importing and keep the open sprites."
        self.cancel = factory.button("Cancel", tip, slot=open_sprites.cancel)
        self._label = factory.ElidedLabel("heading")
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._bar = factory.ProgressBar("Files read so far.")
        self._bar.setFixedWidth(320)
        bar, cancel = factory.row(1, self._bar, 1), factory.row(1, self.cancel, 1)
        self.setLayout(factory.column(1, self._label, bar, cancel, 1, spacing=2 * factory.GRID))
        open_sprites.started.connect(self._on_started)
        open_sprites.progressed.connect(self._on_progressed)

    @Slot()
    def _on_started(self) -> None:
        self._label.show_text("Reading sprites…")
        self._bar.show_busy()

    @Slot(object)
    def _on_progressed(self, progress: Progress) -> None:
        self._label.show_text(progress.text())
        self._bar.show_progress(progress)
