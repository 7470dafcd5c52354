"""Lessons by name, sorted as on the path."""

from functools import cache

import studio.lab.lessons
from studio.core.discovery import discover, find_plugin
from studio.lab.lessons.base import Lesson


@cache
def lessons() -> dict[str, Lesson]:
    """Return all lessons by name, sorted by `order`."""
    return discover(studio.lab.lessons, Lesson)  # type: ignore[type-abstract]


def lesson(name: str) -> Lesson:
    """Return a lesson by name, or by number on the path, from 1. Raises UsageError for an unknown lesson."""
    known = list(lessons().values())
    if name.isdecimal() and 1 <= int(name) <= len(known):
        return known[int(name) - 1]
    return find_plugin(lessons(), name, "lesson")


def number_of(chosen: Lesson) -> int:
    """Return the number of a lesson on the path, from 1."""
    return list(lessons()).index(chosen.name) + 1
