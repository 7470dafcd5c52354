"""C code compiled into a library, and models in it."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.data.colour.pixel_art import PixelStyle
from studio.engine import catalog
from studio.engine.models.model import TrainedModel
from studio.exports.base import ExportableModel
from studio.exports.c.compose import compose
from tests.exports.tools import small_model, thinned

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")

SIZE = 12  # not a multiple of what the network works at
STYLE = PixelStyle(
    (3, 12, 64),
    np.random.default_rng(0).integers(0, 256, (40, 3)).astype(np.uint8),
    ((), (100,), (60, 128, 200)),
    (1, 1, 1),
)  # of the three classes of small models

Floats = NDArray[np.float32]


def library(source: Path, flags: Sequence[str] = ("-O1",), compiler: str = "cc") -> ctypes.CDLL:
    """A C file, compiled without a warning."""
    made = source.with_suffix(".so")
    words = [compiler, *STRICT, *flags, "-fPIC", "-shared", source.name, "-o", made.name, "-lm"]
    done = subprocess.run(words, cwd=source.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)


@functools.cache
def drawing_model() -> TrainedModel:
    """A generator of few blocks that draws in the style above. To trace it takes a second: `made_once` does it once."""
    model = dataclasses.replace(small_model(catalog.recipe("generator"), SIZE), style=STYLE)
    thinned(model.network)
    return model


def write(model: ExportableModel, target: Path, precision: str = "fp32") -> Path:
    """The C file of a model with its companions."""
    files = compose(model, target, precision)
    target.write_text(files.source)
    target.with_suffix(".h").write_text(files.header)
    target.with_suffix(".bin").write_bytes(files.weights)
    return target


@dataclass(eq=False)
class Drawing:
    """A generator in C, named 'model', that draws sprites of `size` pixels: what its header offers."""

    library: ctypes.CDLL
    size: int
    context: ctypes.c_void_p

    @classmethod
    def of(cls, source: Path, size: int, flags: Sequence[str] = ("-O1",), compiler: str = "cc") -> Drawing:
        found = library(source, flags, compiler)
        found.model_open.restype = ctypes.c_void_p
        context = found.model_open(str(source.with_suffix(".bin")).encode())
        assert context is not None
        return cls(found, size, ctypes.c_void_p(context))

    def another(self, weights: bytes) -> ctypes.c_void_p | None:
        """One more context; None where the weights are refused."""
        self.library.model_open_bytes.restype = ctypes.c_void_p
        found = self.library.model_open_bytes(weights, ctypes.c_size_t(len(weights)))
        return None if found is None else ctypes.c_void_p(found)

    def noise(self, seed: int) -> Floats:
        noise = np.zeros((4, self.size, self.size), np.float32)
        self.library.model_noise(ctypes.c_int64(seed), pointer(noise))
        return noise

    def draw_from(self, label: int, noise: Floats, guidance: float, steps: int) -> Floats:
        sprite = np.zeros_like(noise)
        how = ctypes.c_float(guidance), ctypes.c_int(steps)
        assert self.library.model_draw_from(self.context, label, pointer(noise), *how, pointer(sprite)) == 0
        return sprite

    def finish(self, label: int, sprite: Floats) -> NDArray[np.uint8]:
        rgba = np.zeros((self.size, self.size, 4), np.uint8)
        assert self.library.model_finish(self.context, label, pointer(np.ascontiguousarray(sprite)), pointer(rgba)) == 0
        return rgba

    def draw(self, label: int, seed: int, guidance: float = 1.5, steps: int = 10) -> NDArray[np.uint8]:
        rgba = np.zeros((self.size, self.size, 4), np.uint8)
        assert self.draw_with(self.context, label, seed, guidance, steps, rgba) == 0
        return rgba

    def draw_with(
        self, context: ctypes.c_void_p, label: int, seed: int, guidance: float, steps: int, rgba: NDArray[np.uint8]
    ) -> int:
        how = ctypes.c_int64(seed), ctypes.c_float(guidance), ctypes.c_int(steps)
        return int(self.library.model_draw(context, label, *how, pointer(rgba)))
