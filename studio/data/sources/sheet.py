"""A sheet: one picture of many sprites with a JSON file beside it, as Aseprite and the studio itself save them.

{"frames": [{"filename": "ruby", "frame": {"x": 0, "y": 0, "w": 16, "h": 16}}, ...], "meta": {...}}, or "frames" as an
object with the file names as its keys. Trimmed frames get their transparent borders back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from studio.core.events import Rgba
from studio.data.decoding import LARGEST_SIDE, decode, read_bytes
from studio.data.naming import shown
from studio.data.sources.base import PICTURE_SUFFIXES, Found, Picture, Refused, Remark, Source

_MOST_FRAMES = 30_000
_LARGEST_JSON = 8 << 20  # bytes; reading it holds up every other thread
_MOST_OVERLAP = 4  # times that the frames together may cover the picture: more is a bomb


@dataclass(frozen=True, slots=True)
class _Box:
    """A rectangle in pixels."""

    x: int
    y: int
    w: int
    h: int

    def inside(self, width: int, height: int) -> bool:
        return self.w > 0 and self.h > 0 and 0 <= self.x <= width - self.w and 0 <= self.y <= height - self.h


class SheetSource(Source):
    """Every frame is a sprite, and the sheet's name is a class."""

    name = "sheet"
    priority = 10

    def claims(self, file: Found) -> bool:
        return file.suffix in PICTURE_SUFFIXES and f"{file.stem}.json" in file.beside

    def read(self, file: Found) -> Iterator[Picture | Remark]:
        frames = _frames(file)
        decoded = decode(read_bytes(file), file.suffix)
        if frames is None:
            yield Picture(decoded.rgba)
        else:
            yield from _cut(decoded.rgba, frames, (file.name.rpartition("/")[2].rpartition(".")[0],))
        yield from decoded.remarks

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


def _frames(file: Found) -> list[tuple[str, Any]] | None:
    """Name and description of every frame, or None when the JSON beside the picture is about something else."""
    beside = f"{file.stem}.json"
    data = read_bytes(file.neighbour(beside), _LARGEST_JSON + 1)
    if len(data) > _LARGEST_JSON:
        raise Refused("refused", f"a sheet whose JSON is larger than {_LARGEST_JSON >> 20} MB")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("unreadable", f"a sheet, but {shown(beside)} beside it is damaged") from None
    frames = content.get("frames") if isinstance(content, dict) else None
    if isinstance(frames, dict):
        named = list(frames.items())
    elif isinstance(frames, list):
        named = [(_name_of(frame), frame) for frame in frames]
    else:
        return None
    if not named:
        raise Refused("unreadable", "a sheet, but its JSON lists no frames")
    if len(named) > _MOST_FRAMES:
        raise Refused("refused", f"a sheet of {len(named):,} frames: at most {_MOST_FRAMES:,} are read")
    return named


def _cut(sheet: Rgba, frames: list[tuple[str, Any]], folders: tuple[str, ...]) -> Iterator[Picture | Remark]:
    height, width = sheet.shape[:2]
    left = _MOST_OVERLAP * height * width
    used: dict[str, int] = {}
    for number, (name, frame) in enumerate(frames):
        part = _part(name, number, used)
        box = _box(frame, "frame")
        if box is None:
            yield Remark("unreadable", "its place in the sheet is not given", part)
        elif not box.inside(width, height):
            yield Remark("unreadable", f"lies outside the sheet, which is {width} x {height} pixels", part)
        elif frame.get("rotated"):
            yield Remark("unsupported", "lies turned in the sheet, which is not read: pack the sheet unrotated", part)
        elif (left := left - box.w * box.h) < 0:
            raise Refused("refused", f"a sheet whose frames cover it more than {_MOST_OVERLAP} times over")
        else:
            pixels = sheet[box.y : box.y + box.h, box.x : box.x + box.w]
            yield Picture(_untrimmed(pixels, frame), part, folders)


def _untrimmed(pixels: Rgba, frame: dict[str, Any]) -> Rgba:
    """A copy of the frame, with the transparent borders that trimming took; without them when they make no sense."""
    size, place = _box(frame, "sourceSize"), _box(frame, "spriteSourceSize")
    if not frame.get("trimmed") or size is None or place is None or pixels.shape[:2] != (place.h, place.w):
        return pixels.copy()
    if max(size.w, size.h) > LARGEST_SIDE or not place.inside(size.w, size.h):
        return pixels.copy()
    whole = np.zeros((size.h, size.w, 4), np.uint8)
    whole[place.y : place.y + place.h, place.x : place.x + place.w] = pixels
    return whole


def _box(frame: Any, key: str) -> _Box | None:
    """The rectangle under `key`; x and y are 0 where they are not given. None unless all are whole numbers."""
    values = frame.get(key) if isinstance(frame, dict) else None
    if not isinstance(values, dict):
        return None
    numbers = [values.get("x", 0), values.get("y", 0), values.get("w"), values.get("h")]
    return _Box(*numbers) if all(type(number) is int for number in numbers) else None


def _name_of(frame: Any) -> str:
    name = frame.get("filename") if isinstance(frame, dict) else None
    return name if isinstance(name, str) else ""


def _part(name: str, number: int, used: dict[str, int]) -> str:
    """A short name for a frame, unlike those before it: the file's own, without folders and suffix."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, dot, suffix = last.rpartition(".")
    if dot and f".{suffix.lower()}" in PICTURE_SUFFIXES | {".ase", ".aseprite"}:
        last = stem
    last = shown(last)[:80].strip() or f"frame {number}"
    used[last] = used.get(last, 0) + 1
    return last if used[last] == 1 else f"{last} ({used[last]})"
