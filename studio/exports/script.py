"""Export a run as a program in plain PyTorch that trains and uses the model: a Python file and a notebook."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.core.shell import command_line
from studio.exports.base import ALL, PROBE, ExportableModel, ModelExport, check_finite, fill, write_all
from studio.exports.scripts.compose import as_notebook, as_python, compose_cells, weights_path
from studio.exports.subprocesses import run_program

_TIMEOUT_S = 300.0
# Runs in a Python process without the studio. Prints the outputs and the loss of the exported script at the probe.
_CHECK = """
import dataclasses, json, runpy, sys, torch
asked = json.load(sys.stdin)
run = runpy.run_path(sys.argv[1], run_name="exported_run")
network = run["load_trained"]()
x, y, targets = (torch.tensor(asked[name], dtype=kind) for name, kind in
                 (("x", torch.float32), ("y", torch.int64), ("targets", torch.float32)))
with torch.no_grad():
    if "draw_missing" in run:
        sets = [torch.tensor(asked["sets"][0], dtype=torch.uint8), *map(torch.tensor, asked["sets"][1:])]
        outputs = run["draw_missing"](run["complete"], network, *sets) / 255
    elif "draw" in run:
        *_, outputs = run["draw"](network, torch.tensor(asked["labels"]), *asked["settings"])
    else:
        outputs = run["predict"](network, x)
    whole = dict(x=x, y=y, augment_labels=torch.zeros(len(y), 3), targets=targets, progress=1.0)
    batch = run["Batch"](*(whole[field.name] for field in dataclasses.fields(run["Batch"])))
    numbers = run["BatchRng"](torch.Generator().manual_seed(asked["seed"]), batch)
    loss = run["loss"](network, batch, run["config"], numbers)
json.dump({"outputs": outputs.float().tolist(), "loss": loss.item()}, sys.stdout)
"""
_LOSS_TOLERANCE = 1e-3  # relative


class Script(ModelExport[Config]):
    name = "script"
    title = "Training script (.py) with a notebook"
    suffix = ".py"
    order = 6
    opened_by = "Python with torch, numpy and pillow; Jupyter"
    holds = ALL
    takes_attributes = True
    help = "A readable PyTorch program that trains the model from scratch, with the trained weights, for learning."

    def missing(self) -> str:
        runs_python = "python" in Path(sys.executable or "").name.lower() and not getattr(sys, "frozen", False)
        return "" if runs_python else "The script is verified with Python, which this build of the studio can't start."

    def live(self, model: ExportableModel, config: Config) -> Tensor:
        return model.draw_probe(model.network) if model.makes == "sets" else super().live(model, config)

    def companions(self, target: Path, config: Config) -> tuple[Path, ...]:
        return target.with_name(f"{target.stem}.ipynb"), weights_path(target)

    def write(self, model: ExportableModel, target: Path, config: Config) -> list[Path]:
        notebook, weights = self.companions(target, config)
        cells = compose_cells(model, target)  # may raise: call before any file is written
        check_finite(model.weights(), weights)
        tensors = save(model.weights(), metadata={"format": "pt"})
        return write_all({target: as_python(cells).encode(), notebook: as_notebook(cells).encode(), weights: tensors})

    def read_back(
        self, paths: Sequence[Path], model: ExportableModel, config: Config
    ) -> Generator[float, None, Tensor]:
        script, notebook, weights = paths
        cells = compose_cells(model, script)
        for path, text in ((script, as_python(cells)), (notebook, as_notebook(cells))):
            try:
                checksum_matches = path.read_bytes() == text.encode()
            except OSError as error:
                raise ExportError(f"{path.name} can't be read.", str(error)) from error
            if not checksum_matches:
                raise ExportError(f"{path.name} was changed.", "Export again.")
        found = yield from run_probe(script, _probe_inputs(model))
        try:
            network = fill(model.fresh(), load(weights.read_bytes()), weights)
        except (OSError, SafetensorError) as error:
            raise ExportError(f"{weights.name} can't be read.", str(error)) from error
        x, y, targets = _probe_batch(model)
        loss = float(model.training.loss(network, x, y, targets, PROBE.seed))
        if not math.isclose(found["loss"], loss, rel_tol=_LOSS_TOLERANCE):
            title = f"{script.name} does not train like the studio."
            raise ExportError(title, f"Its loss is {found['loss']:.6g}; the studio's loss is {loss:.6g}.")
        return torch.tensor(found["outputs"])

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Mapping[str, str]:
        use = 'run["predict"](network, run["to_input"](sprites.permute(0, 3, 1, 2)))  # uint8 [N, S, S, 4]'
        if model.makes == "sprites":
            use = 'run["sample"](network)  # uint8 [16, S, S, 4], RGBA'
        elif model.makes == "sets":
            use = 'run["draw_rest"](network, cells, given)  # uint8 [N, cells, S, S, 4], bool [N, cells] -> as cells'
        lines = (
            f"# {command_line('python', paths[0].name)} in a terminal trains the model from scratch.\n"
            "import runpy\n\n"
            f"run = runpy.run_path({paths[0].name!r})  # defines the functions without training\n"
            f'network = run["load_trained"]()\nresult = {use}\n'
        )
        return {"Python": lines}


def _probe_batch(model: ExportableModel) -> tuple[Tensor, Tensor, Tensor]:
    """Return a fixed batch for comparing the loss: sprites or stacked sets x, classes y and targets."""
    label, *values = PROBE.label_indices(model.label_counts)
    y = label.clamp(min=0)
    if values:
        firsts = itertools.accumulate(model.label_counts)
        columns = [torch.where(value < 0, -1, value + first) for value, first in zip(values, firsts, strict=False)]
        return PROBE.sprites(model.size), y, torch.stack(columns, 1).float()
    targets = torch.arange(PROBE.count)[:, None].expand(-1, len(model.target_names)).float()
    if model.makes == "sets":
        cells, _ = PROBE.sets(len(model.cells), model.size)
        x = model.premultiplied(cells.permute(0, 1, 4, 2, 3).flatten(1, 2).float() / 255)
        return x, y, torch.ones(PROBE.count, len(model.cells))
    return PROBE.sprites(model.size), y, targets


def _probe_inputs(model: ExportableModel) -> dict[str, Any]:
    """Return the inputs of the verification program `_CHECK` as JSON values."""
    x, y, targets = _probe_batch(model)
    tensors = {"x": x, "y": y, "targets": targets, "labels": model.probe_labels}
    asked = {name: tensor.tolist() for name, tensor in tensors.items()}
    if model.makes == "sets":
        asked["sets"] = [*(tensor.tolist() for tensor in model.probe_sets()), PROBE.variety]
    return {**asked, "settings": [PROBE.guidance, PROBE.steps, PROBE.seed], "seed": PROBE.seed}


def run_probe(script: Path, inputs: Mapping[str, Any]) -> Generator[float, None, dict[str, Any]]:
    """Run a training script on fixed inputs in a new process; return its loss and outputs. Raises ExportError."""
    words = [sys.executable, "-P", "-c", _CHECK, str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        done = yield from run_program(words, _TIMEOUT_S, stdin=json.dumps(inputs), env=environment, creationflags=flags)
        done.check_returncode()
        found: dict[str, Any] = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or [f"Its exit code is {error.returncode}."])[-1]
        raise ExportError(f"{script.name} does not run.", reason) from error
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ExportError(f"{script.name} can't be verified.", str(error)) from error
    return found
