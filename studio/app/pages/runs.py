"""The Runs page."""

from __future__ import annotations

from studio.app.pages.base import Page


class RunsPage(Page):
    """The Runs page."""
