"""`Attributes`: the table of sprites' values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studio.core import records
from studio.core.arrays import Indices

NONE = -1  # in Attributes.table


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes of sprites, such as kind and element. A sprite has at most one value of an attribute."""

    names: tuple[str, ...]  # 'kind', 'element'
    values: tuple[tuple[str, ...], ...]  # sorted values by attribute
    table: NDArray[np.int16]  # [N, A], index into `values`, NONE for no value

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.names) and self.table.dtype == np.int16
        assert self.table.ndim == 2 and self.table.shape[1] == len(self.names), self.table.shape

    def __bool__(self) -> bool:
        return bool(self.names)

    def of(self, index: int) -> dict[str, str]:
        """Return a sprite's values by attribute; attributes without a value are left out."""
        codes = self.table[index].tolist() if self else []
        of_names = zip(self.names, self.values, codes, strict=True)
        return {name: values[code] for name, values, code in of_names if code != NONE}

    def counts(self) -> list[NDArray[np.int64]]:
        """Count the sprites per value: int64 [values] for each attribute."""
        pairs = zip(self.values, self.table.T, strict=True)
        return [np.bincount(codes[codes != NONE], minlength=len(values)) for values, codes in pairs]

    def take(self, indices: Indices) -> Attributes:
        """Return the attributes of the sprites at `indices`, with all names and values."""
        return replace(self, table=self.table[indices]) if self else self

    def to_json(self) -> dict[str, Any]:
        """Return names and values for JSON, without the table."""
        return {name: list(values) for name, values in zip(self.names, self.values, strict=True)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], table: NDArray[np.int16]) -> Attributes:
        """Create attributes from the output of `to_json`. Raises ValueError if the table does not fit."""
        known = records.convert(values, dict[str, tuple[str, ...]])
        counts = np.array([len(each) for each in known.values()])
        if table.shape[1:] != (len(known),) or (table < NONE).any() or (table >= counts).any():
            raise ValueError("attributes and their values don't match")
        return cls(tuple(known), tuple(known.values()), table)


NO_ATTRIBUTES = Attributes((), (), np.zeros((0, 0), np.int16))
