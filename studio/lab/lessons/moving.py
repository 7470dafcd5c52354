"""Moving to a device: each mistake of the tutorials, made safely, and what PyTorch says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from studio.core.events import Events, Progress
from studio.core.formatting import count
from studio.lab.experiments.base import IMPORTS, ExperimentContext
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import error_text, examples, make_network
from studio.lab.outcome import Outcome, Table

_SPRITES = 8
_META = "meta"  # a device of every computer: its tensors have shapes but no data
_STARTER = IMPORTS + """\

def train_step(network, x, y, device):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network.to(device)
    x.to(device)
    y.to(device)
    loss = nn.functional.cross_entropy(network(x), y)
    loss.backward()
    optimizer.step()
    return loss


network = nn.Linear(8, 3)
loss = train_step(network, torch.rand(4, 8), torch.tensor([0, 1, 2, 0]), "cpu")
print(f"loss {loss.item():.3f} on {loss.device}")
"""  # fmt: skip
_ANSWER = (
    _STARTER.replace("    x.to(device)\n    y.to(device)\n", "    x, y = x.to(device), y.to(device)\n")
    .replace("    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)\n    network.to(device)\n",
             "    network.to(device)\n    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)\n")
)  # fmt: skip
_CODE = IMPORTS + """\
device = "{elsewhere}"  # tensors on "meta" have shapes but no data; they stand in for a GPU
x, y = torch.rand(8, 4 * {size} * {size}), torch.randint(3, (8,))  # made-up sprites and their classes

network = nn.Linear(4 * {size} * {size}, 3)
network.to(device)  # moves the network itself
x.to(device)  # makes a copy on the device, and throws the copy away
print("x is still on", x.device)
try:
    network(x)
except RuntimeError as error:
    print("PyTorch says:", error)

x, y = x.to(device), y.to(device)  # keeps the copies
optimizer = torch.optim.AdamW(network.parameters())  # made after the move
loss = nn.functional.cross_entropy(network(x), y)
print("fixed: a loss on", loss.device)
"""  # fmt: skip


@dataclass(frozen=True)
class _Mistake:
    """Code with a mistake. look: a text and an expression to tell if there is no error. fixed: the corrected code."""

    title: str
    code: str
    look: tuple[str, str]
    fixed: str


_NEW = "the network's weights"
_MISTAKES = (
    _Mistake(
        "only the network is moved, not the sprites",
        "network.to(device)\nscores = network(x)",
        ("the scores are on", "scores.device"),
        "scores = network(x.to(device))",
    ),
    _Mistake("the moved tensor is not kept", "x.to(device)", ("x is on", "x.device"), "x = x.to(device)"),
    _Mistake(
        "the classes are not moved",
        "network.to(device)\nloss = criterion(network(x.to(device)), y)",
        ("the loss is on", "loss.device"),
        "loss = criterion(network(x.to(device)), y.to(device))",
    ),
    _Mistake(
        "a new tensor is made on the CPU",
        "x = x.to(device)\nx = x + torch.randn(x.shape)",
        ("x is on", "x.device"),
        "x = x + torch.randn_like(x)",
    ),
    _Mistake(
        "the optimizer is made before the move",
        "optimizer = torch.optim.AdamW(network.parameters())\nnetwork.to(device)\n"
        "criterion(network(x.to(device)), y.to(device)).backward()\noptimizer.step()",
        (
            "the optimizer holds",
            f"{_NEW!r} if optimizer.param_groups[0]['params'][0] is next(network.parameters()) else 'old weights'",
        ),
        "network.to(device)\noptimizer = torch.optim.AdamW(network.parameters())",
    ),
    _Mistake(
        "scores on the device are compared with classes on the CPU",
        "network.to(device)\nnetwork(x.to(device)).argmax(1) == y",
        ("", "''"),
        "network(x.to(device)).argmax(1) == y.to(device)",
    ),
    _Mistake(
        "NumPy reads a tensor on the device",
        "network.to(device)\nnetwork(x.to(device)).detach().numpy()",
        ("", "''"),
        "network(x.to(device)).detach().cpu().numpy()",
    ),
)
_OPTIMIZER = _MISTAKES[4]


def _check(names: Mapping[str, Any]) -> str:
    """Call the learner's function with another device, and where a move makes new weights."""
    train_step = names["train_step"]
    x, y = torch.rand(4, 8), torch.tensor([0, 1, 2, 0])
    try:
        loss = train_step(nn.Linear(8, 3), x, y, _META)
    except RuntimeError as error:
        return f"With another device PyTorch says: {str(error).splitlines()[0].rstrip('.!')}."
    if loss.device.type != _META:
        return f"The loss is on '{loss.device}' instead of the device."
    network = nn.Linear(8, 3)
    before = network.weight.detach().clone()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        train_step(network, x, y, "cpu")
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    if torch.equal(before, network.weight):
        return "The step did not change the weights: the optimizer holds the weights from before the move."
    return ""


class Moving(Lesson):
    """Runs common mistakes with devices on a few sprites, and shows the errors and the silent results."""

    name = "moving"
    title = "Moving to the device"
    question = "How many of seven common mistakes with devices stop with an error?"
    order = 20
    seconds = 2.0
    intro = (
        "A tensor is a block of numbers on a device, for example the pixels of some sprites. PyTorch computes only "
        "with tensors on the same device; .to(device) moves a tensor or a network. network.to(device) moves the "
        "network itself. For a tensor x, x.to(device) returns a moved copy and leaves x on the old device.",
        "This lesson makes seven common mistakes with a few sprites. The scores in the list are the network's answer: "
        "a number for each class. The optimizer is the part of the program that improves the weights. Without a GPU, "
        "PyTorch's device 'meta' stands in for a GPU: tensors on 'meta' have a shape but no numbers.",
        "\n".join(f"{number}. {mistake.title}." for number, mistake in enumerate(_MISTAKES, 1)),
        "Some mistakes stop with an error, others go unnoticed.",
    )
    prediction = Prediction(unit="mistakes", high=7.0, slack=0.0)
    read_on = ("Tensor.to", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html")
    plain = _CODE
    gpu = (
        "On a GPU the error is 'Expected all tensors to be on the same device', with the names of both devices. An "
        "optimizer made before the move still works on a GPU: PyTorch moves the numbers, and the optimizer holds the "
        "same weights as before. On 'meta' PyTorch makes new weights. An optimizer made after the move always works."
    )
    exercise = Exercise(
        task="This step works only on the CPU. Correct the mistakes: the step should train on every device.",
        starter=_STARTER,
        answer=_ANSWER,
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        rows, errors = list[tuple[str, str]](), 0
        for number, mistake in enumerate(_MISTAKES, 1):
            error, seen = _try(mistake, context)
            errors += bool(error)
            rows += [("", "")] if rows else []  # space between two mistakes
            said = error or f"no error; {mistake.look[0]} {seen}"
            rows += [(f"{number}. {mistake.title}", mistake.code), ("    PyTorch says", said)]
            rows += [("    better", mistake.fixed)]
            yield Progress(number, len(_MISTAKES), "mistakes made")
        silent = len(_MISTAKES) - errors
        figures: dict[str, float | str] = {
            "errors": float(errors), "mistakes": float(len(_MISTAKES)), "device": _elsewhere(context),
            "same_weights": str(_try(_OPTIMIZER, context)[1] == _NEW),
        }  # fmt: skip
        table = Table(("mistake", "code"), tuple(rows))
        sentence = f"{errors} of {count(len(_MISTAKES), 'mistake')} stopped with an error, {silent} went unnoticed."
        yield Outcome(tables=(table,), sentences=(sentence,), figures=figures)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"elsewhere": _elsewhere(context)}

    def measured(self, figures: Figures) -> Answer:
        return float(figures["errors"])

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        sentences = [
            "An error helps: the message names the device, and you see which tensor to move.",
            "x.to(device) without 'x =' is silent: PyTorch makes a copy on the device, Python throws the copy away, "
            "and x stays on the CPU. The error comes later, in another line.",
        ]
        if figures["same_weights"] == "False":
            sentences.append(
                f"The optimizer made before the move to '{figures['device']}' is silent too: the optimizer holds the "
                "old weights, and the network uses new weights."
            )
        else:
            sentences.append(f"The optimizer made before the move to '{figures['device']}' kept the same weights.")
        if answer == figures["mistakes"]:
            sentences.append("PyTorch reports only operations that can't be computed, not every mistake.")
        return sentences

    def card_text(self, figures: Figures) -> str:
        return f"{figures['errors']:.0f} of {figures['mistakes']:.0f} mistakes stopped with an error."


def _elsewhere(context: ExperimentContext) -> str:
    """Return the name of a device other than the CPU; 'meta' stands in for a GPU."""
    return _META if context.device.kind == "cpu" else context.device.id


def _try(mistake: _Mistake, context: ExperimentContext) -> tuple[str, str]:
    """Run a mistake on a few sprites; return the error of PyTorch or '', and the value of `look`."""
    data = examples(context)
    x, y = data.batch(_SPRITES)
    names: dict[str, Any] = {
        "torch": torch, "device": _elsewhere(context), "x": x, "y": y, "network": make_network(len(data.class_names)),
        "criterion": nn.CrossEntropyLoss(),
    }  # fmt: skip
    try:
        exec(mistake.code, names)  # runs exactly the code in the table
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return error_text(error, str(error).splitlines()[0]), ""
    return "", str(eval(mistake.look[1], names))
