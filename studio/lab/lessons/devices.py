"""Devices: which devices this computer has, and the proof by a training step that each one trains."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

from studio.core.errors import DeviceError
from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal, rate
from studio.engine.devices import detection
from studio.engine.devices.types import Device
from studio.lab.experiments.base import TIMED_IMPORTS, ExperimentContext
from studio.lab.experiments.sweep import milliseconds
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import BATCH, Step, make_step, time_each
from studio.lab.outcome import Outcome, Table

_STARTER = """\
import torch


def pick_device():
    # complete this function: "cuda" for an NVIDIA or AMD GPU, else "mps" for an Apple GPU, else "cpu"
    return "cpu"


device = pick_device()
print(device, torch.ones(3, device=device).sum())
"""
_CODE = TIMED_IMPORTS + """\
device = "{device}"
network = nn.Sequential(nn.Conv2d(4, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
network.to(device)
x = torch.rand(32, 4, {size}, {size}, device=device)  # made-up sprites
y = torch.randint(3, (32,), device=device)  # their classes
network(x)  # creates the weights of the last layer
optimizer = torch.optim.AdamW(network.parameters())


def step():
    loss = nn.functional.cross_entropy(network(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()  # waits for the device


before = network[0].weight.detach().clone()
step()  # PyTorch prepares itself in the first step
start, steps = time.perf_counter(), 0
while time.perf_counter() - start < 1:
    step()
    steps += 1
speed = steps / (time.perf_counter() - start)
print(f"{{speed:.0f}} steps per second; the weights are on {{network[0].weight.device}}")
print(f"they changed by {{(network[0].weight - before).abs().max().item():.4f}} at most: training works")
"""  # fmt: skip
_COMPUTERS = {"cuda": (True, True), "mps": (False, True), "cpu": (False, False)}  # has CUDA, has MPS, by right answer
_AT_LEAST = 1.05  # a smaller difference is noise


def _check(names: Mapping[str, Any]) -> str:
    """Call the learner's function on three pretended computers."""
    for expected, (has_cuda, has_mps) in _COMPUTERS.items():
        with ExitStack() as stack:
            stack.enter_context(mock.patch("torch.cuda.is_available", return_value=has_cuda))
            stack.enter_context(mock.patch("torch.backends.mps.is_available", return_value=has_mps))
            picked = names["pick_device"]()
        if str(picked).partition(":")[0] != expected:
            return f"On a computer where '{expected}' is the best device, pick_device() returns '{picked}'."
    return ""


@dataclass(frozen=True)
class _Proof:
    """The results of a training step on a device."""

    device: Device
    weights_on: str
    loss_before: float
    loss_after: float
    changed_by: float  # the largest change of a weight in the first step
    step_s: float  # median


class Devices(Lesson):
    """Takes a training step on each device, looks at the weights, and measures the speed."""

    name = "devices"
    title = "Devices"
    question = "How many training steps does your device take in one second?"
    order = 10
    seconds = 5.0
    intro = (
        "A device is the part of the computer that computes: the processor (CPU) or a graphics card (GPU). The studio "
        "trains with PyTorch, a library for Python. PyTorch's names for devices are 'cpu', 'cuda' (a card by NVIDIA or "
        "AMD), 'mps' (Apple) and 'xpu' (Intel).",
        "A network computes an answer from a sprite with many numbers, the weights. The network of this lesson is "
        "small and recognises the class of a sprite, for example sword or potion. A training step shows a batch of 32 "
        "sprites to the network, measures the errors as one number, the loss, and improves the weights a little.",
        "A computer can have a device that can't train. This lesson takes a training step on your device as a proof: "
        "the weights and the loss must change. Guess how many steps your device takes in one second: ten, a hundred, "
        "or thousands?",
    )
    prediction = Prediction(unit="steps/s", low=0.01, high=1e6, slack=0.5)
    read_on = ("torch.accelerator", "https://docs.pytorch.org/docs/stable/accelerator.html")
    plain = _CODE
    gpu = (
        "A GPU computes thousands of numbers at a time. With this small network, most units of the GPU wait, and "
        "Python decides the speed, because Python starts each operation: a GPU may be no faster than your CPU here. "
        "With larger networks and batches a GPU is many times as fast."
    )
    exercise = Exercise(
        task="Complete pick_device(): on every computer, the function should return the name of the best device. Ask "
        "torch.cuda.is_available() and torch.backends.mps.is_available().",
        starter=_STARTER,
        answer=_STARTER.replace(
            '    return "cpu"\n',
            '    if torch.cuda.is_available():\n        return "cuda"\n'
            '    if torch.backends.mps.is_available():\n        return "mps"\n    return "cpu"\n',
        ),
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        working = [device for device in detection.list_devices() if not device.problem]
        devices = [context.device, *(device for device in working if device.id != context.device.id)]
        proofs, failures = list[_Proof](), list[str]()
        for done, device in enumerate(devices):
            yield _progress(done, len(devices), device)
            try:
                with detection.wrap_device_errors(device.torch):
                    proofs.append(_prove(context, device, context.seconds / len(devices)))
            except DeviceError as error:
                if device is context.device:
                    raise
                failures.append(f"{device.name}: {error.title}")
        own = proofs[0]
        step = make_step(context, context.target)
        figures: dict[str, float | str] = {
            "steps_per_s": 1 / own.step_s, "loss_before": own.loss_before, "loss_after": own.loss_after,
            "changed_by": own.changed_by, "weights_on": own.weights_on, "batch": float(BATCH),
            "weights": float(sum(weight.numel() for weight in step.network.parameters())),
            "operations": float(_operations(step)),
        }  # fmt: skip
        if len(proofs) > 1:
            fastest = min(proofs[1:], key=lambda proof: proof.step_s)
            figures |= {"fastest_other": fastest.device.name, "other_steps_per_s": 1 / fastest.step_s}
        yield Outcome(tables=(_table(proofs),), sentences=(*_sentences(proofs), *failures), figures=figures)

    def measured(self, figures: Figures) -> Answer:
        return float(figures["steps_per_s"])

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        speed, weights = float(figures["steps_per_s"]), round(float(figures["weights"]))
        billions = float(figures["operations"]) * speed / 1e9
        before, after = float(figures["loss_before"]), float(figures["loss_after"])
        sentences = [
            f"One step takes {milliseconds(1 / speed)}. The network has {count(weights, 'weight')}. A step is about "
            f"{float(figures['operations']) / 1e6:.3g} million multiplications and additions; your device did "
            f"{billions:.2g} billion of them per second. Other programs that compute at the same time slow the steps: "
            "close the programs and measure again.",
            f"The proof: the weights are on '{figures['weights_on']}', one step changed the loss from "
            f"{decimal(before)} to {decimal(after)}, and the weights changed by up to "
            f"{decimal(float(figures['changed_by']))}."
            + (" A step can raise the loss, too; many steps lower it." if after > before else ""),
        ]
        if "fastest_other" in figures:
            times = float(figures["other_steps_per_s"]) / speed
            compared = f"{times:.2g} times as fast" if not 1 / _AT_LEAST < times < _AT_LEAST else "as fast"
            sentences.append(f"{figures['fastest_other']} is {compared} as this device, with this small network.")
        return sentences

    def card_text(self, figures: Figures) -> str:
        speed = rate(float(figures["steps_per_s"]), "steps")
        return f"{speed} with the same network and {figures['batch']:.0f} sprites."


def _progress(done: int, total: int, device: Device) -> Progress:
    """Return the progress before a device is measured; the progress of a single device is unknown."""
    if total == 1:
        return Progress(0, 0, f"measuring {device.name}")
    return Progress(done, total, f"devices measured, now {device.name}")


def _prove(context: ExperimentContext, device: Device, seconds: float) -> _Proof:
    """Take a step on a device and look at the weights; then measure the speed. Raises DeviceError."""
    target = device.torch
    step = make_step(context, target)
    before = [weight.detach().clone() for weight in step.network.parameters()]
    loss_before = step().item()
    weights = list(step.network.parameters())
    changes = [(now.detach() - old).abs().max().item() for old, now in zip(before, weights, strict=True)]
    with torch.no_grad():
        loss_after = step.criterion(step.network(step.x), step.y).item()
    time_each(step, target, seconds / 5)  # warm-up
    durations_s = time_each(step, target, seconds)
    return _Proof(device, str(weights[0].device), loss_before, loss_after, max(changes), statistics.median(durations_s))


def _operations(step: Step) -> int:
    """Return the number of multiplications and additions in a training step, without the optimizer's."""
    counts = list[int]()
    x = step.x
    with torch.no_grad():
        for layer in step.network.children():
            x = layer(x)
            weight = getattr(layer, "weight", None)
            if weight is not None:
                counts.append(2 * x.numel() * weight[0].numel())
    return 3 * sum(counts)  # forward once, backward twice as many


def _table(proofs: Sequence[_Proof]) -> Table:
    rows = [
        (
            proof.device.name, proof.weights_on, decimal(proof.loss_before), decimal(proof.loss_after),
            decimal(proof.changed_by), rate(1 / proof.step_s, "steps"),
        )
        for proof in proofs
    ]  # fmt: skip
    columns = ("device", "weights on", ">loss before", ">loss after a step", ">weights changed by", ">speed")
    return Table(columns, tuple(rows))


def _sentences(proofs: Sequence[_Proof]) -> Iterator[str]:
    for proof in proofs:
        speed = rate(1 / proof.step_s, "steps")
        weights = "the weights changed" if proof.changed_by > 0 else "but the weights did not change"
        yield f"{proof.device.name}: {speed} with {BATCH} sprites each; {weights}."
    if len(proofs) == 1:
        yield "This computer has 1 device that trains."
