"""The Sprites page."""

from __future__ import annotations

from studio.app.pages.base import Page


class SpritesPage(Page):
    """The Sprites page."""
