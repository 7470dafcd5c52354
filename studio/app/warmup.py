"""Importing torch beside a window without holding it up."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path


def load_libraries() -> None:
    """Map torch's shared libraries (1 GB) into the process.

    An import does that while it holds the interpreter, 0.4 s at a stretch; a foreign call does not. Where this does not
    work, the import does it as ever.
    """
    spec = importlib.util.find_spec("torch")
    if sys.platform == "win32" or spec is None or spec.origin is None:
        return
    suffix = "dylib" if sys.platform == "darwin" else "so"
    library = Path(spec.origin).parent / "lib" / f"libtorch_python.{suffix}"
    if library.exists():
        loader = ctypes.CDLL(None).dlopen
        loader.argtypes, loader.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
        loader(os.fsencode(library), os.RTLD_NOW)
