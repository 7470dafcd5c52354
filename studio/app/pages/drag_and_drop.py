"""Drag sprites into other programs, or copy them to the clipboard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QByteArray, QMimeData, QObject, QPoint, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDrag, QGuiApplication, QPixmap

from studio.app.background.model_jobs import SpriteSelection
from studio.app.state.models.saving import DragFiles
from studio.app.widgets.sprites.list import SpriteList
from studio.app.widgets.sprites.painting import as_image
from studio.core import pictures
from studio.exports import sheets

_SHOWN = 64  # logical pixels of the drag image


def mime_data(picked: SpriteSelection, carried: DragFiles) -> QMimeData:
    """Return data for a drag or the clipboard: a file for each sprite, and an image of all. Raises OSError."""
    data, written = QMimeData(), carried.write(picked)
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in written])
    sheet = np.ascontiguousarray(pictures.tile(picked.sprites, min(sheets.COLUMNS, len(picked.sprites))))
    data.setImageData(as_image(sheet).copy())
    if len(written) == 1:  # some systems drop alpha from clipboard images, but not from file bytes
        data.setData("image/png", QByteArray(written[0].read_bytes()))
    return data


class SpriteDragger(QObject):
    """Drags or copies the selected sprites of a list. failed: the OSError that stopped the drag or copy."""

    failed = Signal(object)

    def __init__(self, view: SpriteList, carried: DragFiles, picked: Callable[[], SpriteSelection | None]) -> None:
        """Enable dragging in a list. picked: returns the selected sprites; None without a selection."""
        super().__init__(view)
        self._view, self._carried, self._picked = view, carried, picked
        view.can_drag = True
        view.drag_begun.connect(self.drag)

    @Slot()
    def drag(self) -> None:
        """Drag the selected sprites; return after the drop."""
        data, picked = self._data(), self._picked()
        if data is not None and picked is not None:
            dragged = QDrag(self._view)
            dragged.setMimeData(data)
            zoom = max(1, _SHOWN // len(picked.sprites[0]))
            sprite = np.ascontiguousarray(picked.sprites[0].repeat(zoom, 0).repeat(zoom, 1))
            shown = QPixmap.fromImage(as_image(sprite))
            dragged.setPixmap(shown)
            dragged.setHotSpot(QPoint(shown.width() // 2, shown.height() // 2))
            dragged.exec(Qt.DropAction.CopyAction)

    @Slot()
    def copy(self) -> None:
        """Copy the selected sprites; do nothing without a selection."""
        data = self._data()
        if data is not None:
            QGuiApplication.clipboard().setMimeData(data)

    def _data(self) -> QMimeData | None:
        """Return data of the selected sprites; None without a selection, or if writing their files failed."""
        picked = self._picked() if len(self._view.spans()) else None
        try:
            return mime_data(picked, self._carried) if picked is not None else None
        except OSError as error:
            self.failed.emit(error)
            return None
