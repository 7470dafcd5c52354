"""The user's collection of kept sprites, shared by all windows."""

import contextlib
import errno
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, Signal

from studio.core import file_systems, files, paths
from studio.core.arrays import Rgba
from studio.core.pictures import pixel_digest
from studio.data.pixels.editing import EditedSprite, NamedSprite, SavedEdit

_MAX_SPRITES = 1000  # beyond this number, the oldest sprites are removed
_LOCK_TIMEOUT_S = 1.0  # while another window writes the file
_Stamp = tuple[int, int, int]  # state of a file: time of the last change in ns, size in bytes, inode
_Key = bytes  # digest of a square sprite's pixels


class KeptSprites(QObject):
    """The user's collection of kept sprites, oldest first, without duplicates.

    All windows share one file. `store` merges this window's changes with the changes of other windows.
    """

    changed = Signal()  # sprites were added or removed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = paths.home() / "kept.jsonl"
        self._lock = paths.home() / ".kept.lock"
        self._stamp: _Stamp | None = None  # stamp of the file after this window's last access
        self._kept: list[SavedEdit] = []
        with contextlib.suppress(OSError):  # `store` reads an unreadable file again before it writes
            stamp = self._file_stamp()
            self._kept, self._stamp = self._read(), stamp
        self._stored = [_key(kept) for kept in self._kept]  # keys of the sprites in the file at the time of the stamp
        self._is_stored = True

    def of_size(self, size: int) -> list[SavedEdit]:
        """Return the kept sprites of `size` x `size` pixels."""
        return [kept for kept in self._kept if len(kept.edit.sprite) == size]

    def add(self, sprites: Iterable[NamedSprite]) -> list[SavedEdit]:
        """Add square sprites, without duplicates, and return the added sprites."""
        known = set(map(_key, self._kept))
        found = {pixel_digest(sprite.rgba): sprite for sprite in sprites}
        new = {key: sprite for key, sprite in found.items() if key not in known}
        added = [SavedEdit(EditedSprite.of(sprite.rgba), *sprite[1:]) for sprite in new.values()]
        if added:
            self._set([*self._kept, *added])
        return added

    def remove(self, kept: list[SavedEdit]) -> None:
        """Remove sprites."""
        self._set([each for each in self._kept if each not in kept])

    def indexed(self, kept: list[SavedEdit]) -> tuple[tuple[int, SavedEdit], ...]:
        """Return (index in the collection, sprite) for each sprite in `kept`, as an argument for `restore`."""
        return tuple((index, each) for index, each in enumerate(self._kept) if each in kept)

    def restore(self, removed: Sequence[tuple[int, SavedEdit]]) -> None:
        """Insert removed sprites. removed: pairs of former index and sprite, by ascending index."""
        kept = list(self._kept)
        for index, each in removed:
            kept.insert(index, each)
        self._set(kept)

    def indices_of(self, sprites: Rgba) -> list[int]:
        """Find the kept sprites in `sprites`, uint8 [N, S, S, 4], and return their indices."""
        kept = set(map(_key, self.of_size(sprites.shape[1])))
        return [number for number, sprite in enumerate(sprites) if pixel_digest(sprite) in kept] if kept else []

    def count_of_other_sizes(self, size: int) -> int:
        """Count the kept sprites with other sizes than `size` x `size`."""
        return len(self._kept) - len(self.of_size(size))

    def store(self) -> None:
        """Write the changes since the last call, if any. Raises OSError."""
        if self._is_stored:
            return
        paths.home().mkdir(parents=True, exist_ok=True)
        lock = file_systems.acquire_lock(self._lock, _LOCK_TIMEOUT_S)
        if lock is None:
            raise OSError(errno.EAGAIN, "The kept sprites are locked by another window", str(self._path))
        try:
            self._write([_key(kept) for kept in self._kept])
            self._stamp, self._is_stored = self._file_stamp(), True
        finally:
            lock.release()

    def _set(self, kept: list[SavedEdit]) -> None:
        self._kept = kept[-_MAX_SPRITES:]
        self._is_stored = False
        self.changed.emit()

    def _write(self, now: list[_Key]) -> None:
        """Write the kept sprites, merged with the changes of other windows. Raises OSError.

        now: the keys of this window's sprites.
        """
        count = len(self._stored)
        is_unchanged = self._file_stamp() == self._stamp
        if is_unchanged and count and now[:count] == self._stored:
            for kept in self._kept[count:]:  # a line break before each, in case a crash tore the last line
                files.append_line(self._path, f"\n{kept.to_json().decode()}")
            self._stored = now
            return
        merged = self._kept if is_unchanged else self._merged(self._read(), set(now))
        text = b"".join(kept.to_json() + b"\n" for kept in merged)
        if text:
            files.write_atomic(self._path, text)
        else:
            files.remove(self._path)
        self._stored = [_key(kept) for kept in merged]
        if merged is not self._kept:
            self._set(merged)

    def _merged(self, others: list[SavedEdit], now: set[_Key]) -> list[SavedEdit]:
        """Apply this window's removals and additions to the sprites in the file (`others`)."""
        stored, known = set(self._stored), {_key(kept) for kept in others}
        remaining = [kept for kept in others if (key := _key(kept)) in now or key not in stored]
        added = [kept for kept in self._kept if (key := _key(kept)) not in stored and key not in known]
        return [*remaining, *added][-_MAX_SPRITES:]

    def _file_stamp(self) -> _Stamp | None:
        """Return the file's stamp, which changes with every write; None without a file. Raises OSError."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> list[SavedEdit]:
        """Read the kept sprites from the file; skip damaged lines. Raises OSError."""
        found: dict[_Key, SavedEdit] = {}
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                kept = SavedEdit.from_json(line)
            except ValueError:
                continue
            found.setdefault(_key(kept), kept)
        return list(found.values())


def _key(kept: SavedEdit) -> _Key:
    return pixel_digest(kept.edit.sprite)
