"""XML atlases of Kenney's packs and Starling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.data.making import imported, notes, reasons, sprite, write

TALL = sprite(1, 6, 10)
ATLAS = """\
<?xml version="1.0" encoding="utf-8"?>
<TextureAtlas imagePath="{0}">
  <SubTexture name="gems/ruby.png" x="0" y="0" width="8" height="8"/>
  <SubTexture name="hero/tall.png" x="8" y="0" width="10" height="6" rotated="true"
    frameX="-9" frameY="-1" frameWidth="16" frameHeight="16"/>
  <SubTexture name="away" x="90" y="0" width="8" height="8"/>
  <SubTexture name="nowhere"/>
</TextureAtlas>
"""


@pytest.mark.parametrize(("name", "image"), [("s.xml", "s.png"), ("Any.XML", "art/S.PNG"), ("s.xml", "sheet.png")])
def test_sprites_with_names_folders_trimming_and_rotation(tmp_path: Path, name: str, image: str) -> None:
    folder = tmp_path / "set"
    sheet = np.zeros((32, 32, 4), np.uint8)
    sheet[:8, :8], sheet[:6, 8:18] = sprite(0), np.rot90(TALL, -1)
    write(folder / "s.png", sheet)
    (folder / name).write_text(ATLAS.format(image))
    (folder / "notes.xml").write_text("<notes/>")
    event = imported(folder, size=16)
    assert event.sprites.names == ("s.png#gems/ruby", "s.png#hero/tall")
    assert event.sprites.class_names == ("gems", "hero")
    assert (event.sprites.rgba[1, 1:11, 9:15] == TALL).all()
    assert "outside" in reasons(event)["s.png#away"] and "missing" in reasons(event)["s.png#nowhere"]


@pytest.mark.parametrize("text", ["<TextureAtlas", '<TextureAtlas imagePath="s.png"/>'])
def test_a_damaged_or_empty_atlas_keeps_its_picture(tmp_path: Path, text: str) -> None:
    write(tmp_path / "set" / "s.png", sprite(0))
    (tmp_path / "set" / "s.xml").write_text(text)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png",) and "s.xml" in notes(event, "description")["s.png"]
