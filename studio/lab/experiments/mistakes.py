"""Mistakes with devices: each is made, what PyTorch says of it is shown, and then it is mended."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from studio.core.events import Events, Progress
from studio.core.formatting import count
from studio.engine.devices.types import Device
from studio.engine.steps.batches import to_device, to_input
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome, Table

_SHOWN = 8  # sprites
_LINE = 60  # characters of a table's line
_META = "meta"  # a device of shapes without numbers, which every computer has
_CODE = """\
import torch
from torch import nn

device = "{elsewhere}"  # "meta" has shapes and no numbers: it stands in for a card
x, y = torch.rand({count}, {inputs}), torch.randint({classes}, ({count},))
network, criterion = nn.Linear({inputs}, {classes}).to(device), nn.CrossEntropyLoss()

try:
    loss = criterion(network(x.to(device)), y)
except RuntimeError as error:
    print("labels left behind:", error)

loss = criterion(network(x.to(device)), y.to(device))
print("mended: a loss on", loss.device)

for name, weight in network.named_parameters():
    print(name, weight.device, weight.dtype, weight.shape)
"""


@dataclass(frozen=True)
class _Mistake:
    """Lines that go wrong, why, and lines that don't. They know torch, nn, device, x, y, classes, network, criterion.

    without_cuda: it can be made only where there is no NVIDIA card.
    """

    title: str
    wrong: str
    why: str
    mended: str
    without_cuda: bool = False


_MISTAKES = (
    _Mistake(
        "The model left behind",
        "network(x.to(device))",
        "The sprites are on the device, the model's weights are not. What one operation takes must be on one device.",
        "network.to(device)\nnetwork(x.to(device))",
    ),
    _Mistake(
        "What '.to' gives, not assigned",
        "network.to(device)\nx.to(device)\nnetwork(x)",
        "A module's '.to' moves the module itself. A tensor's '.to' leaves it where it is and gives a copy, lost here.",
        "network.to(device)\nx = x.to(device)\nnetwork(x)",
    ),
    _Mistake(
        "Labels left behind",
        "network.to(device)\ncriterion(network(x.to(device)), y)",
        "The loss takes predictions and labels: both must be on one device.",
        "network.to(device)\ncriterion(network(x.to(device)), y.to(device))",
    ),
    _Mistake(
        "Predictions compared with labels elsewhere",
        "network.to(device)\nnetwork(x.to(device)).argmax(1) == y",
        "Accuracy compares predictions and labels one by one, on one device. Move the labels, or both to the CPU.",
        "network.to(device)\nnetwork(x.to(device)).argmax(1) == y.to(device)",
    ),
    _Mistake(
        "A criterion with weights left behind",
        "network.to(device)\ncriterion = nn.CrossEntropyLoss(weight=torch.ones(classes))\n"
        "criterion(network(x.to(device)), y.to(device))",
        "A criterion is a module, too: the weights of its classes move with its own '.to'.",
        "network.to(device)\ncriterion = nn.CrossEntropyLoss(weight=torch.ones(classes)).to(device)\n"
        "criterion(network(x.to(device)), y.to(device))",
    ),
    _Mistake(
        "A default device set halfway",
        "torch.set_default_device(device)\nnoise = torch.randn(x.shape)\nx + noise",
        "From then on new tensors are made there. What was made before, or comes from numpy, stays where it is.",
        "torch.set_default_device(device)\nnoise = torch.randn(x.shape, device=x.device)\nx + noise",
    ),
    _Mistake(
        "'.cuda()' without a card",
        "network.cuda()",
        "'.cuda()' asks for an NVIDIA card, whatever the computer has. Choose the device once, and move all to that.",
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nnetwork.to(device)",
        without_cuda=True,
    ),
)


class Mistakes(Experiment):
    """Makes the mistakes that everybody makes with devices, safely."""

    name = "mistakes"
    title = "Mistakes"
    question = "What does PyTorch say when something is on the wrong device?"
    order = 80
    seconds = 2.0
    read_on = ("Tensor.to", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        chosen = [one for one in _MISTAKES if not (one.without_cuda and torch.cuda.is_available())]
        tables, raised = list[Table](), 0
        for done, mistake in enumerate(chosen, 1):
            said, after = (_said_of(lines, context) for lines in (mistake.wrong, mistake.mended))
            raised += bool(said) and not after
            tables.append(_table(mistake, said, after))
            yield Progress(done, len(chosen), "mistakes made and mended")
        yield Outcome(tables=tuple(tables), sentences=tuple(_sentences(context.device, raised, len(chosen))))

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        inputs, classes = 4 * context.sprites.size**2, len(context.sprites.class_names)
        return {"elsewhere": _elsewhere(context.device), "count": _SHOWN, "inputs": inputs, "classes": classes}


def _elsewhere(device: Device) -> str:
    """A device beside the CPU."""
    return _META if device.kind == "cpu" else device.id


def _said_of(lines: str, context: ExperimentContext) -> str:
    """What PyTorch says of these lines, with some of the sprites; empty where it says nothing."""
    sprites = context.sprites.take(range(min(_SHOWN, len(context.sprites))))
    x = to_input(to_device(sprites.rgba, torch.device("cpu"))).flatten(1)
    classes = len(sprites.class_names)
    names: dict[str, Any] = {
        "torch": torch, "nn": nn, "device": _elsewhere(context.device), "x": x, "y": torch.from_numpy(sprites.labels),
        "classes": classes, "network": nn.Linear(x.shape[1], classes), "criterion": nn.CrossEntropyLoss(),
    }  # fmt: skip
    try:
        exec(lines, names)  # what is shown is what is done
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # a torch without CUDA asserts
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        torch.set_default_device(None)
    return ""


def _table(mistake: _Mistake, said: str, after: str) -> Table:
    parts = {
        "written": mistake.wrong,
        "PyTorch says": said or "Nothing: this version goes on.",
        "because": mistake.why,
        "mended": mistake.mended,
        "then": after or "It runs.",
    }
    rows = list[tuple[str, str]]()
    for name, text in parts.items():
        lines = [line for given in text.splitlines() for line in textwrap.wrap(given, _LINE)]
        rows += [(name if place == 0 else "", line) for place, line in enumerate(lines)]
    return Table(("", mistake.title), tuple(rows))


def _sentences(device: Device, raised: int, made: int) -> list[str]:
    found = [f"{raised} of {count(made, 'mistake')} raised an error, and ran when they were mended."]
    if device.kind == "cpu":
        found.append(
            "There is no card here: PyTorch's device 'meta', which has shapes and no numbers, stands in for one. A "
            "card says the same in other words: 'Expected all tensors to be on the same device'."
        )
    found.append("The message names both devices: look for what was made on the one, and move it to the other.")
    return found
