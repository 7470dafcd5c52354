"""Lay out a sprite sheet, and describe the sheet as JSON in Aseprite's format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from studio.core.errors import ExportError

COLUMNS = 8  # default


@dataclass(frozen=True)
class SheetLayout:
    """The layout of a sprite sheet: `count` cells of `width` x `height` pixels, row by row."""

    count: int
    width: int
    height: int
    columns: int
    filled: tuple[int, ...] | None = None  # cell number by frame; None if frames fill every cell in order

    def positions(self) -> list[tuple[int, int]]:
        """Return the frames' positions (x, y) in pixels."""
        numbers = range(self.count) if self.filled is None else self.filled
        cells = (divmod(number, self.columns) for number in numbers)
        return [(column * self.width, row * self.height) for row, column in cells]


def check_names(names: Sequence[str], count: int) -> Sequence[str]:
    """Check that `names` are empty or a name for each sprite, and return them. Raises ExportError."""
    if names and len(names) != count:
        raise ExportError(f"There are {len(names):,} names for {count:,} sprites.", "Give one name for each sprite.")
    return names


def sprite_names(names: Sequence[str], classes: Sequence[str], count: int) -> list[str]:
    """Return `names`, or if empty, names from the classes: 'sword 001', 'sword 002', ... Raises ExportError."""
    used: dict[str, int] = {}
    found = []
    for label in check_names(classes, count) or ["sprite"] * count:
        stem = label.rpartition("/")[2] or "sprite"
        used[stem] = used.get(stem, 0) + 1
        found.append(f"{stem} {used[stem]:03d}")
    return list(check_names(names, count)) or found


def sheet_json(
    image: str, grid: SheetLayout, names: Sequence[str], classes: Sequence[str], metadata: Mapping[str, Any],
    durations_ms: Sequence[int], pixels: Literal["RGBA8888", "I8"] = "RGBA8888", *,
    tags: Sequence[tuple[str, int, int]] = (),
) -> bytes:  # fmt: skip
    """Describe a sheet as JSON in the format that Aseprite calls 'Array'. image: the sheet's file name.

    names, durations_ms: by frame. classes: by frame, or empty. Classes become folders in the frame names, without '..',
    because other programs use frame names as paths. tags: animations: name, first and last frame.
    """
    if classes:
        folders = ([part for part in re.split(r"[/\\]", label) if part.strip(" .")] for label in classes)
        names = ["/".join([*parts, name]) for parts, name in zip(folders, names, strict=True)]
    size = {"w": grid.width, "h": grid.height}
    inside = {"rotated": False, "trimmed": False, "spriteSourceSize": {"x": 0, "y": 0, **size}, "sourceSize": size}
    frames = [
        {"filename": name, "frame": {"x": x, "y": y, **size}, **inside, "duration": duration_ms}
        for name, (x, y), duration_ms in zip(names, grid.positions(), durations_ms, strict=True)
    ]
    whole = {"w": grid.columns * grid.width, "h": -(-grid.count // grid.columns) * grid.height}
    meta: dict[str, Any] = {"app": "Sprite Training Studio", "image": image, "format": pixels, "size": whole}
    meta["scale"] = "1"
    if tags:
        meta["frameTags"] = [
            {"name": name, "from": first, "to": last, "direction": "forward"} for name, first, last in tags
        ]
    about = {"frames": frames, "meta": {**{str(key): value for key, value in metadata.items()}, **meta}}
    return (json.dumps(about, indent=1) + "\n").encode()
