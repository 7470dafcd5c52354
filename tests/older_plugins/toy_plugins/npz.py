"""Weights as .npz, for programs that have NumPy and no torch."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.core.files import write_atomic
from studio.exports.base import ExportableModel, ModelExport, fill


class Npz(ModelExport[Config]):
    name = "npz"
    title = "NumPy arrays (.npz)"
    suffix = ".npz"
    help = "Weights for programs that have NumPy alone."

    def write(self, model: ExportableModel, target: Path, config: Config) -> list[Path]:
        packed = io.BytesIO()
        np.savez(packed, **{name: weight.numpy() for name, weight in model.weights().items()})  # type: ignore[arg-type]
        write_atomic(target, packed.getvalue())
        return [target]

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Tensor:
        try:
            with np.load(paths[0], allow_pickle=False) as arrays:
                weights = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        except (OSError, EOFError, ValueError, TypeError, AttributeError, RuntimeError, zipfile.BadZipFile) as error:
            raise ExportError(f"{paths[0].name} can't be read.", str(error)) from error
        return model.outputs(fill(model.fresh(), weights, paths[0]))

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Mapping[str, str]:
        return {"Python": f'import numpy as np\n\nweights = dict(np.load("{paths[0].name}"))\n'}
