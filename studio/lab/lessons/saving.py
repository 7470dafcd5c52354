"""Saving and loading: the state_dict, map_location, weights_only, and what a pickle can do."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from studio.core.events import Events, Progress
from studio.core.formatting import count, memory
from studio.lab.experiments.base import IMPORTS, ExperimentContext
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import error_text, examples, make_network, make_step
from studio.lab.outcome import Outcome, Table

_ONLY_NUMBERS, _FAIL, _ANYTHING = (
    "only fill in numbers", "only stop PyTorch with an error", "run any command on your computer",
)  # fmt: skip
_TRAP = "I was here"  # the folder that the harmless pickle makes
_STARTER = IMPORTS + """\

def save(network, path):
    torch.save(network, path)  # saves the Python object itself


def load(network, path, device):
    # read the weights to `device`, fill the weights into `network`, and return the network
    return torch.load(path, weights_only=False)


network = nn.Linear(8, 3)
save(network, "model.pt")
again = load(nn.Linear(8, 3), "model.pt", "cpu")
print("same weights:", torch.equal(network.weight, again.weight))
"""  # fmt: skip
_ANSWER = _STARTER.replace(
    "    torch.save(network, path)  # saves the Python object itself\n", "    torch.save(network.state_dict(), path)\n"
).replace(
    "    return torch.load(path, weights_only=False)\n",
    "    weights = torch.load(path, map_location=device, weights_only=True)\n"
    "    network.load_state_dict(weights)\n    return network.to(device)\n",
)
_CODE = """\
import tempfile
from pathlib import Path

import torch
from torch import nn

device = "{device}"
network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.pt")
    torch.save(network.state_dict(), path)  # the state_dict: a tensor for each name
    print(f"{{path.stat().st_size}} bytes")
    weights = torch.load(path, map_location="cpu", weights_only=True)  # reads tensors, runs nothing

for name, weight in weights.items():
    print(name, tuple(weight.shape), weight.dtype, weight.device)
again = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
again.load_state_dict(weights)
x = torch.rand(4, 8)
print("same output:", torch.allclose(again(x), network.cpu()(x)))
"""


class _Trap:
    """An object with a harmless pickle: loading the pickle makes an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.folder,)


def _check(names: Mapping[str, Any]) -> str:
    """Save and load with the learner's functions, and look at the file and the call."""
    torch.manual_seed(2)
    network = nn.Linear(8, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt")
        names["save"](network, path)
        try:
            weights = torch.load(path, map_location="cpu", weights_only=True)
        except Exception:  # noqa: BLE001 - whatever the learner has saved
            return "The file holds Python objects: save network.state_dict() instead of the network."
        if not isinstance(weights, Mapping) or not all(isinstance(weight, Tensor) for weight in weights.values()):
            return "The file should hold the state_dict: a tensor for each name."
        with mock.patch("torch.load", side_effect=torch.load) as called:
            again = names["load"](nn.Linear(8, 3), path, "cpu")
    if not called.call_args or called.call_args.kwargs.get("weights_only") is not True:
        return "load() should call torch.load with weights_only=True."
    if len(called.call_args.args) < 2 and called.call_args.kwargs.get("map_location") is None:
        return "load() should say where the weights go: map_location=device."
    if not isinstance(again, nn.Module) or not torch.equal(again.weight, network.weight):  # type: ignore[arg-type]
        return "load() should return the network with the saved weights."
    return ""


class Saving(Lesson):
    """Saves a network, loads it on another device, and shows with a harmless file what a pickle can do."""

    name = "saving"
    title = "Saving and loading"
    question = "What can a model file from a stranger do if you load it with torch.load(path, weights_only=False)?"
    order = 70
    seconds = 2.0
    intro = (
        "The state_dict of a network is a list of names, each with a tensor of weights. A file of the state_dict holds "
        "the numbers without the program. To load the file, make the network again and fill in the numbers.",
        "The file also holds the device of each weight. A file from a GPU can't be loaded on a computer without a GPU, "
        "unless map_location names another device.",
        "PyTorch's files are pickles. A pickle is a list of instructions for building Python objects. With "
        "weights_only=True PyTorch follows only instructions for tensors; with weights_only=False, all instructions. "
        "This lesson writes a file with a harmless instruction of another kind, and loads the file both ways.",
    )
    prediction = Prediction(choices=(_ONLY_NUMBERS, _FAIL, _ANYTHING))
    read_on = ("Saving and loading models", "https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html")
    plain = _CODE
    gpu = (
        "A file from a GPU holds the device 'cuda:0'. On a computer without a GPU, torch.load(path) stops with the "
        "error 'Attempting to deserialize object on a CUDA device'. map_location='cpu' solves the problem."
    )
    exercise = Exercise(
        task="save() writes the whole Python object: loading the file is unsafe, and fails when the program has "
        "changed. Save the state_dict instead, and load the weights with weights_only=True to the given device.",
        starter=_STARTER,
        answer=_ANSWER,
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        step, classes = make_step(context, context.target), len(examples(context).class_names)
        step()
        with tempfile.TemporaryDirectory() as folder:
            path, trap, made = Path(folder, "model.pt"), Path(folder, "stranger.pt"), Path(folder, _TRAP)
            torch.save(step.network.state_dict(), path)
            size_bytes = path.stat().st_size
            weights = torch.load(path, map_location="cpu", weights_only=True)
            again = make_network(classes)
            again.load_state_dict(weights)
            yield Progress(1, 2, "files loaded")
            torch.save(_Trap(made), trap)
            refused, before = _error_of(trap), made.is_dir()
            torch.load(trap, weights_only=False)  # the pickle file from above
            ran = made.is_dir() and not before
            yield Progress(2, 2, "files loaded")
        with torch.no_grad():
            difference = float((again(step.x.cpu()) - step.network.cpu()(step.x.cpu())).abs().max())
        number = sum(weight.numel() for weight in weights.values())
        figures: dict[str, float | str] = {
            "ran": "yes" if ran else "no", "refused": refused, "bytes": float(size_bytes), "weights": float(number),
            "difference": difference, "saved_on": str(context.target),
        }  # fmt: skip
        rows = [(name, str(list(weight.shape)), str(weight.dtype).removeprefix("torch."), str(weight.device))
                for name, weight in weights.items()]  # fmt: skip
        tries = (
            ("weights_only=True", refused),
            ("weights_only=False", f"a folder '{_TRAP}' was made" if ran else "nothing happened"),
        )
        tables = (
            Table(("name in the state_dict", "shape", "dtype", "device"), tuple(rows)),
            Table(("loading a stranger's file with", "what happened"), tries),
        )
        sentence = (
            f"The state_dict of {count(number, 'weight')} takes {memory(size_bytes)}. The name '0.weight' means the "
            "weights of layer 0."
        )
        yield Outcome(tables=tables, sentences=(sentence,), figures=figures)

    def measured(self, figures: Figures) -> Answer:
        return _ANYTHING if figures["ran"] == "yes" else _FAIL

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        weights, size_bytes = float(figures["weights"]), float(figures["bytes"])
        return [
            "The file told Python to make a folder, and with weights_only=False Python obeyed. A file can also tell "
            "Python to delete your files. Load files from strangers only with weights_only=True.",
            "With weights_only=True, the default since PyTorch 2.6, PyTorch refused the file and ran nothing. The "
            "studio loads only numbers.",
            f"{weights:,.0f} weights of 4 bytes are {memory(round(4 * weights))}; the file has "
            f"{memory(round(size_bytes))}, with the names. Saved on '{figures['saved_on']}' and loaded on 'cpu', the "
            "network "
            + ("gives exactly the same output." if figures["difference"] == 0 else
               f"gives the same output, up to {float(figures['difference']):.1g}."),
        ]  # fmt: skip

    def card_text(self, figures: Figures) -> str:
        return f"saved on '{figures['saved_on']}', loaded on 'cpu', the output differed by {figures['difference']:.1g}."


def _error_of(path: Path) -> str:
    """Load a file with weights_only=True; return the error."""
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - PyTorch raises pickle's error, which no module may import
        return error_text(error, f"{str(error).partition('. ')[0]}.")
    return "nothing"
