"""The window's fixtures, for the campaigns in which there is one."""

from __future__ import annotations

from tests.app.conftest import session, stray_windows, window

__all__ = ["session", "stray_windows", "window"]
