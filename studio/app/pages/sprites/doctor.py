"""The doctor: a list of problems in files and sprites, with fixes."""

import itertools
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QSignalBlocker, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QHeaderView,
    QListWidget,
    QListWidgetItem,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from studio.app.pages.sprites.class_menu import ClassMover
from studio.app.pages.sprites.fix_preview import FixPreview
from studio.app.state.sprites.doctor import SpriteDoctor
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.cell_view import Index
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core.arrays import Rgba
from studio.core.formatting import count, number
from studio.data.doctor.findings import Finding
from studio.data.doctor.preview import changes_pixels
from studio.data.files.source_files import ImportIssue
from studio.data.import_result import SHEET_GROUPS
from studio.data.sprites import Sprites

_MOST_FIXES = 2
_NARROW, _UNLIMITED = 560, 16_777_215  # logical pixels
_LEAST_HEIGHT = 160  # of the sprites, in logical pixels; in a low window the view scrolls
_CAPTION = 200  # logical pixels, for two classes below a sprite
_MOST_SHOWN = 2_000  # more sprites would block the window
_FIX = "Fix the training data. Your files are not changed, and Undo reverts the fix."
_UNDO = "Nothing to undo."
_GROUP = Qt.ItemDataRole.UserRole


class DoctorView(QWidget):
    """The doctor's findings, and advice, fixes, sprites or files of the chosen finding."""

    slice_requested = Signal(str)  # name of a sheet to preview

    def __init__(self, open_sprites: OpenSprites, doctor: SpriteDoctor) -> None:
        super().__init__()
        self._open_sprites, self._doctor = open_sprites, doctor
        self._finding: Finding | None = None
        self._shown: Rgba = np.zeros((0, 1, 1, 4), np.uint8)  # the shown sprites before fixing
        self._indices = np.zeros(0, np.int64)  # of the shown sprites among the open sprites
        self._names: list[str] = []
        self._shown_of: Sprites | None = None
        self._chosen: tuple[str, bool] = ("", False)  # group and left_out of the chosen finding
        self._chosen_row = 1
        self._is_listing = False
        self.groups = QListWidget()
        self.groups.setMinimumWidth(150)
        self.groups.setWordWrap(True)
        self.groups.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        factory.set_name_and_tip(self.groups, "Findings", "Choose a finding to see its files or sprites.")
        self.fixes = tuple(factory.button("Fix", _FIX) for _ in range(_MOST_FIXES))
        self._fix_group = QButtonGroup(self)
        tip = "Exclude the selected sprites from training."
        self.exclude = factory.button("Exclude selected", tip, slot=self._on_exclude_clicked)
        tip = "Include only the selected sprites again."
        self.include = factory.button("Include selected", tip, slot=self._on_include_clicked)
        tip = "Preview the sheet's cells and adjust them."
        self.preview_slicing = factory.button("Preview slicing…", tip, slot=self._on_preview_clicked)
        self.undo = factory.button("Undo", _UNDO, slot=open_sprites.history.undo)
        self.grid, self.files, self.preview = SpriteGrid(caption=_CAPTION), FileTable(), FixPreview(doctor)
        self._class_mover = ClassMover(self.grid, open_sprites, self._selected_indices)
        self._title, self._advice = factory.text("", "heading"), factory.caption("")
        self._empty = factory.text("", "muted")
        self._pages = factory.stack(self.grid, self.files)
        buttons = FlowLayout(
            factory.GRID, factory.GRID, *self.fixes, self.include, self.preview_slicing, self.exclude, self.undo
        )
        parts = (self._title, self._advice, buttons, self.preview, self._pages)
        side = factory.scroll_area(factory.panel(factory.column(*parts, grows=4)))
        self._pages.setMinimumHeight(_LEAST_HEIGHT)
        self._halves = factory.row(self.groups, side, grows=1)
        found = factory.panel(self._halves)
        self._stack = factory.stack(factory.panel(factory.column(self._empty, 1)), found)
        self.setLayout(factory.column(self._stack, margin=factory.GRID))
        self.groups.currentItemChanged.connect(self._on_finding_chosen)
        for index, button in enumerate(self.fixes):
            self._fix_group.addButton(button, index)
        self._fix_group.idClicked.connect(self._on_fix_clicked)
        self.files.slice_requested.connect(self.slice_requested)
        self.files.selectionModel().selectionChanged.connect(self._refresh_buttons)
        self.preview.pixels_changed.connect(self.grid.replace_pixels)
        self.grid.selection_changed.connect(self._on_selection_changed)
        self.grid.activated.connect(self.grid.open_large)
        self._stale = False
        doctor.changed.connect(self._refresh)
        open_sprites.history.changed.connect(self._refresh_undo)
        for part in (*self.fixes, self.include, self.preview_slicing, self.exclude):
            part.hide()  # until a finding needs them
        self._refresh_undo()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the findings beside their details; in a narrow view, above their details."""
        super().resizeEvent(event)
        is_narrow = self.width() < _NARROW
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.TopToBottom if is_narrow else directions.LeftToRight)
        self.groups.setMaximumSize(_UNLIMITED if is_narrow else 216, 104 if is_narrow else _UNLIMITED)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:  # the findings changed while the view was hidden
            self._refresh()

    @Slot()
    def _refresh(self) -> None:
        """List the findings again and keep the chosen one; a hidden view waits until shown."""
        self._stale = not self.isVisible()
        if self._stale:
            return
        self._is_listing = True
        scrolled = self.groups.verticalScrollBar().value()
        with QSignalBlocker(self.groups):
            self.groups.clear()
            heading: bool | None = None
            for index, finding in enumerate(self._doctor.findings):
                if finding.left_out != heading:
                    heading = finding.left_out
                    self.groups.addItem(factory.list_heading("Skipped" if heading else "Worth a look"))
                item = QListWidgetItem(f"{finding.title.capitalize()} ({number(len(finding.items))})", self.groups)
                item.setData(_GROUP, (finding.group, finding.left_out, index))
        self._empty.setText("Checking the sprites…" if self._doctor.is_checking else "No problems found.")
        self._stack.setCurrentIndex(1 if self._doctor.findings else 0)
        self.groups.setCurrentRow(self._row_to_select())
        self._is_listing = False
        self.groups.verticalScrollBar().setValue(scrolled)

    def _row_to_select(self) -> int:
        """Return the chosen finding's row. If it was fixed, return the nearest row; -1 for an empty list."""
        found = {row: data for row in range(self.groups.count()) if (data := self.groups.item(row).data(_GROUP))}
        same = [row for row, data in found.items() if data[:2] == self._chosen]
        return same[0] if same else min(found, key=lambda row: abs(row - self._chosen_row), default=-1)

    @Slot()
    def _on_finding_chosen(self) -> None:
        item = self.groups.currentItem()
        data = item.data(_GROUP) if item else None
        if data is None:
            return
        if not (self._is_listing and self._doctor.is_checking):  # a missing finding may come back in a check
            self._chosen, self._chosen_row = data[:2], self.groups.currentRow()
        before, finding = self._finding, self._doctor.findings[data[2]]
        self._finding = finding
        if before is not None and self._shown_of is self._open_sprites.sprites and before.items == finding.items:
            self._refresh_buttons()
            return  # keep selection, scroll position and preview
        cut = f" Only the first {_MOST_SHOWN:,} are shown." if len(finding.items) > _MOST_SHOWN else ""
        self._advice.setText(finding.advice + ("" if finding.left_out else cut))
        self._show_items(finding)
        fixes = (fix for fix in finding.fixes if changes_pixels(fix, self._open_sprites.options))
        self.preview.set_fix(next(fixes, None), self._indices, self._shown)
        noun = ("sprite", "sprites") if self._pages.currentWidget() is self.grid else ("entry", "entries")
        noun = ("file", "files") if finding.left_out else noun
        self._title.setText(f"{finding.title.capitalize()}: {count(len(finding.items), *noun)}")
        self._refresh_buttons()

    def _show_items(self, finding: Finding) -> None:
        """Show a finding's sprites, each after its similar sprite; show a table if an entry isn't an open sprite."""
        sprites = self._shown_of = self._open_sprites.sprites
        assert sprites is not None
        shown = finding.items[:_MOST_SHOWN]
        wanted = {name for item in shown for name in (item.name, item.twin)}
        indices_by_name = {name: index for index, name in enumerate(sprites.names) if name in wanted}
        in_pictures = all(item.name in indices_by_name for item in shown)
        self._pages.setCurrentWidget(self.grid if in_pictures else self.files)
        self._shown, self._names, self._indices = sprites.rgba[:0], [], np.zeros(0, np.int64)
        if not in_pictures:
            self.files.show_items(finding.items)
            return
        rows: list[tuple[int, str]] = []
        for item in shown:
            if item.twin in indices_by_name:
                rows.append((indices_by_name[item.twin], f"similar to {item.name}"))
            rows.append((indices_by_name[item.name], item.reason))
        indices = self._indices = np.array([index for index, _ in rows], np.int64)
        self._shown = sprites.rgba[indices]
        self._names, reasons = [sprites.names[index] for index in indices], [reason for _, reason in rows]
        captions: list[str] = []
        if finding.group == "wrong class":  # below a similar sprite, its class
            classes = [sprites.class_names[label] for label in sprites.labels[indices].tolist()]
            wrong = {item.name: item.reason for item in shown}
            captions = [wrong.get(name, own) for name, own in zip(self._names, classes, strict=True)]
        labels = np.arange(len(rows))
        self.grid.set_sprites(self._shown, self._names, captions, labels=labels, class_names=reasons)

    @Slot()
    def _refresh_buttons(self) -> None:
        fixes = self._finding.fixes[:_MOST_FIXES] if self._finding else ()
        for button, fix in itertools.zip_longest(self.fixes, fixes):
            button.setVisible(fix is not None)
            if fix is not None:
                factory.set_button_text(button, fix.title)
        self.preview_slicing.setVisible(self._finding is not None and self._finding.group in SHEET_GROUPS)
        self.include.setVisible(self._finding is not None and self._finding.group == "chosen")
        factory.set_enabled(self.include, "" if self.files.selected() else "Select some rows first.")
        self.exclude.setVisible(self._pages.currentWidget() is self.grid)
        factory.set_enabled(self.exclude, "" if self.grid.selected_count() else "Select some sprites first.")

    @Slot()
    def _refresh_undo(self) -> None:
        latest = self._open_sprites.history.latest
        factory.set_enabled(self.undo, _UNDO if latest is None else "", f"Undo {latest.title}." if latest else "")

    @Slot()
    def _on_selection_changed(self) -> None:
        self._refresh_buttons()
        if self.grid.selected_count():
            self.preview.select(self.grid.selected()[0])

    @Slot(int)
    def _on_fix_clicked(self, index: int) -> None:
        assert self._finding is not None
        self._doctor.apply(self.preview.chosen(self._finding.fixes[index]))

    @Slot()
    def _on_preview_clicked(self) -> None:
        """Preview the slicing of the selected sheet, or of the first sheet."""
        if self._pages.currentWidget() is self.grid:
            self.slice_requested.emit(self._names[next(iter(self.grid.selected()), 0)])
        else:
            self.files.open_chosen()

    def _selected_indices(self) -> list[int]:
        """Return the indices of the selected sprites among the open sprites."""
        chosen: list[int] = self._indices[self.grid.selected()].tolist()
        return chosen

    @Slot()
    def _on_exclude_clicked(self) -> None:
        self._doctor.exclude([self._names[index] for index in self.grid.selected()])

    @Slot()
    def _on_include_clicked(self) -> None:
        assert self._finding is not None
        self._doctor.include(self.files.selected(), [item.name for item in self._finding.items])


_HEADERS = ("File", "Problem")
_MEASURED = 100  # rows; measuring a million would block the window


class _FileModel(QAbstractTableModel):
    """Table model of files. Fast even with a million rows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: Sequence[ImportIssue] = ()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(_HEADERS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        item = self.rows[index.row()]
        return (item.name, item.reason)[index.column()]

    def headerData(self, section: int, side: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        return _HEADERS[section] if role == Qt.ItemDataRole.DisplayRole and side == Qt.Orientation.Horizontal else None


class _Elider(QStyledItemDelegate):
    """Delegate that keeps the end of a path in sight: it names the file."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        if index.column() == 0:  # the end of a path tells the file
            is_path = "/" in option.text
            option.textElideMode = Qt.TextElideMode.ElideLeft if is_path else Qt.TextElideMode.ElideMiddle
        elif "/" in option.text:  # 'duplicate of orcs/mage.png'
            option.textElideMode = Qt.TextElideMode.ElideMiddle


class FileTable(QTableView):
    """A table of files. A double click previews a sheet's slicing, or opens another file's folder."""

    slice_requested = Signal(str)  # name of a sheet

    def __init__(self) -> None:
        super().__init__()
        self._model = _FileModel(self)
        self.setModel(self._model)
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setWordWrap(False)  # a row has one line, and a path would end after its folder
        self.setItemDelegate(_Elider(self))
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setResizeContentsPrecision(_MEASURED)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.horizontalHeader().setHighlightSections(False)
        tip = "Double-click a sheet to preview its slicing, or a file to open its folder."
        factory.set_name_and_tip(self, "Files", tip)
        self.activated.connect(self._on_activated)

    def show_items(self, items: Sequence[ImportIssue]) -> None:
        self._model.beginResetModel()
        self._model.rows = items
        self._model.endResetModel()
        self._share_width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()

    def _share_width(self) -> None:
        """Give the files all the width that the problems leave, or what they need up to three fifths."""
        free, file, problem = self.viewport().width(), self.sizeHintForColumn(0), self.sizeHintForColumn(1)
        self.setColumnWidth(0, max(free - problem, min(file, free * 3 // 5)))

    def selected(self) -> list[str]:
        """Return the names in the selected rows."""
        return [self._model.rows[index.row()].name for index in self.selectionModel().selectedRows()]

    @Slot()
    def open_chosen(self) -> None:
        """Open the selected file as by double click, or the first file without a selection."""
        self._on_activated(self.currentIndex() if self.currentIndex().isValid() else self._model.index(0, 0))

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        item = self._model.rows[index.row()]
        if item.group in SHEET_GROUPS:
            self.slice_requested.emit(item.name)
        elif item.path is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(item.path.parent)))
