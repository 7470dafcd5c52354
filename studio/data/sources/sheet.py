"""A sheet: one picture of many sprites, described by files beside it, of any kind that studio.data.atlases knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

import studio.data.atlases
from studio.core.discovery import discover
from studio.core.events import Rgba
from studio.data.atlases.base import AtlasFormat, Region
from studio.data.images.decoding import LARGEST_SIDE, decode, read_bytes
from studio.data.images.frames import pictures_in
from studio.data.naming import shown
from studio.data.options import MOST_IN_SHEET
from studio.data.sources.base import PICTURE_SUFFIXES, Picture, Refused, Remark, Source, SourceFile

_MOST_OVERLAP = 4  # times that the frames together may cover the picture: more is a bomb
_MOST_RESTORED = 16 * LARGEST_SIDE**2  # pixels of all frames together once their trimmed borders are back


class SheetSource(Source):
    """Reads each frame as a sprite. Folders in a frame's name make its class, else the sheet's name does."""

    name = "sheet"
    order = -10

    def claims(self, file: SourceFile) -> bool:
        return file.suffix in PICTURE_SUFFIXES and any(form.descriptions(file) for form in atlas_formats())

    def read(self, file: SourceFile) -> Iterator[Picture | Remark]:
        regions = next(filter(None, (form.regions(file) for form in atlas_formats())), None)
        if regions is None:
            yield from pictures_in(read_bytes(file), file.suffix)
            return
        if len(regions) > MOST_IN_SHEET:
            raise Refused("refused", f"a sheet of {len(regions):,} frames: at most {MOST_IN_SHEET:,} are read")
        decoded = decode(read_bytes(file), file.suffix)
        yield from _cut(decoded.rgba, regions, (shown(file.stem),))
        yield from decoded.remarks

    def example(self, folder: Path) -> Path:
        return atlas_formats()[0].example(folder)


@cache
def atlas_formats() -> tuple[AtlasFormat, ...]:
    """Every way to describe a sheet, in the order in which they are asked."""
    return tuple(discover(studio.data.atlases, AtlasFormat).values())  # type: ignore[type-abstract]


def _cut(sheet: Rgba, regions: list[Region], folders: tuple[str, ...]) -> Iterator[Picture | Remark]:
    height, width = sheet.shape[:2]
    left, room = _MOST_OVERLAP * height * width, _MOST_RESTORED
    used: dict[str, int] = {}
    paths = _paths([region.name for region in regions])
    for number, (region, path) in enumerate(zip(regions, paths, strict=True)):
        part, box = _part(path, number, used), region.box
        if box is None:
            yield Remark("unreadable", "its place in the sheet is not given", part)
        elif not box.inside(width, height):
            yield Remark("unreadable", f"lies outside the sheet, which is {width} x {height} pixels", part)
        elif region.turns is None:
            yield Remark("unsupported", "lies at an angle in the sheet, which is not read: pack it unturned", part)
        elif (left := left - box.w * box.h) < 0:
            raise Refused("refused", f"a sheet whose frames cover it more than {_MOST_OVERLAP} times over")
        else:
            pixels = np.rot90(sheet[box.y : box.y + box.h, box.x : box.x + box.w], region.turns)
            restored = _untrimmed(pixels, region)
            room -= restored.shape[0] * restored.shape[1]
            if room < 0:
                raise Refused("refused", "a sheet whose frames grow out of all proportion when their borders are back")
            yield Picture(restored, part, path[:-1] or folders)


def _untrimmed(pixels: Rgba, region: Region) -> Rgba:
    """A copy of the frame, with the transparent borders that trimming took; without them when they make no sense."""
    whole, place = region.whole, region.place
    if whole is None or place is None or pixels.shape[:2] != (place.h, place.w):
        return pixels.copy()
    if max(whole) > LARGEST_SIDE or not place.inside(*whole):
        return pixels.copy()
    restored = np.zeros((whole[1], whole[0], 4), np.uint8)
    restored[place.y : place.y + place.h, place.x : place.x + place.w] = pixels
    return restored


def _paths(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Split frame names at their folders and drop the leading folders shared by all frames.

    Every frame keeps its last folder: 'art/swords/1.png' and 'art/potions/1.png' -> ('swords', '1'), ('potions', '1').
    """
    paths = [tuple(name.replace("\\", "/").split("/")) for name in names]
    paths = [(*(_shortened(part) for part in path[:-1] if part.strip(" .")), path[-1]) for path in paths]
    shared = 0
    while all(len(path) > shared + 2 and path[shared] == paths[0][shared] for path in paths):
        shared += 1
    return [path[shared:] for path in paths]


def _part(path: Sequence[str], number: int, used: dict[str, int]) -> str:
    """Return a unique name for a frame: its folders and last part, without suffix."""
    *folders, last = path
    stem, dot, suffix = last.rpartition(".")
    if dot and f".{suffix.lower()}" in PICTURE_SUFFIXES | {".ase", ".aseprite"}:
        last = stem
    part = "/".join((*folders, _shortened(last) or f"frame {number}"))
    used[part] = used.get(part, 0) + 1
    return part if used[part] == 1 else f"{part} ({used[part]})"


def _shortened(name: str) -> str:
    return shown(name)[:80].strip()
