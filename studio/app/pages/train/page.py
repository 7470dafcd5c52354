"""The Train page: settings at the left, the training at the right, one large Start that becomes Pause and Stop."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from studio.app import dialogs, theme
from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages import run_texts
from studio.app.pages.base import Page
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.train.monitor import Monitor
from studio.app.pages.train.setup import SetupPanel
from studio.app.state.session import Session
from studio.app.state.training.training import CurrentTraining
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.core.events import Advised, Event
from studio.core.formatting import count
from studio.engine.control.watcher import TrainingSeen
from studio.engine.runs.history import HistoryRead

_SHEET_COLUMNS = 8
_GENERATE = "Draw new sprites with this run's model."
_PREDICT = "Predict from sprites with this run's model."


class TrainPage(Page):
    """Left: the settings of the next training. Right: the current training.

    model_wanted: (Path, str) use the model of this run, from the named checkpoint or, for '', from the default one.
    """

    model_requested = Signal(object, str)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.setup = SetupPanel(session)
        self.controls = TrainingButtons(session.training)
        self.monitor = Monitor(session)
        self._title = factory.elided_title("Train")
        self._state = factory.caption("")
        self.open = factory.button("Open sprites…", "Go to the Sprites page and open a folder.", "folder")
        self.sample = factory.tool_button("refresh", "Samples now", "Draw samples at the next step instead of waiting.")
        self.generate = factory.button("Generate", _GENERATE, "generate")
        self.save = factory.button("Save…", "Save the samples on show as one picture. (Ctrl+S)", "save", "flat")
        self.export = factory.button("Export…", "Write the model for use in other programs. (Ctrl+E)", "export")
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        session.setup.changed.connect(self._refresh)
        self.controls.start_requested.connect(self.start)
        self.controls.queue_requested.connect(session.queue_training)
        session.queue.changed.connect(self._on_queue_changed)
        self.open.clicked.connect(self._on_open_clicked)
        self.generate.clicked.connect(self._on_generate_clicked)
        self.sample.clicked.connect(session.training.sample_now)
        self.save.clicked.connect(self.save_samples)
        self.monitor.filmstrip.save_requested.connect(self._on_save_timelapse)
        self.export.clicked.connect(self.export_model)
        session.open_sprites.imported.connect(self._refresh)
        session.training.state_changed.connect(self._refresh)
        session.training.event_received.connect(self._on_event)
        session.catalog.plots_ready.connect(self._on_plots_ready)
        self._refresh()

    @Slot()
    def start(self) -> None:
        """Start training with what is chosen, if that is possible."""
        self.session.setup.start()
        if self.session.training.is_busy():
            self.controls.pause.setFocus()

    def save_state(self) -> None:
        """Remember what is chosen, and the splitters."""
        self.session.setup.store()
        self.session.settings.set_layout("train", self._splitter.saveState())
        self.monitor.save_state()

    @Slot()
    def save_samples(self) -> bool:
        """Save the samples on show as a sheet."""
        strip = self.monitor.filmstrip
        sprites = strip.sprites_at(strip.shown_step())
        if sprites is None:
            return False
        name = f"{self.session.training.title} step {strip.shown_step()}"
        chosen = dialogs.choose_save_sprites(self, self.session.settings, "Save samples", name)
        run, step = self.session.training.path, strip.shown_step()
        if chosen is not None and run is not None:
            names = [f"sample {number:02d}" for number in range(1, len(sprites) + 1)]
            picked = SpriteSelection(sprites, names, {"Model": f"{self.session.training.title}, step {step:,}"})
            self.session.inference.save_samples(run, step, *chosen, picked, _SHEET_COLUMNS)
        return True

    @Slot()
    def _on_save_timelapse(self) -> None:
        if self.session.training.path is not None:
            self.save_film(self.session.training.path)

    @Slot()
    def export_model(self) -> bool:
        """Export the live model, that of the run which is watched, or the one that was trained last."""
        training = self.session.training
        model, recipe = training.model(), training.record.recipe if training.record is not None else ""
        device = self.session.catalog.device(training.device.id) if training.device is not None else None
        device = device or self.session.device_choice.device  # it may be one of another machine
        if model is None or device is None:
            return False
        ExportDialog(self.session, model, training.title, recipe, device, self).open()
        return True

    def _lay_out(self) -> None:
        margin = 3 * factory.GRID
        form = factory.column(self.setup)
        form.setContentsMargins(margin, factory.GRID, 2 * factory.GRID, factory.GRID)
        scroll = factory.scroll_area(factory.panel(form))
        controls = factory.column(self.controls)
        controls.setContentsMargins(margin, factory.GRID, 2 * factory.GRID, 2 * factory.GRID)
        side = factory.column(scroll, controls, spacing=0)
        side.setStretch(0, 1)
        left = factory.panel(side)
        left.setMinimumWidth(288)
        buttons = FlowLayout(factory.GRID, factory.GRID)
        for button in (self.open, self.generate, self.export):
            buttons.addWidget(button)
        self.monitor.tabs.setCornerWidget(factory.panel(factory.row(self.monitor.spacing, self.sample, self.save)))
        below = factory.row(self._state, buttons)  # the title has a line of its own for a long name
        below.setStretch(0, 1)
        text = factory.column(self._title, below, spacing=factory.GRID // 2)
        right = factory.column(text, self.monitor, spacing=2 * factory.GRID)
        right.setContentsMargins(2 * factory.GRID, factory.GRID, margin, factory.GRID)
        right.setStretch(1, 1)
        parts, layout = (left, factory.scroll_area(factory.panel(right))), self.session.settings.layout("train")
        factory.fill_splitter(self._splitter, parts, (340, 900), layout, stretch=1)
        self.setLayout(factory.column(self._splitter))

    @Slot()
    def _refresh(self) -> None:
        training, sprites = self.session.training, self.session.open_sprites.sprites
        problem = self.session.setup.problem()
        self.controls.set_problem(problem)
        self.controls.set_target(
            f"Start trains on {sprites.title}: {count(len(sprites), 'sprite')}." if sprites else ""
        )
        self.setup.set_locked(training.owns_run())
        is_on_show = training.is_busy() or training.path is not None  # hides a run that failed before its creation
        title = training.title if is_on_show else ""
        self._title.show_text(title or (f"Train on {sprites.title}" if sprites else "Train"))
        self._show_state()
        self.open.setVisible(sprites is None)
        self._refresh_buttons()

    def _show_state(self) -> None:
        problem = self.session.setup.problem()
        text = run_texts.state(self.session.training)
        self._state.setText(text or problem or "Press Start and watch it learn.")

    @Slot(object)
    def _on_event(self, event: Event) -> None:
        if isinstance(event, Advised | HistoryRead):
            self._refresh()
        else:
            if isinstance(event, TrainingSeen):
                self._show_state()
                self.controls.refresh()
            self._refresh_buttons()

    @Slot()
    def _refresh_buttons(self) -> None:
        training = self.session.training
        none_yet = "The run has no checkpoint yet." if training.watched else "There is no model yet: press Start."
        if training.path is not None and not training.path.is_dir():
            none_yet = "The run's folder was moved or removed."
        reason = "" if training.model() is not None else none_yet
        predicts = training.record is not None and self._predicts(training.record.recipe)
        factory.set_button_text(self.generate, "Predict…" if predicts else "Generate")
        factory.set_enabled(self.generate, reason, _PREDICT if predicts else _GENERATE)
        factory.set_enabled(self.export, reason, "Write the model for use in other programs. (Ctrl+E)")
        trains = "" if training.state == "training" else "Samples are drawn while a model trains."
        factory.set_enabled(self.sample, trains, "Draw samples at the next step instead of waiting.")
        samples = "" if training.samples is not None else "There are no samples yet: press Start."
        factory.set_enabled(self.save, samples, "Save the samples on show as one picture. (Ctrl+S)")

    def _predicts(self, name: str) -> bool:
        """Return whether models of this recipe predict from sprites instead of drawing sprites."""
        recipe = self.session.catalog.recipes.get(name)
        return recipe is not None and recipe.makes != "sprites"

    @Slot()
    def _on_plots_ready(self) -> None:
        from studio.app.widgets.plot.loss_plot import LossPlot

        plot = LossPlot()
        plot.save_requested.connect(self._on_save_plot)
        self.monitor.set_plot(plot)

    @Slot()
    def _on_save_plot(self) -> None:
        if self.monitor.plot is not None:
            self.save_plot(self.monitor.plot, f"{self.session.training.title or 'loss'}.png")

    @Slot()
    def _on_queue_changed(self) -> None:
        queue = self.session.queue
        self.controls.set_queue_text(run_texts.queue_line(queue.runs, is_on=queue.is_on))

    @Slot()
    def _on_open_clicked(self) -> None:
        self.page_requested.emit("sprites")

    @Slot()
    def _on_generate_clicked(self) -> None:
        training = self.session.training
        if training.path is not None:
            self.model_requested.emit(training.path, "last" if training.watched is not None else "")


_START = "Start training with these settings. (Ctrl+R)"
_PAUSE = "Hold the training; the model stays ready to be used. (Space)"
_GO_ON = "Go on with the training. (Space)"
_STOP = "End the training and keep its work; it can be resumed later. (Ctrl+.)"
_NEXT = "What you change here is for another run."
_LET_GO = "Show this run no more; it goes on. Starting a run of your own does the same."
_NEXT_HERE = "What you change here is for a run of your own: stop watching to start it."
_QUEUE = "Keep these sprites and settings as a run that waits; the Runs page trains all that wait, one after the other."


class TrainingButtons(QWidget):
    """Start, Pause and Stop, and what puts a training into the queue.

    start_wanted, queue_wanted: the user pressed that button, which was possible.
    """

    start_requested = Signal()
    queue_requested = Signal()

    def __init__(self, training: CurrentTraining) -> None:
        super().__init__()
        self._training = training
        self._problem, self._aim = "", ""
        self.start = factory.button("Start", _START, "play", "primary")
        self.pause = factory.button("Pause", _PAUSE, "pause", "primary")
        self.stop = factory.button("Stop", _STOP, "stop")
        self.stop.setMinimumHeight(40)
        self.let_go = factory.button("Stop watching", _LET_GO, "close", "flat")
        self.queue = factory.button("Add to queue", _QUEUE, "plus", "flat")
        self._reason = factory.text("", "muted")
        self._queued = factory.caption("")
        self._queued.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._buttons = QStackedWidget()
        self._buttons.addWidget(factory.panel(factory.row(self.start)))
        running = factory.row(self.pause, self.stop)
        running.setStretch(0, 2)
        running.setStretch(1, 1)
        self._buttons.addWidget(factory.panel(running))
        self._buttons.setMaximumHeight(48)
        self._queued.hide()
        self.setLayout(factory.column(self._reason, self._buttons, self.let_go, self.queue, self._queued))
        self.start.clicked.connect(self.start_requested)
        self.queue.clicked.connect(self.queue_requested)
        self.pause.clicked.connect(self._on_pause_clicked)
        self.stop.clicked.connect(training.stop)
        self.let_go.clicked.connect(training.detach)
        training.state_changed.connect(self.refresh)
        self.refresh()

    def set_problem(self, problem: str) -> None:
        """Say why Start is not possible; empty when it is."""
        self._problem = problem
        self.refresh()

    def set_target(self, text: str) -> None:
        """Say what Start would train on, whatever run is on show."""
        self._aim = text
        self.refresh()

    def set_queue_text(self, text: str) -> None:
        """Say what waits; nothing where the words are empty."""
        self._queued.setText(text)
        self._queued.setVisible(bool(text))

    @Slot()
    def refresh(self) -> None:
        """Show the buttons that fit the state."""
        training, state = self._training, self._training.state
        self._buttons.setCurrentIndex(0 if state == "idle" else 1)
        watched = training.watched  # processes that are being started are not let go: nothing would go on yet
        self.let_go.setVisible(watched is not None and (watched.live is not None or not watched.processes))
        factory.set_enabled(self.start, self._problem, _START)
        factory.set_enabled(self.queue, self._problem, _QUEUE)
        about_next = _NEXT if training.owns_run() else _NEXT_HERE
        about_next = "" if self._problem else about_next  # with a problem there is no other run yet
        self._reason.setText(self._problem or self._aim if state == "idle" else about_next)
        self._reason.setVisible(bool(self._reason.text()))
        paused = state == "paused"
        factory.set_button_text(self.pause, "Go on" if paused else "Pausing…" if state == "pausing" else "Pause")
        self.pause.setIcon(theme.icon("play" if paused else "pause", "on_accent"))
        factory.set_enabled(self.pause, training.why_no_pause(), _GO_ON if paused else _PAUSE)
        factory.set_enabled(self.stop, training.why_no_stop(), _STOP)
        factory.set_button_text(self.stop, "Saving…" if state == "stopping" else "Stop")

    @Slot()
    def _on_pause_clicked(self) -> None:
        if self._training.state == "paused":
            self._training.resume()
        else:
            self._training.pause()
