"""The table of attributes: what is taken along, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from studio.data.attributes.attributes import NO_ATTRIBUTES, Attributes

_TABLE = np.array([[0, 1], [-1, 0], [1, -1]], np.int16)
_KNOWN = {"element": ["fire", "ice"], "kind": ["shield", "sword"]}


def test_attributes_are_taken_along() -> None:
    attributes = Attributes.from_json(_KNOWN, _TABLE)
    assert attributes.take(np.array([2, 0])).table.tolist() == [[1, -1], [0, 1]]
    assert attributes.take(np.array([2])).to_json() == _KNOWN and attributes.names == ("element", "kind")
    assert not NO_ATTRIBUTES and NO_ATTRIBUTES.take(np.array([4])) is NO_ATTRIBUTES


@pytest.mark.parametrize(
    ("known", "table"),
    [(_KNOWN, _TABLE + 1), (_KNOWN, _TABLE - 1), (_KNOWN, _TABLE[:, :1]), ({"element": 3, "kind": []}, _TABLE)],
)
def test_a_table_that_does_not_fit_is_refused(known: dict[str, object], table: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"match|holds"):
        Attributes.from_json(known, table.astype(np.int16))
