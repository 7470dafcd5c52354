"""The Generate page."""

from __future__ import annotations

from studio.app.pages.base import Page


class GeneratePage(Page):
    """The Generate page."""
