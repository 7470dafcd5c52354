"""Starting the window, and leaving it. Qt is imported here once it is known that it will not end the process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app import screen
from studio.core import logs
from studio.core.process import prepare_for_training

if TYPE_CHECKING:
    from PySide6.QtCore import QMessageLogContext, QtMsgType

_log = logging.getLogger(__name__)
_LEVELS = {
    "QtDebugMsg": logging.DEBUG,
    "QtInfoMsg": logging.INFO,
    "QtWarningMsg": logging.WARNING,
    "QtCriticalMsg": logging.ERROR,
    "QtFatalMsg": logging.CRITICAL,
}


def main(demo: bool = False, paths: Sequence[Path] = ()) -> int:
    """Open the window and return its exit code. `demo` opens the demo sprites and trains on them for three minutes."""
    logs.start()
    problem = screen.why_not()
    if problem:
        _log.error(problem)
        sys.stderr.write(f"{problem}\n")
        return 1
    prepare_for_training()
    if sys.platform == "win32":
        import torch  # noqa: F401 - there, and only there, Qt's DLLs keep torch's from loading
    from PySide6.QtCore import qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    qInstallMessageHandler(_keep_message)
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    from studio.app.studio import Studio

    _log.info("The window opens on '%s'.", app.platformName())
    try:
        code = Studio(app, demo, paths).run()
    finally:
        qInstallMessageHandler(None)  # what Qt says while Python ends must not call into it
    _log.info("The window has closed with exit code %d.", code)
    return code


def _keep_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
    """Log what Qt says, and say it as Qt does."""
    _log.log(_LEVELS.get(kind.name, logging.WARNING), "Qt: %s", text)
    sys.stderr.write(f"{text}\n")
