"""The fast mode: a distilled network that draws with fewer steps."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.background.model_jobs import SavedModel
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core import formatting
from studio.core.events import Distilled

_TIP = "Draw nearly the same sprites about four times faster, with fixed guidance and steps."
_NOT_PREPARED = "Fast mode generates about four times faster. Prepare it once; this takes some minutes."
_LIVE = "Fast mode is available after the training."


class FastMode(QWidget):
    """A check box for fast mode, and a button that trains the distilled network.

    The check box needs a chosen model with a distilled network. changed: the check box or the model changed.
    """

    changed = Signal()

    def __init__(self, session: Session, models: ModelChoice) -> None:
        super().__init__()
        self._session, self._models = session, models
        self._distilled_model: SavedModel | None = None  # the model distilled last
        self._result = ""  # its measured speed-up as a text
        self.box = factory.check_box("Fast mode", _TIP)
        prepare = "Train a second network that draws the same with a quarter of the work. This takes some minutes."
        self.prepare = factory.button("Prepare fast mode", prepare)
        self._about = factory.caption("")
        self.setLayout(factory.column(factory.row(self.box, self.prepare, grows=0), self._about))
        self.box.toggled.connect(self.changed)
        self.prepare.clicked.connect(self._on_prepare_clicked)
        models.changed.connect(self._refresh)
        session.inference.busy_changed.connect(self._refresh)
        session.inference.distilled.connect(self._on_distilled)
        self._refresh()

    def is_requested(self) -> bool:
        """Return whether fast mode is on, so that the distilled network draws."""
        return self.box.isChecked() and self.box.isEnabled()

    @Slot()
    def _refresh(self) -> None:
        source, recipe, inference = self._models.source(), self._models.recipe(), self._session.inference
        saved, taught = isinstance(source, SavedModel), self._models.is_quick()
        missing = "" if taught else _NOT_PREPARED if saved else _LIVE
        self.setVisible(recipe is not None and "distil" in recipe.capabilities)
        factory.set_enabled(self.box, missing)
        self.prepare.setVisible(saved and not taught)
        busy = "A model is busy. Try again in a moment." if inference.is_busy() else ""
        no_device = "" if self._models.device() is not None else "Searching for devices…"
        factory.set_enabled(self.prepare, no_device or busy)
        result = self._result if source == self._distilled_model else ""
        self._about.setText(missing or result or _TIP)
        self.changed.emit()

    @Slot()
    def _on_prepare_clicked(self) -> None:
        source, device = self._models.source(), self._models.device()
        if isinstance(source, SavedModel) and device is not None:
            self._distilled_model, self._result = source, ""
            self._session.inference.distil(source, device)

    @Slot(object)
    def _on_distilled(self, found: Distilled) -> None:
        """Show the measured speed, and enable fast mode if the model is still chosen."""
        self._result = formatting.describe_speedup(found.sprites_per_s, found.usual_sprites_per_s, found.alike)
        if self._models.source() == self._distilled_model:
            self.box.setChecked(True)
        self._refresh()
