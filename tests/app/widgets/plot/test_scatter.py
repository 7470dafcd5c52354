"""The scatter plot of a regression."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.plot.scatter import ScatterPlot
from tests.app.widgets.tools import SCHEMES, shown

_NO_BUTTON = Qt.MouseButton.NoButton


@pytest.fixture
def scatter(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> ScatterPlot:
    monkeypatch.setitem(pg.CONFIG_OPTIONS, "mouseRateLimit", -1)  # report each mouse move
    return shown(qtbot, ScatterPlot(), 300, 340)


def _place(scatter: ScatterPlot, true: float, said: float) -> QPointF:
    """Return a dot's position on the canvas."""
    box = scatter.dots.widget.getPlotItem().getViewBox()
    found: QPointF = box.mapViewToScene(QPointF(true, said))
    return QPointF(scatter.dots.widget.mapFromScene(found))


def _tip_at(scatter: ScatterPlot, place: QPointF) -> str:
    """Return the tooltip at a position."""
    box = scatter.dots.widget.getPlotItem().getViewBox()
    viewport = scatter.dots.widget.viewport()
    seen = viewport.mapToGlobal(place)
    move = QMouseEvent(QEvent.Type.MouseMove, place, seen, _NO_BUTTON, _NO_BUTTON, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(viewport, move)
    return str(box.toolTip())


def test_correct_predictions_lie_on_the_diagonal(scatter: ScatterPlot) -> None:
    numbers = np.array([0.0, 5.0, 10.0], np.float32)
    scatter.set_pairs(np.stack([numbers, numbers])[:, :, None], ("price",))
    assert not scatter.choice.isVisible()
    left, middle, right = (_place(scatter, number, number) for number in (0, 5, 10))
    assert right.x() - left.x() == pytest.approx(left.y() - right.y(), abs=2)  # equal scales on both axes
    assert _tip_at(scatter, middle) == "5, true 5"
    assert _tip_at(scatter, QPointF(left.x(), right.y())) == ""
    picture = scatter.dots.widget.grab().toImage()
    pixel = QColor(picture.pixel((middle * picture.devicePixelRatio()).toPoint()))
    assert pixel.name() not in (theme.colours().surface, theme.colours().border, theme.colours().muted)


def test_high_predictions_lie_above(scatter: ScatterPlot) -> None:
    scatter.set_pairs(np.array([[[10.0], [0.0]], [[0.0], [0.0]]], np.float32), ("price",))
    assert _place(scatter, 0, 10).y() < _place(scatter, 0, 0).y() - 100
    assert _tip_at(scatter, _place(scatter, 0, 10)) == "10, true 0"


def test_chosen_number_stays(scatter: ScatterPlot) -> None:
    pairs = np.array([[[1.0, 7.0], [2.0, 8.0]], [[1.0, np.nan], [2.0, 8.0]]], np.float32)
    scatter.set_pairs(pairs, ("price", "weight"))
    assert scatter.choice.isVisible() and scatter.dots.focusPolicy() & Qt.FocusPolicy.TabFocus
    about = scatter.dots.accessibleDescription()
    assert "2 sprites" in about and "the prediction is 0 away" in about
    scatter.choice.setCurrentIndex(1)
    assert "1 sprite," in scatter.dots.accessibleDescription()  # the other sprite's weight is unknown
    scatter.set_pairs(pairs, ("price", "weight"))
    assert scatter.choice.currentText() == "weight"


@pytest.mark.parametrize("pairs", [np.zeros((2, 0, 1)), np.full((2, 3, 1), np.nan), np.full((2, 3, 1), 4.0)])
def test_empty_scatter_plot(scatter: ScatterPlot, pairs: np.ndarray) -> None:
    scatter.set_pairs(pairs.astype(np.float32), ("price",))
    assert not scatter.dots.grab().isNull()


def test_scatter_follows_the_theme(scatter: ScatterPlot, qapp: QApplication) -> None:
    scatter.set_pairs(np.random.default_rng(0).random((2, 30, 1), np.float32), ("price",))
    for scheme, colours in SCHEMES.items():
        theme.apply(qapp, scheme)
        qapp.processEvents()
        assert scatter.dots.widget.grab().toImage().pixelColor(2, 2).name() == colours.surface
