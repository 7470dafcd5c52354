"""The import cache: used while nothing changes, rebuilt otherwise, never an error."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from studio.data.store import import_cache, packed
from tests.data.making import everything, frame, imported, sprite, write, write_sheet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    for number in range(6):
        write(root / "item" / f"{number}.png", sprite(number % 5))
    (root / "bad.png").write_bytes(b"")
    soft = sprite(9)
    soft[3, 3, 3] = 100
    write(root / "soft.png", soft)
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_cached_import_equals_the_first(folder: Path, cache: Path) -> None:
    first = imported(folder, cache=cache)
    (entry,) = cache.iterdir()
    os.utime(entry, (1, 1))
    second = imported(folder, cache=cache)
    assert not first.from_cache and second.from_cache and everything(first) == everything(second)
    assert first.quarantine and first.notes
    assert entry.stat().st_mtime > 1  # loading keeps an entry
    second.sprites.rgba[0] = 0  # can be written to
    assert not imported(folder).from_cache


def test_sheets_are_cached_and_older_entries_ignored(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "strips"
    for seed in range(3):
        write(folder / f"{seed}.png", np.concatenate([sprite(10 * seed + cell, 16) for cell in range(6)], axis=1))
    with monkeypatch.context() as before:
        before.setattr(import_cache, "_VERSION", 5)  # did not tell sheets from sprites
        imported(folder, cache=cache)
    first, second = imported(folder, cache=cache), imported(folder, cache=cache)
    assert not first.from_cache and second.from_cache
    assert first.sheets == second.sheets and [sheet.sprites for sheet in second.sheets] == [6, 6, 6]
    for options in ({"size": 96}, {"class_levels": 1}, {"sheets": "grid"}):  # other options: another entry
        one, other = (imported(folder, cache=cache, **options) for _ in range(2))
        assert not one.from_cache and other.from_cache and everything(one) == everything(other)


def test_every_change_is_noticed(folder: Path, cache: Path) -> None:
    imported(folder, cache=cache)
    changed = folder / "item" / "0.png"
    before = changed.stat()
    write(changed, sprite(50))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    event = imported(folder, cache=cache)
    assert not event.from_cache and (event.sprites.rgba == sprite(50)).all(axis=(1, 2, 3)).any()
    write(folder / "item" / "new.png", sprite(51))
    assert not imported(folder, cache=cache).from_cache
    (folder / "item" / "new.png").unlink()
    imported(folder, cache=cache)
    (folder / "item" / "1.png").rename(folder / "item" / "one.png")
    event = imported(folder, cache=cache)
    assert not event.from_cache and "item/one.png" in event.sprites.names
    assert imported(folder, cache=cache).from_cache


def test_a_changed_json_is_noticed(tmp_path: Path, cache: Path) -> None:
    rgba = np.concatenate([sprite(0), sprite(1)], axis=1)
    sheet = write_sheet(tmp_path / "set" / "s.png", rgba, [frame("a", 0, 0, 8, 8)])
    for dropped in (tmp_path / "set", sheet):
        assert len(imported(dropped, cache=cache).sprites) == 1
    write_sheet(sheet, rgba, [frame("a", 0, 0, 8, 8), frame("bb", 8, 0, 8, 8)])
    os.utime(sheet, ns=(1, 1))
    for dropped in (tmp_path / "set", sheet):
        assert len(imported(dropped, cache=cache).sprites) == 2


def test_damaged_entries_are_rebuilt(folder: Path, cache: Path) -> None:
    first = imported(folder, cache=cache)
    (entry,) = cache.iterdir()
    whole = entry.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole.replace(b"soft.png", b"sofa.png"), b"\xff" * len(whole)):
        entry.write_bytes(damaged)
        event = imported(folder, cache=cache)
        assert not event.from_cache and everything(first) == everything(event)
        assert imported(folder, cache=cache).from_cache
    packed.save(first.sprites, entry, {"sizes": "?"})  # whole, but not an import
    assert not imported(folder, cache=cache).from_cache


def test_the_cache_stays_bounded(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    stale, fresh, other = (cache / name for name in (".tmp-0123456789ab.npy", ".tmp-ba9876543210.npy", "mine.txt"))
    for path in (stale, fresh, other):
        path.write_bytes(b"x")
    os.utime(stale, (1, 1))
    for size in range(8, 33):
        imported(folder, cache=cache, size=size)
        for number, entry in enumerate(sorted(cache.glob("import-*"), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(entry, ns=(0, 10**18 + number))  # file times may be coarse
    kept = list(cache.glob("import-*"))
    assert len(kept) <= 20 and fresh.exists() and other.exists() and not stale.exists()
    assert imported(folder, cache=cache, size=32).from_cache and not imported(folder, cache=cache, size=8).from_cache
    monkeypatch.setattr(import_cache, "_MOST_BYTES", 100_000)
    imported(folder, cache=cache, size=200)
    newest, *others = sorted((path.stat().st_size for path in cache.glob("import-*")), reverse=True)
    assert newest > 900_000 and 38_000 < sum(others) <= 100_000  # the newest counts for itself
    assert imported(folder, cache=cache, size=200).from_cache
    imported(folder, cache=cache, size=40)
    assert not imported(folder, cache=cache, size=200).from_cache
