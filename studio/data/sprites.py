"""`Sprites`: what the studio learns from, in memory or, when they are very many, in a file that is mapped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.files.scratch import copied

_SLICE = 32 << 20  # bytes that are hashed at a time


class MappedFile(NamedTuple):
    """A file that is never written to again, and the byte from which on it holds pixels, sprite after sprite."""

    path: Path
    start: int


@dataclass(frozen=True, eq=False)
class Sprites:
    """Sprites of one square size with their classes.

    rgba: uint8 [N, S, S, 4], straight alpha, colour 0 wherever alpha is 0; read-only where it is a mapped file.
    labels: int64 [N], index into `class_names`.
    names: where each sprite came from, for people ('item/potion/ruby.png').
    title: what the set is called ('dcss').
    targets: float32 [N, T], the numbers that go with each sprite, NaN where one is missing; T is 0 without any.
    target_names: what each of the T numbers is called ('price').
    stored: where `rgba` is on the disk, if it is mapped from there.
    origin: what was read and how it was mended, for the record, as JSON knows it; not part of the fingerprint.
    groups: int64 [N], the same number for sprites that belong together, of which none is learnt from while another is
    held out; by default each is alone. An import gives those of one file a number; `data.groups` adds near twins.
    is_test: bool [N], which are the test set that the data bring along: never learnt from, unless there are no others.
    """

    rgba: Rgba
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    title: str
    targets: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    target_names: tuple[str, ...] = ()
    stored: MappedFile | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    groups: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    is_test: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __post_init__(self) -> None:
        if not self.target_names:
            object.__setattr__(self, "targets", np.zeros((len(self.rgba), 0), np.float32))
        if not len(self.groups):
            object.__setattr__(self, "groups", np.arange(len(self.rgba)))
        if not len(self.is_test):
            object.__setattr__(self, "is_test", np.zeros(len(self.rgba), np.bool_))
        count, height, width, channels = self.rgba.shape
        assert self.rgba.dtype == np.uint8 and height == width and channels == 4, self.rgba.shape
        assert self.labels.shape == (count,) and self.labels.dtype == np.int64 and len(self.names) == count
        assert count == 0 or 0 <= self.labels.min() <= self.labels.max() < len(self.class_names)
        assert self.targets.shape == (count, len(self.target_names)) and self.targets.dtype == np.float32
        assert self.groups.shape == (count,) and self.groups.dtype == np.int64
        assert self.is_test.shape == (count,) and self.is_test.dtype == np.bool_

    def __len__(self) -> int:
        return len(self.rgba)

    @property
    def size(self) -> int:
        """Width and height in pixels."""
        return int(self.rgba.shape[1])

    @property
    def fingerprint(self) -> str:
        """A hash of pixels, classes and numbers: two imports that give the same training data share it."""
        for _ in self.hashing():
            pass
        return str(vars(self)["_fingerprint"])

    def hashing(self) -> Iterator[int]:
        """Work the fingerprint out, once, in slices: yields how many sprites are done. Other threads run meanwhile."""
        if "_fingerprint" in vars(self):
            return
        digest = hashlib.sha256(repr((self.rgba.shape, self.class_names)).encode())
        step = max(1, _SLICE // max(1, self.rgba[:1].nbytes))
        for start in range(0, len(self), step):
            digest.update(np.ascontiguousarray(self.rgba[start : start + step]).data)
            yield min(start + step, len(self))
        digest.update(np.ascontiguousarray(self.labels).data)
        if self.target_names:
            digest.update(repr(self.target_names).encode("utf-8", "surrogatepass"))
            digest.update(np.ascontiguousarray(self.targets).data)
        vars(self)["_fingerprint"] = digest.hexdigest()[:32]

    def moved_to(self, rgba: Rgba, stored: MappedFile | None) -> Sprites:
        """The same sprites, their pixels being at another place now."""
        return self._same(replace(self, rgba=rgba, stored=stored))

    def read_from(self, origin: Mapping[str, Any]) -> Sprites:
        """The same sprites with that origin."""
        return self._same(replace(self, origin=origin))

    def _same(self, other: Sprites) -> Sprites:
        """`other`, whose fingerprint is the same and need not be worked out again."""
        if "_fingerprint" in vars(self):
            vars(other)["_fingerprint"] = vars(self)["_fingerprint"]
        return other

    def class_counts(self) -> NDArray[np.int64]:
        """Sprites in each class: int64 [number of classes]."""
        return np.bincount(self.labels, minlength=len(self.class_names)).astype(np.int64)

    def take(self, indices: NDArray[np.int64] | Sequence[int]) -> Sprites:
        """A copy of the sprites at `indices`, with the same classes; of very many on the disk, which raises OSError."""
        chosen = np.asarray(indices, dtype=np.int64)
        names = tuple(self.names[i] for i in chosen)
        rgba = copied(self.rgba, chosen, self.stored.path.parent if self.stored else None)
        rows = {name: getattr(self, name)[chosen] for name in ("labels", "targets", "groups", "is_test")}
        return replace(self, rgba=rgba, names=names, stored=None, **rows)
