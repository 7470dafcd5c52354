"""Read JSON files that Aseprite, TexturePacker, EaselJS and the studio save beside a sheet.

{"frames": [{"filename": "ruby", "frame": {"x": 0, "y": 0, "w": 16, "h": 16}}, ...], "meta": {...}}, or "frames" as an
object with the file names as keys; Aseprite may repeat a key. TexturePacker marks a frame rotated by 90° clockwise as
"rotated"; "w" and "h" are the size of the upright sprite. For Phaser 3, TexturePacker writes a "textures" list of
images with frames. EaselJS lists frames as [x, y, width, height, image number].

"meta.image" names the image. Without "meta.image", hero.json and hero.png.json describe hero.png. "meta.slices" of
an Aseprite file with a single frame are the cells of a sheet.
https://createjs.com/docs/easeljs/classes/SpriteSheet.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

from studio.core.names import escape_unprintable
from studio.data.atlases.base import (
    Atlas,
    AtlasFormat,
    Box,
    FolderKey,
    Region,
    base_name,
    casefolded,
    find_sibling,
    matches_path,
    read_description,
    siblings_with_suffix,
    whole_number,
    whole_numbers,
    write_example_sheet,
)
from studio.data.files.source_files import SourceFile, UnreadableFile

_SUFFIX = ".json"
_MAX_FILES = 1000  # JSON files of a folder searched for "image" entries
_MAX_SLICES = 1000  # slices compared for overlaps, in pairs
_SHEET_SUFFIXES = (".png", ".webp", ".bmp", ".tga")  # hero.json describes hero.png, not the preview hero.gif


@dataclass(frozen=True, slots=True)
class _Page:
    """The frames that a JSON file lists for one image. image: path of the image; '' if the file has no path."""

    image: str
    size: tuple[int, int] | None
    frames: Any
    slices: Any = None


class _Object(dict[str, Any]):
    """A JSON object that keeps repeated keys. repeated: all (key, value) pairs if a key repeats, else []."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = pairs if len(pairs) > len(self) else []


class JsonFrames(AtlasFormat):
    """Reads JSON files with frames. A file describes the image in "meta.image", or an image with an equal name."""

    name = "json"
    order = -10

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        return siblings_with_suffix(file, _SUFFIX)

    def read(self, file: SourceFile) -> Atlas | None:
        problem = None
        for name, same_stem in _candidates(file):
            try:
                atlas = _atlas(file, name, same_stem=same_stem)
            except UnreadableFile as error:
                problem = problem or error
            else:
                if atlas is not None:
                    return atlas
        if problem is not None:
            raise problem
        return None

    def example(self, folder: Path) -> Path:
        frames = [
            {"filename": name, "frame": {"x": x, "y": 0, "w": 8, "h": 8}} for name, x in (("ruby", 0), ("sapphire", 8))
        ]
        (folder / "gems.json").write_text(json.dumps({"frames": frames, "meta": {"image": "gems.png"}}))
        return write_example_sheet(folder)


def _candidates(file: SourceFile) -> Iterator[tuple[str, bool]]:
    """Yield (name, same_stem) for each JSON file that may describe the image `file`, files with equal stems first."""
    same_stem = {find_sibling(file, f"{name}{_SUFFIX}") for name in (file.file_name, file.stem)} - {""}
    yield from ((name, True) for name in sorted(same_stem))
    others = _by_image(FolderKey(file)).get(casefolded(file.file_name), ())
    yield from ((name, False) for name in others if name not in same_stem)


@lru_cache(maxsize=8)  # called for every image of a folder
def _by_image(folder: FolderKey) -> dict[str, list[str]]:
    """Map each image name, case-folded, to the JSON files of the folder that name the image; skip unusable files."""
    found: dict[str, list[str]] = {}
    for name in siblings_with_suffix(folder.file, _SUFFIX)[:_MAX_FILES]:
        with suppress(OSError, UnreadableFile):
            for page in _pages(_content(folder.file, name)):
                found.setdefault(casefolded(base_name(page.image)), []).append(name)
    return found


def _content(file: SourceFile, name: str) -> Any:
    try:
        return json.loads(read_description(file, name), object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        raise UnreadableFile("unreadable", f"{escape_unprintable(name)} is not valid JSON") from None


def _pages(content: Any) -> Iterator[_Page]:
    """Yield a page for each image in the parsed JSON `content`; no pages for JSON without frames."""
    if not isinstance(content, dict):
        return
    textures, images, frames = content.get("textures"), content.get("images"), content.get("frames")
    if isinstance(textures, list):
        for texture in textures:
            if isinstance(texture, dict) and isinstance(texture.get("frames"), dict | list):
                yield _Page(_text(texture, "image"), _size(texture), texture["frames"])
    elif isinstance(images, list) and isinstance(frames, list):
        for number, image in enumerate(images):
            lists = (frame for frame in frames if isinstance(frame, list))
            own = [frame for frame in lists if whole_number(frame[4] if len(frame) > 4 else 0) == number]
            yield _Page(image if isinstance(image, str) else "", None, own)
    elif isinstance(frames, dict | list):
        meta = content.get("meta")
        yield _Page(_text(meta, "image"), _size(meta), frames, meta.get("slices") if isinstance(meta, dict) else None)


def _text(values: Any, key: str) -> str:
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, str) else ""


def _size(values: Any) -> tuple[int, int] | None:
    size = _box(values.get("size")) if isinstance(values, dict) else None
    return (size.w, size.h) if size else None


def _atlas(file: SourceFile, name: str, *, same_stem: bool) -> Atlas | None:
    """Read the sprite positions in the image `file` from the JSON file `name`; None for a file about other images.

    same_stem: whether the two files have the same stem. Raises UnreadableFile for frames without positions.
    """
    pages = list(_pages(_content(file, name)))
    page = next((page for page in pages if page.image and matches_path(file, page.image)), None)
    size_decides = False
    if page is None and same_stem and len(pages) == 1:
        page = pages[0]
        image = find_sibling(file, base_name(page.image))
        # s.webp beside s.png and s.json: the sheet in a second format, or a smaller preview.
        size_decides = bool(image) and casefolded(image.rpartition(".")[0]) == casefolded(file.stem)
        if (image and not size_decides) or (not image and not page.image and _is_preview(file)):
            return None
    if page is None:
        return None
    regions = _regions(page)
    if all(region.box is None for region in regions):
        lists = "frames without positions" if regions else "no frames"
        raise UnreadableFile("unreadable", f"{escape_unprintable(name)} lists {lists}")
    return Atlas((name,), regions, page.size, size_decides)


def _is_preview(file: SourceFile) -> bool:
    """Return whether `file` is a GIF beside a sheet with the same stem: hero.gif beside hero.png."""
    return file.suffix == ".gif" and any(find_sibling(file, f"{file.stem}{suffix}") for suffix in _SHEET_SUFFIXES)


def _regions(page: _Page) -> tuple[Region, ...]:
    """Return the frames of a page; for a single frame with several slices, the slices."""
    frames = page.frames
    if isinstance(frames, _Object):
        named = frames.repeated or list(frames.items())
    else:
        named = [(_text(frame, "filename"), frame) for frame in frames]
    regions = tuple(_region(name, frame) for name, frame in named)
    return (_slices(page.slices, regions[0]) if len(regions) == 1 else ()) or regions


def _slices(slices: Any, frame: Region) -> tuple[Region, ...]:
    """Return the slices of a single frame as regions of the sheet; () for overlaps and fewer than two slices."""
    if not isinstance(slices, list) or frame.box is None or frame.turns:
        return ()
    left, top = frame.box.x, frame.box.y
    if frame.place is not None:
        left, top = left - frame.place.x, top - frame.place.y
    found = []
    for part in slices:
        keys = part.get("keys") if isinstance(part, dict) else None
        first = keys[0] if isinstance(keys, list) and keys else None
        box = _box(first.get("bounds")) if isinstance(first, dict) else None
        if box is not None:
            found.append(Region(_text(part, "name"), Box(box.x + left, box.y + top, box.w, box.h)))
    boxes = [region.box for region in found if region.box]
    several = 2 <= len(boxes) <= _MAX_SLICES
    return tuple(found) if several and not any(one.overlaps(two) for one, two in combinations(boxes, 2)) else ()


def _region(name: str, frame: Any) -> Region:
    """Parse a frame: an object of Aseprite or TexturePacker, or a list [x, y, width, height, ...] of EaselJS."""
    if isinstance(frame, list):
        return Region(name, _box(dict(zip("xywh", frame, strict=False))))
    box = _box(frame.get("frame")) if isinstance(frame, dict) else None
    if box is None:
        return Region(name, None)
    rotated = _flag(frame, "rotated")
    if rotated:
        box = Box(box.x, box.y, box.h, box.w)
    size, place = _box(frame.get("sourceSize")), _box(frame.get("spriteSourceSize"))
    if not _flag(frame, "trimmed") or size is None:
        return Region(name, box, int(rotated))
    return Region(name, box, int(rotated), (size.w, size.h), place)


def _flag(frame: dict[str, Any], key: str) -> bool:
    """Return `frame[key]` as a bool. A text is True only if it reads "true", in upper or lower case."""
    value = frame.get(key)
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)


def _box(values: Any) -> Box | None:
    """Convert a JSON object {"x", "y", "w", "h"} to a box; a missing x or y is 0. Return None for other values."""
    found = values if isinstance(values, dict) else {}
    numbers = whole_numbers([found.get("x", 0), found.get("y", 0), found.get("w"), found.get("h")], 4)
    return Box(*numbers) if numbers else None
