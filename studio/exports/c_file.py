"""Export a model as C99 source for games, microcontrollers and any C compiler. The code needs only libm."""

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
from studio.exports.base import ALL, PROBE, ExportableModel, ModelExport, check_finite, write_all
from studio.exports.c import source, verification
from studio.exports.c.compose import COMMENT, compose, prefix_of
from studio.exports.c.verification import CConfig, CVerification
from studio.exports.subprocesses import run_program

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O1")  # the program runs once: higher optimisation costs more time than the run saves
_TIMEOUT_S = 300
_MODEL_FOLDER = "model"  # subfolder for the exported files, beside the checking program


class CFile(CVerification, ModelExport[CConfig]):
    name = "c"
    title = "C file"
    suffix = ".c"
    order = 5
    help = "C source without dependencies that draws sprites or predicts, with a header and a weights file."
    holds = ALL
    takes_attributes = True
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
        target, prefix = paths[0], prefix_of(paths[0])
        names = {"FILE": target.name, "STEM": target.stem, "DRAW": source.drawing_call(prefix, model.attributes)}
        return {"C": source.read(f"use_{verification.kind_of(model)}.c", prefix, **names)}


def _compiler() -> str:
    """Return the path of a C compiler; '' without an installed compiler."""
    return next(filter(None, map(shutil.which, _COMPILERS)), "")


def _run(folder: Path, name: str, model: ExportableModel, config: CConfig) -> Generator[float, None, Tensor]:
    """Compile and run the C file `name` in `folder`; yield the progress and return the outputs. Raises ExportError."""
    kind = verification.kind_of(model)
    check = source.read(f"check_{kind}.c", prefix_of(Path(name)))
    (folder / "check.c").write_text(f'#include "{_MODEL_FOLDER}/{name}"\n\n{check}', encoding="utf-8")
    yield from compiled(folder, name)
    arguments = [str(Path(_MODEL_FOLDER, name).with_suffix(".bin")), "out", *_inputs(folder / "in", model, config)]
    yield from _call([str(folder / "check.exe"), *arguments], folder, f"{name} does not run with its weights.", 0.5)
    shape: tuple[int, ...] = (4, model.size, model.size) if model.makes == "sprites" else (-1,)
    if model.makes == "sets":
        side = (model.size, model.size)
        shape = (len(model.cells), *side, 4) if verification.draws_sets(config) else (len(model.cells), -1, *side)
        if verification.draws_sets(config):
            found = np.fromfile(folder / "out", np.uint8).astype(np.float32) / 255
            return torch.from_numpy(found).reshape(PROBE.count, *shape)
    found = np.fromfile(folder / "out", "<f4").astype(np.float32)
    return torch.from_numpy(found).reshape(PROBE.count, *shape)


def _inputs(path: Path, model: ExportableModel, config: CConfig) -> list[str]:
    """Return the arguments of the comparison program, with further inputs written to the file `path`."""
    if model.makes == "sprites":
        probe = verification.probe_for(config)
        settings = [str(float(probe.guidance)), str(probe.steps)]
        asked = verification.probe_labels_and_seeds(model, config)
        found = list[str]()
        for label, seed, values in asked:
            found += [f"{name}={values.get(name, '')}" for name in model.attributes]
            found += [str(label), str(seed), *settings]
        return found
    if model.makes == "sets":
        parts = [
            np.int32(least).tobytes() + chances.numpy().tobytes() + cells.numpy().tobytes() + given.numpy().tobytes()
            for cells, given, chances, least in verification.probe_sets(model, config)
        ]
        path.write_bytes(b"".join(parts))
        return [path.name, str(PROBE.variety if verification.draws_sets(config) else -1)]
    PROBE.pixels(model.size).numpy().astype("<f4").tofile(path)
    return [path.name]


def compiled(folder: Path, name: str) -> Iterator[float]:
    """Compile check.c in `folder`, which includes the C file `name`; yield the progress. Raises ExportError."""
    words = [_compiler(), *_FLAGS, "check.c", "-o", "check.exe", "-lm"]
    yield from _call(words, folder, f"{name} can't be compiled.", 0.0)


def _call(words: Sequence[str], folder: Path, failure: str, share: float) -> Generator[float, None, None]:
    """Run a command; yield `share` every 50 ms until the end. Raises ExportError with the title `failure`.

    Closing the generator kills the command.
    """
    try:
        done = yield from run_program(words, _TIMEOUT_S, share=share, folder=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExportError(failure, str(error)) from error
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "error" in line]
        raise ExportError(failure, reasons[0] if reasons else f"Its exit code is {done.returncode}.")
