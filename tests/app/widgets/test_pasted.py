"""Files and images in a drop or in the clipboard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from PySide6.QtCore import QMimeData, QUrl
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from studio.app.widgets import pasted
from studio.core import paths


def with_image(image: QImage) -> QMimeData:
    data = QMimeData()
    data.setImageData(image)
    return data


def test_files_and_folders_are_opened_where_they_are(qtbot: QtBot, tmp_path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path)), QUrl("https://example.org/a.png")])
    assert pasted.can_open(data) and pasted.paths_in(data) == [tmp_path]
    data.setUrls([QUrl("https://example.org/a.png")])
    assert not pasted.can_open(data) and pasted.paths_in(data) == []


def test_an_image_becomes_one_file_with_its_alpha(qtbot: QtBot) -> None:
    image = QImage(3, 2, QImage.Format.Format_ARGB32)
    image.fill(QColor(10, 20, 30, 40))
    assert pasted.can_open(with_image(image))
    (path,) = pasted.paths_in(with_image(image))
    assert path.parent == paths.pasted() and pasted.paths_in(with_image(image.copy())) == [path]
    np.testing.assert_array_equal(np.asarray(Image.open(path)), np.full((2, 3, 4), (10, 20, 30, 40)))
    image.setPixelColor(0, 0, QColor("red"))
    assert pasted.paths_in(with_image(image)) != [path]


def test_an_unreadable_image_opens_nothing(qtbot: QtBot) -> None:
    assert pasted.image_in(with_image(QImage())) is None and pasted.paths_in(with_image(QImage())) == []
