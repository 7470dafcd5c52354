"""Dropped and pasted data: files and folders, or an image, which is saved as a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from studio.core import files, paths
from studio.core.arrays import Rgba
from studio.exports.png import encode_png


def local_paths(data: QMimeData) -> list[Path]:
    """Return the local files and folders in a drop or in the clipboard."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


def can_open(data: QMimeData) -> bool:
    """Return whether the data holds local files, folders or an image."""
    return bool(local_paths(data)) or data.hasImage()


def image_in(data: QMimeData) -> Rgba | None:
    """Return the image in the data, uint8 [H, W, 4]; None without a readable image."""
    image = QImage(data.imageData()) if data.hasImage() else QImage()
    if image.isNull():
        return None
    converted = image.convertToFormat(QImage.Format.Format_RGBA8888)
    rows = np.frombuffer(converted.constBits(), np.uint8).reshape(converted.height(), converted.bytesPerLine())
    return rows[:, : 4 * converted.width()].reshape(converted.height(), converted.width(), 4).copy()


def paths_in(data: QMimeData) -> list[Path]:
    """Return the local files and folders; for an image, save a PNG file and return its path. Raises OSError.

    The file stays in the studio's data folder, because changed import settings read it again.
    """
    found, image = local_paths(data), image_in(data)
    if found or image is None:
        return found
    png = encode_png(image)
    path = paths.pasted() / f"pasted-{hashlib.sha256(png).hexdigest()[:8]}.png"  # equal images make one file
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, png)
    return [path]
