"""Write drafts of characters as npz files without pickle, and read the files in the next session."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace

import numpy as np

from studio.core import records
from studio.core.npz import load_arrays
from studio.data.sets.drafts import Candidate, Draft
from studio.data.sets.placing import CellGrid


@dataclass(frozen=True)
class _CandidateRecord:
    """JSON record of a candidate, without pixels and marks."""

    seed: records.Count
    noise: records.Count
    redraws: records.Count
    model: str
    source: str


@dataclass(frozen=True)
class _DraftRecord:
    """JSON record of a draft, without pixels and marks."""

    names: tuple[str, ...]
    candidates: tuple[_CandidateRecord, ...]


def draft_to_bytes(draft: Draft) -> bytes:
    """Write a draft as an npz file; return the file's bytes."""
    shown, shape = draft.candidates, draft.cells.shape
    about = [
        {"seed": one.seed, "noise": one.noise, "redraws": one.redraws, "model": one.model, "source": one.source}
        for one in shown
    ]
    text = json.dumps({"names": draft.grid.names, "candidates": about}).encode()
    buffer = io.BytesIO()
    np.savez(
        buffer, about=np.frombuffer(text, np.uint8), cells=draft.cells,
        drawn=np.array([one.cells for one in shown], np.uint8).reshape(len(shown), *shape),
        marks=np.array([(one.given, one.locked, one.painted) for one in shown], np.bool_).reshape(-1, 3, shape[0]),
    )  # fmt: skip
    return buffer.getvalue()


def draft_from_bytes(data: bytes) -> Draft:
    """Create a draft from the output of `draft_to_bytes`. Raises ValueError for damaged data."""
    try:
        arrays = load_arrays(data)
        about, cells, drawn, marks = (arrays[name] for name in ("about", "cells", "drawn", "marks"))
    except KeyError as error:
        raise ValueError("no npz file of a draft") from error
    told = records.parse(about.tobytes(), _DraftRecord)
    size, count = cells.shape[1:2], len(told.candidates)
    shape = (len(told.names), *size, *size, 4)
    fits = cells.shape == shape and drawn.shape == (count, *shape) and marks.shape == (count, 3, len(told.names))
    if not fits or {cells.dtype, drawn.dtype} != {np.dtype(np.uint8)} or marks.dtype != np.bool_:
        raise ValueError("pixels and cell names differ in number")
    candidates = tuple(
        Candidate(pixels, given, locked, painted, one.seed, one.noise, one.redraws, one.model, one.source)
        for pixels, (given, locked, painted), one in zip(drawn, marks, told.candidates, strict=True)
    )
    return replace(Draft(CellGrid(told.names), cells), candidates=candidates)
