"""The Train page's right side: readings, curves, live samples, confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QSplitter, QTabWidget, QWidget

from studio.app.background.job_events import RunDescribed
from studio.app.pages import run_texts
from studio.app.pages.confusion_panel import ConfusionPanel
from studio.app.pages.train.live_curves import LiveCurves
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.filmstrip import Filmstrip
from studio.app.widgets.sprites.predictions import PredictionsView
from studio.core import formatting
from studio.core.events import Event, LossChunk, QualityMeasured, RunStarted, SamplesReady, SamplesSpaced, Validated
from studio.engine.runs.history import HistoryRead

if TYPE_CHECKING:
    from studio.app.widgets.plot.loss_plot import LossPlot
    from studio.app.widgets.plot.scatter import ScatterPlot


class Monitor(QWidget):
    """Panel with a training's readings, curves, live samples and validation results."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._class_names: tuple[str, ...] = ()
        self._attributes: Mapping[str, Sequence[str]] = {}  # values by attribute
        self._target_names: tuple[str, ...] = ()
        self.curves = LiveCurves(session.training, self)
        self.readings = Readings()
        self.filmstrip = Filmstrip()
        self.spacing = factory.text("", "muted", wrap=False)  # interval between live samples, if above the setting
        self.confusion = ConfusionPanel(session)
        self.numbers = PredictionsView()
        self.scatter: ScatterPlot | None = None  # made for the first result: needs pyqtgraph
        self._scatter_box = factory.column()
        self.tabs = QTabWidget()
        WheelNeedsFocus(self.tabs.tabBar())
        factory.name_tabs(self.tabs, "Result tabs", "Switch between samples and validation results.")
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self._plot_box = factory.column()
        self._plot_panel = factory.panel(self._plot_box)
        self._lay_out()
        self._handlers: dict[type[Event], Callable[..., None]] = {
            RunStarted: self._update_redraw_interval,
            RunDescribed: self._describe,
            HistoryRead: self._restore_history,
            LossChunk: self._show_readings,
            SamplesReady: self._add_samples,
            SamplesSpaced: self._show_spacing,
            Validated: self._add_validation,
            QualityMeasured: self._add_quality,
        }
        session.training.event_received.connect(self._on_event)
        session.training.state_changed.connect(self._on_state_changed)

    def _lay_out(self) -> None:
        self.filmstrip.view.set_placeholder("Samples appear here during the training.")
        for name, tip in run_texts.reading_tips(self._session.training).items():
            self.readings.set_reading(name, "–", tip)
        self.tabs.addTab(self.filmstrip, "Samples")
        self.tabs.addTab(self.confusion, "Confusion matrix")
        self.tabs.addTab(factory.panel(factory.row(self._scatter_box, self.numbers, grows=1)), "Predicted and true")
        self._hide_tabs()
        self._plot_panel.setMinimumHeight(factory.LEAST_PLOT)
        self.tabs.setMinimumHeight(200)
        # The splitter fills the room; below its minimum height (see _fit_minimum), the page scrolls.
        self.splitter.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        layout = self._session.settings.layout("monitor")
        factory.fill_splitter(self.splitter, (self._plot_panel, self.tabs), (360, 340), layout)
        self.setLayout(factory.column(self.readings, self.splitter, grows=1))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit_minimum()  # the stylesheet has set the handle's size

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_minimum()

    @Slot()
    def _fit_minimum(self) -> None:
        """Set the minimum heights of the plot, whose legend wraps, and of the splitter, which ignores size hints."""
        height = max(factory.LEAST_PLOT, self._plot_box.minimumHeightForWidth(self.width()))
        self._plot_panel.setMinimumHeight(height)
        handle = self.splitter.handle(1).sizeHint().height()  # with the margins
        self.splitter.setMinimumHeight(height + self.tabs.minimumHeight() + handle)

    def save_state(self) -> None:
        self._session.settings.set_layout("monitor", self.splitter.saveState())

    @property
    def plot(self) -> LossPlot | None:
        """The loss plot; None until pyqtgraph is loaded."""
        return self.curves.plot

    def set_plot(self, plot: LossPlot) -> None:
        """Add the loss plot, which is created once pyqtgraph is loaded."""
        self.curves.set_plot(plot)
        self._update_redraw_interval()
        self._plot_box.addWidget(plot)
        plot.canvas.setMinimumHeight(factory.LEAST_PLOT)
        plot.redrawn.connect(self._fit_minimum)  # the legend may have more entries
        plot.step_hovered.connect(self.filmstrip.peek)
        plot.hover_ended.connect(self.filmstrip.end_peek)

    @Slot(object)
    def _on_event(self, event: Event) -> None:
        handle = self._handlers.get(type(event))
        if handle is not None:
            handle(event)

    @Slot()
    def _on_state_changed(self) -> None:
        """Clear everything when a new run starts."""
        training = self._session.training
        if training.state != "training":
            self.spacing.clear()
        if training.state == "starting" and training.path is None:
            self.readings.clear()
            self.filmstrip.clear()
            self.confusion.clear()
            self._hide_tabs()
            self.curves.clear()
        elif training.chunk is not None:
            self._show_readings(training.chunk)

    def _update_redraw_interval(self, _: RunStarted | None = None) -> None:
        if self.plot is not None and self._session.training.is_busy():
            self.plot.set_redraw_interval_ms(round(1000 * self._session.training.wakeup_interval_s()))

    def _describe(self, event: RunDescribed) -> None:
        self._class_names, self._target_names = event.record.class_names, event.record.target_names
        self._attributes = event.record.attributes

    def _restore_history(self, event: HistoryRead) -> None:
        """Show a resumed run's earlier samples and curves."""
        for samples in event.samples:
            self._add_samples(samples)
        if self._session.training.advice is not None:
            self.curves.on_event(self._session.training.advice)

    def _show_readings(self, chunk: LossChunk) -> None:
        training = self._session.training
        tips = run_texts.reading_tips(training)
        for name, text in run_texts.readings(chunk, training).items():
            self.readings.set_reading(name, text, tips[name])

    def _add_samples(self, event: SamplesReady) -> None:
        self.filmstrip.add(event)
        if event.numbers is not None and event.true_numbers is not None and len(event.sprites):
            self.numbers.set_numbers(event.sprites, event.numbers, self._target_names, event.true_numbers)
            if not self.tabs.isTabVisible(2):
                self.tabs.setTabVisible(2, True)
                self.tabs.setCurrentIndex(2)

    def _show_spacing(self, event: SamplesSpaced) -> None:
        """Show the actual interval between live samples, if slow drawing makes it longer than the setting."""
        is_slower = event.actual_s > 1.1 * event.asked_s
        self.spacing.setText(f"Every {formatting.duration(event.actual_s)}" if is_slower else "")
        cost = f"Drawing samples takes {formatting.duration(event.drawing_s)}, at most 4 % of the training time."
        self.spacing.setToolTip(f"{cost} Press 'Samples now' to draw at the next step." if is_slower else "")

    def _hide_tabs(self) -> None:
        """Hide the tabs that only some recipes need."""
        for index in (1, 2):
            self.tabs.setTabVisible(index, False)

    def _add_validation(self, event: Validated) -> None:
        if event.confusion is not None and len(self._class_names) == len(event.confusion):
            path = self._session.training.path
            self.confusion.show_matrix(
                path, event.confusion, self._class_names, event.predictions, event.attributes, self._attributes
            )
            self.tabs.setTabVisible(1, True)
        if event.pairs is not None and event.pairs.shape[2] == len(self._target_names):
            from studio.app.widgets.plot.scatter import ScatterPlot

            if self.scatter is None:
                self.scatter = ScatterPlot()
                self._scatter_box.addWidget(self.scatter)
            self.scatter.set_pairs(event.pairs, self._target_names)
        if self._session.training.chunk is not None:
            self._show_readings(self._session.training.chunk)

    def _add_quality(self, event: QualityMeasured) -> None:
        self.readings.set_reading("Copies", run_texts.copies(event.quality), run_texts.COPIES)


_DASH = "–"


class Readings(QWidget):
    """A line of labels and values that wraps."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, QLabel] = {}
        self._layout = FlowLayout(24, 8)
        self.setLayout(self._layout)

    def set_reading(self, label: str, value: str, tip: str = "") -> None:
        """Set a value; add an unknown label at the end. Widths only grow, so that the line doesn't jump."""
        shown = self._values.get(label) or self._add(label)
        if shown.text() != value:
            shown.setText(value)
            shown.setAccessibleName(f"{label}: {value}")  # so that a screen reader says both
            shown.setMinimumWidth(max(shown.minimumWidth(), shown.fontMetrics().horizontalAdvance(value)))
        if tip:
            shown.setToolTip(tip)

    def value(self, label: str) -> str:
        """Return the text under a label."""
        return self._values[label].text()

    def clear(self) -> None:
        """Show a dash for every value."""
        for shown in self._values.values():
            shown.setText(_DASH)

    def _add(self, label: str) -> QLabel:
        name, shown = factory.text(label, "muted", wrap=False), factory.heading(_DASH)
        shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._layout.addWidget(factory.panel(factory.column(name, shown, spacing=0)))
        self._values[label] = shown
        return shown
