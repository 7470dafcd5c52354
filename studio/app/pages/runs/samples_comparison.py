"""Live samples of several runs at the same step or after the same time."""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QSlider, QWidget

from studio.app.pages.sample_menu import SampleMenu
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.sprites.sheet_view import SpriteSheetView, show_samples
from studio.core.formatting import duration, number
from studio.engine.runs.analysis.comparison import ComparedRun, TimelineAxis, shared_positions

NO_SAMPLES = "This run has no live samples."
_NAME_WIDTH = 18 * factory.GRID
_ALIGNMENTS: dict[str, TimelineAxis] = {"Same step": "step", "Same time": "time"}


class SamplesComparison(QWidget):
    """A row of samples for each run, and a slider up to the shortest run's end."""

    edit_requested = Signal()  # a sample was opened in the editor

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.alignment = factory.combo("Align by", "Compare at the same step or after the same training time.")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.position = factory.text("–", "muted", wrap=False)
        self.note = factory.caption("")
        self.rows: list[_SamplesRow] = []
        self._runs: Sequence[ComparedRun] = ()
        self._positions: list[float] = []
        self._note = ""
        self._is_last = True  # follow the newest samples
        self._rows_box = factory.column(spacing=4)
        self.alignment.addItems(list(_ALIGNMENTS))
        WheelNeedsFocus(self.slider)
        factory.set_name_and_tip(self.slider, "Sample step", "Drag to see earlier samples.")
        self.position.setMinimumWidth(self.fontMetrics().horizontalAdvance("Step 00,000,000"))
        below = factory.row(self.alignment, self.position, self.slider, grows=2)
        rows = factory.scroll_area(factory.panel(self._rows_box))
        self.setLayout(factory.column(rows, self.note, below, spacing=4, grows=0))
        self.alignment.currentTextChanged.connect(self._on_alignment_changed)
        self.slider.valueChanged.connect(self._on_slider_moved)

    def show_runs(self, runs: Sequence[ComparedRun], note: str = "") -> None:
        """Show these runs. For unchanged runs, keep the slider's position. note: a text below the samples."""
        same = [run.summary.path for run in runs] == [run.summary.path for run in self._runs]
        shown = self._shown() if same and not self._is_last else None
        self._runs = runs
        self._note = note
        self._fit(shown)

    def _by(self) -> TimelineAxis:
        return _ALIGNMENTS[self.alignment.currentText()]

    def _shown(self) -> float | None:
        """Return the shown step or time; None without samples."""
        return self._positions[self.slider.value()] if self._positions else None

    @Slot()
    def _on_alignment_changed(self) -> None:
        self._fit(None)

    @Slot(int)
    def _on_slider_moved(self, value: int) -> None:
        self._is_last = value == len(self._positions) - 1
        self._draw()

    def _fit(self, shown: float | None) -> None:
        """Set the slider's range, and move the slider to a step or time; None moves it to the end."""
        self._positions = shared_positions([run.film for run in self._runs], self._by())
        last = max(0, len(self._positions) - 1)
        at = last if shown is None else min(last, max(0, bisect_right(self._positions, shown) - 1))
        self._is_last = at == last
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, last)
            self.slider.setValue(at)
        self.slider.setEnabled(last > 0)
        self._draw()
        self._show_limit()

    def _draw(self) -> None:
        position = self._shown()
        self.position.setText("–" if position is None else self._position_text(position))
        while len(self.rows) < len(self._runs):
            self.rows.append(_SamplesRow(self._session))
            self.rows[-1].menu.edit_requested.connect(self.edit_requested)
            self._rows_box.addWidget(self.rows[-1])
        for line, run in zip(self.rows, self._runs, strict=False):
            line.show_run(run, position, self._by())
        for index, line in enumerate(self.rows):
            line.setVisible(index < len(self._runs))

    def _position_text(self, position: float) -> str:
        return f"Step {number(int(position))}" if self._by() == "step" else duration(position)

    def _show_limit(self) -> None:
        """Show which run limits the slider."""
        ends = [(run.film.positions(self._by())[-1], run.name) for run in self._runs if run.film.samples]
        end, name = min(ends, default=(0.0, ""))
        limit = ""
        if any(other > end for other, _ in ends):
            text = self._position_text(end)
            limit = f"Up to {text[:1].lower()}{text[1:]}, where the samples of '{name}' end."
        self.note.setText(f"{limit} {self._note}".strip())
        self.note.setVisible(bool(self.note.text()))


class _SamplesRow(QWidget):
    """A row: the run's name, the samples' step and time, and the samples."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._place: tuple[Path, int] | None = None  # run folder and step of the samples
        self.name, self.where = factory.ElidedLabel(), factory.ElidedLabel("muted")
        self.view = SpriteSheetView()
        self.view.set_placeholder(NO_SAMPLES)
        self.menu = SampleMenu(self.view, session, self._shown)
        about = factory.panel(factory.column(1, self.name, self.where, 1, spacing=0))
        about.setFixedWidth(_NAME_WIDTH)
        self.setLayout(factory.row(about, self.view, grows=1))

    def show_run(self, run: ComparedRun, position: float | None, by: TimelineAxis) -> None:
        """Show the run's samples nearest to a position, a step or time; None if all runs lack samples."""
        self.name.show_text(run.name)
        self.view.setAccessibleName(f"Samples of {run.name}")
        film, self._place = run.film, None
        if position is None or not film.samples:
            self.where.show_text("")
            self.view.set_sprites(np.zeros((0, 1, 1, 4), np.uint8))
            return
        index = film.nearest(position, by)
        sample = film.samples[index]
        self._place = run.summary.path, sample.step
        self.where.show_text(f"Step {number(sample.step)}, {duration(float(film.seconds[index]))}")
        lines = 1 if sample.originals is None else 2  # captions, and the explanation of pairs or the headings of sets
        self.view.setMinimumHeight(sample.sprites.shape[1] + lines * self.fontMetrics().height() + factory.GRID)
        show_samples(self.view, sample)

    def _shown(self) -> tuple[Path, int] | None:
        return self._place
