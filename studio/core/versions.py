"""Which studio and which torch a machine has, in a line that another machine reads. torch is not imported for it."""

from __future__ import annotations

import importlib.metadata
import re
from typing import NamedTuple

import studio

_LINE = re.compile(r"^Sprite Training Studio (\S+) with torch (\S+)$", re.MULTILINE)


class Versions(NamedTuple):
    """Of the studio and of torch: that of 2.11.0+cpu is 2.11.0, whatever it was built for."""

    studio: str
    torch: str

    def __str__(self) -> str:
        return f"studio {self.studio} with torch {self.torch}"


def versions_line() -> str:
    """What `studio --version` prints."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "none"
    return f"Sprite Training Studio {studio.__version__} with torch {torch}"


def versions_in(text: str) -> Versions | None:
    """What such a line says, wherever it stands in a text; None where there is none."""
    found = _LINE.search(text.replace("\r", ""))
    return None if found is None else Versions(found[1], found[2].partition("+")[0])
