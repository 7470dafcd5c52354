"""Sprites carried into other programs: dragged out of the window, or by the clipboard."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PySide6.QtCore import QByteArray, QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDrag, QGuiApplication, QPixmap
from PySide6.QtWidgets import QWidget

from studio.app.background.model_jobs import SpriteSelection
from studio.app.widgets.sprites.painting import as_image
from studio.core import files, pictures
from studio.core.events import Rgba

_MOST_FILES = 64  # sprites; more are carried as one sheet: to write so many would be felt
_SHOWN = 64  # logical pixels, under the mouse
_COLUMNS = 8


class Carrier:
    """Makes of sprites what other programs take: files, in a folder that is there as long as this is, and a picture."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # made when it is needed
        self._times = 0

    def mime(self, picked: SpriteSelection) -> QMimeData:
        """The picture of one sprite, or of all as a sheet, and a file of each. Raises OSError."""
        data = QMimeData()
        written = self._write(picked)
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in written])
        picture = np.ascontiguousarray(_picture(picked.sprites))
        data.setImageData(as_image(picture).copy())
        if len(written) == 1:  # the clipboard of some systems has no alpha: the file's bytes have
            data.setData("image/png", QByteArray(written[0].read_bytes()))
        return data

    def copy(self, picked: SpriteSelection) -> None:
        """Put the sprites into the clipboard. Raises OSError."""
        QGuiApplication.clipboard().setMimeData(self.mime(picked))

    def drag(self, picked: SpriteSelection, source: QWidget) -> None:
        """Let the user drop the sprites somewhere; ends when that is done. Raises OSError."""
        drag = QDrag(source)
        drag.setMimeData(self.mime(picked))
        first = np.ascontiguousarray(picked.sprites[0])
        zoom = max(1, _SHOWN // len(first))
        shown = QPixmap.fromImage(as_image(np.ascontiguousarray(first.repeat(zoom, 0).repeat(zoom, 1))))
        drag.setPixmap(shown)
        drag.setHotSpot(QPoint(shown.width() // 2, shown.height() // 2))
        drag.exec(Qt.DropAction.CopyAction)

    def _write(self, picked: SpriteSelection) -> list[Path]:
        """Into a folder of its own: what was dragged before may still be read. Nothing waits for the disk."""
        from studio.exports.png import encoded, text_chunks

        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sprites-", ignore_cleanup_errors=True)
        self._times += 1
        folder, written = Path(self._folder.name) / str(self._times), list[Path]()
        folder.mkdir()
        shown = list(zip(picked.sprites, picked.names, strict=True))
        if len(shown) > _MOST_FILES:
            shown = [(_picture(picked.sprites), "sprites")]
        for pixels, name in shown:
            written.append(files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png"))
            written[-1].write_bytes(encoded(pixels, text_chunks(picked.about)))
        return written


def _picture(sprites: Rgba) -> Rgba:
    return pictures.tile(sprites, min(_COLUMNS, len(sprites)))
