"""The text of a training script: cells of the project's own sources and of what lies between them."""

from __future__ import annotations

import ast
import json
import os
import pprint
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studio.core.config import Setting, TrainingConfig, settings_of
from studio.core.formatting import number
from studio.core.shell import command_line
from studio.exports.base import ExportableModel
from studio.exports.scripts.cells import PACKAGES, Cell, cells_for, stand_ins
from studio.exports.source_code import collect, defined_names, first_paragraphs, free_names

_WIDTH = 120
# What the cells use and do not define themselves; of the standard library, then of others.
_OWN_IMPORTS = (
    "import copy",
    "import csv",
    "import json",
    "from collections import defaultdict",
    "from dataclasses import dataclass",
    "from pathlib import Path",
    "from typing import Any",
    "import numpy as np",
    "from numpy.typing import NDArray",
    "from PIL import Image",
    "import torch",
    "from torch import Tensor, nn",
)


def weights_path(target: Path) -> Path:
    """Where the trained weights are, beside the script."""
    return target.with_name(f"{target.stem}_weights.safetensors")


def compose_cells(model: ExportableModel, target: Path) -> list[tuple[Cell, str]]:
    """The cells of the script with their code, the first without a title. Raises ExportError for code that needs more
    than torch and numpy.
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
        sources = _renamed(_in_paragraphs(found.sources), renamed)
        written.append((cell, "\n\n".join(filter(None, [sources, cell.code.strip()]))))
    everything = "\n".join(code for _, code in written)
    settings = _settings(model, target, everything)
    head = "from __future__ import annotations\n\n" + _imports(imports, free_names(f"{everything}\n{settings}"))
    first = Cell("", _heading(model, target, everything))
    return [(first, head), (Cell("Settings", _about_settings(model)), settings), *written]


def _in_paragraphs(sources: Mapping[str, str]) -> str:
    """Constants, which need nothing, line by line; then the others."""
    constants = [source for name, source in sources.items() if source.startswith(f"{name} = ")]
    others = [first_paragraphs(source) for source in sources.values() if source not in constants]
    return "\n\n".join(filter(None, ["\n".join(constants), *others]))


def _renamed(code: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Z]\w+", lambda found: names.get(found[0], found[0]), code)


def as_python(cells: Sequence[tuple[Cell, str]]) -> str:
    """'# %%' begins a cell, as editors know it."""
    (first, head), *others = cells
    parts = [f'"""{first.words}\n"""\n\n{head}\n']
    for cell, code in others:
        words = "".join(f"# {line}\n" for line in textwrap.wrap(cell.words, _WIDTH - 2))
        parts.append(f"# %% {cell.title}\n{words}\n{code}\n")
    return "\n".join(parts)


def as_notebook(cells: Sequence[tuple[Cell, str]]) -> str:
    """Jupyter's format 4.4: each cell's words, then its code."""
    found: list[dict[str, Any]] = []
    for cell, code in cells:
        words = f"## {cell.title}\n\n{cell.words}" if cell.title else cell.words
        found.append({"cell_type": "markdown", "metadata": {}, "source": words.strip().splitlines(keepends=True)})
        source = code.splitlines(keepends=True)
        found.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": found, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _heading(model: ExportableModel, target: Path, code: str) -> str:
    torch = "torch, torchvision" if "from torchvision import" in code else "torch"
    paragraphs = [
        f"The run {_plain(model.title)!r} as plain PyTorch: trains it anew with {torch}, numpy and pillow alone.",
        "The notebook beside it has the same cells. In fp32 on one CPU thread, with the run's own sprites, its losses "
        "equal the studio's; elsewhere the losses drift apart slowly, because rounding errors add up. "
        f"Written by Sprite Training Studio, mostly from its own source, the recipe {model.recipe!r}.",
    ]
    if model.ancestors:
        others = ", ".join(_plain(str(one["title"])) for one in model.ancestors)
        paragraphs.append(f"The run itself started from the weights of {others}; this begins anew, and loses more.")
    first, *rest = (textwrap.fill(text, _WIDTH - 4) for text in paragraphs)
    start = f"Start it with: {command_line('python', _plain(target.name))}"  # not wrapped, to be pasted
    return "\n\n".join([first, start, *rest])


def _about_settings(model: ExportableModel) -> str:
    if model.training.config.steps or model.training.config.epochs:
        return "Those of the run. Change them, and start again."
    return (
        f"Those of the run, which was trained for a time, {number(model.step)} steps of it up to here: its rate fell, "
        "and what goes with it came, by the clock."
    )


def _settings(model: ExportableModel, target: Path, code: str) -> str:
    """Where things are, and the settings that the rest of the code reads, as a class of their own."""
    config = model.training.config
    values = {**config.to_json(), "steps": max(1, model.step) if config.epochs else config.steps or max(1, model.step)}
    shared = [item for item in settings_of(TrainingConfig) if re.search(rf"\bconfig\.{item.name}\b", code)]
    names = {item.name for item in settings_of(TrainingConfig)}
    own = [item for item in settings_of(type(config)) if item.name not in names]
    name = type(config).__name__
    arguments = pprint.pformat(dict(model.architecture["arguments"]), width=_WIDTH - 15, sort_dicts=False)
    return f"""\
HERE = Path(__file__).parent if "__file__" in globals() else Path()  # a notebook is where it was started
DATA = {_place_of(model.training.data, target)}  # or a folder of PNG files
WEIGHTS = HERE / {weights_path(target).name!r}  # as the studio has trained them
SHEET, LOSSES = HERE / {target.stem + "_sheet.png"!r}, HERE / {target.stem + "_losses.txt"!r}
TRAIN = True  # False: take those weights
DEVICE = "cpu"  # or "cuda", "mps"
SIZE = {model.size}  # of a sprite, in pixels
ARGUMENTS = {arguments}  # of the network with those weights

@dataclass
class {name}:
{_fields([*shared, *own], values)}

config = {name}()"""


def _fields(items: Sequence[Setting], values: Mapping[str, object]) -> str:
    """Each setting with its value in this run, and what it is."""
    return "\n".join(_field(item, values[item.name]) for item in items) or "    pass"


def _field(item: Setting, value: object) -> str:
    line = f"    {item.name}: {type(value).__name__} = {value!r}  # "
    words = item.help
    for end in (";", ":", ","):  # what comes first says enough where there is no room
        words = words if len(line) + len(words) <= _WIDTH else words.partition(end)[0] + "."
    return line + words


def _place_of(data: Path | None, target: Path) -> str:
    """Where the sprites are; as seen from a script in the run's own folder, which may be moved."""
    if data is None:
        return 'HERE / "sprites"'
    data, folder = data.absolute(), target.absolute().parent
    if folder.is_relative_to(data.parent):
        return f"HERE / {Path(os.path.relpath(data, folder)).as_posix()!r}"
    return f"Path({str(data)!r})"


def _imports(lines: set[str], needed: set[str]) -> str:
    """Those of these imports that bind a name which is needed: the standard library first, then the others."""
    modules: set[str] = set()
    names: dict[str, set[str]] = defaultdict(set)  # of each module that some are imported from
    for node in ast.parse("\n".join(lines)).body:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) in needed:
                spelt = ast.unparse(alias)
                (names[str(node.module)] if isinstance(node, ast.ImportFrom) else modules).add(spelt)
    found = [f"import {name}" for name in modules]
    found += [f"from {module} import {', '.join(sorted(some))}" for module, some in names.items()]
    own = sorted((line for line in found if line.split()[1].partition(".")[0] in sys.stdlib_module_names), key=_rank)
    return "\n".join([*own, "", *sorted({*found} - {*own}, key=_rank)])


def _rank(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _plain(text: str) -> str:
    """What may stand in a docstring."""
    return re.sub(r'[^ -~]|["\\]', "_", text)
