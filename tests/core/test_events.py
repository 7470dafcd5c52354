"""The texts of events."""

from __future__ import annotations

from studio.core.events import Progress


def test_progress_counts_only_what_is_countable() -> None:
    assert Progress(1200, 19200, "sprites read").text() == "1,200 of 19,200 sprites read"
    assert Progress(3, 0, "files found").text() == "3 files found"
    assert Progress(0, 0, "starting").text() == "starting"
    assert Progress(0, 4, "trainings").text() == "0 of 4 trainings"
