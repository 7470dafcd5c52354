"""Shows saved files in the desktop's file manager."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from studio.app.background.late_import import LateModule

if TYPE_CHECKING:
    import jeepney
    from jeepney.io import blocking
else:
    jeepney, blocking = LateModule("jeepney"), LateModule("jeepney.io.blocking")

_SERVICE, _PATH = "org.freedesktop.FileManager1", "/org/freedesktop/FileManager1"
_TIMEOUT_S = 0.3  # for the reply of the bus, which is local


def show_in_folder(paths: Sequence[Path]) -> None:
    """Open the file manager at the folder of the first path, with the files selected where the system can do so."""
    found = [path.resolve() for path in paths if path.exists()]
    if not found:
        folder = next((parent for parent in paths[0].resolve().parents if parent.is_dir()), None)
        if folder is not None:
            _open_folder(folder)
    elif sys.platform == "win32":
        subprocess.Popen(f'explorer /select,"{found[0]}"')
    elif sys.platform == "darwin":
        subprocess.Popen(["open", "-R", *map(str, found)])
    elif not _select_over_bus(found):
        _open_folder(found[0].parent)


def _open_folder(folder: Path) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


def _select_over_bus(paths: Sequence[Path]) -> bool:
    """Ask the file manager over D-Bus to select files. Return False on a desktop without such a service."""
    errors = (OSError, KeyError, ValueError, RuntimeError, jeepney.DBusErrorResponse)  # no common base class
    with contextlib.suppress(*errors), blocking.open_dbus_connection("SESSION") as bus:
        names: set[str] = set()
        for call in (jeepney.message_bus.ListNames(), jeepney.message_bus.ListActivatableNames()):
            names.update(bus.send_and_get_reply(call, timeout=_TIMEOUT_S).body[0])
        if _SERVICE in names:
            address, uris = jeepney.DBusAddress(_PATH, _SERVICE, _SERVICE), [path.as_uri() for path in paths]
            bus.send(jeepney.new_method_call(address, "ShowItems", "ass", (uris, "")))
            return True
    return False
