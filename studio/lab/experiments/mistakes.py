"""Mistakes with devices: makes each mistake, shows the error of PyTorch, and then the corrected code."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from studio.core.events import Events, Progress
from studio.core.formatting import count
from studio.engine.devices.types import Device
from studio.engine.steps.batches import to_device, to_input
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext
from studio.lab.outcome import Outcome, Table

_SPRITES = 8
_META = "meta"  # a device of every computer: its tensors have shapes but no data
_CODE = IMPORTS + """\
device = "{elsewhere}"  # "meta" tensors have shapes but no data; they stand in for a GPU
x, y = torch.rand({count}, {inputs}), torch.randint({classes}, ({count},))
network, criterion = nn.Linear({inputs}, {classes}).to(device), nn.CrossEntropyLoss()

try:
    loss = criterion(network(x.to(device)), y)
except RuntimeError as error:
    print("labels on the wrong device:", error)

loss = criterion(network(x.to(device)), y.to(device))
print("fixed: a loss on", loss.device)

for name, weight in network.named_parameters():
    print(name, weight.device, weight.dtype, weight.shape)
"""  # fmt: skip


@dataclass(frozen=True)
class _Mistake:
    """Wrong code, the reason of the error, and fixed code. Both codes use names defined by `_error_of`."""

    title: str
    wrong: str
    reason: str
    fixed: str
    without_cuda: bool = False  # an error only on computers without an NVIDIA GPU


_MISTAKES = (
    _Mistake(
        "The model on the wrong device", "network(x.to(device))",
        "The sprites are on the device, but the weights are on the CPU. An operation needs all its inputs on one "
        "device.",
        "network.to(device)\nnetwork(x.to(device))",
    ),
    _Mistake(
        "The result of '.to' not assigned", "network.to(device)\nx.to(device)\nnetwork(x)",
        "'.to' moves a module in place. For a tensor it returns a copy, which this code discards.",
        "network.to(device)\nx = x.to(device)\nnetwork(x)",
    ),
    _Mistake(
        "Labels on the wrong device", "network.to(device)\ncriterion(network(x.to(device)), y)",
        "The loss needs predictions and labels on the same device.",
        "network.to(device)\ncriterion(network(x.to(device)), y.to(device))",
    ),
    _Mistake(
        "Predictions compared with labels on another device",
        "network.to(device)\nnetwork(x.to(device)).argmax(1) == y",
        "Accuracy compares predictions with labels, on one device. Move the labels, or move both to the CPU.",
        "network.to(device)\nnetwork(x.to(device)).argmax(1) == y.to(device)",
    ),
    _Mistake(
        "Class weights of a criterion on the wrong device",
        "network.to(device)\ncriterion = nn.CrossEntropyLoss(weight=torch.ones(classes))\n"
        "criterion(network(x.to(device)), y.to(device))",
        "A criterion is a module too: its own '.to' moves its class weights.",
        "network.to(device)\ncriterion = nn.CrossEntropyLoss(weight=torch.ones(classes)).to(device)\n"
        "criterion(network(x.to(device)), y.to(device))",
    ),
    _Mistake(
        "A default device set too late", "torch.set_default_device(device)\nnoise = torch.randn(x.shape)\nx + noise",
        "The default applies to new tensors. Existing tensors and tensors from NumPy stay where they are.",
        "torch.set_default_device(device)\nnoise = torch.randn(x.shape, device=x.device)\nx + noise",
    ),
    _Mistake(
        "'.cuda()' without an NVIDIA GPU", "network.cuda()",
        "'.cuda()' needs an NVIDIA GPU. Choose the device once and move everything there.",
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nnetwork.to(device)",
        without_cuda=True,
    ),
)  # fmt: skip


class Mistakes(Experiment):
    """Runs code with common mistakes about devices, and shows the errors of PyTorch."""

    name = "mistakes"
    title = "Mistakes"
    question = "Which errors does PyTorch raise for tensors on the wrong device?"
    order = 80
    sets_obstacle = ""
    seconds = 2.0
    read_on = ("Tensor.to", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        chosen = [one for one in _MISTAKES if not (one.without_cuda and torch.cuda.is_available())]
        tables, raised = list[Table](), 0
        for done, mistake in enumerate(chosen, 1):
            error, after = (_error_of(lines, context) for lines in (mistake.wrong, mistake.fixed))
            raised += bool(error) and not after
            tables.append(_table(mistake, error, after))
            yield Progress(done, len(chosen), "mistakes made and fixed")
        yield Outcome(tables=tuple(tables), sentences=tuple(_sentences(context.device, raised, len(chosen))))

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        inputs, classes = 4 * context.sprites.size**2, len(context.sprites.class_names)
        return {"elsewhere": _elsewhere(context.device), "count": _SPRITES, "inputs": inputs, "classes": classes}


def _elsewhere(device: Device) -> str:
    """Return the name of a device other than the CPU; 'meta' stands in for a GPU."""
    return _META if device.kind == "cpu" else device.id


def _error_of(lines: str, context: ExperimentContext) -> str:
    """Run code on up to 8 sprites; return the error of PyTorch, or an empty text without an error."""
    sprites = context.sprites.take(range(min(_SPRITES, len(context.sprites))))
    x = to_input(to_device(sprites.rgba, torch.device("cpu"))).flatten(1)
    classes = len(sprites.class_names)
    names: dict[str, Any] = {
        "torch": torch, "nn": nn, "device": _elsewhere(context.device), "x": x, "y": torch.from_numpy(sprites.labels),
        "classes": classes, "network": nn.Linear(x.shape[1], classes), "criterion": nn.CrossEntropyLoss(),
    }  # fmt: skip
    try:
        exec(lines, names)  # runs exactly the code in the table
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch without CUDA raises AssertionError
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        torch.set_default_device(None)
    return ""


def _table(mistake: _Mistake, error: str, after: str) -> Table:
    parts = {
        "code": mistake.wrong, "error": error or "None: this version of PyTorch accepts the code.",
        "reason": mistake.reason, "fixed": mistake.fixed, "result": after or "It runs.",
    }  # fmt: skip
    return Table(("", mistake.title), tuple(parts.items()))


def _sentences(device: Device, raised: int, made: int) -> list[str]:
    sentences = [f"{raised} of {count(made, 'mistake')} raised an error, and the fixed code ran."]
    if device.kind == "cpu":
        sentences.append(
            "On a CPU, PyTorch's device 'meta' stands in for a GPU: its tensors have shapes but no data. A GPU gives "
            "the error 'Expected all tensors to be on the same device'."
        )
    sentences.append("The error names both devices: find the tensor on the wrong device, and move it.")
    return sentences
