"""Exchange the versions of studio and torch between computers, as a line of text, without importing torch."""

from __future__ import annotations

import importlib.metadata
import re
from typing import NamedTuple

import studio

_LINE = re.compile(r"^Sprite Training Studio (\S+) with torch (\S+)$", re.MULTILINE)


class Versions(NamedTuple):
    """Versions of the studio and of torch, without torch's build suffix: 2.11.0 for 2.11.0+cpu."""

    studio: str
    torch: str

    def __str__(self) -> str:
        return f"studio {self.studio} with torch {self.torch}"


def versions_line() -> str:
    """Return the line that `studio --version` prints."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "none"
    return f"Sprite Training Studio {studio.__version__} with torch {torch}"


def versions_in(text: str) -> Versions | None:
    """Find a line of `studio --version` in a text; return None if the text has no such line."""
    found = _LINE.search(text.replace("\r", ""))
    return None if found is None else Versions(found[1], found[2].partition("+")[0])
