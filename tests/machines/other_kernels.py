"""A pytest plugin, `-p tests.machines.other_kernels`: torch as on a machine that has a kernel for every shape.

Which kernel computes a convolution or a product depends on the processor, on shapes, strides and the number of threads,
and each rounds in its own way. Here every result is off by up to a millionth, some ten times what real kernels differ
by, and by the same for the same shapes, strides and threads: a test that asks for the same bits of two different
computations fails on every machine.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_MOST = 1e-6
_KERNELS = ("conv2d", "linear", "group_norm", "scaled_dot_product_attention")


def _off(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(kernel)
    def other(x: Tensor, *arguments: Any, **named: Any) -> Tensor:
        key = f"{kernel.__name__} {tuple(x.shape)} {x.stride()} {torch.get_num_threads()}"
        share = hashlib.sha256(key.encode()).digest()[0] / 255 * 2 - 1
        found = kernel(x, *arguments, **named)
        return found * (1 + _MOST * share) if found.is_floating_point() else found

    return other


def pytest_configure() -> None:
    for name in _KERNELS:
        setattr(F, name, _off(getattr(F, name)))
    Tensor.__matmul__ = _off(Tensor.__matmul__)  # type: ignore[method-assign]
