"""Base class of the window's pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.state.session import Session
from studio.app.state.undo import UndoHistory
from studio.core.errors import StudioError

if TYPE_CHECKING:
    from studio.app.widgets.plot.time_plot import TimePlot

_PLOT_KINDS = "PNG image (*.png);;SVG drawing (*.svg);;CSV table (*.csv)"


class Page(QWidget):
    """A page of the window."""

    page_requested = Signal(str)  # name of another page to show
    topic = ""  # the guide's topic about the page

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.history = UndoHistory(self)  # for Undo while the page is shown; pages may set the session's history

    def save_plot(self, plot: TimePlot, name: str) -> None:
        """Ask for a path, with `name` as the proposal, and save the plot."""
        path = dialogs.choose_save_file(self, self.session.settings, "Save plot", name, _PLOT_KINDS)
        if path is None:
            return
        try:
            plot.save(path)
        except (StudioError, OSError) as error:
            self.session.show_error(error)
        else:
            self.session.notify_saved([path])

    def save_film(self, run: Path) -> None:
        """Ask for a path and save a run's live samples as an animation."""
        settings, name = self.session.settings, f"{run.name}.gif"
        chosen = dialogs.choose_save_sprites(self, settings, "Save timelapse", name, plays=True)
        if chosen is not None:
            self.session.saving.save_film(run, *chosen)

    def take(self, data: QMimeData) -> bool:
        """Use dropped or pasted files or an image in the page's own way; False opens them on the Sprites page."""
        return False

    def before_show(self) -> None:
        """Update the page before the window shows it."""

    def save_state(self) -> None:
        """Store changed layouts, settings and work; the window calls this about twice a second. Raises OSError."""

    def save_before_close(self) -> None:
        """Store all changes, half-typed texts too, before the window closes. Raises OSError."""
        self.save_state()

    def save_samples(self) -> bool:
        """Ask for a path and save the page's sprites. Return False if the page shows no sprites."""
        return False

    def export_model(self) -> bool:
        """Open the export dialog for the page's model. Return False without a model."""
        return False
