"""The dots of a regression."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.scatter import Scatter


@pytest.fixture
def scatter(qtbot: QtBot) -> Scatter:
    widget = Scatter()
    qtbot.addWidget(widget)
    widget.resize(300, 340)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def test_right_ones_lie_on_the_diagonal_and_are_told(scatter: Scatter) -> None:
    numbers = np.array([0.0, 5.0, 10.0], np.float32)
    scatter.set_pairs(np.stack([numbers, numbers])[:, :, None], ("price",))
    assert not scatter.choice.isVisible()
    area = scatter.dots._area()
    assert scatter.dots.words_at(QPointF(area.bottomLeft())) == "0, true 0"
    assert scatter.dots.words_at(QPointF(area.center())) == "5, true 5"
    assert scatter.dots.words_at(QPointF(area.topRight())) == "10, true 10"
    assert scatter.dots.words_at(QPointF(area.topLeft())) == ""
    picture = scatter.dots.grab().toImage()
    ratio = picture.devicePixelRatio()
    pixel = QColor(picture.pixel((QPointF(area.center()) * ratio).toPoint()))
    assert pixel.name() not in (theme.colours().surface, theme.colours().border)


def test_too_high_lies_above(scatter: Scatter) -> None:
    scatter.set_pairs(np.array([[[10.0], [0.0]], [[0.0], [0.0]]], np.float32), ("price",))
    assert scatter.dots.words_at(QPointF(scatter.dots._area().topLeft())) == "10, true 0"


def test_one_of_several_numbers_is_chosen_and_stays(scatter: Scatter) -> None:
    pairs = np.array([[[1.0, 7.0], [2.0, 8.0]], [[1.0, np.nan], [2.0, 8.0]]], np.float32)
    scatter.set_pairs(pairs, ("price", "weight"))
    assert scatter.choice.isVisible() and "2 sprites" in scatter.dots.accessibleDescription()
    scatter.choice.setCurrentIndex(1)
    assert "1 sprite," in scatter.dots.accessibleDescription()  # the other's weight is not known
    scatter.set_pairs(pairs, ("price", "weight"))
    assert scatter.choice.currentText() == "weight"


@pytest.mark.parametrize("pairs", [np.zeros((2, 0, 1)), np.full((2, 3, 1), np.nan), np.full((2, 3, 1), 4.0)])
def test_nothing_to_see_is_drawn_too(scatter: Scatter, pairs: np.ndarray) -> None:
    scatter.set_pairs(pairs.astype(np.float32), ("price",))
    assert not scatter.dots.grab().isNull()
    assert scatter.dots.words_at(QPointF(-50, -50)) == ""
