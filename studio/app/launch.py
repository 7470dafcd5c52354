"""Starting the window, and leaving it. Qt is imported here once it is known that it will not end the process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from studio.app import screen
from studio.core.process import prepare_for_training


def main(demo: bool = False, paths: Sequence[Path] = ()) -> int:
    """Open the window and return its exit code. `demo` opens the demo sprites and trains on them for three minutes."""
    problem = screen.why_not()
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    prepare_for_training()
    if sys.platform == "win32":
        import torch  # noqa: F401 - there, and only there, Qt's DLLs keep torch's from loading
    from PySide6.QtWidgets import QApplication

    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    from studio.app.studio import Studio

    return Studio(app, demo, paths).run()
