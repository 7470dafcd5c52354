"""The window's fixtures, for the campaigns in which there is one."""

from __future__ import annotations

from tests.app.conftest import session, strays, window

__all__ = ["session", "strays", "window"]
