"""Compile what draws in web pages: engine.wasm, the same for every model, and the sums by which its age is told.

python assets/web/make_engine.py    # needs clang and wasm-ld, 14 or later: apt install clang lld
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "studio/exports/c/sources"
PARTS = ("engine.c", "operators.c", "weights.c", "noise.c", "pixels.c", "drawing.c", "sets.c")
EXPORTS = (
    "room", "open", "size", "outputs", "noise", "draw", "finish", "input", "predict", "cells", "given", "seed",
    "chances", "complete", "odds", "values",
)  # fmt: skip
FLAGS = (
    "--target=wasm32", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O3", "-msimd128", "-mbulk-memory",
    "-fno-math-errno", "-fno-strict-aliasing", "-nostdlib", "-Wl,--no-entry",
    "-Wl,--allow-undefined", "-Wl,--strip-all", *(f"-Wl,--export=engine_{name}" for name in EXPORTS),
)  # fmt: skip


def sums() -> str:
    """SHA-256 of the sources and of what was made of them, as sha256sum writes them."""
    paths = [SOURCES / name for name in PARTS] + [HERE / "engine.wasm"]
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


if __name__ == "__main__":
    subprocess.run(["clang", *FLAGS, "engine.c", "-o", str(HERE / "engine.wasm")], cwd=SOURCES, check=True)
    (HERE / "engine.sha256").write_text(sums())
