"""The dialog where the user gives tiles for a tile set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QMimeData, QSize, Slot
from PySide6.QtGui import QGuiApplication, QPainter, QPixmap
from PySide6.QtWidgets import QWidget

from studio.app import dialogs, keys
from studio.app.state.session import Session
from studio.app.widgets import factory, pasted
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.input import KeyCommands
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.cell_table import CellContent, GivenTable
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.pictures import are_filled
from studio.data.tiles.given import FREE, fix_given, name_places, place_tiles, sketch_tiles
from studio.data.tiles.layout import TRANSPARENT, TileSetSpec

_COLOURS = ((150, 110, 200), (240, 150, 60), (80, 190, 190), (215, 75, 110))  # RGB of the terrains in sketches
_ALPHA = 110  # alpha of sketches
_HELP = "Drop or paste your tiles, or a sheet of the set. The studio draws the other tiles to fit."
_TABLE = "The tiles of the set. Drop or paste images, press Enter to open a file, Del to clear."
_OPEN = "Open images: tiles, which start at the selected place, or a sheet of the set."
_WIDTH, _HEIGHT, _SMALLEST, _LARGEST = 600, 380, 16, 64  # logical pixels: size of the table, and limits for a tile
_SWATCH = QSize(12, 12)  # pixels of a terrain's colour
_MARGIN = 8  # logical pixels around a tile
_ROOM = QSize(100, 56)  # logical pixels for an error


class GivenTilesDialog(Dialog):
    """Takes tiles by drop, paste or file, and stores them in `session.given_tiles` if they fit together."""

    def __init__(self, parent: QWidget, session: Session, spec: TileSetSpec, size: int) -> None:
        """Create the dialog. size: side of a tile in pixels. Raises UsageError for tiles too small for the set."""
        super().__init__("Given tiles", parent)
        self._session, self._spec = session, spec
        terrains = [name or TRANSPARENT for name in spec.names]
        seen = [0 if name == TRANSPARENT else _ALPHA for name in terrains]
        colours = np.array([(*rgb, alpha) for rgb, alpha in zip(_COLOURS, seen, strict=False)], np.uint8)
        self._sketches, self._names = sketch_tiles(spec, size, colours), name_places(spec, size)
        given = session.given_tiles.of(spec, size)
        self.tiles: Rgba = np.zeros_like(self._sketches) if given is None else given
        self._target = FREE  # place of the first tile in the files
        self.table = GivenTable("")
        factory.set_name_and_tip(self.table, "Given tiles", _TABLE)
        self.error = factory.FieldError(self.table, _TABLE)
        self._hint = factory.caption("")
        self.open_files = factory.button("Open…", _OPEN, "open", slot=self._on_open_clicked)
        self.clear = factory.button("Clear", "Clear the selected places. (Del)", "trash", slot=self._on_clear)
        self.use = factory.button("Use tiles", "Draw the missing tiles with these.", "", "primary", self._on_done)
        self.use.setDefault(True)
        cancel = factory.button("Cancel", "Close without changes. (Esc)", slot=self.reject)
        legend = FlowLayout(2 * factory.GRID, factory.GRID, *map(_legend, terrains, colours.tolist()))
        buttons = factory.row(self.open_files, self.clear, 1, cancel, self.use)
        parts = (factory.caption(_HELP), factory.panel(legend), self.table, self._hint, self.error, 1, buttons)
        self.setLayout(factory.column(*parts, margin=2 * factory.GRID))
        KeyCommands(self.table, {}, {"Del": self._on_clear, "Backspace": self._on_clear})
        keys.shortcut("paste", self, self._on_paste)
        self.table.dropped.connect(self._on_dropped)
        self.table.opened.connect(self._on_opened)
        session.given_tiles.read.connect(self._on_read)
        session.given_tiles.refused.connect(self.error.show_reason)
        session.given_tiles.reading_changed.connect(self._on_reading_changed)
        self._show()
        self._on_reading_changed()
        self.resize((self.sizeHint() + _ROOM).boundedTo(parent.window().size()))
        self.table.setFocus()

    def take(self, data: QMimeData, target: int) -> bool:
        """Take dropped or pasted images or files. Return False for other data. target: place of the first tile."""
        paths, image = pasted.local_paths(data), pasted.image_in(data)
        if paths:
            self._target = target
            self._session.given_tiles.read_files(paths)
        elif image is not None:
            self._place([("The pasted image", image)], target)
        return bool(paths) or image is not None

    def _place(self, images: Sequence[tuple[str, Rgba]], target: int) -> None:
        try:
            self.tiles = place_tiles(self._spec, self.tiles, images, target)
        except UsageError as error:
            self.error.show_reason(f"{error.title} {error.hint}")
        else:
            self._show()

    def _show(self) -> None:
        """Show the given tiles, and sketches at the other places."""
        is_given = are_filled(self.tiles)
        layout, total = self._spec.layout(self.tiles.shape[1]), len(self.tiles)
        columns, none = layout.columns, np.zeros(total, np.bool_)
        sprites = np.where(is_given[:, None, None, None], self.tiles, self._sketches)
        table, rows = np.arange(total).reshape(-1, columns), ("",) * (total // columns)
        content = CellContent(sprites, table, rows, ("",) * columns, tuple(self._names), is_given, none, none)
        self.table.show_cells(content)
        self.table.horizontalHeader().hide()
        self.table.verticalHeader().hide()
        side = min(_WIDTH // columns, _HEIGHT // len(rows)) - _MARGIN
        self.table.set_side(min(max(side, _SMALLEST), _LARGEST))
        self._hint.setText(f"{is_given.sum():,} of {total:,} tiles given.")
        self.error.show_reason("")
        factory.set_enabled(self.clear, "" if is_given.any() else "No tile is given.")

    def _current(self) -> int:
        selected = self.table.selected()
        return selected[0] if selected else FREE

    @Slot(int, object)
    def _on_dropped(self, place: int, data: QMimeData) -> None:
        self.take(data, place if place >= 0 else FREE)

    @Slot()
    def _on_paste(self) -> None:
        if not self.take(QGuiApplication.clipboard().mimeData(), self._current()):
            self.error.show_reason("The clipboard has no image or file.")

    @Slot()
    def _on_open_clicked(self) -> None:
        self._on_opened(self._current())

    @Slot(int)
    def _on_opened(self, place: int) -> None:
        paths = dialogs.choose_files(self, self._session.settings, "Open tiles or a sheet")
        if paths:
            self._target = place
            self._session.given_tiles.read_files(paths)

    @Slot(object)
    def _on_read(self, images: Sequence[tuple[str, Rgba]]) -> None:
        self._place(images, self._target)

    @Slot()
    def _on_reading_changed(self) -> None:
        """Disable *Use tiles* while files are read: the dialog would close without their tiles."""
        factory.set_enabled(self.use, "Opening the files…" if self._session.given_tiles.is_reading() else "")

    @Slot()
    def _on_clear(self) -> None:
        self.tiles = self.tiles.copy()
        self.tiles[self.table.selected()] = 0
        self._show()

    @Slot()
    def _on_done(self) -> None:
        """Store the tiles and close, unless a tile shows the wrong terrain."""
        try:
            if self.tiles[..., 3].any():
                fix_given(self._spec, self.tiles)
        except UsageError as error:
            self.error.show_reason(f"{error.title} {error.hint}")
            return
        self._session.given_tiles.give(self._spec, self.tiles)
        self.accept()


def _legend(name: str, colour: Sequence[int]) -> QWidget:
    """Return a row with the colour and the name of a terrain."""
    mark, picture = factory.text(), QPixmap(_SWATCH)
    with QPainter(picture) as painter:
        draw_sprite(painter, picture.rect(), np.array([[colour]], np.uint8))
    mark.setPixmap(picture)
    return factory.panel(factory.row(mark, factory.text(name, "muted"), spacing=4))
