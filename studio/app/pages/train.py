"""The Train page."""

from __future__ import annotations

from studio.app.pages.base import Page


class TrainPage(Page):
    """The Train page."""

    def start(self) -> None:
        """Start training with what the page shows."""
