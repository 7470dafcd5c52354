"""The part of the system check about Qt, run in a child process: Qt ends the process if no window can open."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from studio.app import launch
from studio.core.events import Event, Progress
from studio.core.formatting import count, percent
from studio.engine.check.findings import Finding, State

_CHECK, _TITLE = "window", "Window"
_INVISIBLE = ("offscreen", "minimal", "vnc")


def check_qt() -> Iterator[Event]:
    """Check Qt's platform, screens and fonts, and whether a window can open."""
    yield Progress(0, 0, "Qt")
    if problem := launch.startup_problem():
        text, _, advice = problem.partition(". ")
        state: State = "problem" if launch.has_screen() else "notice"  # servers have no display
        yield Finding(_CHECK, _TITLE, state, f"{text.rstrip('.')}.", advice)
        return
    from PySide6.QtCore import qVersion
    from PySide6.QtGui import QFontDatabase, QGuiApplication

    app = QGuiApplication.instance() or QGuiApplication(sys.argv[:1])
    assert isinstance(app, QGuiApplication)
    screens = ", ".join(
        f"{screen.size().width()} x {screen.size().height()} at {percent(screen.devicePixelRatio())}"
        for screen in app.screens()
    )
    platform = app.platformName()
    text = f"Qt {qVersion()} on '{platform}'. Screens: {screens or 'none'}."
    if platform in _INVISIBLE:
        yield Finding(_CHECK, _TITLE, "notice", text, "Remove QT_QPA_PLATFORM from the environment to see the window.")
    else:
        yield Finding(_CHECK, _TITLE, "good", text)
    yield fonts_finding(QFontDatabase.families(), QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())


def fonts_finding(families: list[str], fixed: str) -> Finding:
    """Return the finding about fonts. families: all installed. fixed: name of the font for code."""
    if not families:
        advice = "Install a font, on Debian and Ubuntu: sudo apt install fonts-dejavu-core"
        return Finding("fonts", "Fonts", "problem", "No font is installed: the window shows no text.", advice)
    return Finding("fonts", "Fonts", "good", f"{count(len(families), 'family', 'families')}; for code: {fixed}.")
