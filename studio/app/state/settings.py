"""What the window remembers from one time to the next."""

from __future__ import annotations

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
    """An ini file in the studio's own folder. A value that is missing or damaged is as if it had never been kept."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = QSettings(str(path or paths.home() / "window.ini"), QSettings.Format.IniFormat)
        self._stored: dict[str, QByteArray | str] = {}  # values that this window stored

    def layout(self, name: str) -> QByteArray:
        """The geometry of a window or a splitter; empty when unknown."""
        value = self._file.value(f"layout/{name}")
        return value if isinstance(value, QByteArray) else QByteArray()

    def set_layout(self, name: str, state: QByteArray) -> None:
        """Remember the geometry of a window or a splitter."""
        self._store(f"layout/{name}", state)

    def text(self, name: str, default: str = "") -> str:
        """A remembered word."""
        value = self._file.value(name, default)
        return value if isinstance(value, str) else default

    def set_text(self, name: str, value: str) -> None:
        """Remember a word."""
        self._store(name, value)

    def saves_details(self) -> bool:
        """Whether saved pictures say which model and seed made them, and from what it learnt."""
        return self.text("tells_source", "yes") == "yes"

    def set_saves_details(self, tells: bool) -> None:
        """Remember whether they are to say it."""
        self.set_text("tells_source", "yes" if tells else "no")

    def notifies(self) -> bool:
        """Whether the system is to notify of a run's end while another program is in front."""
        return self.text("notifies", "yes") == "yes"

    def notify(self, notifies: bool) -> None:
        """Remember whether it is to do that."""
        self.set_text("notifies", "yes" if notifies else "no")

    def scheme(self) -> Scheme:
        """Light, dark, or as the system has it."""
        kept = self.text("scheme")
        return cast(Scheme, kept) if kept in ("light", "dark") else "system"

    def values(self, name: str) -> dict[str, Value]:
        """Remembered settings of a form, as JSON gave them; they may be out of date."""
        try:
            return records.parse(self.text(f"forms/{name}", "{}"), dict[str, Value])
        except ValueError:
            return {}

    def set_values(self, name: str, values: Mapping[str, Value]) -> None:
        """Remember the settings of a form."""
        self.set_text(f"forms/{name}", json.dumps(dict(values)))

    def recent(self) -> list[str]:
        """Folders and archives that were opened, the newest first; those that are gone are left out."""
        try:
            kept = records.parse(self.text("recent", "[]"), list[str])
        except ValueError:
            return []
        return [path for path in kept if os.path.exists(path)]  # noqa: PTH110 - Path.exists raises where it may not look

    def add_recent(self, path: Path) -> None:
        """Put a folder or an archive at the head of the recent ones."""
        self.sync()  # first read what other windows stored
        others = [other for other in self.recent() if other != str(path)]
        self.set_text("recent", json.dumps([str(path), *others][:_RECENT]))

    def sync(self) -> None:
        """Write the file now, and read the values that other windows stored."""
        self._file.sync()

    def _store(self, name: str, value: QByteArray | str) -> None:
        """Store a value if this window changed it; Qt writes the file soon after."""
        if self._stored.get(name) != value:
            self._stored[name] = value
            self._file.setValue(name, value)
