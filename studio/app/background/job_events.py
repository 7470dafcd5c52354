"""Events that only jobs of the window yield; the others are in core/events.py and in the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Event, Notice, SpritesGenerated

if TYPE_CHECKING:
    from studio.data.colour.constraints import ConstraintCheck
    from studio.data.files.source_files import ImportIssue
    from studio.data.import_result import DetectedSheet
    from studio.engine.runs.folder import RunRecord


@dataclass(frozen=True, eq=False)
class SpritesColoured(SpritesGenerated):
    """New sprites in the chosen colours. palette: the name of the palette that they were snapped to, or empty.

    colours: uint8 [K, 3], those that they may have; None for any. badges: what was checked on them. source: what they
    come from (`ModelSource`, as JSON); empty where that is not known. note: what the user should know of them.
    """

    palette: str = ""
    colours: NDArray[np.uint8] | None = None
    badges: tuple[ConstraintCheck, ...] = ()
    source: str = ""
    note: str = ""


@dataclass(frozen=True, eq=False)
class RunDescribed(Event):
    """What run.json says of the run that has just started."""

    record: RunRecord


@dataclass(frozen=True)
class RunCheckpoints(Event):
    """The checkpoints of a run that a model can be loaded from. quick: checkpoints with a distilled network."""

    run: Path
    names: tuple[str, ...]
    quick: tuple[str, ...]


@dataclass(frozen=True)
class OnlySheets(Event):
    """The import of these paths found no sprite, but pictures that are too large for one.

    recognised: those of them that look like sheets by their pixels.
    """

    paths: tuple[Path, ...]
    sheets: tuple[ImportIssue, ...]
    recognised: tuple[DetectedSheet, ...] = ()


@dataclass(frozen=True)
class StateNotice(Notice):
    """A message about a state of the window; the window removes the message once `holds` returns False."""

    holds: Callable[[], bool] = field(kw_only=True)


@dataclass(frozen=True)
class UndoOffered(Notice):
    """Something was done that can be taken back."""
