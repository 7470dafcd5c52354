"""The Train page: settings on the left, the current training on the right, and the Start, Pause and Stop buttons."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from studio.app import dialogs, theme
from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages import run_texts
from studio.app.pages.base import Page
from studio.app.pages.sample_menu import SampleMenu
from studio.app.pages.train.monitor import Monitor
from studio.app.pages.train.next_steps import NextSteps
from studio.app.pages.train.result_card import ResultCard
from studio.app.pages.train.setup import SetupPanel
from studio.app.state.session import Session
from studio.app.state.training.training import CurrentTraining
from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.layout import SteadyWidth
from studio.core.events import Advised, Event
from studio.core.formatting import count
from studio.engine.control.watcher import TrainingSeen
from studio.engine.runs.history import HistoryRead

_SHEET_COLUMNS = 8


class TrainPage(Page):
    """The Train page. Left: the next training's settings. Right: the current training."""

    topic = "train"

    model_requested = Signal(object, str)  # run folder, checkpoint ('' for the default): use this run's model

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.history = session.setup.history
        self.setup = SetupPanel(session)
        self.controls = TrainingButtons(session.training)
        self.monitor = Monitor(session)
        self._title = factory.elided_title("Train")
        button, training = factory.button, session.training
        go_to_sprites = "Go to the Sprites page to open a folder."
        self.open = button("Open sprites…", go_to_sprites, "folder", slot=self._on_open_clicked)
        draw = "Draw samples at the next step."
        self.sample = factory.tool_button("refresh", "Samples now", draw, training.sample_now)
        save = "Save the shown samples as one image. ({save})"
        self.save = button("Save…", save, "save", "flat", self.save_samples)
        self.steps = NextSteps(session, self)
        self.steps.model_requested.connect(self.model_requested)
        self.steps.resumed.connect(self._on_resumed)
        self.card = ResultCard([self.open, *self.steps.buttons()])
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        session.setup.changed.connect(self._refresh)
        self.controls.start_requested.connect(self.start)
        self.controls.queue_requested.connect(session.queue_training)
        session.queue.changed.connect(self._on_queue_changed)
        self.monitor.filmstrip.save_requested.connect(self._on_save_timelapse)
        self._sample_menu = SampleMenu(self.monitor.filmstrip.view, session, self._shown_samples)
        self._sample_menu.edit_requested.connect(self._on_edit_requested)
        session.open_sprites.imported.connect(self._refresh)
        training.state_changed.connect(self._refresh)
        training.event_received.connect(self._on_event)
        session.catalog.plots_ready.connect(self._on_plots_ready)
        self._refresh()

    @Slot()
    def start(self) -> None:
        """Start training with the current settings, if possible."""
        self.session.setup.start()
        if self.session.training.is_busy():
            self.controls.pause.setFocus()

    def save_state(self) -> None:
        self.session.setup.store()
        self.session.settings.set_layout("train", self._splitter.saveState())
        self.monitor.save_state()

    @Slot()
    def save_samples(self) -> bool:
        """Ask for a path and save the shown samples as a sheet. Return False without samples."""
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
            self.session.saving.save_samples(run, step, *chosen, picked, _SHEET_COLUMNS)
        return True

    def _shown_samples(self) -> tuple[Path, int] | None:
        """Return the run folder and the step of the shown samples; None without samples."""
        run, step = self.session.training.path, self.monitor.filmstrip.shown_step()
        return (run, step) if run is not None and step >= 0 else None

    @Slot()
    def _on_edit_requested(self) -> None:
        self.page_requested.emit("generate")

    @Slot()
    def _on_save_timelapse(self) -> None:
        if self.session.training.path is not None:
            self.save_film(self.session.training.path)

    def export_model(self) -> bool:
        """Open the export dialog for the run's model. Return False without a model."""
        return self.steps.export_model()

    def _lay_out(self) -> None:
        margin = 3 * factory.GRID
        form = factory.column(self.setup, margin=(margin, factory.GRID, 2 * factory.GRID, factory.GRID))
        controls = factory.column(self.controls, margin=(margin, factory.GRID, 2 * factory.GRID, 2 * factory.GRID))
        left = factory.panel(factory.column(factory.scroll_area(factory.panel(form)), controls, spacing=0, grows=0))
        left.setMinimumWidth(39 * factory.GRID)  # the settings and a scroll bar
        self.monitor.tabs.setCornerWidget(factory.panel(factory.row(self.monitor.spacing, self.sample, self.save)))
        text = factory.column(self._title, self.card, spacing=factory.GRID // 2)
        margins = 2 * factory.GRID, factory.GRID, margin, factory.GRID
        right = factory.column(text, self.monitor, spacing=2 * factory.GRID, margin=margins, grows=1)
        parts, layout = (left, factory.scroll_area(factory.panel(right))), self.session.settings.layout("train")
        factory.fill_splitter(self._splitter, parts, (340, 900), layout, stretch=1)
        self.setLayout(factory.column(self._splitter))

    @Slot()
    def _refresh(self) -> None:
        training, sprites = self.session.training, self.session.open_sprites.sprites
        problem = self.session.setup.problem()
        recipe, target = self.session.setup.recipe, ""
        if sprites is not None and recipe is not None:
            target = f"Will train on {sprites.title} ({count(recipe.count_examples(sprites), recipe.noun)})"
        self.controls.set_problem(problem, target)
        self.setup.set_locked(training.owns_run())
        has_run = training.is_busy() or training.path is not None  # False if a run failed before it had a folder
        title = training.title if has_run else ""
        self._title.show_text(title or (f"Train on {sprites.title}" if sprites else "Train"))
        result, samples = run_texts.result(training), training.samples
        is_missing = sprites is None or bool(self.session.setup.unsuitable(recipe))
        self.open.setVisible(is_missing and result is None and not training.is_busy())
        self._refresh_buttons()
        if result is not None:
            self.card.show_result(*result, samples)
        else:
            self.card.show_line(run_texts.state(training) or problem or "Press Start to train.")

    @Slot(object)
    def _on_event(self, event: Event) -> None:
        if isinstance(event, Advised | HistoryRead | TrainingSeen):
            self._refresh()
        else:
            self._refresh_buttons()

    @Slot()
    def _refresh_buttons(self) -> None:
        training = self.session.training
        self.steps.refresh()
        self.card.set_order([self.open, *self.steps.buttons()])
        factory.set_enabled(self.sample, "" if training.state == "training" else "Start a training first.")
        factory.set_enabled(self.save, "" if training.samples is not None else "No samples yet. Press Start.")

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
    def _on_resumed(self) -> None:
        self.controls.pause.setFocus()


_PAUSE = "Pause the training. You can use the model meanwhile. ({pause})"
_RESUME = "Resume the training. ({pause})"
_NEXT = "Changes apply to the next run."
_NEXT_OWN = "Changes apply to your next run. Stop watching to start."


class TrainingButtons(QWidget):
    """The Start, Pause and Stop buttons, and Add to queue."""

    start_requested = Signal()
    queue_requested = Signal()

    def __init__(self, training: CurrentTraining) -> None:
        super().__init__()
        self._training = training
        self._problem, self._target = "", ""
        button = factory.button
        start = "Start training with these settings. ({start})"
        self.start = button("Start", start, "play", "primary", self.start_requested)
        self.pause = button("Pause", _PAUSE, "pause", "primary", self._on_pause_clicked)
        stop = "Stop the training and save a checkpoint. You can resume later. ({stop})"
        self.stop = button("Stop", stop, "stop", slot=training.stop)
        self.stop.setMinimumHeight(40)
        NoSecondPress(self.pause, lambda: training.state != "paused")
        SteadyWidth(self.pause, "Pause", "Resume", "Pausing…")
        SteadyWidth(self.stop, "Stop", "Saving…")
        stop_watching = "Stop watching this run; the training continues."
        self.stop_watching = button("Stop watching", stop_watching, "close", "flat", training.detach)
        queue = "Add a run with these sprites and settings to the queue on the Runs page."
        self.queue = button("Add to queue", queue, "plus", "flat", self.queue_requested)
        self._reason = factory.text("", "muted")
        self._queue_text = factory.caption("")
        self._queue_text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._buttons = QStackedWidget()
        self._buttons.addWidget(factory.panel(factory.row(self.start)))
        running = factory.row(self.pause, self.stop)
        running.setStretch(0, 2)
        running.setStretch(1, 1)
        self._buttons.addWidget(factory.panel(running))
        self._buttons.setMaximumHeight(48)
        self._queue_text.hide()
        self.setLayout(factory.column(self._reason, self._buttons, self.stop_watching, self.queue, self._queue_text))
        training.state_changed.connect(self.refresh)
        self.refresh()

    def set_problem(self, problem: str, target: str) -> None:
        """Set why Start is impossible ('' if possible), and the sentence about the sprites to train on."""
        self._problem, self._target = problem, target
        self.refresh()

    def set_queue_text(self, text: str) -> None:
        """Set the line about waiting runs; '' hides the line."""
        self._queue_text.setText(text)
        self._queue_text.setVisible(bool(text))

    @Slot()
    def refresh(self) -> None:
        """Show and enable the buttons for the training's state."""
        training, state = self._training, self._training.state
        self._buttons.setCurrentIndex(0 if state == "idle" else 1)
        watched = training.watched  # while processes start, the training can't go on by itself
        self.stop_watching.setVisible(watched is not None and (watched.live is not None or not watched.processes))
        factory.set_enabled(self.start, self._problem)
        factory.set_enabled(self.queue, self._problem)
        about_next = _NEXT if training.owns_run() else _NEXT_OWN
        about_next = "" if self._problem else about_next  # with a problem, no other run can start
        self._reason.setText(self._problem or self._target if state == "idle" else about_next)
        self._reason.setVisible(bool(self._reason.text()))
        paused = state == "paused"
        factory.set_button_text(self.pause, "Resume" if paused else "Pausing…" if state == "pausing" else "Pause")
        self.pause.setIcon(theme.icon("play" if paused else "pause", "on_accent"))
        factory.set_enabled(self.pause, training.why_no_pause(), _RESUME if paused else _PAUSE)
        factory.set_enabled(self.stop, training.why_no_stop())
        factory.set_button_text(self.stop, "Saving…" if state == "stopping" else "Stop")

    @Slot()
    def _on_pause_clicked(self) -> None:
        if self._training.state == "paused":
            self._training.resume()
        else:
            self._training.pause()
