"""Walking folders that are broken, hostile, or just unusual."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice
from studio.core.names import escape_unprintable
from studio.data.files.source_files import SourceFile
from studio.data.importing import importing
from studio.data.importing.importing import SpritesImported
from studio.data.reading import finding
from studio.data.reading.finding import FoundFiles, find_file, locate_sprites, resolve_roots, walk_files
from tests.conftest import posix
from tests.data.making import all_sorts, events_of, imported, png_of, reasons, sprite, write, write_many, zipped


@posix
def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write(folder / "a.png", sprite(0))
    write(tmp_path / "outside" / "b.png", sprite(1))
    (folder / "b.png").symlink_to(tmp_path / "outside" / "b.png")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    (folder / "dangling.png").symlink_to("nowhere")
    event = imported(folder)
    assert event.sprites.names == ("a.png",)
    assert reasons(event, "refused").keys() == {"b.png", "out", "loop", "dangling.png"}


@posix
def test_file_systems_with_inode_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "set" / "a.png", sprite(0))
    write(tmp_path / "set" / "one" / "b.png", sprite(1))
    write(tmp_path / "set" / "two" / "deep" / "c.png", sprite(2))
    real_stat, real_scan = os.stat, os.scandir

    def without_numbers(path: str, *rest: object, **named: object) -> os.stat_result:
        about = real_stat(path, *rest, **named)  # type: ignore[arg-type]
        return os.stat_result((about.st_mode, 0, *about[2:]))

    monkeypatch.setattr("studio.data.reading.finding.os.stat", without_numbers)
    (root,) = resolve_roots([tmp_path / "set"])
    assert {found.name for found in walk_files(root) if isinstance(found, SourceFile)} == {
        "a.png", "one/b.png", "two/deep/c.png",
    }  # fmt: skip
    scans = list[str]()
    (tmp_path / "set" / "two" / "again").symlink_to(tmp_path / "set")  # as a junction that leads back

    class Junction:
        """A directory entry that reports a folder, like a junction on Windows."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.path, self.is_file = entry.name, entry.path, entry.is_file

        def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
            return real_stat(self.path)

    class Listing(list[Junction]):
        def __enter__(self) -> Listing:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def scan(path: str) -> Listing:
        scans.append(path)
        assert len(scans) < 20
        return Listing(map(Junction, real_scan(path)))

    monkeypatch.setattr("studio.data.reading.finding.os.scandir", scan)
    assert len([found for found in walk_files(root) if isinstance(found, SourceFile)]) == 3
    assert len(scans) == 4


@posix
def test_pipes_and_devices_are_never_opened(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a.png", sprite(0))
    os.mkfifo(tmp_path / "set" / "pipe.png")
    os.mkfifo(tmp_path / "set" / "a.json")
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("a.png",)
    assert "pipe" in reasons(event, "refused")["pipe.png"]
    for path in (tmp_path / "set" / "pipe.png", Path("/dev/null")):
        with pytest.raises(BadInputError, match="pipe or a device"):
            imported(path)


def test_inaccessible_files_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "set"
    for seed, name in enumerate(("a.png", "b.png", "c.png", "gone.png", "sub/d.png")):
        write(folder / name, sprite(seed))
    zipped(folder / "locked.zip", {"e.png": png_of(sprite(5))})
    real_open, real_scan = os.open, os.scandir

    def failing_open(path: str, flags: int) -> int:
        if path.endswith(("b.png", "locked.zip")):
            raise PermissionError(13, "Permission denied", path)
        if path.endswith("c.png"):
            raise OSError(5, "Input/output error", path)
        if path.endswith("gone.png"):
            Path(path).unlink()
        return real_open(path, flags)

    def failing_scan(path: str) -> object:
        if path.endswith("sub"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return real_scan(path)

    monkeypatch.setattr("studio.data.images.decoding.os.open", failing_open)
    monkeypatch.setattr("studio.data.reading.finding.os.scandir", failing_scan)
    *events, event = events_of(folder, cache=tmp_path / "cache")
    assert isinstance(event, SpritesImported) and event.sprites.names == ("a.png",)
    (notice,) = [said for said in events if isinstance(said, Notice)]
    assert notice.title == "Can't read b.png and 4 more: no permission to read this file."
    assert reasons(event, "no access") == {
        "b.png": "no permission to read this file",
        "c.png": "the file can't be read: Input/output error",
        "gone.png": "the file was moved or deleted",
        "locked.zip": "no permission to read this file",
        "sub": "the folder was moved or deleted",
    }
    monkeypatch.undo()
    again = imported(folder, cache=tmp_path / "cache")
    assert len(again.sprites) == 5 and not again.from_cache  # a failure is not kept


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS takes only UTF-8 names")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    Path(os.fsdecode(folder + b"/cl\xff")).mkdir(parents=True)
    for name, seed in ((b"/cl\xff/a\xfe.png", 0), (b"/b\n\x1b[31m.png", 1), ("/zß🗡.png".encode(), 2)):
        with open(folder + name, "wb") as stream:  # noqa: PTH123
            stream.write(write(tmp_path / "x.png", sprite(seed)).read_bytes())
    with open(folder + b"/bad\xff.png", "wb"):  # noqa: PTH123
        pass
    for _ in range(2):
        event = imported(Path(os.fsdecode(folder)), cache=tmp_path / "cache")
        assert event.sprites.names == ("b\\x0a\\x1b[31m.png", "cl\\xff/a\\xfe.png", "zß🗡.png")
        assert event.sprites.class_names == ("caf\\xe9", "cl\\xff") and event.sprites.title == "caf\\xe9"
        assert reasons(event).keys() == {"bad\\xff.png"}
        assert event.quarantine[0].path is not None and event.quarantine[0].path.exists()
    assert event.from_cache


def test_folders_and_backups_of_other_programs_are_skipped_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    kept = ("swords/a.png", "Swords.bak/b.png", "recycler/c.png")
    skipped = ("#recycle/d.png", "$RECYCLE.BIN/$R1.png", "swords/@eaDir/a.png/thumb.jpg", "swords/a.png~",
               "swords/e.BAK", "swords/f - Copy.png.tmp")  # fmt: skip
    for number, name in enumerate((*kept, *skipped)):
        write(folder / name, sprite(number))
    archive = {name: (folder / name).read_bytes() for name in (*kept, *skipped)}
    archive |= {"__MACOSX/g.png": png_of(sprite(20)), "__MACOSX/h.png": png_of(sprite(21))}
    for dropped, count in ((folder, 6), (zipped(tmp_path / "set.zip", archive), 7)):
        *events, last = events_of(dropped)
        assert isinstance(last, SpritesImported)
        assert set(last.sprites.names) == set(kept) and not last.quarantine
        (notice,) = [event for event in events if isinstance(event, Notice)]
        assert notice.title.startswith(f"Skipped {count} trash, thumbnail or backup items: #recycle, ")
    assert imported(folder / "#recycle").sprites.names == ("d.png",)  # a named folder is read


def test_folders_with_equal_names_give_a_single_notice(tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        write(tmp_path / version / "set" / "sword" / f"{version}.png", sprite(int(version[1])))
    *events, _ = events_of(tmp_path / "v1" / "set", tmp_path / "v2" / "set")
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.title == "Merged folders with equal names: v1/set, v2/set."


def test_escaped_names_and_titles(tmp_path: Path) -> None:
    assert escape_unprintable("item/potion 2.png") == "item/potion 2.png" and escape_unprintable("剣 🗡️ é") == "剣 🗡️ é"
    assert escape_unprintable("a\x00\u202eb\u2028\udc80\ud800") == "a\\x00\\u202eb\\u2028\\x80\\ud800"
    roots = [finding.Root(tmp_path / name, (name,), True) for name in "abcde"]
    assert finding.title_of_roots(roots) == "a + b + 3 more" and finding.title_of_roots(roots[:3]) == "a + b + c"


def test_deep_nesting(tmp_path: Path) -> None:
    deep = tmp_path / "set"
    for _ in range(400):
        deep /= "d"
    write(deep / "a.png", sprite(0))
    event = imported(tmp_path / "set")
    assert event.sprites.class_names == ("d/d",) and event.sprites.names[0].count("/") == 400


def test_too_many_files_are_cut_with_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_FILES", 10)
    *events, last = events_of(write_many(tmp_path / "set", 12))
    assert any(isinstance(event, Notice) and "first 10 files" in event.title for event in events)
    assert isinstance(last, importing.SpritesImported) and len(last.sprites) == 10


@pytest.mark.parametrize("name", ["gems.png", "b/gems.png"])
def test_find_file(tmp_path: Path, name: str) -> None:
    paths = [write(tmp_path / folder / "gems.png", sprite(n, 16 * n)) for n, folder in ((1, "a"), (2, "b"))]
    roots = resolve_roots(paths if "/" in name else paths[1:])
    file = find_file(roots, name)
    assert file is not None and file.path == paths[1]
    assert find_file(roots, "c/gems.png") is None


def test_find_file_searches_only_matching_folders(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "s.png", sprite(1))
    (tmp_path / "damaged.zip").write_text("no archive")
    write(tmp_path / "ab" / "s.png", sprite(1))
    (root,) = resolve_roots([tmp_path])
    (file,) = walk_files(root, wanted="a/b/s.png")
    assert isinstance(file, SourceFile) and file.folders == ("a", "b") and file.siblings == {"s.png"}


def test_found_files_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "_SORT_RUN", 4)
    folder, odd = all_sorts(tmp_path / "set"), os.fsdecode(b"caf\xe9 \x01.png")
    (folder / odd).write_bytes(b"")
    for dropped in ([folder], [folder / "sheet.png", folder / "pack.zip"]):
        items = [item for path in dropped for item in walk_files(resolve_roots([path])[0])]
        listed = [item for item in items if isinstance(item, SourceFile)]
        files = FoundFiles()
        for file in listed:
            files.add(file)
        assert list(files) == listed and files[3:5] == listed[3:5] and files[-1] == listed[-1]
        list(files.sort())
        assert list(files) == sorted(listed, key=lambda file: (file.name, file.path_str))
        assert json.loads(next(file for file in files if file.file_name == "sheet.json").path.read_text())
        assert [file.sibling("sheet.json") for file in files if file.file_name == "sheet.png"]
        assert (odd in [file.file_name for file in files]) is (dropped == [folder])
        assert ("caf\\xe9 \\x01.png" in [file.name for file in files]) is (dropped == [folder])


def test_locate_sprites_in_files_frames_and_archives(tmp_path: Path) -> None:
    for name in ("a/walk.gif", "a/run#2.png", "b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    zipped(tmp_path / "pack.zip", {"c/gem.png": png_of(sprite(1)), "d/gem.png": png_of(sprite(2))})
    names = ("a/walk.gif#0001", "a/walk.gif#0002", "a/run#2.png", "a/run#2.png#x#y", "pack.zip/c/gem.png")
    found = locate_sprites([tmp_path], names)
    assert found == [tmp_path / name for name in ("a/walk.gif", "a/run#2.png", "pack.zip")]
    (tmp_path / "b.png").unlink()
    with pytest.raises(BadInputError, match="moved or deleted"):
        locate_sprites([tmp_path], ["b.png"])
