"""Events of the window's jobs. Further events are in core/events.py and in the engine."""

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
    from studio.data.import_result import DetectedSheet, SheetSummary
    from studio.data.options import ImportOptions
    from studio.data.sets.layout import SetProposal
    from studio.engine.runs.folder import RunRecord


@dataclass(frozen=True, eq=False)
class SpritesColoured(SpritesGenerated):
    """Generated sprites after recolouring."""

    palette: str = ""  # the chosen palette's name, or empty
    colours: NDArray[np.uint8] | None = None  # uint8 [K, 3], allowed colours; None without a limit
    badges: tuple[ConstraintCheck, ...] = ()  # results of the constraint checks
    source: str = ""  # provenance as JSON (`ModelSource`); empty if unknown
    note: str = ""  # a message for the user


@dataclass(frozen=True, eq=False)
class RunDescribed(Event):
    """Yielded after a run has started. record: the content of run.json."""

    record: RunRecord


@dataclass(frozen=True)
class RunCheckpoints(Event):
    """A run's usable checkpoints."""

    run: Path
    names: tuple[str, ...]
    quick: tuple[str, ...]  # checkpoints with a distilled network


@dataclass(frozen=True)
class OnlySheets(Event):
    """Yielded by an import that found only images too large for sprites."""

    paths: tuple[Path, ...]
    sheets: tuple[ImportIssue, ...]
    summary: SheetSummary
    recognised: tuple[DetectedSheet, ...] = ()  # images that look like sprite sheets
    proposed_sets: SetProposal | None = None  # see SpritesImported


@dataclass(frozen=True)
class StoredOptionsFollowed(Event):
    """Yielded by an import that continues with the settings stored for its paths."""

    options: ImportOptions


@dataclass(frozen=True)
class StateNotice(Notice):
    """A message that the window removes when `holds` returns False."""

    holds: Callable[[], bool] = field(kw_only=True)


@dataclass(frozen=True)
class FilesSaved(Notice):
    """A message about saved files. The window can show the files in their folder."""

    paths: tuple[Path, ...] = field(kw_only=True)


@dataclass(frozen=True)
class UndoOffered(StateNotice):
    """A message about an action, with a button that undoes the action."""

    undo: Callable[[], object] = field(kw_only=True)
