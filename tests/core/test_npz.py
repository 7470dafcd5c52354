"""npz files are read whole, and damaged ones raise ValueError alone."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np
import pytest

from studio.core.npz import load_arrays
from tests.fuzz.mutating import mutated


def packed(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_arrays_are_read_by_name() -> None:
    found = load_arrays(packed(a=np.arange(6).reshape(2, 3), b=np.array([True])))
    assert [*found] == ["a", "b"] and found["b"].dtype == np.bool_
    np.testing.assert_array_equal(found["a"], [[0, 1, 2], [3, 4, 5]])


def test_pickles_stay_unread() -> None:
    with pytest.raises(ValueError, match="pickle"):
        load_arrays(packed(a=np.array([{}])))


def test_damaged_files_raise_value_errors_alone() -> None:
    data, rng = packed(a=np.arange(30), b=np.ones((3, 4), np.uint8)), np.random.default_rng(0)
    cases = [b"", b"not a file", data[:-30], *(mutated(data, data, rng) for _ in range(400))]
    unread = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # numpy's, about headers of Python 2
        for damaged in cases:
            with contextlib.suppress(ValueError):
                load_arrays(damaged)
                unread -= 1
            unread += 1
    assert 300 < unread < len(cases)
