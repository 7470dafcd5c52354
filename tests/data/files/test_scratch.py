"""Tests of imports larger than the memory limit: equal sprites, and no files left behind after errors."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from studio.core import limits
from studio.core.errors import BadInputError
from studio.core.events import Notice, Progress
from studio.data.files import scratch
from studio.data.files.scratch import ScratchBuffer
from studio.data.importing import assemble
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from tests.data.making import all_sorts, events_of, everything, imported, sprite, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return all_sorts(tmp_path / "set")


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some four sprites of the size of these."""
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", 1000)


@pytest.mark.parametrize("options", [{}, {"size": 16}, {"other_sizes": "leave out"}])
def test_imports_on_disk_and_in_memory_are_equal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    expected = imported(folder, **options)
    assert expected.sprites.rgba.flags.writeable and expected.quarantine and expected.notes
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", 1000)
    for cache in (None, tmp_path / "cache"):
        event = imported(folder, cache=cache, **options)
        assert everything(event) == everything(expected) and not event.sprites.rgba.flags.writeable
        assert (event.sprites.rgba == expected.sprites.rgba).all()
    again = imported(folder, cache=tmp_path / "cache", **options)
    assert again.from_cache and everything(again) == everything(expected) and again.sprites.stored is not None
    (entry,) = (tmp_path / "cache").iterdir()
    assert again.sprites.stored.path == entry and event.sprites.stored == again.sprites.stored


@pytest.mark.parametrize("in_memory", [1000, 1 << 20])
def test_an_unwritable_cache_does_not_stop_the_import(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", in_memory)
    (tmp_path / "cache").write_text("a file where the folder should be")
    *events, last = events_of(folder, cache=tmp_path / "cache")
    assert isinstance(last, SpritesImported) and last.sprites.stored is None and len(last.sprites) > 40
    assert ("info", True) in {(e.level, "could not be cached" in e.title) for e in events if isinstance(e, Notice)}


@pytest.mark.usefixtures("small_memory")
def test_a_full_disk_is_reported_at_every_stage(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = tempfile.TemporaryFile, 0

    def temporary_file(*arguments: Any, **settings: Any) -> Mock:
        """A file that takes only so many pieces more."""
        file = real(*arguments, **settings)

        def write(data: Any) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(file.write(data))

        return Mock(wraps=file, write=write)

    monkeypatch.setattr(tempfile, "TemporaryFile", temporary_file)
    writes = 0
    for writes in range(0, 200, 11):
        left = writes
        try:
            imported(folder, cache=tmp_path / "cache")
        except BadInputError as error:
            assert "disk is full" in error.title and "Free some space" in error.hint  # noqa: PT017
            assert not list((tmp_path / "cache").iterdir())
            continue
        break
    assert 60 < writes < 190


@pytest.mark.usefixtures("small_memory")
def test_disk_space_is_left_for_other_programs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "RESERVED_BYTES", 1 << 60)
    alone = write(tmp_path / "alone.png", sprite(0))
    with pytest.raises(BadInputError, match="disk is full"):
        imported(folder, cache=tmp_path / "cache")
    with pytest.raises(BadInputError, match="1 sprite on a canvas of 64 x 64 need 16 KB on the drive, which has"):
        imported(alone, cache=tmp_path / "cache", size=64)
    assert not list((tmp_path / "cache").iterdir())
    monkeypatch.setattr(assemble, "MAX_SPRITES", 0)
    with pytest.raises(BadInputError, match="More than 0 sprites"):
        imported(alone)


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("stage", ["files read", "files assembled", "sprites cached"])
def test_closing_leaves_nothing_on_the_disk(folder: Path, tmp_path: Path, stage: str) -> None:
    job = import_sprites([folder], ImportOptions(), tmp_path / "cache")
    for event in job:
        if isinstance(event, Progress) and event.what == stage:
            break
    job.close()
    for thread in threading.enumerate():
        if thread.name == "reader":
            thread.join(5)  # which may be waiting for the drive
    assert not [path for path in (tmp_path / "cache").iterdir() if not path.name.startswith("import-")]


def test_fault_36_small_computers_hold_less_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for total_bytes, most in ((64 << 30, 256 << 20), (512 << 20, 32 << 20)):
        monkeypatch.setattr(
            limits, "usable_memory", lambda total_bytes=total_bytes: limits.Memory(total_bytes, total_bytes)
        )
        assert scratch.memory_limit() == most


def test_scratch_buffers_return_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", 50)
    for pieces in ([], [20, 30], [20, 30, 1], [60], [51, 0, 3]):
        there = ScratchBuffer(tmp_path)
        data = [np.random.default_rng(number).integers(0, 256, number, np.uint8) for number in pieces]
        assert [there.add(piece) for piece in data] == np.cumsum([0, *pieces])[:-1].tolist()
        found = there.array()
        there.close()
        assert found.tolist() == [int(value) for piece in data for value in piece]
        assert found.flags.writeable is (sum(pieces) <= 50) and not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small_memory")
def test_closing_frees_the_disk_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handles: list[int] = []
    monkeypatch.setattr(scratch, "_close_in_thread", handles.append)
    there = ScratchBuffer(tmp_path)
    there.add(np.ones(2000, np.uint8))
    found = there.array()[5:]
    there.close()
    assert not handles and found.sum() == 1995
    del found
    (handle,) = handles
    assert os.fstat(handle).st_size == 2000
    monkeypatch.undo()
    scratch._close_in_thread(handle)
    for thread in threading.enumerate():
        if thread.name == "scratch":
            thread.join(5)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


@pytest.mark.usefixtures("small_memory")
def test_copying_many_sprites_uses_a_scratch_file(folder: Path, tmp_path: Path) -> None:
    sprites = imported(folder, cache=tmp_path / "cache").sprites
    few, many = sprites.take([3, 1]), sprites.take(range(len(sprites) - 1, -1, -2))
    assert few.rgba.flags.writeable and not many.rgba.flags.writeable and many.stored is None
    assert (few.rgba == sprites.rgba[[3, 1]]).all() and (many.rgba == sprites.rgba[::-2]).all()
    assert many.names == sprites.names[::-2] and len(list((tmp_path / "cache").iterdir())) == 1
