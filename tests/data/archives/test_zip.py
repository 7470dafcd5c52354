"""Zip archives, read in place: like the folder that they hold."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.images.decoding import read_bytes
from studio.data.reading.finding import files_under, roots_of
from studio.data.source_files import SourceFile
from tests.data.making import frame, imported, png_of, reasons, sprite, write, write_sheet, zipped

GOOD = png_of(sprite(0))


def replaced(path: Path, old: bytes, new: bytes) -> None:
    assert len(old) == len(new)
    path.write_bytes(path.read_bytes().replace(old, new))


def found_in(path: Path) -> dict[str, SourceFile]:
    return {file.name: file for file in files_under(roots_of([path])[0]) if isinstance(file, SourceFile)}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_is_like_its_folder(tmp_path: Path, method: int, wrapped: bool) -> None:
    folder = tmp_path / "pack"
    for seed, name in enumerate(["top.png", "item/a.png", "item/old/deep/b.png", "zß🗡/c.png", "__MACOSX/._a.png"]):
        write(folder / name, sprite(seed))
    write_sheet(folder / "item" / "gems.png", np.hstack([sprite(9), sprite(10)]), [frame("ruby", 8, 0, 8, 8)])
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
    assert (one.sprites.rgba == other.sprites.rgba).all() and one.sprites.class_names == other.sprites.class_names
    assert one.sprites.title == other.sprites.title == "pack" and "item/gems.png#ruby" in other.sprites.names
    assert reasons(one) == reasons(other) and one.notes == other.notes
    assert other.quarantine[0].path == tmp_path / "pack.zip"


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
    assert event.sprites.class_names == ("new/gems", "old/gems") and event.sprites.title == "gems + gems"
    assert imported(other, class_levels=3).sprites.class_names == ("gems", "x")
    assert imported(one.parent, other.parent).sprites.class_names == ("new/gems", "old/gems")


def test_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a.png", sprite(0))
    (tmp_path / "set" / "a.json").write_text("{}")
    (tmp_path / "secret.json").write_text("{}")
    for path in (tmp_path / "set", zipped(tmp_path / "set.zip", {"a.png": GOOD, "a.json": b"{}", "x/b.png": GOOD})):
        picture = found_in(path)["a.png"]
        beside = picture.neighbour("a.json")
        assert (beside.name, beside.stem, beside.suffix, beside.size) == ("a.json", "a", ".json", 2)
        assert read_bytes(beside) == b"{}" and beside.neighbour("a.png") == picture
        for name in ("b.png", "../secret.json", "", str(tmp_path / "secret.json")):
            with pytest.raises(FileNotFoundError):
                picture.neighbour(name)


@pytest.mark.parametrize(
    "name", ["../evil.png", "a/../../evil.png", "/etc/evil.png", "C:/evil.png", "c:evil.png", "..\\evil.png",
             "\\\\host\\evil.png", "a/NUL.png", "x" * 5000 + ".png"],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    archive = zipped(tmp_path / "set.zip", {"good.png": GOOD, f"{name}@.png": png_of(sprite(1))})
    replaced(archive, b"NUL.png@", b"N\0L.png@")
    event = imported(archive)
    assert event.sprites.names == ("good.png",)
    ((shown_as, reason),) = reasons(event, "refused").items()
    assert "name" in reason and shown_as.isprintable() and len(shown_as) < 300
    assert sorted(tmp_path.iterdir()) == [archive]


def test_odd_names_are_shown_plainly(tmp_path: Path) -> None:
    names = [
        "./dots/./a.png",
        "back\\slash\\b.png",
        "con/trol\x1b[31m\n.png",
        "CON.png",
        "\u202egnp.png",
        "x" * 300 + ".png",
    ]
    archive = zipped(tmp_path / "set.zip", {name: png_of(sprite(seed)) for seed, name in enumerate(names)})
    assert set(imported(archive).sprites.names) == {
        "dots/a.png", "back/slash/b.png", "con/trol\\x1b[31m\\x0a.png", "CON.png", "\\u202egnp.png", "x" * 300 + ".png",
    }  # fmt: skip


def test_names_in_other_encodings(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "set.zip", {f"caf{mark}.png": png_of(sprite(ord(mark))) for mark in "12éè"})
    replaced(archive, b"caf1", b"caf\x82")  # not flagged: code page 437
    replaced(archive, "cafè".encode(), b"caf\xff\xfe")  # flagged as UTF-8
    replaced(archive, b"caf2.p", "caf™".encode())  # UTF-8 that does not say so, as macOS writes it
    assert set(imported(archive, cache=tmp_path / "cache").sprites.names) == {"café.png", "caf\\xff\\xfe.png", "caf™ng"}
    assert imported(archive, cache=tmp_path / "cache").from_cache


def test_the_last_of_the_same_name_is_used(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "set.zip", {"a.png": GOOD, "b.png": png_of(sprite(1))})
    replaced(archive, b"b.png", b"a.png")
    event = imported(archive)
    assert event.sprites.names == ("a.png",) and (event.sprites.rgba[0] == sprite(1)).all()
    assert "later file of this name" in reasons(event, "duplicate")["a.png"]


def test_archives_with_nothing_in_them(tmp_path: Path) -> None:
    for members in ({}, {"readme.txt": b"hello"}, {"folder/": b""}):
        with pytest.raises(BadInputError, match="There are no pictures in 'set'"):
            imported(zipped(tmp_path / "set.zip", members))
    (tmp_path / "set.zip").write_bytes(b"no")
    with pytest.raises(BadInputError, match=r"'set.zip' can't be used: not a zip archive"):
        imported(tmp_path / "set.zip")


def test_unusual_but_lawful(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "whole.zip", {"a.png": GOOD, "b.json": json.dumps({}).encode()}).read_bytes()
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
