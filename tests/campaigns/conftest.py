"""The window's fixtures, for the campaigns in which there is one."""

from __future__ import annotations

from tests.ui.conftest import session, window

__all__ = ["session", "window"]
