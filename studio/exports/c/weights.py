"""The file of weights that goes with a C file: the parts of a program one after the other, little-endian.

It begins with eight bytes that say what it is and the CRC-32 of the rest. A matrix may be int8: first the scales of its
columns, float32, then its numbers.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch
from torch import Tensor

from studio.exports.c.program import Program, WeightTensor

MAGIC = b"\x93sprite\n"
_LARGEST = 127


def pack(program: Program, precision: str) -> bytes:
    """The whole file, 'fp32' or 'int8'."""
    rounded = int8_parts(program, precision)
    data = b"".join(_rounded(part) if part in rounded else _bytes(part.values) for part in program.parts)
    return MAGIC + zlib.crc32(data).to_bytes(4, "little") + data


def checksum(packed: bytes) -> int:
    """The CRC-32 that a file begins with."""
    return int.from_bytes(packed[len(MAGIC) :][:4], "little")


def int8_parts(program: Program, precision: str) -> set[WeightTensor]:
    """The parts that are held as int8: matrices, but for the outermost, on which most depends."""
    if precision != "int8":
        return set()
    return {part for part in program.parts if part.is_matrix} - program.boundary_matrices()


def quantised(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A scale for each column, float32 [columns], and int8 [rows, columns] to be multiplied by it."""
    largest = matrix.abs().amax(0)
    scales = torch.where(largest > 0, largest / _LARGEST, 1.0)
    return scales, (matrix / scales).round().to(torch.int8)


def _rounded(part: WeightTensor) -> bytes:
    scales, numbers = quantised(part.values)
    return _bytes(scales) + numbers.numpy().tobytes()


def _bytes(values: Tensor) -> bytes:
    return values.detach().numpy().astype(np.dtype("<f4")).tobytes()
