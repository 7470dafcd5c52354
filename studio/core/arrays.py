"""Type aliases for NumPy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rgba = NDArray[np.uint8]  # [..., H, W, 4], straight alpha
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
