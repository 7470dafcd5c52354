"""The events of the window's own jobs, beside those of the engine and of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event, Notice, SpritesGenerated
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from studio.data.colour.colour_counts import ColourCounts
    from studio.data.colour.constraints import ConstraintCheck
    from studio.data.colour.palette import Palette
    from studio.data.files.source_files import Quarantined
    from studio.data.importing.sheet_preview import Sheet
    from studio.data.options import FoundSheet
    from studio.engine.runs.folder import RunRecord
    from studio.engine.runs.listing import RunSummary
    from studio.engine.runs.notes import RunNotes
    from studio.exports.base import ModelExport
    from studio.lab.experiments.base import Experiment
    from studio.lab.results import Result
    from studio.recipes.base import Recipe


@dataclass(frozen=True, eq=False)
class EngineReady(Event):
    """torch is imported, and with it the plug-ins that need it."""

    recipes: Mapping[str, Recipe]
    exports: Mapping[str, ModelExport]
    experiments: Mapping[str, Experiment]


@dataclass(frozen=True)
class LibrariesLoaded(Event):
    """torch's shared libraries are mapped. An import in another thread would have waited for that."""


@dataclass(frozen=True)
class PlotsReady(Event):
    """pyqtgraph is imported: plots can be made at once."""


@dataclass(frozen=True)
class QueueListed(Event):
    """The runs that wait, in their order."""

    runs: tuple[RunSummary, ...]


@dataclass(frozen=True)
class QueueChanged(Event):
    """The queue was changed on the disk."""


@dataclass(frozen=True, eq=False)
class PaletteFound(Event):
    """The colours of the open sprites."""

    use: ColourCounts


@dataclass(frozen=True, eq=False)
class ColourFound(Event):
    """Which of the sprites have an opaque pixel of a colour uint8 [4]: int64 [n], ascending."""

    sprites: Sprites
    colour: Rgba
    indices: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PaletteLoaded(Event):
    """A palette file was read; not all of its colours are transparent."""

    path: Path
    palette: Palette


@dataclass(frozen=True, eq=False)
class PictureRead(Event):
    """A picture file was read: uint8 [H, W, 4]."""

    path: Path
    rgba: Rgba


@dataclass(frozen=True, eq=False)
class StyleRead(Event):
    """The colours of the sprites that a run learns from, uint8 [K, 3], most used first."""

    run: Path
    colours: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class SpritesColoured(SpritesGenerated):
    """New sprites in the chosen colours. palette: the name of the palette that they were snapped to, or empty.

    colours: uint8 [K, 3], those that they may have; None for any. badges: what was checked on them. source: what they
    come from (`exports.cards.Source`, as JSON); empty where that is not known. note: what the user should know of them.
    """

    palette: str = ""
    colours: NDArray[np.uint8] | None = None
    badges: tuple[ConstraintCheck, ...] = ()
    source: str = ""
    note: str = ""


@dataclass(frozen=True, eq=False)
class NeighboursFound(Event):
    """The training sprites that are nearest to a sprite: uint8 [n, S, S, 4] and their names, the nearest first.

    is_copy: whether the sprite is a copy of the nearest.
    """

    sprites: Rgba
    names: tuple[str, ...]
    is_copy: bool


@dataclass(frozen=True, eq=False)
class RunDescribed(Event):
    """What run.json says of the run that has just started."""

    record: RunRecord


@dataclass(frozen=True)
class RunKept(Event):
    """A new run is in this folder, to be trained by processes of their own."""

    path: Path


@dataclass(frozen=True)
class FilesSaved(Event):
    """These files were written."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Trashed:
    """A run in the system's trash: where it was, and where it is; None where the system does not tell."""

    path: Path
    place: Path | None


@dataclass(frozen=True)
class RunsTrashed(Event):
    """These runs are in the trash."""

    runs: tuple[Trashed, ...]


@dataclass(frozen=True)
class RunsRestored(Event):
    """These runs are where they were before they were moved to the trash."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class StateNotice(Notice):
    """A message about a state of the window; the window removes the message once `holds` returns False."""

    holds: Callable[[], bool] = field(kw_only=True)


@dataclass(frozen=True)
class UndoOffered(Notice):
    """Something was done that can be taken back."""


@dataclass(frozen=True)
class NotesChanged(Event):
    """What is said of a run."""

    path: Path
    notes: RunNotes


@dataclass(frozen=True)
class CheckpointsListed(Event):
    """The checkpoints of a run that a model can be loaded from. quick: those that have a distilled network."""

    path: Path
    names: tuple[str, ...]
    quick: tuple[str, ...] = ()


@dataclass(frozen=True)
class OnlySheets(Event):
    """The import of these paths found no sprite, but pictures that are too large for one.

    recognised: those of them that look like sheets by their pixels.
    """

    paths: tuple[Path, ...]
    sheets: tuple[Quarantined, ...]
    recognised: tuple[FoundSheet, ...] = ()


@dataclass(frozen=True, eq=False)
class SheetSeen(Event):
    """A sheet, ready to be shown."""

    sheet: Sheet


@dataclass(frozen=True, eq=False)
class PackedSeen(Event):
    """The sprites of a packed sheet. boxes: int [n, 4], left, top, right and bottom, the last two excluded."""

    boxes: NDArray[np.int64]


@dataclass(frozen=True)
class SheetUnseen(Event):
    """Why there is nothing to show, and what to do, as in StudioError."""

    title: str
    hint: str


@dataclass(frozen=True, eq=False)
class ResultsListed(Event):
    """What experiments have found out, the newest first."""

    results: list[Result]
