"""From the command line into the window, and whether there can be one. Qt is imported only by what is called here."""

from __future__ import annotations

import argparse
import os

_UNSEEN = ("offscreen", "minimal", "vnc")


def open_window(args: argparse.Namespace) -> int:
    """Open the window, with the sprites that were named, and return its exit code; where there is no screen, one
    sentence says so.
    """
    from studio.app import launch

    return launch.main(paths=args.paths)


def open_demo() -> int:
    """Open the window with the demo sprites, training."""
    from studio.app import launch

    return launch.main(demo=True)


def obstacle() -> str:
    """Why no window can be seen here, in a sentence; empty when one can."""
    if os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] in _UNSEEN:
        return "Windows are drawn off the screen here (QT_QPA_PLATFORM)."
    from studio.app import launch

    return "There is no screen here." if not launch.has_screen() else launch.why_not()
