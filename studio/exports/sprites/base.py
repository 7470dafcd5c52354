"""The base class of file formats for sprites. A format turns sprites into the contents of one or several files.

To add a format, add a module with a subclass of `SpriteExport` to this folder, or list a module of your package in the
entry-point group 'studio.exports.sprites'. The contract tests find it.

`SpriteSet.cells` groups sprites into characters with views and frames. A format that ignores them saves the sprites
alone; `SheetPlan` arranges cells in a sheet, and `split` gives each character or animation a file of its own.
`SpriteSet.tile_set` says which tiles fit together. A format with `saves_tiles` saves tile sets only (see `TileSheet`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from studio.core import files
from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.data.tiles.tile_set import TileSet
from studio.exports import sheets
from studio.exports.sprites.cells import GAP, Cells

_ANIMATION = "animation"
T = TypeVar("T")
LONGEST_SIDE = 16_384  # pixels of a sheet; game engines load no larger textures


@dataclass(frozen=True, eq=False)
class SpriteSet:
    """Sprites to save, with their names and metadata."""

    sprites: Rgba  # uint8 [N, H, W, 4], straight alpha
    names: Sequence[str] = ()  # a name per sprite, or empty
    classes: Sequence[str] = ()  # a class per sprite ('' for none), or empty
    palette: NDArray[np.uint8] | None = None  # [K, 3], the ordered palette of the sprites
    duration_ms: int = 100  # duration of a frame; duration_ms + hold_ms stays below 65,536
    hold_ms: int = 0  # additional duration of the last frame
    own_durations_ms: Sequence[int] = ()  # a duration per sprite, or empty for equal durations
    tags: Sequence[tuple[str, int, int, int]] = ()  # name, first frame, last frame, direction (Aseprite's number)
    is_animation: bool = False  # whether the sprites are frames of an animation
    about: Mapping[str, Any] = field(default_factory=dict)  # metadata about the model, the seed and the settings
    columns: int | None = None  # columns of a sprite sheet; None lets `sheet_columns` choose
    cells: Cells | None = None  # views and frames of characters; formats then ignore names, classes, tags and columns
    tile_set: TileSet | None = None  # terrains of the sprites, which are tiles

    def __post_init__(self) -> None:
        assert self.sprites.dtype == np.uint8 and self.sprites.ndim == 4 and self.sprites.shape[3] == 4
        assert len(self.names) in (0, len(self)) and len(self.classes) in (0, len(self))
        assert self.palette is None or (self.palette.dtype == np.uint8 and self.palette.shape[1:] == (3,))
        assert len(self.own_durations_ms) in (0, len(self))
        assert self.cells is None or self.cells.table.max(initial=GAP) < len(self)
        assert self.tile_set is None or len(self.tile_set.places) == len(self)
        assert 1 <= self.duration_ms <= self.duration_ms + self.hold_ms < 2**16

    def __len__(self) -> int:
        return len(self.sprites)

    def sheet_columns(self) -> int:
        """Return the chosen columns of a sheet.

        Without a choice, an animation fills a row of at most LONGEST_SIDE; a tile set has the columns of its tiles.
        """
        if self.columns is not None:
            return self.columns
        if self.tile_set is not None:
            return self.tile_set.columns
        return max(1, min(len(self), LONGEST_SIDE // self.sprites.shape[2])) if self.is_animation else sheets.COLUMNS

    def take(self, indices: Sequence[int]) -> SpriteSet:
        """Return the sprites at `indices`, without cells, tags and terrains."""
        return replace(
            self, sprites=self.sprites[list(indices)], names=_pick(self.names, indices),
            classes=_pick(self.classes, indices), own_durations_ms=_pick(self.own_durations_ms, indices),
            tags=(), cells=None, tile_set=None,
        )  # fmt: skip

    def frame_names(self) -> list[str]:
        """Return a name per sprite. Without `names`, the names are numbered by class: 'sword 001'."""
        return sheets.sprite_names(self.names, self.classes, len(self))

    def durations_ms(self) -> list[int]:
        """Return the duration of each frame, 1 to 65,535 ms."""
        if self.own_durations_ms:
            return [min(max(duration, 1), 2**16 - 1) for duration in self.own_durations_ms]
        durations = [self.duration_ms] * len(self)
        durations[-1] += self.hold_ms
        return durations

    def soft_pixels(self) -> int:
        """Count the semi-transparent pixels."""
        alpha = self.sprites[..., 3]
        return int(np.count_nonzero((alpha > 0) & (alpha < 255)))

    def by_class(self) -> dict[str, list[int]]:
        """Return the indices of the sprites by class, in order of first appearance; '' for sprites without a class.

        An animation is a single group with the name of its class; without a common class, 'animation'.
        """
        labels = self.classes or [""] * len(self)
        if self.is_animation:
            only = set(labels)
            labels = [next(iter(only)) if len(only) == 1 else ""] * len(self)
            labels = [label or _ANIMATION for label in labels]
        indices: dict[str, list[int]] = {}
        for index, label in enumerate(labels):
            indices.setdefault(label, []).append(index)
        return indices


def _pick(values: Sequence[T], indices: Sequence[int]) -> list[T]:
    """Return the values at `indices`; empty if there are no values."""
    return [values[index] for index in indices] if values else []


class SpriteExport(ABC):
    """A file format for sprites, without state. suffix: ending of the main file's name, with a dot."""

    name: str = ""
    title: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    companions: ClassVar[tuple[str, ...]] = ()  # suffixes of the other files
    help: ClassVar[str] = ""  # one sentence: the purpose of the format
    order: ClassVar[int] = 100  # sorts the formats; the first format with a suffix is its default
    plays: ClassVar[bool] = False  # whether the file is an animation
    saves_tiles: ClassVar[bool] = False  # whether the format saves tile sets, and no other sprites
    has_note: ClassVar[bool] = False  # whether the main file contains a note (studio.exports.provenance_note)

    def write(self, sprites: SpriteSet, target: Path, *, replace: bool = False) -> list[Path]:
        """Write all files of `sprites`, or no file if an error occurs; return the paths, the main file first.

        Appends the format's suffix to `target` if necessary. If a file exists, use a numbered name, or overwrite the
        files with `replace`: `target` and its companions, no other files. Raises ExportError, also for sprites that
        this format can't hold.
        """
        if not len(sprites) or (sprites.cells is not None and not sprites.cells.rows()):
            raise ExportError("There are no sprites to save.", "Generate some first.")
        wanted = target if target.suffix.lower() == self.suffix else target.with_name(f"{target.name}{self.suffix}")
        parts = self.split(sprites)
        if not replace or [*parts] != [""]:
            wanted = files.free_path(wanted, self.companions, [*parts])
        contents: dict[Path, bytes] = {}
        for ending, part in parts.items():
            contents |= self.contents(part, wanted.with_name(f"{wanted.stem}{ending}{wanted.suffix}"))
        files.export_together(contents)
        return list(contents)

    def split(self, sprites: SpriteSet) -> Mapping[str, SpriteSet]:
        """Split sprites into several files; return each file's sprites by the ending of its name, like '-hero'."""
        return {"": sprites}

    @abstractmethod
    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        """Encode sprites, at least one; return the bytes of `target` and its companions by path. Writes no file.

        Raises ExportError for sprites that this format can't hold.
        """

    def note_in(self, data: bytes) -> str:
        """Return the note on the sprites' origin from a file's bytes, possibly damaged; empty without a note."""
        return ""

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        """Return sentences that tell the user what this format loses or changes in these sprites."""
        return ()
