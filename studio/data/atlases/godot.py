"""Read Godot resources (.tres): an AtlasTexture describes one sprite of an image, SpriteFrames describe many.

[gd_resource type="AtlasTexture" ...]
[ext_resource type="Texture2D" path="res://art/sheet.png" id="1_abc"]
[resource]
atlas = ExtResource("1_abc")
region = Rect2(0, 0, 16, 16)
margin = Rect2(1, 2, 3, 4)

Only the file name of the path counts: the project folder is unknown. A missing region, or a width or height of 0,
extends to the edge of the image. A margin has the position of the region in the sprite, and the difference between the
sizes of the sprite and the region. SpriteFrames contain AtlasTextures with the same lines, in sections
'[sub_resource type="AtlasTexture" ...]'; their order in an animation is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from studio.data.atlases.base import (
    Atlas,
    AtlasFormat,
    Box,
    Region,
    matches_path,
    read_description,
    read_start,
    siblings_with_suffix,
    whole_numbers,
    write_example_sheet,
)
from studio.data.files.source_files import SourceFile, UnreadableFile

_SUFFIX = ".tres"
_MAX_BYTES = 16 << 10  # searched in a .tres file: an AtlasTexture has about 300 bytes, and image paths come first
_MAX_FILES = 1000  # .tres files searched for an image
_KIND = re.compile(r'\s*\[gd_resource [^\]\n]{0,200}?type="(AtlasTexture|SpriteFrames)"')
_SECTION = re.compile(r"^\[(?:ext|sub)_resource .*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
_IS_ATLAS = re.compile(r'\[sub_resource [^\]\n]{0,200}?type="AtlasTexture"')
_ID = re.compile(r'\[ext_resource [^\]\n]{0,600}?\bid="?([^"\s\]]{1,100})')
_ATLAS = re.compile(r'^atlas\s{0,9}=\s{0,9}ExtResource\(\s?"?([^"\s)]{1,100})', re.MULTILINE)
_NAME = re.compile(r'^resource_name\s{0,9}=\s{0,9}"((?:[^"\\\n]|\\.){1,200})"', re.MULTILINE)
_TEXTURE = re.compile(r'^\[ext_resource [^\]\n]{0,500}?\bpath="([^"\n]{1,500})"', re.MULTILINE)
_RECT = r"^{}\s{{0,9}}=\s{{0,9}}Rect2i?\(([^)\n]{{1,99}})\)"
_REGION, _MARGIN = (re.compile(_RECT.format(key), re.MULTILINE) for key in ("region", "margin"))


class GodotAtlas(AtlasFormat):
    """Reads Godot resources: each AtlasTexture on the image becomes a sprite, named after the resource or its file."""

    name = "godot"

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        return siblings_with_suffix(file, _SUFFIX)[:_MAX_FILES]

    def read(self, file: SourceFile) -> Atlas | None:
        regions: list[Region] = []
        sources = []
        for name in self.descriptions(file):
            text = read_start(file, name, _MAX_BYTES).decode("utf-8", "replace")
            kind, stem = _KIND.match(text), name[: -len(_SUFFIX)]
            if kind is None or not any(matches_path(file, path) for path in _TEXTURE.findall(text)):
                continue
            sources.append(name)
            if kind[1] == "AtlasTexture":
                regions.append(_region(stem, text))
            else:
                regions += _frames(stem, read_description(file, name).decode("utf-8", "replace"), file)
        if regions and len(siblings_with_suffix(file, _SUFFIX)) > _MAX_FILES:
            raise UnreadableFile("refused", f"more than {_MAX_FILES:,} .tres files in the folder: move some away")
        return Atlas(tuple(sources), tuple(regions)) if regions else None

    def example(self, folder: Path) -> Path:
        for name, x in (("ruby", 0), ("sapphire", 8)):
            text = (
                '[gd_resource type="AtlasTexture" load_steps=2 format=3]\n\n'
                '[ext_resource type="Texture2D" path="res://art/gems.png" id="1"]\n\n'
                f'[resource]\natlas = ExtResource("1")\nregion = Rect2({x}, 0, 8, 8)\n'
            )
            (folder / f"{name}{_SUFFIX}").write_text(text)
        return write_example_sheet(folder)


def _frames(stem: str, text: str, image: SourceFile) -> Iterator[Region]:
    """Yield a region for each AtlasTexture on `image` in a SpriteFrames resource. stem: prefix for unnamed textures."""
    image_ids: set[str] = set()
    number = 0
    for found in _SECTION.finditer(text):
        section = found[0]
        texture, key, atlas = _TEXTURE.match(section), _ID.match(section), _ATLAS.search(section)
        if texture and key and matches_path(image, texture[1]):
            image_ids.add(key[1])
        elif _IS_ATLAS.match(section) and atlas and atlas[1] in image_ids:
            number += 1
            name = _NAME.search(section)
            yield _region(re.sub(r"\\(.)", r"\1", name[1]) if name else f"{stem} {number}", section)


def _region(name: str, text: str) -> Region:
    """Parse the region and the margin of an AtlasTexture."""
    region = _REGION.search(text)
    box = _rect(region) if region else Box(0, 0, 0, 0)
    margin = _rect(_MARGIN.search(text))
    if box is None or margin is None or 0 in (box.w, box.h):
        return Region(name, box, zero_fills=True)
    return Region(name, box, 0, (box.w + margin.w, box.h + margin.h), Box(margin.x, margin.y, box.w, box.h))


def _rect(found: re.Match[str] | None) -> Box | None:
    """Parse the numbers x, y, w, h of a matched Rect2; return None without a match and for fractions."""
    numbers = whole_numbers(found[1].split(","), 4) if found else []
    return Box(*numbers) if numbers else None
