"""What tests of the command line share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studio.cli import main

TINY = ["--batch-size", "4", "--precision", "fp32", "--holdout", "0.2", "--threads", "1", "--sample-every-s", "1000"]
SMALL = {
    "generator": ["--width", "16"],
    "classifier": ["--width", "16", "--shift-px", "0"],
    "regression": ["--width", "16"],
}


def train(folder: Path, run: Path, recipe: str, *words: str) -> int:
    """Train four steps of a small model."""
    command = ["train", str(folder), "--recipe", recipe, "--out", str(run), "--steps", "4"]
    return main([*command, *TINY, *SMALL[recipe], *words])


def json_lines(text: str) -> list[dict[str, Any]]:
    """The objects in JSON lines; each must be strict JSON and have a 'type'."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found = [json.loads(each, parse_constant=refuse) for each in text.splitlines()]
    assert all(isinstance(each["type"], str) for each in found)
    return found
