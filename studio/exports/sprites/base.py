"""What a format for sprites is: sprites in, the contents of a file out, or of a few that belong together.

A new format is one new file in this folder (or in a package that names its module in the entry-point group
'studio.exports.sprites'): a subclass of `SpriteExport`. The contract tests find it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from studio.core import files
from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.exports import sheets

_ANIMATION = "animation"


@dataclass(frozen=True, eq=False)
class SpriteSet:
    """What is saved.

    sprites: uint8 [N, H, W, 4], straight alpha.
    names: one for each sprite, or none. classes: likewise; each may be empty.
    palette: uint8 [K, 3], the colours that the sprites are drawn in, in their order; None where there is no palette.
    duration_ms: how long each is shown; the last one hold_ms longer. Together less than 65,536.
    own_durations_ms: duration of each sprite if the durations differ; otherwise empty.
    tags: name, first frame, last frame, and direction (Aseprite's number) of each tag, for formats with tags.
    is_animation: they are the frames of one, not sprites beside each other.
    about: what made them, for the metadata.
    columns: how many are side by side in a sheet.
    """

    sprites: Rgba
    names: Sequence[str] = ()
    classes: Sequence[str] = ()
    palette: NDArray[np.uint8] | None = None
    duration_ms: int = 100
    hold_ms: int = 0
    own_durations_ms: Sequence[int] = ()
    tags: Sequence[tuple[str, int, int, int]] = ()
    is_animation: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    columns: int = sheets.COLUMNS

    def __post_init__(self) -> None:
        assert self.sprites.dtype == np.uint8 and self.sprites.ndim == 4 and self.sprites.shape[3] == 4
        assert len(self.names) in (0, len(self)) and len(self.classes) in (0, len(self))
        assert self.palette is None or (self.palette.dtype == np.uint8 and self.palette.shape[1:] == (3,))
        assert len(self.own_durations_ms) in (0, len(self))
        assert 1 <= self.duration_ms <= self.duration_ms + self.hold_ms < 2**16

    def __len__(self) -> int:
        return len(self.sprites)

    def named(self) -> list[str]:
        """A name for each sprite: its own, or 'sword 001' after its class."""
        return sheets.sprite_names(self.names, self.classes, len(self))

    def durations_ms(self) -> list[int]:
        """How long each sprite is shown."""
        if self.own_durations_ms:
            return [min(max(duration, 1), 2**16 - 1) for duration in self.own_durations_ms]
        durations = [self.duration_ms] * len(self)
        durations[-1] += self.hold_ms
        return durations

    def soft_pixels(self) -> int:
        """How many pixels are neither opaque nor fully transparent."""
        alpha = self.sprites[..., 3]
        return int(np.count_nonzero((alpha > 0) & (alpha < 255)))

    def by_class(self) -> dict[str, list[int]]:
        """The places of the sprites by class, in the order in which the classes come up first; '' for those of none.

        An animation stays whole, under its only class or as 'animation'.
        """
        labels = self.classes or [""] * len(self)
        if self.is_animation:
            only = set(labels)
            labels = [next(iter(only)) if len(only) == 1 else ""] * len(self)
            labels = [label or _ANIMATION for label in labels]
        found: dict[str, list[int]] = {}
        for place, label in enumerate(labels):
            found.setdefault(label, []).append(place)
        return found


class SpriteExport(ABC):
    """One format. Stateless; `suffix` is the ending of the main file."""

    name: str = ""
    title: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    companions: ClassVar[tuple[str, ...]] = ()  # the endings of the files beside it
    help: ClassVar[str] = ""  # one sentence: what it is good for
    order: ClassVar[int] = 100  # formats with a lower one come first; of those with one ending the first is meant
    plays: ClassVar[bool] = False  # one file that shows the sprites one after another
    has_note: ClassVar[bool] = False  # whether the main file holds a note (studio.exports.provenance_note)

    def write(self, sprites: SpriteSet, target: Path, *, replace: bool = False) -> list[Path]:
        """Write `sprites`, all files or none; returns what was written, the main file first.

        The target gets the format's ending if it has another. Where it or a companion is there already, it gets a
        number, or these files are replaced. Raises ExportError, also for sprites that this format can't hold.
        """
        if not len(sprites):
            raise ExportError("There are no sprites to save.", "Generate some first.")
        wanted = target if target.suffix.lower() == self.suffix else target.with_name(f"{target.name}{self.suffix}")
        chosen = files.output_path(wanted, self.companions, replace=replace)
        contents = self.contents(sprites, chosen)
        files.export_together(contents)
        return list(contents)

    @abstractmethod
    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        """The bytes of `target` and then of its companions, for at least one sprite; nothing is written yet.

        Raises ExportError for sprites that this format can't hold.
        """

    def note_in(self, data: bytes) -> str:
        """Return the note in a main file that `contents` made, perhaps damaged since; empty without a note."""
        return ""

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        """What the user should know of these sprites in this format, a sentence each."""
        return ()
