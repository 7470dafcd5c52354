"""Walking folders that are broken, hostile, or just unusual."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice
from studio.data import importing
from studio.data.naming import shown
from studio.data.reading import finding
from tests.conftest import posix
from tests.data.making import events_of, imported, png_of, reasons, sprite, write, zipped


@posix
def test_links_are_not_followed_and_loops_end(tmp_path: Path) -> None:
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


def test_what_goes_wrong_on_the_way_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "set"
    for seed, name in enumerate(("a.png", "b.png", "c.png", "sub/d.png")):
        write(folder / name, sprite(seed))
    zipped(folder / "locked.zip", {"e.png": png_of(sprite(4))})
    real_open, real_scan = os.open, os.scandir

    def failing_open(path: str, flags: int) -> int:
        if path.endswith(("b.png", "locked.zip")):
            raise PermissionError(13, "Permission denied", path)
        if path.endswith("c.png"):
            raise OSError(5, "Input/output error", path)
        return real_open(path, flags)

    def failing_scan(path: str) -> object:
        if path.endswith("sub"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return real_scan(path)

    monkeypatch.setattr("studio.data.images.decoding.os.open", failing_open)
    monkeypatch.setattr("studio.data.reading.finding.os.scandir", failing_scan)
    event = imported(folder, cache=tmp_path / "cache")
    assert event.sprites.names == ("a.png",)
    assert reasons(event, "no access") == {
        "b.png": "you are not allowed to read this file",
        "c.png": "the file can't be read: Input/output error",
        "locked.zip": "you are not allowed to read this file",
        "sub": "the folder has gone since it was found",
    }
    monkeypatch.undo()
    again = imported(folder, cache=tmp_path / "cache")
    assert len(again.sprites) == 5 and not again.from_cache  # a failure is not kept


def test_a_file_that_goes_between_listing_and_reading(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a.png", sprite(0))
    gone = write(tmp_path / "set" / "b.png", sprite(1))
    job = importing.import_sprites([tmp_path / "set"], importing.ImportOptions())
    last = None
    for event in job:
        if getattr(event, "done", 0) == 2 and getattr(event, "what", "") == "files found":
            gone.unlink(missing_ok=True)
        last = event
    assert isinstance(last, importing.SpritesImported)
    assert reasons(last) == {"b.png": "the file has gone since it was found"}


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


def test_names_and_titles_are_shown_plainly(tmp_path: Path) -> None:
    assert shown("item/potion 2.png") == "item/potion 2.png" and shown("剣 🗡️ é") == "剣 🗡️ é"
    assert shown("a\x00\u202eb\u2028\udc80\ud800") == "a\\x00\\u202eb\\u2028\\x80\\ud800"
    roots = [finding.Root(tmp_path / name, (name,), True) for name in "abcde"]
    assert finding.title_of(roots) == "a + b + 3 more" and finding.title_of(roots[:3]) == "a + b + c"


def test_deep_nesting(tmp_path: Path) -> None:
    deep = tmp_path / "set"
    for _ in range(400):
        deep /= "d"
    write(deep / "a.png", sprite(0))
    event = imported(tmp_path / "set")
    assert event.sprites.class_names == ("d/d",) and event.sprites.names[0].count("/") == 400


def test_too_many_files_are_cut_with_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        write(tmp_path / "set" / f"{number:02}.png", sprite(number))
    monkeypatch.setattr(importing, "MOST_FILES", 10)
    events = events_of(tmp_path / "set")
    assert any(isinstance(event, Notice) and "first 10 files" in event.title for event in events)
    assert isinstance(events[-1], importing.SpritesImported) and len(events[-1].sprites) == 10
