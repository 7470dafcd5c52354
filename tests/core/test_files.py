from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.core import files
from studio.core.errors import ExportError
from studio.core.files import (
    atomic_path,
    export_together,
    free_path,
    output_name,
    read_into,
    remove,
    safe_name,
    sweep_temporaries,
    why_unwritable,
    write_atomic,
)
from tests.conftest import posix


def test_a_write_replaces_the_file_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.json"
    write_atomic(target, b"one")
    write_atomic(target, b"two")
    assert target.read_bytes() == b"two"
    assert list(target.parent.iterdir()) == [target]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomic(target, b"old")

    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]


def _in_use(times: int, work: Callable[..., object], winerror: int | None = 32) -> Callable[..., object]:
    """Return `work` with this many sharing errors first, as on Windows."""
    left = [times]

    def refused(*arguments: object, **named: object) -> object:
        if left[0]:
            left[0] -= 1
            error = PermissionError(13, "The process cannot access the file because it is used by another process")
            error.winerror = winerror  # type: ignore[attr-defined]
            raise error
        return work(*arguments, **named)

    return refused


@pytest.mark.parametrize("winerror", [5, 32, 33])
def test_windows_sharing_errors_are_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, winerror: int) -> None:
    monkeypatch.setattr(files, "_PAUSE_S", 0.0)
    target = tmp_path / "state.json"
    write_atomic(target, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", _in_use(3, Path.replace, winerror))
        write_atomic(target, b"new")
        assert target.read_bytes() == b"new"
        patch.setattr(Path, "replace", _in_use(3, Path.replace, winerror))
        export_together({target: b"newer"})
    assert target.read_bytes() == b"newer"
    monkeypatch.setattr(Path, "unlink", _in_use(3, Path.unlink, winerror))
    remove(target)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("winerror", [32, None])
def test_retries_end_after_some_seconds_and_are_for_windows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, winerror: int | None
) -> None:
    now_s, waits = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now_s[0] += seconds

    monkeypatch.setattr("studio.core.files.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("studio.core.files.time.sleep", sleep)
    target = tmp_path / "state.json"
    target.write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", _in_use(10_000, Path.replace, winerror))
    with pytest.raises(PermissionError):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]
    assert (2.0 < sum(waits) < 10.0) if winerror else not waits


class _ShortReads(io.BytesIO):
    """A file on a network drive, which gives few bytes at a time and sometimes no bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._reads = 0

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        self._reads += 1
        return 0 if self._reads % 3 == 2 else super().readinto(out[:7])


def test_short_reads_of_a_network_drive_are_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PAUSE_S", 0.0)
    content, out = bytes(range(100)), bytearray(60)
    assert read_into(_ShortReads(content), 30, memoryview(out)) == 60 and out == content[30:90]
    monkeypatch.setattr(files, "_RETRY_S", 0.01)
    assert read_into(io.BytesIO(content), 80, memoryview(out)) == 20


def test_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def half_done() -> None:
        with atomic_path(tmp_path / "folder") as temporary:
            temporary.mkdir()
            (temporary / "part").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half_done()
    assert not list(tmp_path.iterdir())
    with atomic_path(tmp_path / "folder") as temporary:
        temporary.mkdir()
        (temporary / "part").write_text("whole")
    assert (tmp_path / "folder" / "part").read_text() == "whole"


def test_fault_21_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    left, written_now = tmp_path / ".tmp-0123456789ab.pt", tmp_path / ".tmp-0123456789ab-link"
    folder, old_folder = tmp_path / ".tmp-ba9876543210", tmp_path / ".tmp-cd9876543210"
    others = {tmp_path / ".tmp-mine", tmp_path / "0123456789ab.pt"}
    for path in (left, written_now, folder / "part", old_folder / "part", *others):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    for path in (left, old_folder, *others):
        os.utime(path, (1, 1))
    write_atomic(tmp_path / "model.pt", b"whole")
    others.add(tmp_path / "model.pt")
    assert set(tmp_path.iterdir()) == {written_now, folder, *others}
    sweep_temporaries(tmp_path)
    assert set(tmp_path.iterdir()) == others


@pytest.mark.parametrize(
    ("text", "expected"),
    [("sword", "sword"), ("../../x", "_.._x"), ("CON.png", "_CON.png"), ("com1", "_com1"), ("a:b*c", "a_b_c"),
     ("nul .png", "_nul .png"), ("LPT²", "_LPT²"), ("conin$", "_conin$"), ("console", "console"), ("aux1", "aux1"),
     ("dots. . .", "dots"), ("", "unnamed"), ("...", "unnamed"), ("é😀", "é😀"),
     ("😀" * 300, "😀" * 50), ("x" * 300, "x" * 80)],
)  # fmt: skip
def test_safe_names(text: str, expected: str) -> None:
    assert safe_name(text) == expected


@given(st.text())
def test_a_safe_name_never_leaves_its_folder(text: str) -> None:
    name = safe_name(text)
    assert 0 < len(name) <= 81 and len(name.encode()) <= 201 and name not in (".", "..")
    assert not set(name) & set('/\\:*?"<>|\0') and name == name.strip(" .")
    assert (Path("/folder") / name).parent == Path("/folder")
    name.encode()


def test_reason_why_a_path_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert why_unwritable(tmp_path / "new folder" / "model.onnx") == ""
    assert "not a folder" in why_unwritable(tmp_path / "file" / "deeper" / "model.onnx")
    assert "too long" in why_unwritable(tmp_path / ("x" * 300))
    monkeypatch.setattr(os, "access", lambda *args: False)
    assert f"may not write in {tmp_path}" in why_unwritable(tmp_path / "model.onnx")


def test_free_path_does_not_exist(tmp_path: Path) -> None:
    target = tmp_path / "sheet.png"
    assert free_path(target) == target
    target.touch()
    assert free_path(target) == tmp_path / "sheet-2.png"
    if os.name != "nt":  # links are for administrators there
        (tmp_path / "sheet-2.png").symlink_to(tmp_path / "nowhere")
        assert free_path(target) == tmp_path / "sheet-3.png"
    (tmp_path / "pair.json").touch()
    assert free_path(tmp_path / "pair.png", (".json", ".txt")) == tmp_path / "pair-2.png"
    (tmp_path / "pair-up.json").touch()
    assert free_path(tmp_path / "pair.png", (".json",), ("-down", "-up")) == tmp_path / "pair-2.png"
    assert free_path(tmp_path / "pair.png", (), ("-down", "-up")) == tmp_path / "pair.png"


def test_free_path_where_the_case_of_letters_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows and macOS: a run 'knights' must not go into the folder of the run 'Knights'."""

    def exists(path: Path) -> bool:
        return path.name.casefold() in {other.name.casefold() for other in path.parent.iterdir()}

    (tmp_path / "Knights").mkdir()
    (tmp_path / "KNIGHTS-2").mkdir()
    monkeypatch.setattr(os.path, "lexists", exists)
    assert free_path(tmp_path / "knights") == tmp_path / "knights-3"


def test_numbers_of_file_names_follow_a_blank_only_in_names_with_blanks(tmp_path: Path) -> None:
    (tmp_path / "my sheet.png").touch()
    assert free_path(tmp_path / "my sheet.png") == tmp_path / "my sheet 2.png"


@pytest.mark.parametrize(
    ("text", "expected"), [("gold 55 0012", "gold-55-0012"), (" a\tb / c ", "a_b-_-c"), ("  ", "unnamed")]
)
def test_output_names_have_no_blanks(text: str, expected: str) -> None:
    assert output_name(text) == expected


@pytest.mark.parametrize("stop", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_export_together_writes_all_files_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    pair = {tmp_path / "a.png": b"a", tmp_path / "a.json": b"b"}
    honest = Path.replace

    def refuse(path: Path, target: Path) -> None:
        if target.suffix == ".json":
            raise stop
        honest(path, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises((ExportError, KeyboardInterrupt)):
        export_together(pair)
    assert list(tmp_path.iterdir()) == []
    old = dict.fromkeys(pair, b"old")
    for path, data in old.items():
        path.write_bytes(data)
    with pytest.raises((ExportError, KeyboardInterrupt)):  # the first is in its place by then
        export_together(pair)
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old
    export_together(pair)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == pair
    (tmp_path / "b" / "inside").mkdir(parents=True)
    with pytest.raises(ExportError):
        export_together({tmp_path / "a.png": b"c", tmp_path / "b": b"d"})
    assert (tmp_path / "a.png").read_bytes() == b"a" and (tmp_path / "b" / "inside").is_dir()


@posix
def test_removing_a_link_keeps_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    files.remove(tmp_path / "link")
    files.remove(tmp_path / "missing")
    assert (tmp_path / "folder").is_dir() and not (tmp_path / "link").exists()
