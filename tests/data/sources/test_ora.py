"""OpenRaster files: the merged picture inside, and no more than may be unpacked."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from studio.data.files.source_files import SourceImage, UnreadableFile
from studio.data.images.decoding import LARGEST_FILE
from studio.data.sources.ora import OraSource
from tests.data.making import Pixels, found, imported, png, png_of, sprite


def ora(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("mimetype", "image/openraster", zipfile.ZIP_STORED)
        for name, data in members:
            archive.writestr(name, data)
    return packed.getvalue()


def read(path: Path, data: bytes) -> list[Pixels]:
    path.write_bytes(data)
    return [item.rgba for item in OraSource().read(found(path)) if isinstance(item, SourceImage)]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_merged_picture_is_read(tmp_path: Path, method: int) -> None:
    rgba = sprite(1)
    rgba[2, 2, 3] = 77
    members = [("stack.xml", b"<image/>"), ("data/layer0.png", png_of(sprite(2))), ("mergedimage.png", png_of(rgba))]
    (picture,) = read(tmp_path / "hero.ora", ora(*members, method=method))
    assert np.array_equal(picture, rgba)
    event = imported(tmp_path)
    assert event.sprites.names == ("hero.ora",) and not event.quarantine


@pytest.mark.parametrize(
    ("data", "group", "words"),
    [
        (b"", "unreadable", "no bytes"),
        (b"no archive", "unreadable", "not a zip archive"),
        (ora(("stack.xml", b"<image/>")), "unsupported", "without a merged image"),
        (ora(("mergedimage.png", b"text")), "unreadable", "not a picture"),
        (ora(("mergedimage.png", png(50_000, 50_000, 8, 6, [bytes(9)]))), "refused", "50,000 x 50,000"),
        (ora(("mergedimage.png", png_of(sprite(1))))[:-30], "unreadable", "cut off"),
    ],
    ids=["empty", "text", "no image", "bad image", "huge", "cut off"],  # the archives hold the time of day
)
def test_files_without_an_image_are_refused(tmp_path: Path, data: bytes, group: str, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words) as refused:
        read(tmp_path / "a.ora", data)
    assert refused.value.group == group


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = ora(("mergedimage.png", bytes(LARGEST_FILE + 1)))
    assert len(bomb) < 1 << 20
    with pytest.raises(UnreadableFile, match="at most 80 MB"):
        read(tmp_path / "a.ora", bomb)
