"""Godot's AtlasTexture resources: text files (.tres), each of which cuts one sprite out of a picture.

[gd_resource type="AtlasTexture" ...]
[ext_resource type="Texture2D" path="res://art/sheet.png" id="1_abc"]
[resource]
atlas = ExtResource("1_abc")
region = Rect2(0, 0, 16, 16)
margin = Rect2(1, 2, 3, 4)

The path is the project's, which nobody else has: the file name alone counts, in the folder of the .tres file. A margin
is the place of the region in the sprite, and what it adds to the region's width and height.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from studio.data.atlases.base import AtlasFormat, Box, Region, all_named
from studio.data.images.decoding import read_bytes
from studio.data.source_files import Refused, SourceFile

_SUFFIX = ".tres"
_MOST_BYTES = 16 << 10  # of a .tres file that are looked at: one of this kind has some 300
_MOST_FILES = 1000  # .tres files that are looked at for each picture of their folder
_IS_ATLAS = re.compile(r'\s*\[gd_resource [^\]\n]{0,200}type="AtlasTexture"')
_TEXTURE = re.compile(r'^\[ext_resource [^\]\n]{0,500}?\bpath="([^"\n]{1,500})"', re.MULTILINE)
_RECT = r"^{}\s{{0,9}}=\s{{0,9}}Rect2i?\(([^)\n]{{1,99}})\)"
_REGION, _MARGIN = (re.compile(_RECT.format(key), re.MULTILINE) for key in ("region", "margin"))


class GodotAtlas(AtlasFormat):
    """Each .tres file that names the picture is one sprite, called like that file."""

    name = "godot"

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        return all_named(file, _SUFFIX)[:_MOST_FILES]

    def regions(self, file: SourceFile) -> list[Region] | None:
        found = []
        for name in self.descriptions(file):
            text = read_bytes(file.neighbour(name), _MOST_BYTES).decode("utf-8", "replace")
            if _IS_ATLAS.match(text) and file.file_name in map(_last, _TEXTURE.findall(text)):
                found.append(_region(name[: -len(_SUFFIX)], text))
        if found and len(all_named(file, _SUFFIX)) > _MOST_FILES:
            raise Refused("refused", f"a sheet among more than {_MOST_FILES:,} .tres files: move the others away")
        return found or None

    def example(self, folder: Path) -> Path:
        pixels = np.zeros((8, 16, 4), np.uint8)
        pixels[2:6, 1:7] = (200, 60, 40, 255)
        pixels[1:7, 10:14] = (40, 60, 200, 255)
        Image.fromarray(pixels).save(folder / "gems.png")
        for name, x in (("ruby", 0), ("sapphire", 8)):
            text = (
                '[gd_resource type="AtlasTexture" load_steps=2 format=3]\n\n'
                '[ext_resource type="Texture2D" path="res://art/gems.png" id="1"]\n\n'
                f'[resource]\natlas = ExtResource("1")\nregion = Rect2({x}, 0, 8, 8)\n'
            )
            (folder / f"{name}{_SUFFIX}").write_text(text)
        return folder / "gems.png"


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _region(name: str, text: str) -> Region:
    box = _rect(_REGION, text)
    margin = _rect(_MARGIN, text)
    if box is None or margin is None:
        return Region(name, box)
    return Region(name, box, 0, (box.w + margin.w, box.h + margin.h), Box(margin.x, margin.y, box.w, box.h))


def _rect(pattern: re.Pattern[str], text: str) -> Box | None:
    """Godot writes whole numbers, and since it takes others too, those are no place in a picture."""
    found = pattern.search(text)
    try:
        numbers = [float(word) for word in found[1].split(",")] if found else []
    except ValueError:
        return None
    whole = [int(number) for number in numbers if number.is_integer()]
    return Box(*whole) if len(numbers) == len(whole) == 4 else None
