"""The settings that the window stores between sessions."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from PySide6.QtCore import QByteArray, QSettings

from studio.app.theme import Scheme
from studio.core import paths, records
from studio.core.config import Value

_RECENT = 8


class Settings:
    """The window's ini file in the studio folder. A missing or damaged value reads as its default."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = QSettings(str(path or paths.home() / "window.ini"), QSettings.Format.IniFormat)
        self._stored: dict[str, QByteArray | str] = {}  # values that this window wrote

    def layout(self, name: str) -> QByteArray:
        """Return the stored geometry of a window or splitter; empty if unknown."""
        value = self._file.value(f"layout/{name}")
        return value if isinstance(value, QByteArray) else QByteArray()

    def set_layout(self, name: str, state: QByteArray) -> None:
        """Store the geometry of a window or splitter."""
        self._store(f"layout/{name}", state)

    def text(self, name: str, default: str = "") -> str:
        """Return the stored text `name`, or `default` if no text is stored."""
        value = self._file.value(name, default)
        return value if isinstance(value, str) else default

    def set_text(self, name: str, value: str) -> None:
        """Store the text `value` under `name`."""
        self._store(name, value)

    def saves_details(self) -> bool:
        """Return whether saved images contain generation details: the model, the seed and the training data."""
        return self.text("tells_source", "yes") == "yes"

    def set_saves_details(self, saves: bool) -> None:
        """Store whether saved images contain generation details."""
        self.set_text("tells_source", "yes" if saves else "no")

    def notifies(self) -> bool:
        """Return whether to show a desktop notification when a run ends while another program is in front."""
        return self.text("notifies", "yes") == "yes"

    def set_notifies(self, notifies: bool) -> None:
        """Store whether to show desktop notifications."""
        self.set_text("notifies", "yes" if notifies else "no")

    def scheme(self) -> Scheme:
        """Return the chosen theme: light, dark, or the system's."""
        scheme = self.text("scheme")
        return cast(Scheme, scheme) if scheme in ("light", "dark") else "system"

    def values(self, name: str) -> dict[str, Value]:
        """Return the stored values of a settings form. An older version may have written the values."""
        try:
            return records.parse(self.text(f"forms/{name}", "{}"), dict[str, Value])
        except ValueError:
            return {}

    def set_values(self, name: str, values: Mapping[str, Value]) -> None:
        """Store the values of a settings form."""
        self.set_text(f"forms/{name}", json.dumps(dict(values)))

    def recent(self) -> list[str]:
        """Return the recently opened folders and archives that still exist, newest first."""
        try:
            recent = records.parse(self.text("recent", "[]"), list[str])
        except ValueError:
            return []
        return [path for path in recent if os.path.exists(path)]  # noqa: PTH110 - Path.exists raises PermissionError

    def add_recent(self, path: Path) -> None:
        """Add a folder or archive to the recent ones."""
        self.sync()  # read the other windows' values first
        others = [other for other in self.recent() if other != str(path)]
        self.set_text("recent", json.dumps([str(path), *others][:_RECENT]))

    def sync(self) -> None:
        """Write the file now and read the values that other windows stored."""
        self._file.sync()

    def _store(self, name: str, value: QByteArray | str) -> None:
        """Store a value if it differs from the last stored value; Qt writes the file soon after."""
        if self._stored.get(name) != value:
            self._stored[name] = value
            self._file.setValue(name, value)
