"""A config dataclass as a form."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.core.config import Config


class ConfigForm(QWidget):
    """The settings of a config as labelled controls, the advanced ones folded away.

    `changed` is sent for every edit by the user, valid or not; never by `set_config`.
    """

    changed = Signal()

    def __init__(self, initial: Config, exclude: Collection[str] = (), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._initial = initial

    def config(self) -> Config:
        """The config that the form shows; excluded settings are those of the last `set_config`. Raises UsageError."""
        return self._initial

    def set_config(self, config: Config) -> None:
        """Show the values of `config`, which must be of the form's own config type."""

    def problem(self) -> str:
        """What is wrong with the values, in a sentence; empty when `config` will give one."""
        return ""

    def set_locked(self, locked: bool) -> None:
        """Make all controls read-only (while a run trains) or editable; labels stay readable."""
