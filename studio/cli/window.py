"""Open the window from the command line. Only calls of these functions import Qt."""

from __future__ import annotations

import argparse
import os

from studio.data.demo import DemoKind

_INVISIBLE_PLATFORMS = ("offscreen", "minimal", "vnc")


def open_window(args: argparse.Namespace) -> int:
    """Open the window with the sprites in `args.paths`; return the exit code. Without a screen, print why not."""
    from studio.app import launch

    return launch.main(paths=args.paths)


def open_demo(kind: DemoKind) -> int:
    """Open the window and start training on the demo sprites or characters."""
    from studio.app import launch

    return launch.main(demo=kind)


def obstacle() -> str:
    """Return why no window can be shown, as a sentence; empty if a window can be shown."""
    if os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] in _INVISIBLE_PLATFORMS:
        return "QT_QPA_PLATFORM hides all windows."
    from studio.app import launch

    return "There is no screen." if not launch.has_screen() else launch.startup_problem()
