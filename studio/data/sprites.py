"""`Sprites`, the data class that training consumes: pixels, classes and targets, in memory or mapped from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.former_names import alias
from studio.data.attributes.attributes import NO_ATTRIBUTES, Attributes
from studio.data.files.scratch import copy_rows
from studio.data.sets.layout import GAP, NO_SETS, SetLayout

_HASHED_BYTES = 32 << 20  # bytes per step of `compute_fingerprint`


class MappedFile(NamedTuple):
    """A file with memory-mapped pixels of sprites, read-only. start: byte offset of the first sprite."""

    path: Path
    start: int


class Examples(Protocol):
    """Training examples: `Sprites`, or sets of sprites with cells stacked as channels."""

    @property
    def rgba(self) -> Rgba: ...  # uint8 [N, S, S, 4], or [N, S, S, 4 C] for sets of C cells
    @property
    def labels(self) -> NDArray[np.int64]: ...  # [N]
    @property
    def targets(self) -> NDArray[np.float32]: ...  # [N, T]; for sets, 1 by present cell and 0 by missing cell
    @property
    def stored(self) -> MappedFile | None: ...
    @property
    def size(self) -> int: ...
    def __len__(self) -> int: ...
    def take(self, indices: NDArray[np.int64]) -> Self: ...


@dataclass(frozen=True, eq=False)
class Sprites:
    """Square sprites of equal size, with classes and targets.

    groups: The split into training and validation set keeps a group's sprites together. By default, every sprite forms
    a group; the import groups a file's sprites, `data.similarity.groups` adds near-duplicates.
    sets: Sprites that show a character's views and frames.
    attributes: Values beside the class, for example an element and a rarity.
    is_test: True in the data set's own test set. Training uses test sprites only without other sprites.
    """

    rgba: Rgba  # uint8 [N, S, S, 4], straight alpha, colour 0 where alpha is 0; read-only if mapped from a file
    labels: NDArray[np.int64]  # [N], index into `class_names`
    class_names: tuple[str, ...]
    names: tuple[str, ...]  # printable origin by sprite ('item/potion/ruby.png')
    title: str  # the data set's name ('dcss')
    targets: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))  # [N, T], NaN if missing
    target_names: tuple[str, ...] = ()  # names of the T numbers to predict ('price')
    stored: MappedFile | None = None  # the file behind a memory-mapped `rgba`
    origin: Mapping[str, Any] = field(default_factory=dict)  # JSON: paths, import options, rights; not fingerprinted
    groups: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # [N]
    is_test: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))  # [N]
    sets: SetLayout = NO_SETS
    attributes: Attributes = NO_ATTRIBUTES

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
        assert not self.attributes or len(self.attributes.table) == count
        assert not len(self.sets) or self.sets.table.max() < count

    def __len__(self) -> int:
        return len(self.rgba)

    @property
    def size(self) -> int:
        """Width and height of a sprite in pixels."""
        return int(self.rgba.shape[1])

    @property
    def fingerprint(self) -> str:
        """Hash of pixels, classes, targets and attributes, 32 hex digits; computed at the first access."""
        for _ in self.compute_fingerprint():
            pass
        return str(vars(self)["_fingerprint"])

    def compute_fingerprint(self) -> Iterator[int]:
        """Compute the fingerprint once, in steps; yields the number of sprites hashed after each step."""
        if "_fingerprint" in vars(self):
            return
        digest = hashlib.sha256(repr((self.rgba.shape, self.class_names)).encode())
        step = max(1, _HASHED_BYTES // max(1, self.rgba[:1].nbytes))
        for start in range(0, len(self), step):
            digest.update(np.ascontiguousarray(self.rgba[start : start + step]).data)
            yield min(start + step, len(self))
        digest.update(np.ascontiguousarray(self.labels).data)
        if self.target_names:
            digest.update(repr(self.target_names).encode("utf-8", "surrogatepass"))
            digest.update(np.ascontiguousarray(self.targets).data)
        if self.attributes:
            digest.update(repr((self.attributes.names, self.attributes.values)).encode("utf-8", "surrogatepass"))
            digest.update(np.ascontiguousarray(self.attributes.table).data)
        vars(self)["_fingerprint"] = digest.hexdigest()[:32]

    def with_pixels(self, rgba: Rgba, stored: MappedFile | None) -> Sprites:
        """Return a copy with `rgba`, another array of equal pixels. stored: memory-mapped file of `rgba`, or None."""
        return self._with_fingerprint(replace(self, rgba=rgba, stored=stored))

    def with_origin(self, origin: Mapping[str, Any]) -> Sprites:
        """Return a copy with another `origin` (paths, options, rights)."""
        return self._with_fingerprint(replace(self, origin=origin))

    def with_chosen_sets(self) -> Sprites:
        """Return a copy with sets chosen by the user: the split into training and validation keeps them whole."""
        groups = self.sets.joined_groups(self.groups)
        return self._with_fingerprint(replace(self, sets=replace(self.sets, chosen=True), groups=groups))

    moved_to = alias("Sprites.moved_to", "with_pixels")
    read_from = alias("Sprites.read_from", "with_origin")

    def _with_fingerprint(self, copy: Sprites) -> Sprites:
        """Give the computed fingerprint to `copy`, which has equal training data; return `copy`."""
        if "_fingerprint" in vars(self):
            vars(copy)["_fingerprint"] = vars(self)["_fingerprint"]
        return copy

    def class_counts(self) -> NDArray[np.int64]:
        """Count the sprites per class: int64 [classes]."""
        return np.bincount(self.labels, minlength=len(self.class_names)).astype(np.int64)

    def take(self, indices: NDArray[np.int64] | Sequence[int]) -> Sprites:
        """Return a copy with the sprites at `indices` and all class names; a large one on the disk. Raises OSError."""
        chosen = np.asarray(indices, dtype=np.int64)
        names = tuple(self.names[i] for i in chosen)
        rgba = copy_rows(self.rgba, chosen, self.stored.path.parent if self.stored else None)
        rows = {name: getattr(self, name)[chosen] for name in ("labels", "targets", "groups", "is_test")}
        return replace(
            self,
            rgba=rgba,
            names=names,
            stored=None,
            sets=self.sets.take(chosen, len(self)),
            attributes=self.attributes.take(chosen),
            **rows,
        )

    def of_sets(self, layout: SetLayout) -> Sprites:
        """Return only the sprites in some sets; the split then keeps sets whole. layout: a part of `sets`."""
        used = np.unique(layout.table[layout.table != GAP]).astype(np.int64)
        return replace(self, sets=layout).take(used).with_chosen_sets()

    def stacked_sets(self, indices: NDArray[np.int64]) -> StackedSets:
        """Stack the cells of every set that contains a sprite of `indices`, in the layout's order."""
        is_chosen = np.zeros(len(self) + 1, np.bool_)  # the last entry: a gap
        is_chosen[indices] = True
        numbers = np.flatnonzero(is_chosen[self.sets.table].any(1))
        table = self.sets.table[numbers]  # int32 [M, C]
        cells = self.rgba[table]  # [M, C, S, S, 4]; a gap takes the last sprite
        cells[table == GAP] = 0
        shape = len(numbers), *cells.shape[2:4], 4 * len(self.sets.cells)
        stacked = np.ascontiguousarray(cells.transpose(0, 2, 3, 1, 4)).reshape(shape)
        return StackedSets(stacked, (table != GAP).astype(np.float32))


@dataclass(frozen=True, eq=False)
class StackedSets:
    """Sets as training examples: an example stacks a set's C cells as channels.

    A missing cell has transparent pixels and the target 0.
    """

    rgba: Rgba  # uint8 [M, S, S, 4 C], straight alpha
    targets: NDArray[np.float32]  # [M, C], 1 for a present cell, 0 for a missing cell
    labels: NDArray[np.int64] = field(init=False)  # [M], zeros: sets have no classes
    stored: MappedFile | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", np.zeros(len(self.rgba), np.int64))

    def __len__(self) -> int:
        return len(self.rgba)

    @property
    def size(self) -> int:
        """Width and height of a cell in pixels."""
        return int(self.rgba.shape[1])

    def take(self, indices: NDArray[np.int64]) -> StackedSets:
        """Return a copy with the sets at `indices`."""
        return replace(self, rgba=self.rgba[indices], targets=self.targets[indices])


def unstack(rgba: Rgba) -> Rgba:
    """Return the cells of stacked sets: uint8 [M, S, S, 4 C] -> [M, C, S, S, 4]."""
    cells = rgba.reshape(*rgba.shape[:3], rgba.shape[3] // 4, 4)
    return np.ascontiguousarray(cells.transpose(0, 3, 1, 2, 4))
