"""Saves a plot as PNG, SVG or CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QImage, QPainter, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.widgets.plot.canvas import PlotCanvas
from studio.app.widgets.plot.series import Columns
from studio.core.errors import UsageError
from studio.core.files import atomic_path, write_atomic

SCALE = 2  # PNG pixels for a logical pixel

_MARGIN = 12


def save(legend: QWidget, canvas: PlotCanvas, columns: Columns, path: Path) -> None:
    """Save the plot as shown (.png, .svg), or its columns (.csv). Raises OSError, or UsageError for another suffix."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_atomic(path, table(columns).encode())
        return
    if suffix not in (".png", ".svg"):
        raise UsageError(f"Plots can't be saved as '{suffix}'.", "Use a name with .png, .svg or .csv.")
    with atomic_path(path) as temporary:
        (_write_png if suffix == ".png" else _write_svg)(legend, canvas, temporary)


def table(columns: Columns) -> str:
    """Return CSV with a row for each step; cells without a value stay empty."""
    steps = np.unique(np.concatenate([np.zeros(0), *(curve.steps for _, curve in columns)]))
    fields = [[f"{step:.0f}" for step in steps.tolist()]]
    for _, curve in columns:
        texts = [""] * len(steps)
        rows = np.searchsorted(steps, curve.steps)
        for area, value in zip(rows.tolist(), curve.values.tolist(), strict=True):
            texts[area] = f"{value:.9g}"  # float32 precision
        fields.append(texts)
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(["step", *(name for name, _ in columns)])
    return head.getvalue() + "".join(",".join(line) + "\n" for line in zip(*fields, strict=True))


def _write_png(legend: QWidget, canvas: PlotCanvas, path: Path) -> None:
    image = QImage(_area(legend, canvas).size() * SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(SCALE)
    painter = QPainter(image)
    canvas.restyle(SCALE / canvas.devicePixelRatioF())
    _paint(painter, legend, canvas)
    canvas.restyle()
    painter.end()
    if not image.save(str(path), "PNG"):  # type: ignore[call-overload]  # the stubs ask for bytes, Qt for text
        raise OSError(f"Can't write {path}.")


def _write_svg(legend: QWidget, canvas: PlotCanvas, path: Path) -> None:
    """Write SVG with Qt, because pyqtgraph's exporter fails with Qt 6.11 ('not enough values to unpack')."""
    size = _area(legend, canvas).size()
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(size)
    generator.setViewBox(QRect(QPoint(), size))
    generator.setTitle(canvas.widget.accessibleName())
    painter = QPainter()
    if not painter.begin(generator):
        raise OSError(f"Can't write {path}.")
    _paint(painter, legend, canvas)
    painter.end()


def _paint(painter: QPainter, legend: QWidget, canvas: PlotCanvas) -> None:
    """Draw the legend and the curves on the plot's background."""
    area = _area(legend, canvas)
    painter.fillRect(QRect(QPoint(), area.size()), QColor(theme.colours().surface))
    for part in (legend, canvas):
        part.render(painter, part.pos() - area.topLeft(), QRegion(), QWidget.RenderFlag.DrawChildren)


def _area(legend: QWidget, canvas: PlotCanvas) -> QRect:
    """Return the rectangle of legend and canvas in their parent, with a margin."""
    return legend.geometry().united(canvas.geometry()).adjusted(-_MARGIN, -_MARGIN, _MARGIN, _MARGIN)
