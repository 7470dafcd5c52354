"""The weights file that belongs to a C file: 8 magic bytes, a CRC-32, then the weight tensors, little-endian.

A matrix stored as int8 starts with its column scales, float32.
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
    """Return the contents of the weights file. precision: 'fp32' or 'int8'."""
    rounded = int8_parts(program, precision)
    data = b"".join(_rounded(part) if part in rounded else _bytes(part.values) for part in program.parts)
    return MAGIC + zlib.crc32(data).to_bytes(4, "little") + data


def checksum(packed: bytes) -> int:
    """Return the CRC-32 stored in a weights file."""
    return int.from_bytes(packed[len(MAGIC) :][:4], "little")


def int8_parts(program: Program, precision: str) -> set[WeightTensor]:
    """Return the weights to store as int8: all matrices except the first and last, which would lose the most."""
    if precision != "int8":
        return set()
    return {part for part in program.parts if part.is_matrix} - program.boundary_matrices()


def quantised(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a matrix [rows, columns]; return the scales, float32 [columns], and the values, int8 [rows, columns]."""
    largest = matrix.abs().amax(0)
    scales = torch.where(largest > 0, largest / _LARGEST, 1.0)
    return scales, (matrix / scales).round().to(torch.int8)


def _rounded(part: WeightTensor) -> bytes:
    scales, numbers = quantised(part.values)
    return _bytes(scales) + numbers.numpy().tobytes()


def _bytes(values: Tensor) -> bytes:
    return values.detach().numpy().astype(np.dtype("<f4")).tobytes()
