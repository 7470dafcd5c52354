"""JSON as Aseprite, TexturePacker and the studio itself save it beside a sheet.

{"frames": [{"filename": "ruby", "frame": {"x": 0, "y": 0, "w": 16, "h": 16}}, ...], "meta": {...}}, or "frames" as an
object with the file names as its keys. TexturePacker may turn a frame by a quarter clockwise and say "rotated": its "w"
and "h" are then still those of the upright sprite.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from studio.data.atlases.base import AtlasFormat, Box, Region, description, named_like
from studio.data.naming import shown
from studio.data.source_files import Refused, SourceFile


class JsonFrames(AtlasFormat):
    """The JSON file that has the picture's name."""

    name = "json"
    order = -10

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        return named_like(file, ".json")

    def regions(self, file: SourceFile) -> list[Region] | None:
        found = [region for name in self.descriptions(file) for region in _regions(file, name)]
        return found or None

    def example(self, folder: Path) -> Path:
        pixels = np.zeros((8, 16, 4), np.uint8)
        pixels[2:6, 1:7] = (200, 60, 40, 255)
        pixels[1:7, 10:14] = (40, 60, 200, 255)
        frames = [
            {"filename": name, "frame": {"x": x, "y": 0, "w": 8, "h": 8}} for name, x in (("ruby", 0), ("sapphire", 8))
        ]
        (folder / "gems.json").write_text(json.dumps({"frames": frames, "meta": {"image": "gems.png"}}))
        Image.fromarray(pixels).save(folder / "gems.png")
        return folder / "gems.png"


def _regions(file: SourceFile, beside: str) -> list[Region]:
    """Every frame, or none when the JSON is about something else."""
    try:
        content = json.loads(description(file, beside))
    except (ValueError, RecursionError):
        raise Refused("unreadable", f"a sheet, but {shown(beside)} beside it is damaged") from None
    if not isinstance(content, dict) or _about_other(content.get("meta"), file):
        return []
    frames = content.get("frames")
    if isinstance(frames, dict):
        named = list(frames.items())
    elif isinstance(frames, list):
        named = [(_name_of(frame), frame) for frame in frames]
    else:
        return []
    if not named:
        raise Refused("unreadable", "a sheet, but its JSON lists no frames")
    return [_region(name, frame) for name, frame in named]


def _about_other(meta: Any, file: SourceFile) -> bool:
    """Whether the picture that "meta" names is another one beside `file`, and not `file` before it was renamed."""
    image = meta.get("image") if isinstance(meta, dict) else None
    name = image.replace("\\", "/").rpartition("/")[2] if isinstance(image, str) else ""
    return name != file.file_name and name in file.beside


def _region(name: str, frame: Any) -> Region:
    box = _box(frame, "frame")
    if box is None:
        return Region(name, None)
    rotated = bool(frame.get("rotated"))
    if rotated:
        box = Box(box.x, box.y, box.h, box.w)
    size, place = _box(frame, "sourceSize"), _box(frame, "spriteSourceSize")
    if not frame.get("trimmed") or size is None:
        return Region(name, box, int(rotated))
    return Region(name, box, int(rotated), (size.w, size.h), place)


def _box(frame: Any, key: str) -> Box | None:
    """The rectangle under `key`; x and y are 0 where they are not given. None unless all are whole numbers."""
    values = frame.get(key) if isinstance(frame, dict) else None
    if not isinstance(values, dict):
        return None
    numbers = [values.get("x", 0), values.get("y", 0), values.get("w"), values.get("h")]
    return Box(*numbers) if all(type(number) is int for number in numbers) else None


def _name_of(frame: Any) -> str:
    name = frame.get("filename") if isinstance(frame, dict) else None
    return name if isinstance(name, str) else ""
