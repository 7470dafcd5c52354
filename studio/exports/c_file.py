"""Export a model as C99 source that needs only libm, for games, microcontrollers and any other C compiler."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from studio.core.errors import ExportError
from studio.exports.base import PROBE, ExportableModel, ModelExport, check_finite, write_all
from studio.exports.c import source, verification
from studio.exports.c.compose import COMMENT, compose, prefix_of
from studio.exports.c.verification import CConfig, CVerification
from studio.exports.subprocesses import run_program

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O1")  # the program runs once, so higher optimisation would cost more time than it saves
_TIMEOUT_S = 300
_MODEL_FOLDER = "model"  # keeps the exported files apart from the program that checks them


class CFile(CVerification, ModelExport[CConfig]):
    name = "c"
    title = "C file"
    suffix = ".c"
    order = 5
    help = "C source without dependencies that draws sprites or predicts, with a header and a weights file."
    opened_by = "every C99 compiler: gcc, clang, Emscripten, SDKs of consoles and microcontrollers"

    def missing(self) -> str:
        needed = "Install a C compiler, for example gcc or clang. The export compiles and runs the file to verify it."
        return "" if _compiler() else needed

    def companions(self, target: Path, config: CConfig) -> tuple[Path, ...]:
        return target.with_suffix(".h"), target.with_suffix(".bin")

    def write(self, model: ExportableModel, target: Path, config: CConfig) -> list[Path]:
        check_finite(model.weights(), target)
        if '"' in target.name or "\\" in target.name:
            hint = "Choose a name without quotation marks and backslashes."
            raise ExportError(f"C can't include a file named {target.name}.", hint)
        written = compose(model, target, config.weights)
        header, weights = self.companions(target, config)
        return write_all({target: written.source.encode(), header: written.header.encode(), weights: written.weights})

    def read_back(
        self, paths: Sequence[Path], model: ExportableModel, config: CConfig
    ) -> Generator[float, None, Tensor]:
        target = paths[0]
        try:
            if not verification.checksum_matches(target.read_text(encoding="utf-8"), *COMMENT):
                raise ExportError(f"{target.name} is damaged.", "Its checksum is wrong.")
            with tempfile.TemporaryDirectory(prefix="studio-") as folder:
                (Path(folder) / _MODEL_FOLDER).mkdir()
                for path in paths:
                    shutil.copy(path, Path(folder) / _MODEL_FOLDER)
                return (yield from _run(Path(folder), target.name, model, config))
        except (OSError, UnicodeDecodeError) as error:
            raise ExportError(f"{target.name} can't be read back.", str(error)) from error

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: CConfig) -> Mapping[str, str]:
        target = paths[0]
        kind = "drawing" if model.makes == "sprites" else "predicting"
        return {"C": source.read(f"use_{kind}.c", prefix_of(target), FILE=target.name, STEM=target.stem)}


def _compiler() -> str:
    """Return the path of a C compiler; empty if none is installed."""
    return next(filter(None, map(shutil.which, _COMPILERS)), "")


def _run(folder: Path, name: str, model: ExportableModel, config: CConfig) -> Generator[float, None, Tensor]:
    """Compile and run the C file `name` in `folder`; yield the progress and return the outputs. Raises ExportError."""
    draws, probe = model.makes == "sprites", verification.probe_for(config)
    check = source.read("check_drawing.c" if draws else "check_predicting.c", prefix_of(Path(name)))
    (folder / "check.c").write_text(f'#include "{_MODEL_FOLDER}/{name}"\n\n{check}', encoding="utf-8")
    yield from compiled(folder, name)
    PROBE.pixels(model.size).numpy().astype("<f4").tofile(folder / "in")
    arguments = [str(Path(_MODEL_FOLDER, name).with_suffix(".bin")), "out", "in"]
    if draws:
        settings = [str(float(probe.guidance)), str(probe.steps)]
        asked = verification.probe_labels_and_seeds(model, config)
        arguments[2:] = [text for label, seed in asked for text in (str(label), str(seed), *settings)]
    yield from _call([str(folder / "check.exe"), *arguments], folder, f"{name} does not run with its weights.", 0.5)
    found = np.fromfile(folder / "out", "<f4")
    shape = (4, model.size, model.size) if draws else (-1,)
    return torch.from_numpy(found.astype(np.float32)).reshape(probe.count, *shape)


def compiled(folder: Path, name: str) -> Iterator[float]:
    """Compile check.c in `folder`, which includes the C file `name`; yield the progress. Raises ExportError."""
    words = [_compiler(), *_FLAGS, "check.c", "-o", "check.exe", "-lm"]
    yield from _call(words, folder, f"{name} can't be compiled.", 0.0)


def _call(words: Sequence[str], folder: Path, failure: str, share: float) -> Generator[float, None, None]:
    """Run a command; yield `share` every 50 ms until it ends. Closing kills it. failure: title of the ExportError."""
    try:
        done = yield from run_program(words, _TIMEOUT_S, share=share, folder=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExportError(failure, str(error)) from error
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "error" in line]
        raise ExportError(failure, reasons[0] if reasons else f"Its exit code is {done.returncode}.")
