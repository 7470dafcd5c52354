"""Drafts of characters survive a session; damaged files are refused."""

from __future__ import annotations

import numpy as np
import pytest

from studio.data.sets.draft_file import draft_from_bytes, draft_to_bytes
from studio.data.sets.drafts import Candidate, Draft


def draft(candidates: int) -> Draft:
    empty = Draft.empty(("front", "back"), 4)
    given = empty.with_given({0: np.full((4, 4, 4), 255, np.uint8)})
    made = (Candidate(given.cells + n, given.given, given.given, ~given.given, 7 + n, n, 2, "m", "{}") for n in (1, 2))
    return Draft(given.grid, given.cells, tuple(made)[:candidates])


@pytest.mark.parametrize("candidates", [0, 2])
def test_a_draft_is_stored_whole(candidates: int) -> None:
    stored = draft(candidates)
    read = draft_from_bytes(draft_to_bytes(stored))
    assert read.grid == stored.grid and np.array_equal(read.cells, stored.cells) and len(read.candidates) == candidates
    for before, after in zip(stored.candidates, read.candidates, strict=True):
        for name in ("cells", "given", "locked", "painted"):
            assert np.array_equal(getattr(before, name), getattr(after, name))
        assert (after.seed, after.noise, after.redraws, after.model, after.source) == (
            before.seed,
            before.noise,
            2,
            "m",
            "{}",
        )
        assert after.key != before.key


def test_a_damaged_file_is_refused() -> None:
    data = draft_to_bytes(draft(1))
    for damaged in (b"", data[:-30], data[: len(data) // 2], b"not a file", data.replace(b"front", b"fr\xffnt")):
        with pytest.raises(ValueError, match=r"."):
            draft_from_bytes(damaged)
