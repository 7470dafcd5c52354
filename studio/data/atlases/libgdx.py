"""Read .atlas files of libGDX, Spine and several packers, in the old syntax and the syntax since libGDX 1.9.13.

A page has the name of an image and 'key: value' lines, then the name of each sprite with its own 'key: value' lines; a
blank line ends the page. Old keys: 'xy', 'size', 'orig' and 'offset'; new keys: 'bounds' and 'offsets'.
https://github.com/libgdx/libgdx, TextureAtlas.java
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from studio.core.names import escape_unprintable
from studio.data.atlases.base import (
    Atlas,
    AtlasFormat,
    Box,
    Region,
    exceeds_size_limit,
    matches_path,
    read_description,
    siblings_with_suffix,
    whole_numbers,
    write_example_sheet,
)
from studio.data.files.source_files import SourceFile, UnreadableFile

_TURNS = {"": 0, "false": 0, "0": 0, "true": 3, "90": 3, "180": 2, "270": 1}  # "rotate": degrees anticlockwise
Values = dict[str, str]


class LibgdxAtlas(AtlasFormat):
    """Reads .atlas files of libGDX and Spine. A file may have any name and describe several images, each by name."""

    name = "libgdx"

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        return siblings_with_suffix(file, ".atlas")

    def read(self, file: SourceFile) -> Atlas | None:
        for name in self.descriptions(file):
            if name.rpartition(".")[0] != file.stem and exceeds_size_limit(file, name):
                continue  # a large .atlas file of another program
            atlas = _atlas(name, read_description(file, name).decode("utf-8", "replace"), file)
            if atlas is not None and not atlas.regions:
                raise UnreadableFile("unreadable", f"{escape_unprintable(name)} lists no sprites of this image")
            if atlas is not None:
                return atlas
        return None

    def example(self, folder: Path) -> Path:
        lines = ["gems.png", "size: 16, 8", "ruby", "  xy: 0, 0", "  size: 8, 8", "sapphire", "  bounds: 8, 0, 8, 8"]
        (folder / "gems.atlas").write_text("\n".join(lines))
        return write_example_sheet(folder)


def _atlas(source: str, text: str, image: SourceFile) -> Atlas | None:
    """Parse the content `text` of an .atlas file; return the sprites of `image`, or None if no page has this name."""
    lines = (line.strip() for line in text.splitlines())
    pages = (list(page) for filled, page in groupby(lines, key=bool) if filled)
    matching = [page[1:] for page in pages if matches_path(image, page[0])]
    if not matching:
        return None
    (_, page), *entries = (entry for lines in matching for entry in _entries(lines))
    size = _numbers(page, "size", 2)
    return Atlas(
        (source,),
        tuple(_region(name, values) for name, values in entries if name),
        size=(size[0], size[1]) if size else None,
        premultiplied=page.get("pma", "").lower() == "true",
    )


def _entries(lines: list[str]) -> Iterator[tuple[str, Values]]:
    """Parse a page: yields ('', values of the page), then (name, values) for each sprite."""
    name, values = "", Values()
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            values[key.strip().lower()] = value.strip()
            continue
        yield name, values
        name, values = line, Values()
    yield name, values


def _region(name: str, values: Values) -> Region:
    """Parse a sprite, with old or new keys."""
    index = values.get("index", "-1")
    name = name if index == "-1" else f"{name} {index}"
    upright = _numbers(values, "bounds", 4) or _numbers(values, "xy", 2) + _numbers(values, "size", 2)
    if len(upright) != 4:
        return Region(name, None)
    x, y, width, height = upright
    turns = _TURNS.get(values.get("rotate", "").lower())
    box = Box(x, y, height, width) if turns in (1, 3) else Box(x, y, width, height)
    trimmed = _numbers(values, "offsets", 4) or _numbers(values, "offset", 2) + _numbers(values, "orig", 2)
    if len(trimmed) != 4 or trimmed[2:] == upright[2:]:
        return Region(name, box, turns)
    left, bottom, whole_width, whole_height = trimmed
    place = Box(left, whole_height - bottom - height, width, height)
    return Region(name, box, turns, (whole_width, whole_height), place)


def _numbers(values: Values, key: str, count: int) -> list[int]:
    """Parse the value of `key`, `count` whole numbers separated by commas; return [] for other values."""
    return whole_numbers(values.get(key, "").split(","), count)
