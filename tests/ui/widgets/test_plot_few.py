from __future__ import annotations

from pytestqt.qtbot import QtBot

from studio.app.widgets.plot.loss_plot import LossPlot


def test_of_few_values_all_are_shown_as_dots(qtbot: QtBot) -> None:
    plot = LossPlot()
    qtbot.addWidget(plot)
    plot.resize(600, 400)
    plot.show()
    plot.append(range(1000), [1.0] * 1000)
    plot.append_series("Quality (KID)", [20], [2.9], dots=True)
    plot.append_series("Quality (KID)", [500, 1000], [0.3, 0.1], dots=True)
    plot.bar.setCurrentIndex(1)
    canvas = plot.canvas
    qtbot.waitUntil(lambda: len(canvas._lines[0][2].getData()[1]) == 3)
    line, _, dots = canvas._lines[0]
    assert line.style.kind == "dots" and dots.getData()[1].tolist() == [2.9, 0.3, 0.1]
    low, high = canvas.ranges()[1]
    assert low < 0.1 and 2.9 < high < 3.5  # the first one too, far above the others as it is
