"""Tests of zip archives: imported like a folder; hostile and broken archives give a reason."""

from __future__ import annotations

import io
import os
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.archives import directory as zip_directory
from studio.data.archives import zip_archive
from studio.data.archives.unpacking import unpack_member
from studio.data.files.source_files import ArchiveEntry, SourceFile, UnreadableFile
from studio.data.images.decoding import LARGEST_FILE, read_bytes
from studio.data.reading.finding import resolve_roots, walk_files
from tests.data.making import frame, imported, png_of, reasons, sprite, write, write_sheet, zipped

GOOD = png_of(sprite(0))
# Fields of a record in the directory: their place in it and their layout.
FLAGS, METHOD, CRC, PACKED, SIZE, MODE, OFFSET = (
    (8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (40, "<H"), (42, "<I"),
)  # fmt: skip


def replaced(path: Path, old: bytes, new: bytes) -> None:
    assert len(old) == len(new)
    path.write_bytes(path.read_bytes().replace(old, new))


def found_in(path: Path) -> dict[str, SourceFile]:
    return {file.name: file for file in walk_files(resolve_roots([path])[0]) if isinstance(file, SourceFile)}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_is_like_its_folder(tmp_path: Path, method: int, wrapped: bool) -> None:
    folder = tmp_path / "pack"
    for seed, name in enumerate(["top.png", "item/a.png", "item/old/deep/b.png", "zß🗡/c.png", "__MACOSX/._a.png"]):
        write(folder / name, sprite(seed))
    frames = [frame("opal", 0, 0, 8, 8), frame("ruby", 8, 0, 8, 8)]
    write_sheet(folder / "item" / "gems.png", np.hstack([sprite(9), sprite(10)]), frames)
    (folder / "notes.txt").write_text("x" * 10_000)
    (folder / "bad.png").write_bytes(b"x")
    (folder / "Thumbs.db").write_bytes(GOOD)
    (folder / "empty").mkdir()
    write(folder / ".hidden" / "d.png", sprite(11))
    with zipfile.ZipFile(tmp_path / "pack.zip", "w", method) as writer:
        for path in folder.rglob("*"):
            writer.write(path, path.relative_to(tmp_path if wrapped else folder))
    one, other = imported(folder), imported(tmp_path / "pack.zip")
    assert one.sprites.fingerprint == other.sprites.fingerprint and one.sprites.names == other.sprites.names
    assert one.sprites.class_names == other.sprites.class_names and one.notes == other.notes
    assert one.sprites.title == other.sprites.title == "pack" and "item/gems.png#ruby" in other.sprites.names
    assert reasons(one) == reasons(other) and other.quarantine[0].path == tmp_path / "pack.zip"


def test_an_archive_in_a_folder_is_like_a_sub_folder(tmp_path: Path) -> None:
    zipped(tmp_path / "set" / "more" / "Gems.ZIP", {"Gems v2/red/a.png": GOOD, "Gems v2/b.png": png_of(sprite(1))})
    write(tmp_path / "set" / "c.png", sprite(2))
    event = imported(tmp_path / "set", class_levels=3)
    assert event.sprites.class_names == ("more/Gems", "more/Gems/red", "set")
    assert event.sprites.names == ("c.png", "more/Gems.ZIP/b.png", "more/Gems.ZIP/red/a.png")


def test_archives_among_other_drops(tmp_path: Path) -> None:
    one = zipped(tmp_path / "old" / "gems.zip", {"a.png": GOOD})
    other = zipped(tmp_path / "new" / "gems.zip", {"x/a.png": png_of(sprite(1)), "b.png": png_of(sprite(2))})
    event = imported(one, other)
    assert event.sprites.class_names == ("new/gems", "old/gems", "x") and event.sprites.title == "gems + gems"
    assert imported(other, class_levels=3).sprites.class_names == ("gems", "x")
    assert imported(one.parent, other.parent).sprites.class_names == ("new/gems", "old/gems")


def test_siblings_in_an_archive(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a.png", sprite(0))
    (tmp_path / "set" / "a.json").write_text("{}")
    (tmp_path / "secret.json").write_text("{}")
    for path in (tmp_path / "set", zipped(tmp_path / "set.zip", {"a.png": GOOD, "a.json": b"{}", "x/b.png": GOOD})):
        picture = found_in(path)["a.png"]
        beside = picture.sibling("a.json")
        assert (beside.name, beside.stem, beside.suffix, beside.size) == ("a.json", "a", ".json", 2)
        assert read_bytes(beside) == b"{}" and beside.sibling("a.png") == picture
        for name in ("b.png", "../secret.json", "", str(tmp_path / "secret.json")):
            with pytest.raises(FileNotFoundError):
                picture.sibling(name)


@pytest.mark.parametrize(
    "name", ["../evil.png", "a/../../evil.png", "/etc/evil.png", "C:/evil.png", "c:evil.png", "..\\evil.png",
             "\\\\host\\evil.png", "a/NUL.png", "x" * 5000 + ".png"],
)  # fmt: skip
def test_paths_that_leave_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    archive = zipped(tmp_path / "set.zip", {"good.png": GOOD, f"{name}@.png": png_of(sprite(1))})
    replaced(archive, b"NUL.png@", b"N\0L.png@")
    event = imported(archive)
    assert event.sprites.names == ("good.png",)
    ((shown_as, reason),) = reasons(event, "refused").items()
    assert ("name" in reason or "path" in reason) and shown_as.isprintable() and len(shown_as) < 300
    assert sorted(tmp_path.iterdir()) == [archive]


def test_unprintable_names_are_escaped(tmp_path: Path) -> None:
    shown_as = {"./dots/./a.png": "dots/a.png", "back\\slash\\b.png": "back/slash/b.png", "\u202e.png": "\\u202e.png"}
    shown_as |= {"con/trol\x1b[31m\n.png": "con/trol\\x1b[31m\\x0a.png"}
    shown_as |= {name: name for name in ("CON.png", "x" * 300 + ".png")}
    archive = zipped(tmp_path / "set.zip", {name: png_of(sprite(seed)) for seed, name in enumerate(shown_as)})
    assert set(imported(archive).sprites.names) == set(shown_as.values())


def test_names_in_other_encodings(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "set.zip", {f"caf{mark}.png": png_of(sprite(ord(mark))) for mark in "12éè"})
    replaced(archive, b"caf1", b"caf\x82")  # not flagged: code page 437
    replaced(archive, "cafè".encode(), b"caf\xff\xfe")  # flagged as UTF-8
    replaced(archive, b"caf2.p", "caf™".encode())  # UTF-8 without the UTF-8 flag, as on macOS
    assert set(imported(archive, cache=tmp_path / "cache").sprites.names) == {"café.png", "caf\\xff\\xfe.png", "caf™ng"}
    assert imported(archive, cache=tmp_path / "cache").from_cache


def test_the_last_of_several_entries_with_one_name_is_used(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "set.zip", {"a.png": GOOD, "b.png": png_of(sprite(1))})
    replaced(archive, b"b.png", b"a.png")
    event = imported(archive)
    assert event.sprites.names == ("a.png",) and (event.sprites.rgba[0] == sprite(1)).all()
    assert "later file with this name" in reasons(event, "duplicate")["a.png"]


def test_archives_with_nothing_in_them(tmp_path: Path) -> None:
    for members in ({}, {"readme.txt": b"hello"}, {"folder/": b""}):
        with pytest.raises(BadInputError, match="No images found in 'set'"):
            imported(zipped(tmp_path / "set.zip", members))
    (tmp_path / "set.zip").write_bytes(b"no")
    with pytest.raises(BadInputError, match=r"'set.zip' can't be used: not a zip archive"):
        imported(tmp_path / "set.zip")


def test_unusual_but_valid_archives(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "whole.zip", {"a.png": GOOD, "b.json": b"{}"}).read_bytes()
    program = tmp_path / "program.zip"
    program.write_bytes(b"#!/bin/sh\n" * 9 + whole)  # unpacks itself
    comment = tmp_path / "comment.zip"
    with zipfile.ZipFile(shutil.copy(tmp_path / "whole.zip", comment), "a") as writer:
        writer.comment = b"by me" * 9000
    streamed = tmp_path / "streamed.zip"
    with zipfile.ZipFile(streamed, "w") as writer, writer.open("a.png", "w", force_zip64=True) as member:
        member.write(GOOD)
    large = tmp_path / "large.zip"  # than 4 GB, it says
    record = bytearray(whole[whole.index(b"PK\1\2") : whole.rindex(b"PK\1\2")])
    struct.pack_into("<I", record, 42, 0xFFFFFFFF)
    struct.pack_into("<H", record, 30, 12)
    record += struct.pack("<HHQ", 1, 8, 0)
    start = whole.index(b"PK\1\2")
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(record), start)
    end64 += struct.pack("<4sIQI", b"PK\6\7", 0, start + len(record), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    large.write_bytes(whole[:start] + record + end64 + end)
    for path in (program, comment, streamed, large):
        event = imported(path)
        assert event.sprites.names == ("a.png",) and not event.quarantine, path


def test_a_changed_archive_is_noticed(tmp_path: Path) -> None:
    archive, cache = zipped(tmp_path / "set.zip", {"a.png": GOOD, "b.png": png_of(sprite(1))}, 0), tmp_path / "cache"
    before = archive.stat().st_mtime_ns
    assert not imported(archive, cache=cache).from_cache and imported(archive, cache=cache).from_cache
    for name in ("b.png", "c.png"):
        zipped(archive, {"a.png": GOOD, name: png_of(sprite(2))}, 0)
        os.utime(archive, ns=(before, before))
        assert not imported(archive, cache=cache).from_cache
    os.utime(archive, ns=(before, before + 1))
    assert not imported(archive, cache=cache).from_cache


def changed(path: Path, name: bytes, field: tuple[int, str], value: int) -> None:
    """Write a field of the record of that name in the directory of an archive."""
    data = bytearray(path.read_bytes())
    struct.pack_into(field[1], data, data.rindex(name) - 46 + field[0], value)
    path.write_bytes(data)


def test_unreadable_members_are_left_out(tmp_path: Path) -> None:
    lies = {
        "locked": (FLAGS, 1, "password"), "odd": (METHOD, 9, "compression method"),
        "link": (MODE, stat.S_IFLNK | 0o777, "a link"), "pipe": (MODE, stat.S_IFIFO, "pipe"),
        "thin": (PACKED, 1 << 30, "impossible size"), "gone": (OFFSET, 0xFFFFFFFE, "cut off"),
        "crc": (CRC, 7, "checksum"), "short": (SIZE, 60, "checksum"), "long": (SIZE, 5000, "cut off"),
        "huge": (SIZE, LARGEST_FILE + 1, "too large: 80 MB"),
    }  # fmt: skip
    members = {f"{name}.png": png_of(sprite(seed)) for seed, name in enumerate(["good", *lies])}
    archive = zipped(tmp_path / "set.zip", {**members, "inner.zip": b"PK", "bomb.png": bytes(4 << 20)})
    for name, (field, value, _) in lies.items():
        changed(archive, f"{name}.png".encode(), field, value)
    changed(archive, b"huge.png", PACKED, LARGEST_FILE // 10)
    event = imported(archive)
    assert event.sprites.names == ("good.png",)
    expected = {"inner.zip": "unpack", "bomb.png": "1,000 times"}
    expected |= {f"{name}.png": words for name, (_, _, words) in lies.items()}
    said = reasons(event)
    assert said.keys() == expected.keys() and all(expected[name] in reason for name, reason in said.items()), said


def test_too_large_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zipped(tmp_path / "set" / "many.zip", {f"{seed}.png": png_of(sprite(seed)) for seed in range(9)})
    write(tmp_path / "set" / "a.png", sprite(20))
    monkeypatch.setattr(zip_archive, "_MAX_UNPACKED", 4 * len(GOOD))
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("a.png",) and "unpacks to more than" in reasons(event, "refused")["many.zip"]
    monkeypatch.setattr(zip_directory, "MAX_FILES", 3)
    event = imported(tmp_path / "set")
    assert len(event.sprites) == 4 and "more than 3 files" in reasons(event, "refused")["many.zip"]
    monkeypatch.setattr(zip_directory, "_MAX_BYTES", 30)
    assert "larger than" in reasons(imported(tmp_path / "set"), "refused")["many.zip"]


def test_unpacking_stops_at_the_requested_length_and_at_the_end_of_the_file(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(bytes(20 << 20)) + packer.flush()
    stream = io.BytesIO(b"PK\3\4" + bytes(26) + packed)
    assert unpack_member(stream, ArchiveEntry(0, len(packed), 1 << 40, 8, 0), 64) == bytes(64)
    assert unpack_member(stream, ArchiveEntry(0, len(packed), 100, 8, zlib.crc32(bytes(100))), 1 << 40) == bytes(100)
    cut = io.BytesIO(b"PK\3\4" + bytes(26) + packed[:9])
    with pytest.raises(UnreadableFile, match="cut off"):
        unpack_member(cut, ArchiveEntry(0, len(packed), 20 << 20, 8, 0), 1 << 40)
    lzma = io.BytesIO(b"PK\3\4" + bytes(26) + b"\x09\x04\x05\0\x5d\xff\xff\xff\xff" + bytes(100))
    with pytest.raises(UnreadableFile, match="damaged"):
        unpack_member(lzma, ArchiveEntry(0, 109, 1 << 20, 14, 0), 1 << 20)  # wants a dictionary of 4 GB


def test_files_that_are_not_zip_archives(tmp_path: Path) -> None:
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


def test_an_archive_that_is_deleted_or_replaced_during_the_import(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "set.zip", {"a.png": GOOD, "b.png": png_of(sprite(1))})
    *_, file = walk_files(resolve_roots([archive])[0])
    assert isinstance(file, SourceFile)
    zipped(archive, {"other.txt": b"x" * 1000})
    with pytest.raises(UnreadableFile, match=r"damaged|cut off"):
        read_bytes(file)
    archive.unlink()
    with pytest.raises(FileNotFoundError):
        read_bytes(file)
