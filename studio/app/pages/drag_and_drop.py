"""Drag sprites into other programs, or copy them to the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QByteArray, QMimeData, QObject, QPoint, QRect, QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QColor, QDrag, QGuiApplication, QPainter, QPixmap

from studio.app import theme
from studio.app.background.model_jobs import SpriteSelection
from studio.app.state.models.saving import DragFiles
from studio.app.widgets.sprites.cell_table import CellTable
from studio.app.widgets.sprites.list import SpriteList
from studio.app.widgets.sprites.painting import as_image
from studio.core import formatting, pictures
from studio.core.arrays import Rgba
from studio.exports import sheets

_SHOWN = 64  # pixels of the drag image
_OFFSET = 12  # logical pixels from the mouse to the drag image, which would hide the target of the drop
_PADDING = 8  # pixels beside the number of dragged sprites
_URLS, _IMAGE = "text/uri-list", "application/x-qt-image"


def mime_data(picked: SpriteSelection, carried: DragFiles) -> QMimeData:
    """Return data for a drag or the clipboard: a file for each sprite, and an image of all. Raises OSError."""
    data, written = QMimeData(), carried.write(picked)
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in written])
    sheet = np.ascontiguousarray(pictures.tile(picked.sprites, min(sheets.COLUMNS, len(picked.sprites))))
    data.setImageData(as_image(sheet).copy())
    if len(written) == 1:  # some systems drop alpha from clipboard images, but not from file bytes
        data.setData("image/png", QByteArray(written[0].read_bytes()))
    return data


class _DragData(QMimeData):
    """Data of a drag, made once the drop's target asks for it: writing thousands of sprites takes seconds."""

    def __init__(self, make: Callable[[], QMimeData | None]) -> None:
        """Create the data. make: returns URLs and an image; None after an error."""
        super().__init__()
        self._make = make
        self._made: QMimeData | None = None

    def formats(self) -> list[str]:
        return [_URLS, _IMAGE]

    def hasFormat(self, mimetype: str) -> bool:
        return mimetype in self.formats()

    def retrieveData(self, mimetype: str, kind: object) -> Any:
        if self._made is None:
            self._made = self._make() or QMimeData()
        return {_URLS: self._made.urls, _IMAGE: self._made.imageData}[mimetype]() if self.hasFormat(mimetype) else None


def _drag_image(sprite: Rgba, count: int) -> QPixmap:
    """Return the sprite enlarged, with the number of dragged sprites if there are several."""
    zoom = max(1, _SHOWN // len(sprite))
    shown = QPixmap.fromImage(as_image(np.ascontiguousarray(sprite.repeat(zoom, 0).repeat(zoom, 1))))
    if count > 1:
        with QPainter(shown) as painter:
            text, colours = formatting.number(count), theme.colours()
            size = painter.fontMetrics().size(0, text) + QSize(_PADDING, 0)
            badge = QRect(QPoint(0, 0), size)
            badge.moveBottomRight(shown.rect().bottomRight())
            painter.fillRect(badge, QColor(colours.accent))
            painter.setPen(QColor(colours.on_accent))
            painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, text)
    return shown


class SpriteDragger(QObject):
    """Drags or copies the selected sprites of a list. failed: the OSError that stopped the drag or copy."""

    failed = Signal(object)

    def __init__(
        self, view: SpriteList | CellTable, carried: DragFiles, picked: Callable[[], SpriteSelection | None]
    ) -> None:
        """Enable dragging in a list. picked: returns the selected sprites; None without a selection."""
        super().__init__(view)
        self._view, self._carried, self._picked = view, carried, picked
        view.drag.is_enabled = True
        view.drag.begun.connect(self.drag)

    @Slot()
    def drag(self) -> None:
        """Drag the selected sprites; return after the drop. Files are written only for a drop in another program."""
        picked = self._picked() if len(self._view.spans()) else None
        dragged = QDrag(self._view)
        dragged.setMimeData(_DragData(partial(self._write, picked)) if picked is not None else QMimeData())
        if picked is not None:
            dragged.setPixmap(_drag_image(picked.sprites[0], len(picked.sprites)))
            dragged.setHotSpot(QPoint(-_OFFSET, -_OFFSET))
        dragged.exec(Qt.DropAction.CopyAction)

    @Slot()
    def copy(self) -> None:
        """Copy the selected sprites; do nothing without a selection."""
        picked = self._picked() if len(self._view.spans()) else None
        data = self._write(picked) if picked is not None else None
        if data is not None:
            QGuiApplication.clipboard().setMimeData(data)

    def _write(self, picked: SpriteSelection) -> QMimeData | None:
        """Write the sprites' files and return their data; None if that failed."""
        try:
            return mime_data(picked, self._carried)
        except OSError as error:
            self.failed.emit(error)
            return None
