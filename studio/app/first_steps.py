"""The checklist of first steps above the status bar, which ticks itself."""

from dataclasses import dataclass

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import QFrame, QPushButton

from studio.app import theme
from studio.app.state.session import Session
from studio.app.widgets import factory

_KEY, _CLOSED = "first_steps", "closed"  # settings key; its value lists the done steps, or is 'closed'


@dataclass(frozen=True)
class _Step:
    """A step: its title, a sentence about it, and the page where the user takes it."""

    title: str
    tip: str
    page: str


_STEPS = {
    "open": _Step("Open sprites", "Open a folder of sprites, or the demo sprites.", "sprites"),
    "look": _Step("Look at them", "Select a sprite, or open the Doctor.", "sprites"),
    "train": _Step("Train", "Train a model on your sprites.", "train"),
    "generate": _Step("Generate", "Generate new sprites with your model.", "generate"),
    "export": _Step("Save or export", "Save sprites, or export the model.", "generate"),
}


class FirstSteps(QFrame):
    """A row with the five steps from a folder of sprites to exported sprites.

    The list stays until the user closes it, or until the next start after all steps are done.
    """

    page_requested = Signal(str)  # name of the page where the clicked step is taken

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._done = set(session.settings.text(_KEY).split())
        self._heading = factory.heading("First steps")
        self._buttons: dict[str, QPushButton] = {}
        tip = "Close the first steps for good."
        self.close_list = factory.tool_button("close", "Close first steps", tip, self._on_close_clicked)
        for name, step in _STEPS.items():
            button = factory.button(step.title, step.tip, "circle", "flat", self._on_step_clicked)
            button.setIconSize(QSize(16, 16))
            button.setProperty("page", step.page)
            self._buttons[name] = button
        margin = (factory.GRID, 2, factory.GRID, 2)
        buttons = self._buttons.values()
        self.setLayout(factory.row(self._heading, *buttons, 1, self.close_list, spacing=0, margin=margin))
        session.open_sprites.imported.connect(self._on_imported)
        session.training.event_received.connect(self._on_training_event)
        session.inference.generated.connect(self._on_generated)
        session.inference.completed.connect(self._on_generated)
        session.inference.exported.connect(self._on_saved)
        session.saving.saved.connect(self._on_saved)
        self._refresh()
        if not self._is_wanted():
            self.hide()

    def tick(self, name: str) -> None:
        """Mark a step as done and store it."""
        if name in self._done or self._session.settings.text(_KEY) == _CLOSED:
            return
        self._done.add(name)
        self._session.settings.set_text(_KEY, " ".join(step for step in _STEPS if step in self._done))
        self._refresh()

    def done(self) -> list[str]:
        """Return the names of the steps done, in order."""
        return [name for name in _STEPS if name in self._done]

    def _is_wanted(self) -> bool:
        """Return whether to show the list. Users of versions without the list have recent folders already."""
        settings = self._session.settings
        is_known = bool(settings.recent()) and not self._done
        return settings.text(_KEY) != _CLOSED and not is_known and len(self.done()) < len(_STEPS)

    def _refresh(self) -> None:
        """Show a check mark at the steps done, and the next step in the accent colour."""
        following = next((name for name in _STEPS if name not in self._done), "")
        for name, button in self._buttons.items():
            is_done, is_next = name in self._done, name == following
            button.setIcon(theme.icon("check" if is_done else "circle", "accent" if is_done or is_next else "muted"))
            state = ": done" if is_done else ": next step" if is_next else ""
            button.setAccessibleName(f"{_STEPS[name].title}{state}")

    @Slot()
    def _on_step_clicked(self) -> None:
        self.page_requested.emit(self.sender().property("page"))

    @Slot()
    def _on_close_clicked(self) -> None:
        self._session.settings.set_text(_KEY, _CLOSED)
        self.hide()

    @Slot()
    def _on_imported(self) -> None:
        self.tick("open")

    @Slot()
    def _on_training_event(self) -> None:
        if self._session.training.has_checkpoint:
            self.tick("train")

    @Slot()
    def _on_generated(self) -> None:
        self.tick("generate")

    @Slot()
    def _on_saved(self) -> None:
        self.tick("export")
