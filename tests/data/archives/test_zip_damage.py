"""Zip archives that are hostile, broken or something else: a reason for each, and the rest goes on."""

from __future__ import annotations

import io
import stat
import struct
import zlib
from pathlib import Path

import pytest

from studio.data.archives import directory as zip_directory
from studio.data.archives import zip_archive
from studio.data.archives.unpacking import unpacked
from studio.data.images.decoding import LARGEST_FILE, read_bytes
from studio.data.reading.finding import files_under, roots_of
from studio.data.source_files import ArchiveEntry, Refused, SourceFile
from tests.data.making import imported, png_of, reasons, sprite, write, zipped

GOOD = png_of(sprite(0))
# Fields of a record in the directory: their place in it and their layout.
FLAGS, METHOD, CRC, PACKED, SIZE, MODE, OFFSET = (
    (8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (40, "<H"), (42, "<I"),
)  # fmt: skip


def changed(path: Path, name: bytes, field: tuple[int, str], value: int) -> None:
    """Write a field of the record of that name in the directory of an archive."""
    data = bytearray(path.read_bytes())
    struct.pack_into(field[1], data, data.rindex(name) - 46 + field[0], value)
    path.write_bytes(data)


def test_members_that_can_not_be_read(tmp_path: Path) -> None:
    names = ("good", "locked", "odd", "link", "pipe", "bomb", "thin", "gone", "crc", "short", "long", "huge")
    members = {f"{name}.png": png_of(sprite(seed)) for seed, name in enumerate(names)}
    archive = zipped(tmp_path / "set.zip", {**members, "inner.zip": b"PK", "bomb.png": bytes(4 << 20)})
    changed(archive, b"locked.png", FLAGS, 1)
    changed(archive, b"odd.png", METHOD, 9)
    changed(archive, b"link.png", MODE, stat.S_IFLNK | 0o777)
    changed(archive, b"pipe.png", MODE, stat.S_IFIFO)
    changed(archive, b"thin.png", PACKED, 1 << 30)
    changed(archive, b"gone.png", OFFSET, 0xFFFFFFFE)
    changed(archive, b"crc.png", CRC, 7)
    changed(archive, b"short.png", SIZE, 60)  # the stream goes on
    changed(archive, b"long.png", SIZE, 5000)
    changed(archive, b"huge.png", SIZE, LARGEST_FILE + 1)
    changed(archive, b"huge.png", PACKED, LARGEST_FILE // 10)
    event = imported(archive)
    assert event.sprites.names == ("good.png",)
    parts = {
        "locked": "password", "odd": "in a way that is not read", "link": "a link", "pipe": "pipe", "inner": "unpack",
        "bomb": "1,000 times", "thin": "impossible size", "gone": "cut off", "crc": "checksum", "short": "checksum",
        "long": "cut off", "huge": "too large: 80 MB",
    }  # fmt: skip
    said = reasons(event)
    assert {name.partition(".")[0] for name in said} == set(parts)
    assert all(parts[name.partition(".")[0]] in reason for name, reason in said.items()), said


def test_archives_that_ask_for_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zipped(tmp_path / "set" / "many.zip", {f"{seed}.png": png_of(sprite(seed)) for seed in range(9)})
    write(tmp_path / "set" / "a.png", sprite(20))
    monkeypatch.setattr(zip_archive, "_MOST_UNPACKED", 4 * len(GOOD))
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("a.png",) and "take more than" in reasons(event, "refused")["many.zip"]
    monkeypatch.setattr(zip_directory, "MOST_FILES", 3)
    event = imported(tmp_path / "set")
    assert len(event.sprites) == 4 and "more than 3 files" in reasons(event, "refused")["many.zip"]
    monkeypatch.setattr(zip_directory, "_LARGEST_DIRECTORY", 30)
    assert "larger than" in reasons(imported(tmp_path / "set"), "refused")["many.zip"]


def test_no_more_is_unpacked_than_asked_for(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(bytes(20 << 20)) + packer.flush()
    stream = io.BytesIO(b"PK\3\4" + bytes(26) + packed)
    assert unpacked(stream, ArchiveEntry(0, len(packed), 1 << 40, 8, 0), 64) == bytes(64)
    assert unpacked(stream, ArchiveEntry(0, len(packed), 100, 8, zlib.crc32(bytes(100))), 1 << 40) == bytes(100)
    lzma = io.BytesIO(b"PK\3\4" + bytes(26) + b"\x09\x04\x05\0\x5d\xff\xff\xff\xff" + bytes(100))
    with pytest.raises(Refused, match="damaged"):
        unpacked(lzma, ArchiveEntry(0, 109, 1 << 20, 14, 0), 1 << 20)  # wants a dictionary of 4 GB


def test_archives_that_are_none(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "whole.zip", {"a.png": GOOD, "x/b.png": png_of(sprite(1))}).read_bytes()
    split = whole[:-18] + b"\1" + whole[-17:]
    shifted = whole[:-6] + b"\xff\xff\xff\x7f\0\0"
    miscounted = whole[:-12] + b"\3" + whole[-11:]
    content = {
        "empty.zip": (b"", "empty"), "text.zip": (b"text" * 99, "not a zip"), "picture.zip": (GOOD, "not a zip"),
        "cut.zip": (whole[:-30], "cut off"), "split.zip": (split, "split"), "shifted.zip": (shifted, "damaged"),
        "miscounted.zip": (miscounted, "breaks off"),
    }  # fmt: skip
    write(tmp_path / "set" / "good.png", sprite(7))
    for name, (data, _) in content.items():
        (tmp_path / "set" / name).write_bytes(data)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("good.png", "miscounted.zip/a.png", "miscounted.zip/x/b.png")
    assert {item.name for item in event.quarantine} == set(content)
    assert all(content[name][1] in reason for name, reason in reasons(event).items()), reasons(event)


def test_an_archive_that_goes_or_changes_on_the_way(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "set.zip", {"a.png": GOOD, "b.png": png_of(sprite(1))})
    *_, file = files_under(roots_of([archive])[0])
    assert isinstance(file, SourceFile)
    zipped(archive, {"other.txt": b"x" * 1000})
    with pytest.raises(Refused, match=r"damaged|cut off"):
        read_bytes(file)
    archive.unlink()
    with pytest.raises(FileNotFoundError):
        read_bytes(file)
