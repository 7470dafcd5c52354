"""The queue beside the table of runs."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from studio.app import keys, theme
from studio.app.pages import run_texts
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.layout import SteadyWidth
from studio.core.events import Progress

_START = "Train these runs in order. Failed runs are skipped."
_PAUSE = "Don't start another run. The running training continues."
_WIDTH = 264  # pixels
_REFRESH_MS = 1000  # between two updates of the progress


class OrderedList(QListWidget):
    """A list sorted by dragging."""

    dropped = Signal()  # the current row was dragged to its new position

    def __init__(self) -> None:
        super().__init__()
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def dropEvent(self, event: QDropEvent) -> None:
        super().dropEvent(event)
        self.dropped.emit()


class QueuePanel(QWidget):
    """The queue's runs and buttons; hidden for an empty queue."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.list = OrderedList()
        about = "Runs that wait for training. The top one is next. Drag to reorder."
        factory.set_name_and_tip(self.list, "Queue", about)
        self.switch = factory.button("Start queue", _START, "play", slot=self._on_switch_clicked)
        NoSecondPress(self.switch, lambda: session.queue.is_on)
        SteadyWidth(self.switch, "Start queue", "Pause queue")
        up, down = "Move the selected run up. ({queue_up})", "Move the selected run down. ({queue_down})"
        self.earlier = factory.tool_button("chevron-up", "Move up", up, self._on_move_up)
        self.later = factory.tool_button("chevron-down", "Move down", down, self._on_move_down)
        remove = "Remove the selected run from the queue. You can still train it with Resume."
        self.remove = factory.tool_button("close", "Remove", remove, self._on_remove_clicked)
        self._state = factory.caption("")
        self.bar = factory.ProgressBar("Progress of the queued run that trains.")
        self.progress = factory.caption("")
        self._clock = QTimer(self, interval=_REFRESH_MS)
        self._clock.timeout.connect(self._refresh_progress)
        self._clock.start()
        row = factory.row(self.switch, 1, self.earlier, self.later, self.remove)
        self.setLayout(factory.column(factory.heading("Queue"), self._state, self.bar, self.progress, self.list, row))
        self.setFixedWidth(_WIDTH)
        keys.shortcut("queue_up", self.list, self._on_move_up, Qt.ShortcutContext.WidgetShortcut)
        keys.shortcut("queue_down", self.list, self._on_move_down, Qt.ShortcutContext.WidgetShortcut)
        self.list.dropped.connect(self._on_dropped)
        self.list.currentRowChanged.connect(self._refresh_buttons)
        session.queue.changed.connect(self._refresh)
        session.training.state_changed.connect(self._refresh)
        session.catalog.devices_found.connect(self._refresh_buttons)
        self._refresh()

    def paths(self) -> list[Path]:
        """Return the queue's run folders, from top to bottom."""
        return [self.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(self.list.count())]

    @Slot()
    def _refresh(self) -> None:
        """Show the queue and keep the chosen run."""
        queue, is_training = self._session.queue, self._session.training.owns_run()
        self.setVisible(bool(queue.runs))
        self._state.setText(run_texts.queue_state(queue.runs, is_on=queue.is_on, is_training=is_training))
        paths = [run.path for run in queue.runs]
        if paths != self.paths():
            self._fill(paths)
        self._show_progress()
        self._refresh_buttons()

    @Slot()
    def _refresh_progress(self) -> None:
        """Show the progress of the running training, if the user can see the panel."""
        if self.isVisible():
            self._show_progress()

    def _show_progress(self) -> None:
        """Update the bar, and the rows' texts in place: the user may be dragging a row."""
        runs = self._session.queue.runs
        progress = run_texts.queue_progress(runs, self._session.training)
        for widget in (self.bar, self.progress):
            widget.setVisible(progress is not None)
        if progress is not None:
            self.bar.show_progress(Progress(round(1000 * progress.share), 1000, ""))
            self.progress.setText(progress.text)
        entries = {run.path: run_texts.queue_entry(run, progress) for run in runs}
        for row, path in enumerate(self.paths()):  # dropped rows are elsewhere until the queue is written
            item, text = self.list.item(row), entries.get(path, "")
            if text and item.text() != text:
                item.setText(text)
                item.setToolTip(text)

    def _fill(self, paths: Sequence[Path]) -> None:
        chosen = self._chosen()
        with QSignalBlocker(self.list):
            self.list.clear()
            for path in paths:
                item = QListWidgetItem()
                item.setData(Qt.ItemDataRole.UserRole, path)
                item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsDropEnabled)  # drop between rows, not onto a row
                self.list.addItem(item)
                if path == chosen:
                    self.list.setCurrentItem(item)

    @Slot()
    def _refresh_buttons(self) -> None:
        queue, row = self._session.queue, self.list.currentRow()
        reason = "" if self._session.catalog.devices else "Searching for devices…"
        factory.set_button_text(self.switch, "Pause queue" if queue.is_on else "Start queue")
        self.switch.setIcon(theme.icon("pause" if queue.is_on else "play"))
        factory.set_enabled(self.switch, reason, _PAUSE if queue.is_on else _START)
        none = "Select a run in the queue." if row < 0 else ""
        factory.set_enabled(self.earlier, none or ("" if row else "Already the first run."))
        is_last = row == self.list.count() - 1
        factory.set_enabled(self.later, none or ("Already the last run." if is_last else ""))
        factory.set_enabled(self.remove, none)

    @Slot()
    def _on_switch_clicked(self) -> None:
        if self._session.queue.is_on:
            self._session.queue.pause()
        else:
            self._session.queue.start()

    @Slot()
    def _on_dropped(self) -> None:
        self._move(self.list.currentRow())

    @Slot()
    def _on_move_up(self) -> None:
        self._move(self.list.currentRow() - 1)

    @Slot()
    def _on_move_down(self) -> None:
        self._move(self.list.currentRow() + 1)

    def _move(self, row: int) -> None:
        chosen = self._chosen()
        if chosen is not None and 0 <= row < self.list.count():
            self._session.queue.move(chosen, row)

    @Slot()
    def _on_remove_clicked(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            self._session.queue.remove(chosen)

    def _chosen(self) -> Path | None:
        row = self.list.currentRow()
        return self.paths()[row] if row >= 0 else None
