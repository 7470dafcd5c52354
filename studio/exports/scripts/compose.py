"""Compose the text of a training script and its notebook from cells."""

from __future__ import annotations

import json
import os
import pprint
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studio.core import files
from studio.core.config import Setting, TrainingConfig, settings_of
from studio.core.formatting import number
from studio.core.shell import command_line
from studio.exports.base import ExportableModel
from studio.exports.scripts.cells import PACKAGES, Cell, cells_for, stand_ins
from studio.exports.source_code import (
    collect,
    defined_names,
    docstring_safe,
    first_paragraphs,
    format_imports,
    free_names,
)  # fmt: skip

_WIDTH = 120
# Possible imports of the cells; `format_imports` drops unused names.
_OWN_IMPORTS = (
    "import copy",
    "import csv",
    "import json",
    "from collections import defaultdict",
    "from dataclasses import dataclass",
    "from pathlib import Path",
    "from types import SimpleNamespace",
    "from typing import Any",
    "import numpy as np",
    "from numpy.typing import NDArray",
    "from PIL import Image",
    "import torch",
    "from torch import Tensor, nn",
)


def weights_path(target: Path) -> Path:
    """Return the path of the trained weights, next to the script."""
    return target.with_name(f"{target.stem}_weights.safetensors")


def compose_cells(model: ExportableModel, target: Path) -> list[tuple[Cell, str]]:
    """Return the cells of a script with their code. The first cell holds the docstring and the imports.

    Raises ExportError if the recipe's code needs more than torch and numpy.
    """
    items = {item.__name__: item for item in (*model.portable, *model.training.portable)}
    cells = cells_for(model)
    renamed = stand_ins(model.training.config)
    known = {*renamed} | {name for cell in cells for name in defined_names(cell.code)}
    imports = {*_OWN_IMPORTS}
    written: list[tuple[Cell, str]] = []
    for cell in cells:
        found = collect([items[name] for name in cell.sources if name in items], known, PACKAGES)
        known |= found.sources.keys()
        imports |= {*found.imports}
        sources = re.sub(r"\b[A-Z]\w+", lambda word: renamed.get(word[0], word[0]), _in_paragraphs(found.sources))
        sources = sources.replace(f"def {model.training.loss_name}(", "def loss(")
        written.append((cell, "\n\n".join(filter(None, [sources, cell.code.strip()]))))
    everything = "\n".join(code for _, code in written)
    settings = _settings(model, target, everything)
    head = "from __future__ import annotations\n\n" + format_imports(imports, free_names(f"{everything}\n{settings}"))
    first = Cell("", _heading(model, target, everything))
    composed = [(first, head), (Cell("Settings", _about_settings(model)), settings), *written]
    return [(cell, _spaced(code)) for cell, code in composed]


def _spaced(code: str) -> str:
    """Return `code` with two blank lines before and after each class and function, as PEP 8 asks."""
    code = re.sub(r"\n\n(?=@|class |def )", "\n\n\n", code)
    return re.sub(r"(\n    [^\n]*)\n\n(?=\S)", r"\1\n\n\n", code)


def _in_paragraphs(sources: Mapping[str, str]) -> str:
    """Join source code: first all constants, then classes and functions with shortened docstrings."""
    constants = [source for name, source in sources.items() if source.startswith(f"{name} = ")]
    others = [first_paragraphs(source) for source in sources.values() if source not in constants]
    return "\n\n".join(filter(None, ["\n".join(constants), *others]))


def as_python(cells: Sequence[tuple[Cell, str]]) -> str:
    """Return the script as a Python file, with '# %%' at the start of a cell, which VS Code and Spyder recognise."""
    (first, head), *others = cells
    parts = [f'"""{first.text}\n"""\n\n{head}\n']
    for cell, code in others:
        text = "".join(f"# {line}\n" for line in textwrap.wrap(cell.text, _WIDTH - 2))
        parts.append(f"# %% {cell.title}\n{text}\n{code}\n")
    return "\n\n".join(parts)


def as_notebook(cells: Sequence[tuple[Cell, str]]) -> str:
    """Return the script as a Jupyter notebook (format 4.4): a Markdown cell and a code cell for each cell."""
    found: list[dict[str, Any]] = []
    for cell, code in cells:
        text = f"## {cell.title}\n\n{cell.text}" if cell.title else cell.text
        found.append({"cell_type": "markdown", "metadata": {}, "source": text.strip().splitlines(keepends=True)})
        source = code.splitlines(keepends=True)
        found.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": found, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _heading(model: ExportableModel, target: Path, code: str) -> str:
    """Return the docstring of the script."""
    torch = "torch, torchvision" if "from torchvision import" in code else "torch"
    paragraphs = [
        f"Train the {model.recipe} '{docstring_safe(model.title)}' from scratch, in plain PyTorch.",
        f"Needs {torch}, numpy and pillow. The notebook next to this file has the same cells. Sprite Training Studio "
        "wrote both, mostly from its own source code. In fp32 on one CPU thread, with the sprites of the run, the "
        "losses equal those of the studio; on other devices they drift apart slowly through rounding.",
    ]
    if model.ancestors:
        others = ", ".join(docstring_safe(str(one["title"])) for one in model.ancestors)
        start = f"The run itself started from the weights of {others}. This script starts from random weights."
        paragraphs.append(start)
    first, *rest = (textwrap.fill(text, _WIDTH - 4) for text in paragraphs)
    start = f"Run it with: {command_line('python', docstring_safe(target.name))}"  # unwrapped, for copy and paste
    return "\n\n".join([first, start, *rest])


def _about_settings(model: ExportableModel) -> str:
    if model.training.config.steps or model.training.config.epochs:
        return "The settings of the run. Change them and run the script again."
    return (
        f"The settings of the run. The run had a time limit and took {number(model.step)} steps; its learning rate "
        "followed the elapsed time. Here it follows the step number."
    )


def _settings(model: ExportableModel, target: Path, code: str) -> str:
    """Return the code of the settings cell: paths, device, and a config class with the settings that `code` reads."""
    config, shared = model.training.config, {item.name for item in settings_of(TrainingConfig)}
    values = {**config.to_json(), "steps": max(1, model.step) if config.epochs else config.steps or max(1, model.step)}
    items = settings_of(type(config))
    used = [item for item in items if item.name in shared and re.search(rf"\bconfig\.{item.name}\b", code)]
    own = [item for item in items if item.name not in shared]
    fields = "\n".join(_field(item, values[item.name]) for item in (*used, *own)) or "    pass"
    name = type(config).__name__
    arguments = _formatted(dict(model.architecture["arguments"]))
    names: dict[str, object] = {"CELL_NAMES": [*model.cells]} if model.makes == "sets" else {}
    if model.attributes:
        known = {name: [*each] for name, each in model.attributes.items()}
        names = {"CLASS_NAMES": [*model.class_names], "ATTRIBUTES": known}
    lists = "".join(f"{name} = {_formatted(value)}\n" for name, value in names.items())
    return f"""\
HERE = Path(__file__).parent if "__file__" in globals() else Path()  # notebooks have no __file__
DATA = {_data_path(model.training.data, target)}  # a run's data set, or a folder of PNG files
WEIGHTS = HERE / {weights_path(target).name!r}  # trained by the studio
SHEET, LOSSES = HERE / {target.stem + "_sheet.png"!r}, HERE / {target.stem + "_losses.txt"!r}
TRAIN = True  # False: load WEIGHTS instead
DEVICE = "cpu"  # or "cuda", "mps"
SIZE = {model.size}  # pixels per side of a sprite
{lists}# Of the network in WEIGHTS:
ARGUMENTS = {arguments}

@dataclass
class {name}:
{fields}

config = {name}()"""


def _formatted(value: object) -> str:
    """Return a list or dict as code in lines of limited length."""
    return pprint.pformat(value, width=_WIDTH - 15, compact=True, sort_dicts=False)


def _field(item: Setting, value: object) -> str:
    """Return a dataclass field for a setting, with its value in the run and its help as a comment."""
    line = f"    {item.name}: {type(value).__name__} = {value!r}"
    text = item.help
    for end in (". ", "; ", ": ", ", "):  # shorten a long help to its first sentence or clause
        if len(f"{line}  # {text}") > _WIDTH and end in text.rstrip("."):
            text = text.partition(end)[0] + "."
    return f"{line}  # {text}" if len(f"{line}  # {text}") <= _WIDTH else f"    # {text}\n{line}"


def _data_path(data: Path | None, target: Path) -> str:
    """Return code for the path of the data set, relative to the script if both are in the run's folder."""
    if data is None:
        return 'HERE / "sprites"'
    data, folder = data.absolute(), files.final_folder(target)
    if folder.is_relative_to(data.parent):
        return f"HERE / {Path(os.path.relpath(data, folder)).as_posix()!r}"
    return f"Path({str(data)!r})"
