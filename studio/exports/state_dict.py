"""Export weights as a PyTorch state dict (.pt) with a loader: a Python file that runs the model with torch alone."""

from __future__ import annotations

import dataclasses
import io
import json
import pprint
import re
import runpy
import textwrap
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.core.shell import command_line
from studio.exports.base import ALL, PROBE, ExportableModel, ModelExport, fill, write_all
from studio.exports.loader_code import (
    DRAW_REST,
    DRAW_REST_MAIN,
    LABEL_OF,
    LOAD,
    NUMBERS,
    PROBABILITIES,
    PROBABILITIES_OF_ATTRIBUTES,
    READ_IMAGE,
    SAMPLE,
    SAMPLE_BY_ATTRIBUTES,
    SAMPLE_BY_ATTRIBUTES_MAIN,
    SAMPLE_MAIN,
    SAVE_PNG,
)  # fmt: skip
from studio.exports.source_code import collect, docstring_safe, first_paragraphs, format_imports

_SAVE_IMPORTS = ("import argparse", "import struct", "import zlib")
_OWN_IMPORTS = {"sprites": _SAVE_IMPORTS, "sets": _SAVE_IMPORTS}  # other scripts only need argparse
_USAGE = {
    "sprites": SAMPLE + SAVE_PNG + SAMPLE_MAIN,
    "sets": READ_IMAGE + DRAW_REST + SAVE_PNG + DRAW_REST_MAIN,
    "labels": READ_IMAGE + PROBABILITIES,
    "numbers": READ_IMAGE + NUMBERS,
}
_BY_ATTRIBUTES = {
    "sprites": LABEL_OF + SAMPLE_BY_ATTRIBUTES + SAVE_PNG + SAMPLE_BY_ATTRIBUTES_MAIN,
    "labels": READ_IMAGE + PROBABILITIES_OF_ATTRIBUTES,
}
_WHAT = {
    "sprites": "Draw new sprites",
    "sets": "Draw the missing cells of characters",
    "labels": "Predict the class of sprites",
    "numbers": "Predict numbers for sprites",
}
_USES = {
    "sprites": "model.sample(network, 16, seed=0)  # uint8 [16, S, S, 4], RGBA",
    "sets": "model.draw_rest(network, cells, given)  # uint8 [N, cells, S, S, 4], bool [N, cells] -> as cells",
    "labels": "model.predict(network, sprites)  # sprites: uint8 [N, S, S, 4] -> float32 [N, classes]",
    "numbers": "model.predict(network, sprites)  # sprites: uint8 [N, S, S, 4] -> float32 [N, numbers]",
}
_SOURCE = "archive/source.json"  # a .pt file is a ZIP archive
_TORCH_IMPORTS = ("from pathlib import Path", "import torch", "from torch import Tensor", "from torch import nn")


class StateDict(ModelExport[Config]):
    name = "state_dict"
    title = "PyTorch state_dict (.pt) with a loader"
    suffix = ".pt"
    order = 2
    opened_by = "PyTorch"
    holds = ALL
    takes_attributes = True
    help = "Weights for your own PyTorch code, with a short Python file that loads and uses them."

    def companions(self, target: Path, config: Config) -> tuple[Path, ...]:
        return (loader_path(target),)

    def write(self, model: ExportableModel, target: Path, config: Config) -> list[Path]:
        loader = compose_loader(model, target.name)
        packed = io.BytesIO()  # in memory: torch.save would put the file name into the archive
        torch.save(model.weights(), packed)
        if model.source is not None:
            dateless = zipfile.ZipInfo(_SOURCE)  # equal models give equal bytes
            with zipfile.ZipFile(packed, "a") as archive:  # torch.load ignores other files
                archive.writestr(dateless, json.dumps(model.source.checksums()))
        return write_all({target: packed.getvalue(), loader_path(target): loader.encode()})

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Tensor:
        weights, loader = paths
        _check_archive(weights)
        try:
            # Run the loader in an empty namespace, to prove that the loader is self-contained.
            module = runpy.run_path(str(loader), run_name="exported_model")
            network = module["load"](weights)
            fill(network, network.state_dict(), weights)  # raises for NaN and infinity
            if model.makes == "sets":
                own = partial(module["draw_missing"], module["complete"])
                outputs = dataclasses.replace(model, draw_missing=own).draw_probe(network)
            elif model.makes == "sprites":
                with torch.no_grad():
                    *_, outputs = module["draw"](network, model.probe_labels, PROBE.guidance, PROBE.steps, PROBE.seed)
            else:
                outputs = module["forward"](network, PROBE.sprites(model.size))
        except (
            OSError,
            SyntaxError,
            NameError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            RuntimeError,
        ) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ExportError(f"{weights.name} can't be loaded with its loader.", reason) from error
        return torch.as_tensor(outputs)

    def live(self, model: ExportableModel, config: Config) -> Tensor:
        return model.draw_probe(model.network) if model.makes == "sets" else super().live(model, config)

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Mapping[str, str]:
        module = loader_path(paths[0]).stem
        use = _USES[model.makes]
        if model.attributes and model.makes == "labels":
            use = use.replace("classes]", "classes and values of model.ATTRIBUTES]")
        if model.attributes and model.makes == "sprites":
            chosen = {name: values[0] for name, values in model.attributes.items() if values}
            use = f"model.sample(network, 16, attributes={chosen!r})  # uint8 [16, S, S, 4], RGBA"
        lines = f"import {module} as model\n\nnetwork = model.load(device='cpu')\nresult = {use}\n"
        return {"Python": lines}


def loader_path(target: Path) -> Path:
    """Return the path of the loader, with an importable name: 'my model.pt' -> 'my_model_loader.py'."""
    stem = re.sub(r"\W", "_", target.stem, flags=re.ASCII)
    return target.with_name(f"{'_' if stem[:1].isdigit() else ''}{stem}_loader.py")


def compose_loader(model: ExportableModel, weights_name: str) -> str:
    """Return the text of the loader file. Raises ExportError if the model's code needs more than torch."""
    found = collect(model.portable)
    lines = {*found.imports, *_OWN_IMPORTS.get(model.makes, ("import argparse",)), *_TORCH_IMPORTS}
    parts = [
        _heading(model, weights_name, found.code),
        format_imports(lines) + "\n",
        _constants(model, weights_name),
        "\n" + first_paragraphs(found.code) + "\n",
        LOAD.format(network=model.architecture["class"]),
        (_BY_ATTRIBUTES if model.attributes else _USAGE)[model.makes],
    ]
    return "\n".join(parts).rstrip() + "\n"


def _heading(model: ExportableModel, weights_name: str, code: str) -> str:
    """Return the loader's docstring."""
    name = docstring_safe(weights_name)
    needs = "torch and torchvision" if "from torchvision import" in code else "torch"
    start = command_line("python", loader_path(Path(name)).name, "--help")
    parents = f"Training started from the weights of {docstring_safe(model.ancestry())}."
    lineage = textwrap.fill(parents, 110) if model.ancestors else "Trained from scratch, on its own sprites only."
    return (
        f'"""{_WHAT[model.makes]} with the weights in {name}. Needs {needs} only.\n\n'
        f"Run it with: {start}; or import it and call load().\n"
        f"Trained for {model.step:,} steps with the recipe {model.recipe!r} of Sprite Training Studio.\n"
        f'{lineage}\n"""\n\nfrom __future__ import annotations\n'
    )


def _constants(model: ExportableModel, weights_name: str) -> str:
    names = {"numbers": ("TARGET_NAMES", model.target_names), "sets": ("CELL_NAMES", model.cells)}.get(
        model.makes, ("CLASS_NAMES", model.class_names)
    )
    architecture = {"class": model.architecture["class"], "arguments": dict(model.architecture["arguments"])}
    lines = [f"WEIGHTS = Path(__file__).with_name({weights_name!r})"]
    values = [("SIZE", model.size), (names[0], list(names[1])), ("ARCHITECTURE", architecture)]
    if model.attributes:
        values.insert(2, ("ATTRIBUTES", {name: list(each) for name, each in model.attributes.items()}))
    for name, value in values:
        lines.append(f"{name} = {pprint.pformat(value, width=110, compact=True, sort_dicts=False)}")
    return "\n".join(lines) + "\n"


def _check_archive(path: Path) -> None:
    """Check the CRC of every file in a .pt archive. Raises ExportError."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
        raise ExportError(f"{path.name} is damaged.", str(error)) from error
    if damaged:
        raise ExportError(f"{path.name} is damaged.", f"The checksum of {damaged} in it is wrong.")
