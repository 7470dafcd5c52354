"""What opens sprites from the Sprites page."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from studio.app import asking
from studio.app.session import Session


class Opener(QObject):
    """Opens what was dropped, chosen or open before."""

    def __init__(self, session: Session, page: QWidget) -> None:
        super().__init__(page)
        self._session, self._page = session, page

    @Slot(list)
    def open_paths(self, paths: list[str]) -> None:
        """Open files and folders."""
        self._session.importing.open_paths([Path(path) for path in paths])

    @Slot(str)
    def open_path(self, path: str) -> None:
        """Open one file or folder."""
        self.open_paths([path])

    @Slot()
    def browse(self) -> None:
        """Ask for a folder and open it."""
        path = asking.for_folder(self._page, self._session.settings, "Open a folder of sprites")
        if path is not None:
            self._session.importing.open_paths([path])
