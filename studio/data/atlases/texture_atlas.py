"""Read XML atlases of Kenney's packs, Starling, Sparrow and several packers.

<TextureAtlas imagePath="sheet.png">
  <SubTexture name="ruby.png" x="0" y="0" width="16" height="16"/>
</TextureAtlas>

"frameX" and "frameY" are the negative position of a trimmed sprite within "frameWidth" x "frameHeight". "rotated" marks
a sprite after a rotation by 90° clockwise, with the rotated "width" and "height".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from xml.etree.ElementTree import Element

from studio.data.atlases.base import AtlasFormat, Box, Region, whole_numbers, write_example_sheet
from studio.data.atlases.picture_list import DescribedPicture, PictureList
from studio.data.atlases.xml_tree import parse_xml


class TextureAtlas(PictureList, AtlasFormat):
    """Reads .xml files with SubTexture elements; ignores other XML files."""

    name = "xml"
    suffixes: ClassVar = (".xml",)

    def pictures(self, data: bytes, name: str) -> Iterator[DescribedPicture]:
        if b"<TextureAtlas" not in data:
            return
        root = parse_xml(data, name)
        for atlas in root.iter("TextureAtlas"):
            regions = tuple(_region(each) for each in atlas.iter("SubTexture"))
            yield DescribedPicture(atlas.get("imagePath", ""), regions=regions)

    def example(self, folder: Path) -> Path:
        cells = "".join(
            f'<SubTexture name="{name}.png" x="{x}" y="0" width="8" height="8"/>\n'
            for name, x in (("ruby", 0), ("sapphire", 8))
        )
        (folder / "gems.xml").write_text(f'<TextureAtlas imagePath="gems.png">\n{cells}</TextureAtlas>\n')
        return write_example_sheet(folder)


def _region(element: Element) -> Region:
    name, numbers = element.get("name", ""), _numbers(element, "x", "y", "width", "height")
    if not numbers:
        return Region(name, None)
    box = Box(*numbers)
    turns = 1 if element.get("rotated", "").lower() == "true" else 0
    frame = _numbers(element, "frameX", "frameY", "frameWidth", "frameHeight")
    if not frame:
        return Region(name, box, turns)
    width, height = (box.h, box.w) if turns else (box.w, box.h)
    return Region(name, box, turns, (frame[2], frame[3]), Box(-frame[0], -frame[1], width, height))


def _numbers(element: Element, *keys: str) -> list[int]:
    return whole_numbers([element.get(key) for key in keys], len(keys))
