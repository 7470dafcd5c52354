"""The settings for completing characters."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.config_form import ConfigForm
from studio.core.errors import UsageError
from studio.engine.sampling.settings import CompleteSettings

_KEY = "complete"  # settings key
_USUAL = CompleteSettings(count=8)


class SetSettings(QWidget):
    """The settings of `CompleteSettings` without the seed. edited: the user changed a setting."""

    edited = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        try:
            settings = CompleteSettings.from_json({**_USUAL.to_json(), **session.settings.values(_KEY)})
        except UsageError:
            settings = _USUAL
        self.form = ConfigForm(settings, exclude=("seed",))
        self.form.changed.connect(self.edited)
        self.setLayout(factory.column(self.form))

    def settings(self) -> CompleteSettings:
        """Return the settings with seed 0. Raises UsageError for an invalid value."""
        settings = self.form.config()
        assert isinstance(settings, CompleteSettings)
        return settings

    def save_state(self) -> None:
        """Store the settings, unless a value is invalid."""
        if not self.form.problem():
            self._session.settings.set_values(_KEY, self.settings().to_json())
