"""What all pages have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.state.session import Session
from studio.core.errors import StudioError

if TYPE_CHECKING:
    from studio.app.widgets.plot.time_plot import TimePlot

_PLOT_KINDS = "PNG picture (*.png);;SVG drawing (*.svg);;CSV table (*.csv)"


class Page(QWidget):
    """A page of the window. page_wanted: the name of another page to show. undo_changed: `undo_title` is another."""

    page_requested = Signal(str)
    undo_changed = Signal()
    has_undo = False  # of its own: what was done to the open sprites is then undone on other pages alone

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def save_plot(self, plot: TimePlot, name: str) -> None:
        """Save a plot, asking where; `name` is proposed."""
        path = dialogs.choose_save_file(self, self.session.settings, "Save the plot", name, _PLOT_KINDS)
        if path is None:
            return
        try:
            plot.save(path)
        except (StudioError, OSError) as error:
            self.session.report(error)
        else:
            self.session.notify_saved([path])

    def save_film(self, run: Path) -> None:
        """Save how a run learnt, asking where."""
        chosen = dialogs.choose_save_sprites(
            self, self.session.settings, "Save how it learnt", f"{run.name}.gif", plays=True
        )
        if chosen is not None:
            self.session.inference.save_film(run, *chosen)

    def before_show(self) -> None:
        """The page is about to be shown."""

    def undo_title(self) -> str:
        """What Undo takes back on this page; empty for nothing. For a page that `has_undo`, as all of these."""
        return ""

    def undo(self) -> None:
        """Take it back."""

    def redo_title(self) -> str:
        """What Redo does again on this page; empty for nothing."""
        return ""

    def redo(self) -> None:
        """Do it again."""

    def save_state(self) -> None:
        """Store layouts, settings and work that changed; the window calls this about twice a second. Raises OSError."""

    def save_before_close(self) -> None:
        """Store all changes, half-typed texts too, before the window closes. Raises OSError."""
        self.save_state()

    def save_samples(self) -> bool:
        """Save the sprites that the page shows, asking where. False when it shows none to save."""
        return False

    def export_model(self) -> bool:
        """Open the export dialog for the page's model. False when there is none."""
        return False
