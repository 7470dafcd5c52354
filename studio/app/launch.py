"""Starts the window. Checks before importing Qt whether a window can open, because Qt would abort the process."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.core import logs
from studio.data.demo import DemoKind

if TYPE_CHECKING:
    from PySide6.QtCore import QMessageLogContext, QtMsgType

_log = logging.getLogger(__name__)
_LEVELS = {
    "QtDebugMsg": logging.DEBUG, "QtInfoMsg": logging.INFO, "QtWarningMsg": logging.WARNING,
    "QtCriticalMsg": logging.ERROR, "QtFatalMsg": logging.CRITICAL,
}  # fmt: skip
_INSTALL = (
    "On Debian and Ubuntu: sudo apt install "
    "libegl1 libgl1 libxkbcommon0 libdbus-1-3 libfontconfig1 libglib2.0-0 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 "
    "libxcb-image0 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xfixes0 libxcb-xkb1 libxkbcommon-x11-0 "
    "libx11-xcb1 fonts-dejavu-core"
)
_QT_LIBRARIES = ("Qt6Core", "Qt6Gui", "Qt6Widgets", "Qt6Svg")
_MISSING = re.compile(r"(lib[\w.+-]+\.so[.\d]*): cannot open shared object")


def main(demo: DemoKind | None = None, paths: Sequence[Path] = ()) -> int:
    """Open the window and return its exit code. demo: open this demo art and train on it for three minutes."""
    logs.start()
    problem = startup_problem()
    if problem:
        _log.error(problem)
        sys.stderr.write(f"{problem}\n")
        return 1
    if sys.platform == "win32":
        import torch  # noqa: F401 - there, and only there, Qt's DLLs keep torch's from loading
    from PySide6.QtCore import qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    qInstallMessageHandler(_log_message)
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    from studio.app.application import Studio

    _log.info("The window opens on '%s'.", app.platformName())
    try:
        code = Studio(app, demo, paths).run()
    finally:
        qInstallMessageHandler(None)  # Qt must not call Python at exit
    _log.info("The window has closed with exit code %d.", code)
    return code


def has_screen() -> bool:
    """Return whether Qt can connect to a display. Only an X server is tested; other displays count as usable."""
    if sys.platform != "linux" or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY")) and _display_answers()


def startup_problem() -> str:
    """Return why no window can open and what to do; empty if it can."""
    if importlib.util.find_spec("PySide6") is None:
        return "PySide6 is not installed. Install it with: pip install PySide6-Essentials"
    if not has_screen():
        return "No display found. Use the command line instead: 'studio --help'."
    return missing_library()


def missing_library() -> str:
    """Return which system library Qt misses and how to install it; empty if none is missing."""
    spec = importlib.util.find_spec("PySide6")
    if sys.platform != "linux" or spec is None or spec.origin is None:
        return ""
    qt = Path(spec.origin).parent / "Qt"
    libraries = [qt / "lib" / f"lib{name}.so.6" for name in _QT_LIBRARIES]
    chosen = os.environ.get("QT_QPA_PLATFORM", "")
    if chosen.startswith("xcb") or (not chosen and not os.environ.get("WAYLAND_DISPLAY")):
        libraries.append(qt / "plugins" / "platforms" / "libqxcb.so")
    problem = next(filter(None, map(_missing_dependency, libraries)), "")
    return f"The system library {problem} is missing. {_INSTALL}" if problem else ""


def _log_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
    """Write a Qt message to the log and to stderr."""
    _log.log(_LEVELS.get(kind.name, logging.WARNING), "Qt: %s", text)
    sys.stderr.write(f"{text}\n")


def _display_answers() -> bool:
    """Return whether the X server at DISPLAY responds. Qt aborts the process if the server does not respond."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True  # `missing_library` reports it
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    answers = not xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return answers


def _missing_dependency(library: Path) -> str:
    """Return the name of a missing library that `library` needs to load; empty if none is missing."""
    try:
        if library.exists():
            ctypes.CDLL(str(library))
    except OSError as error:
        found = _MISSING.search(str(error))
        return found.group(1) if found else ""
    return ""
