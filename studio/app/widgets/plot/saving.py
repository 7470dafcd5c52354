"""A plot as a file: PNG, SVG, or its numbers as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QColor, QImage, QPainter, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.widgets.plot.series import Curve
from studio.app.widgets.plot.time_plot import TimePlot
from studio.core.errors import UsageError
from studio.core.files import atomic_path, write_atomic

Column = tuple[str, Curve]

_MARGIN = 12
_SCALE = 2  # pixels of a PNG to one on the screen


def save(plot: TimePlot, columns: Sequence[Column], path: Path) -> None:
    """Write the plot as it is on show, or `columns` as a table. Raises OSError, or UsageError for another suffix."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_atomic(path, table(columns).encode())
        return
    if suffix not in (".png", ".svg"):
        raise UsageError(f"A plot can't be saved as '{suffix}'.", "Choose a name that ends in .png, .svg or .csv.")
    plot.refresh(_SCALE)
    with atomic_path(path) as temporary:
        (_write_png if suffix == ".png" else _write_svg)(plot, temporary)
    plot.refresh()


def table(columns: Sequence[Column]) -> str:
    """One line for every step of any column; a field is empty where a column has no value."""
    steps = np.unique(np.concatenate([np.zeros(0), *(curve.steps for _, curve in columns)]))
    fields = [[f"{step:.0f}" for step in steps.tolist()]]
    for _, curve in columns:
        texts = [""] * len(steps)
        places = np.searchsorted(steps, curve.steps)
        for place, value in zip(places.tolist(), curve.values.tolist(), strict=True):
            texts[place] = f"{value:.9g}"  # as much as a float32 holds
        fields.append(texts)
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(["step", *(name for name, _ in columns)])
    return head.getvalue() + "".join(",".join(line) + "\n" for line in zip(*fields, strict=True))


def _size(plot: TimePlot) -> QSize:
    return plot.size() + QSize(2 * _MARGIN, 2 * _MARGIN)


def _write_png(plot: TimePlot, path: Path) -> None:
    image = QImage(_size(plot) * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    painter = QPainter(image)
    plot.area.restyle(_SCALE / plot.devicePixelRatioF())
    _paint(painter, plot)
    plot.area.restyle()
    painter.end()
    if not image.save(str(path), "PNG"):  # type: ignore[call-overload]  # the stubs ask for bytes, Qt for text
        raise OSError(f"Can't write {path}.")


def _write_svg(plot: TimePlot, path: Path) -> None:
    """pyqtgraph's own exporter fails with current versions of Qt."""
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(_size(plot))
    generator.setViewBox(QRect(QPoint(), _size(plot)))
    generator.setTitle(plot.area.canvas.accessibleName())
    painter = QPainter()
    if not painter.begin(generator):
        raise OSError(f"Can't write {path}.")
    _paint(painter, plot)
    painter.end()


def _paint(painter: QPainter, plot: TimePlot) -> None:
    """Legend and curves on the ground of the curves, without the page around them."""
    painter.fillRect(QRect(QPoint(), _size(plot)), QColor(theme.colours().surface))
    for part in (plot.legend, plot.area):
        place = part.mapTo(plot, QPoint()) + QPoint(_MARGIN, _MARGIN)
        part.render(painter, place, QRegion(), QWidget.RenderFlag.DrawChildren)
