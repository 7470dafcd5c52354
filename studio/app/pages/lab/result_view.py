"""Shows an experiment's result: sentences, plots, tables, and example code in plain PyTorch."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app.pages.lab.code_runner import CodeRunner
from studio.app.pages.lab.result_table import ResultTable
from studio.app.widgets import factory
from studio.app.widgets.layout import Collapsible
from studio.app.widgets.link import LinkLabel
from studio.app.widgets.sprites.painting import draw_sprite, shrink_divisor
from studio.core.formatting import local_time
from studio.lab.outcome import Line, Outcome, Picture, Plot
from studio.lab.results import Result

if TYPE_CHECKING:
    from studio.app.widgets.plot.xy_plot import XYPlot

_STRIP_WIDTH, _STRIP_HEIGHT = 640, 256  # largest size in pixels


def read_more_label() -> LinkLabel:
    """Return a label for the link to PyTorch's documentation."""
    return LinkLabel("Read more", "PyTorch documentation on this topic.")


class PictureStrip(QWidget):
    """An image from a result, at a whole-number zoom in device pixels; smaller in a narrow page."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self._pixels = picture.pixels()
        height, width = self._pixels.shape[:2]
        zoom = max(1, min(_STRIP_WIDTH // width, _STRIP_HEIGHT // height))
        self._largest = QSize(zoom * width, zoom * height)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        factory.set_name_and_tip(self, picture.title, picture.about or "An image from the experiment.")

    def sizeHint(self) -> QSize:
        return self._largest

    def minimumSizeHint(self) -> QSize:
        return QSize(1, 1)

    def heightForWidth(self, width: int) -> int:
        return self._fitted(width).height()

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_sprite(QPainter(self), QRect(QPoint(0, 0), self._fitted(self.width())), self._pixels)

    def _fitted(self, width: int) -> QSize:
        """Return the size of the image in a page of this width, both in logical pixels."""
        ratio, room = self.devicePixelRatioF(), min(width, self._largest.width())
        rows, columns = self._pixels.shape[:2]
        zoom = int(room * ratio) // columns or 1 / shrink_divisor(room, columns, ratio)
        return QSize(math.ceil(zoom * columns / ratio), math.ceil(zoom * rows / ratio))


class ResultView(QWidget):
    """Panel with an experiment's result."""

    use_requested = Signal()  # apply the suggested settings

    def __init__(self, program: CodeRunner | None = None) -> None:
        """Create an empty panel. program: shows the result's code; without it, the panel shows no code."""
        super().__init__()
        self.program = program
        self.sentences = factory.text()
        tip = "Apply the suggestion to the settings on the Train page."
        self.use = factory.button("Use this", tip, "check", slot=self.use_requested)
        self.suggestion = factory.text()
        self.read_on = read_more_label()
        self.plots: list[XYPlot] = []
        self._can_plot = False
        # The shown outcome, the compared result's outcome, and its name.
        self._shown: tuple[Outcome, Outcome | None, str] = (Outcome(), None, "")
        self._plot_box = factory.column(spacing=2 * factory.GRID)
        self._parts = factory.column()
        self._plain = Collapsible("Code in plain PyTorch", program or QWidget())
        self._lay_out()

    @Slot()
    def make_plots(self) -> None:
        """Draw the plots. Call this once pyqtgraph is loaded."""
        self._can_plot = True
        self._draw()

    def clear(self, text: str) -> None:
        self.show_outcome(Outcome(sentences=(text,)))

    def show_result(self, result: Result, compared: Result | None, suggestion: str, obstacle: str) -> None:
        """Show a result. compared: another result to draw in the same plots.

        suggestion: the settings that 'Use this' applies; '' hides the button. obstacle: why the button is disabled; ''
        enables the button.
        """
        if compared is None:
            self.show_outcome(result.outcome)
        else:
            self.show_outcome(result.outcome, compared.outcome, local_time(compared.created))
        self.suggestion.setText(suggestion)
        factory.set_enabled(self.use, obstacle)
        for part in (self.use, self.suggestion):
            part.setVisible(bool(suggestion))
        if self.program is not None and self.program.original() != result.code:
            self.program.show_code(result.code)
        self._plain.setVisible(bool(result.code) and self.program is not None)
        self.read_on.show_link(*result.read_on)

    def _lay_out(self) -> None:
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        suggested = factory.row(self.use, self.suggestion, grows=1)
        parts = (self.sentences, suggested, self._plot_box, self._parts, self._plain, self.read_on, 1)
        self.setLayout(factory.column(*parts, spacing=2 * factory.GRID))
        self.clear("")

    def show_outcome(self, outcome: Outcome, compared: Outcome | None = None, name: str = "") -> None:
        """Show results, also a running experiment's. compared: results to draw in the same plots. name: their name."""
        self._shown = outcome, compared, name
        self.sentences.setText("\n".join(outcome.sentences))
        self.sentences.setVisible(bool(outcome.sentences))
        for part in (self.use, self.suggestion, self._plain, self.read_on):
            part.hide()
        self._draw()
        factory.clear(self._parts)
        for picture in outcome.pictures:
            title = factory.text(picture.title, "muted")
            strip = factory.column(title, PictureStrip(picture), spacing=factory.GRID // 2)
            self._parts.addWidget(factory.panel(strip))
        for table in outcome.tables:
            self._parts.addWidget(ResultTable(table))

    def _draw(self) -> None:
        if not self._can_plot:
            return
        outcome, compared, name = self._shown
        from studio.app.widgets.plot.xy_plot import XYPlot

        while len(self.plots) < len(outcome.plots):
            self.plots.append(XYPlot())
            self._plot_box.addWidget(self.plots[-1])
        for widget, plot in itertools.zip_longest(self.plots, outcome.plots):
            widget.setVisible(plot is not None)
            if plot is not None:
                widget.show_plot(plot, _others(compared, plot, name))


def _others(compared: Outcome | None, plot: Plot, name: str) -> tuple[Line, ...]:
    """Return the compared result's lines for a plot, matched by title. name: added to the labels."""
    found = [other for other in compared.plots if other.title == plot.title] if compared else []
    return tuple(Line(f"{line.name}, {name}", line.x, line.y, line.dots) for other in found for line in other.lines)
