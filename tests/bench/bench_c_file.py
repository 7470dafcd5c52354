"""How fast a generator is as a C file, beside torch with one thread: one look of the network at one sprite.

python -m tests.bench.bench_c_file [--size 32] [--width 64] [--rounds 100]

The weights are random. Both take turns, and the quickest of each counts: other programs only ever slow them down.
"""

from __future__ import annotations

import copy
import ctypes
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from studio.engine import catalog
from studio.engine.models.exporting import exportable_copy
from tests.bench.tools import command_line, say
from tests.exports.c.tools import COMPILERS, Drawing, pointer, write
from tests.exports.tools import small_model


def main() -> None:
    """Print the milliseconds of torch, plain and with channels last, and those of each compiler's C."""
    parser = command_line(__doc__)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    recipe = catalog.recipe("generator")
    recipe.small = recipe.small.replace(width=chosen.width)
    model = small_model(recipe, chosen.size)
    rows = copy.deepcopy(model.network).to(memory_format=torch.contiguous_format)
    looks = {
        "torch": look_of_torch(rows, chosen.size),
        "torch, channels last": look_of_torch(model.network, chosen.size),  # as the studio has it
    }
    with tempfile.TemporaryDirectory() as folder:
        for compiler in COMPILERS:
            target = Path(folder) / compiler / "model.c"
            target.parent.mkdir()
            source = write(exportable_copy(model), target)
            looks[compiler] = look_of_c(Drawing.of(source, chosen.size, ("-O3", "-march=native"), compiler))
        best = dict.fromkeys(looks, float("inf"))
        with torch.no_grad():
            for _ in range(chosen.rounds):
                for name, look in looks.items():
                    start = time.perf_counter()
                    look()
                    best[name] = min(best[name], time.perf_counter() - start)
    torchs = min(best["torch"], best["torch, channels last"])
    for name, seconds in best.items():
        say(f"{name:22}{1000 * seconds:8.2f} ms {seconds / torchs:6.2f} times torch's")


def look_of_torch(network: torch.nn.Module, size: int) -> Callable[[], object]:
    x, t, label = torch.randn(1, 4, size, size), torch.zeros(1), torch.zeros(1, dtype=torch.int64)
    return lambda: network(x, t, label)


def look_of_c(drawing: Drawing) -> Callable[[], object]:
    """A sprite in one step without guidance is one look."""
    noise = drawing.noise(0)
    out = noise.copy()
    arguments = (drawing.context, 0, pointer(noise), ctypes.c_float(1), 1, pointer(out))
    return lambda: drawing.library.model_draw_from(*arguments)


if __name__ == "__main__":
    main()
