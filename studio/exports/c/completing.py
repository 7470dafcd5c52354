"""Prepare a model of sets for C: the network's program with a variant per palette size, and tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.exports.base import ExportableModel
from studio.exports.c.program import Program
from studio.exports.c.tracing import trace
from studio.exports.onnx_graph import SoftmaxModule

ROUNDS = 16  # sets.c has the same number
SEED_STRIDE = 1_000_003  # distance between candidates' seeds; the studio uses the same distance
_SMALLEST = 16  # entries; a network for fewer saves little time


@dataclass(frozen=True, eq=False)
class SetTables:
    """Statistics of the training sets for the C code, and the palette sizes of the program's variants."""

    entries: tuple[int, ...]  # palette entries by variant, ascending
    palettes: NDArray[np.uint8]  # [G, P, 4], straight alpha; transparent where unused
    partners: NDArray[np.int32]  # [C], the mirroring cell by cell; -1 without a partner
    mirrored: NDArray[np.float32]  # [C], share of training sets where the cell exactly mirrors its partner

    @classmethod
    def of(cls, model: ExportableModel) -> SetTables:
        """Create the tables of a model of sets.

        Drawing time grows with the palette entries and most sets need few, hence variants for smaller palettes.
        """
        palettes, partners, mirrored = map(model.network.get_buffer, ("palettes", "partners", "mirrored"))
        most, sizes = palettes.shape[1], [_SMALLEST]
        while sizes[-1] < most:
            sizes.append(2 * sizes[-1])
        rgba = model.straight(palettes.reshape(-1, 4, 1, 1)).reshape(palettes.shape)
        levels = (rgba * 255).round().to(torch.uint8)
        return cls((*sizes[:-1], most), levels.numpy(), partners.int().numpy(), mirrored.numpy())


def completion_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """Trace the network of a model of sets; return the program and its C parameters. Raises ExportError.

    The program has a variant for each of `SetTables.entries`.
    """
    first, *others = (_inputs(model, entries) for entries in SetTables.of(model).entries)
    names = ["index", "palette", "known"]
    program = trace(SoftmaxModule(model).eval(), first, names, others)
    return program, [f"const float *{name}" for name in names]


def _inputs(model: ExportableModel, entries: int) -> tuple[Tensor, ...]:
    """Return example inputs of the network. entries: palette size."""
    shape = (1, len(model.cells), model.size, model.size)
    return torch.zeros(shape, dtype=torch.int64), torch.zeros(1, entries, 4), torch.zeros(shape)
