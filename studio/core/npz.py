"""Read npz files, which are zip archives of numpy arrays, from possibly damaged bytes."""

from __future__ import annotations

import io
import struct
import tokenize
import zlib
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

# zipfile raises RuntimeError for encryption and unknown compression; numpy raises TokenError for unclosed brackets.
_DAMAGED = (
    OSError, EOFError, MemoryError, RuntimeError, BadZipFile, struct.error, tokenize.TokenError, zlib.error,
)  # fmt: skip


def load_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz file by name. Unpickles nothing. Raises ValueError for damaged data."""
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            return {name.removesuffix(".npy"): _read(archive, name) for name in archive.namelist()}
    except _DAMAGED as error:
        raise ValueError("a damaged npz file") from error


def _read(archive: ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
