"""Figures of real graphics cards for the lessons, measured once and shipped with the studio.

tests/bench/bench_lessons.py measures the figures and writes the file.
"""

from dataclasses import dataclass
from functools import cache

from studio.core import paths, records
from studio.lab.lessons.base import Lesson


@dataclass(frozen=True)
class Card:
    """A graphics card. lessons: figures by lesson name."""

    name: str
    date: str  # date of the measurement: '2026-11-28'
    torch: str  # version
    lessons: dict[str, dict[str, float | str]]


@cache
def cards() -> tuple[Card, ...]:
    """Return the measured cards."""
    return records.parse((paths.assets() / "lessons" / "cards.json").read_bytes(), tuple[Card, ...])


def card_sentences(lesson: Lesson) -> tuple[str, ...]:
    """Return a sentence per card with figures of the lesson."""
    return tuple(
        f"{card.name}, measured on {card.date} with PyTorch {card.torch}: {lesson.card_text(card.lessons[lesson.name])}"
        for card in cards()
        if lesson.name in card.lessons
    )
