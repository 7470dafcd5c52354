"""What tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

TINY = ["--batch-size", "4", "--precision", "fp32", "--holdout", "0.2", "--threads", "1", "--sample-every-s", "1000"]
SMALL = {
    "generator": ["--width", "16"],
    "classifier": ["--width", "16", "--shift-px", "0"],
    "regression": ["--width", "16"],
    "sets": ["--width", "16", "--colours", "16", "--sets", "sheets", "--rows", "down,up", "--columns", "stand,step"],
}


class Said(NamedTuple):
    """What a command wrote."""

    out: str
    err: str

    def objects(self) -> list[dict[str, Any]]:
        """With --json: one for each line."""
        return json_lines(self.out)


Studio = Callable[..., Said]  # the fixture `studio`: words, and the exit code if it is not 0


def training(folder: Path, run: Path, recipe: str, *words: str) -> list[str]:
    """The words that train four steps of a small model."""
    command = ["train", str(folder), "--recipe", recipe, "--out", str(run), "--steps", "4"]
    return [*command, *TINY, *SMALL[recipe], *words]


def json_lines(text: str) -> list[dict[str, Any]]:
    """The objects in JSON lines; each must be strict JSON and have a 'type'."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found = [json.loads(each, parse_constant=refuse) for each in text.splitlines()]
    assert all(isinstance(each["type"], str) for each in found)
    return found
