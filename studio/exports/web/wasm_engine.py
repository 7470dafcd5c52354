"""Run the WebAssembly engine of an exported web page with wasmtime, to verify the page without a browser."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from studio.core.errors import ExportError

_FLOAT_FUNCTIONS, _DOUBLE_FUNCTIONS = ("cosf", "erff", "sinf", "tanhf"), ("cbrt", "pow")
FUNCTIONS = Path(__file__).with_name("functions.wat")
_POLL_S = 0.05
T = TypeVar("T")


class WasmEngine:
    """A WebAssembly engine that runs one exported model in wasmtime.

    size: pixels per side of a sprite. outputs: number of predicted values per sprite.
    Raises ExportError for a damaged engine or model.
    """

    def __init__(self, engine: bytes, file: bytes) -> None:
        import wasmtime

        try:
            settings = wasmtime.Config()
            settings.epoch_interruption = True
            self._machine = wasmtime.Engine(settings)  # not shared: `run_in_thread` stops everything on it
            module, functions = (wasmtime.Module.deserialize(self._machine, part) for part in _compiled(engine))
            store = wasmtime.Store(self._machine)
            store.set_epoch_deadline(1)
            linker = wasmtime.Linker(store.engine)
            linker.define_instance(store, "env", wasmtime.Instance(store, functions, []))
            for name in _FLOAT_FUNCTIONS:
                kind = wasmtime.FuncType([wasmtime.ValType.f32()], [wasmtime.ValType.f32()])
                linker.define_func("env", name, kind, _libm(name))
            for name, count in zip(_DOUBLE_FUNCTIONS, (1, 2), strict=True):
                kind = wasmtime.FuncType([wasmtime.ValType.f64()] * count, [wasmtime.ValType.f64()])
                linker.define_func("env", name, kind, _libm(name))
            self._store: Any = store
            self._exports: Any = linker.instantiate(store, module).exports(store)
        except wasmtime.WasmtimeError as error:
            raise ExportError("The page's engine can't be run.", str(error).splitlines()[0]) from error
        start = self._call("engine_room", len(file))
        self._memory.write(store, file, start)
        if self._call("engine_open", start) != 0:
            raise ExportError("There is not enough memory for the model.", "Close other programs.")
        self.size, self.outputs = self._call("engine_size"), self._call("engine_outputs")

    def run_in_thread(self, work: Callable[[], T], share: float) -> Generator[float, None, T]:
        """Run `work` on this engine in a thread; yield `share` every 50 ms; return its result. Closing stops it."""
        with ThreadPoolExecutor(1, "web page") as pool:
            future = pool.submit(work)
            try:
                yield share
                while not wait([future], _POLL_S).done:
                    yield share
            finally:
                if not future.done():
                    self._machine.increment_epoch()
        return future.result()

    @property
    def _memory(self) -> Any:
        return self._exports["memory"]

    def _call(self, name: str, *arguments: float) -> int:
        """Call an exported function; return its result, or 0 for a function without a result."""
        return int(self._exports[name](self._store, *arguments) or 0)

    def _floats(self, start: int, count: int) -> NDArray[np.float32]:
        data = self._memory.read(self._store, start, start + 4 * count)
        return np.frombuffer(bytes(data), "<f4").astype(np.float32)

    def draw(
        self, label: int, seed: int, guidance: float, steps: int, values: Sequence[bool] = ()
    ) -> NDArray[np.float32]:
        """Draw a sprite: float32 [4, size, size], premultiplied RGBA in [-1, 1].

        label: class index, or -1 for any. values: for each value of the model's attributes, whether it is chosen.
        """
        chosen = np.array(values, "<f4").tobytes()
        self._memory.write(self._store, chosen, self._call("engine_values"))
        self._call("engine_noise", _low_bits(seed))
        start = self._call("engine_draw", label, guidance, steps)
        if not start:
            raise ExportError("The page's engine does not know this class.", "Export again.")
        return self._floats(start, 4 * self.size**2).reshape(4, self.size, self.size)

    def finish(self, label: int) -> NDArray[np.uint8]:
        """Snap the last drawn sprite to pixel art: uint8 [size, size, 4], straight alpha."""
        start = self._call("engine_finish", label)
        data = self._memory.read(self._store, start, start + 4 * self.size**2)
        return np.frombuffer(bytes(data), np.uint8).reshape(self.size, self.size, 4)

    def complete(
        self, cells: NDArray[np.uint8], given: NDArray[np.bool_], variety: float,
        chances: int | NDArray[np.float32], least: int = 0,
    ) -> NDArray[np.uint8] | None:  # fmt: skip
        """Draw the missing cells of a set: uint8 [C, size, size, 4], straight alpha. None if it has too many colours.

        given: [C]. chances: random numbers as for `draw_missing`, or their seed. least: smallest palette to run.
        """
        self._set(cells, given, chances)
        start = self._call("engine_complete", variety, least)
        if not start:
            return None
        data = self._memory.read(self._store, start, start + cells.size)
        return np.frombuffer(bytes(data), np.uint8).reshape(cells.shape)

    def odds(
        self, cells: NDArray[np.uint8], given: NDArray[np.bool_], chances: NDArray[np.float32], entries: int
    ) -> NDArray[np.float32]:
        """Return the network's odds for a set: float32 [C, entries, size, size], for the largest palette."""
        self._set(cells, given, chances)
        shape = (len(cells), entries, self.size, self.size)
        return self._floats(self._call("engine_odds", entries), math.prod(shape)).reshape(shape)

    def _set(self, cells: NDArray[np.uint8], given: NDArray[np.bool_], chances: int | NDArray[np.float32]) -> None:
        if isinstance(chances, int):
            self._call("engine_seed", _low_bits(chances))
        else:
            numbers = np.ascontiguousarray(chances, "<f4").tobytes()
            self._memory.write(self._store, numbers, self._call("engine_chances"))
        self._memory.write(self._store, cells.tobytes(), self._call("engine_cells"))
        self._memory.write(self._store, given.astype(np.uint8).tobytes(), self._call("engine_given"))

    def predict(self, rgba: NDArray[np.float32]) -> NDArray[np.float32]:
        """Predict the outputs, float32 [outputs], of a sprite: float32 [size, size, 4] in [0, 1], straight alpha."""
        start = self._call("engine_input")
        self._memory.write(self._store, np.ascontiguousarray(rgba, "<f4").tobytes(), start)
        return self._floats(self._call("engine_predict"), self.outputs)


def _low_bits(seed: int) -> int:
    """Return the low 32 bits of a seed as a signed number."""
    return (seed + (1 << 31)) % (1 << 32) - (1 << 31)


@functools.lru_cache(1)
def _compiled(engine: bytes) -> tuple[bytes, bytes]:
    """Compile the engine and functions.wat; return their machine code. All models share it; compiling takes 0.1 s."""
    import wasmtime

    settings = wasmtime.Config()
    settings.epoch_interruption = True
    machine = wasmtime.Engine(settings)
    modules = (wasmtime.Module(machine, source) for source in (engine, FUNCTIONS.read_text("utf-8")))
    code, functions = (bytes(module.serialize()) for module in modules)
    return code, functions


def _libm(name: str) -> Any:
    """Return a math function that returns infinity or NaN like C's libm, instead of raising."""
    if name == "cbrt":
        return lambda x: float(np.cbrt(x))
    return getattr(math, name.removesuffix("f"))
