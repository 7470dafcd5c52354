"""Mixed precision: steps in 16-bit and in 32-bit numbers, in speed, memory and loss."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from studio.core.events import Events
from studio.core.formatting import decimal, memory, percent
from studio.lab.catalog import experiment
from studio.lab.experiments.base import ExperimentContext
from studio.lab.experiments.sweep import milliseconds
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.outcome import Outcome

_FASTER, _SAME, _SLOWER = "faster", "about as fast", "slower"
_NEAR = 1.1  # smaller factors count as equally fast
_STARTER = """\
import torch
from torch import nn


def train_step(network, optimizer, x, y, device):
    # run the network in bfloat16: torch.autocast(device, torch.bfloat16); compute the loss in float32
    scores = network(x)
    loss = nn.functional.cross_entropy(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


network = nn.Linear(8, 3)
optimizer = torch.optim.AdamW(network.parameters())
loss = train_step(network, optimizer, torch.rand(4, 8), torch.tensor([0, 1, 2, 0]), "cpu")
print(f"loss {loss.item():.3f} in {loss.dtype}, weights in {network.weight.dtype}")
"""
_ANSWER = _STARTER.replace(
    "    scores = network(x)\n    loss = nn.functional.cross_entropy(scores, y)\n",
    "    with torch.autocast(device, torch.bfloat16):\n        scores = network(x)\n"
    "    loss = nn.functional.cross_entropy(scores.float(), y)\n",
)


class _Spy(nn.Module):
    """A linear layer that records the number type of its output."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dtype = nn.Linear(8, 3), torch.float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.layer(x)
        self.dtype = scores.dtype
        return scores


def _check(names: Mapping[str, Any]) -> str:
    """Call the learner's step with a layer that records its number type."""
    spy = _Spy()
    optimizer = torch.optim.SGD(spy.parameters(), lr=0.5)
    before = spy.layer.weight.detach().clone()
    loss = names["train_step"](spy, optimizer, torch.rand(4, 8), torch.tensor([0, 1, 2, 0]), "cpu")
    if spy.dtype != torch.bfloat16:
        return f"The network computed in {str(spy.dtype).removeprefix('torch.')} instead of bfloat16."
    if loss.dtype != torch.float32:
        return f"The loss is in {str(loss.dtype).removeprefix('torch.')}: convert the scores with .float() first."
    if spy.layer.weight.dtype != torch.float32:
        return "The weights should stay in float32: autocast converts them for the computation only."
    return "The step did not change the weights." if torch.equal(before, spy.layer.weight) else ""


class MixedPrecision(Lesson):
    """Runs the Lab's experiment on precision, and explains its figures."""

    name = "mixed-precision"
    title = "Mixed precision"
    question = "How fast are training steps in bfloat16 on your device, compared with float32?"
    order = 60
    seconds = 12.0
    intro = (
        "float32 and bfloat16 are types of numbers. A number in float32 takes 4 bytes and keeps about 7 digits; a "
        "number in bfloat16 takes 2 bytes (16 bits) and keeps about 3 digits. Half the bytes are moved in half the "
        "time, and some devices compute much faster with 16-bit numbers.",
        "Mixed precision uses both: the weights, the loss and the optimizer stay in float32, and the large products of "
        "the network are computed in bfloat16. PyTorch switches the type inside 'with torch.autocast(...)'. The tables "
        "call float32 'fp32' and bfloat16 'bf16'.",
        "float16 is another type of 2 bytes. Small gradients become zero in float16; a GradScaler prevents this by "
        "multiplying the loss by a large number. bfloat16 needs no scaler. In this lesson the studio trains a model "
        "that draws sprites, in each precision in turn.",
    )
    prediction = Prediction(choices=(_FASTER, _SAME, _SLOWER))
    read_on = ("Automatic mixed precision", "https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html")
    gpu = (
        "GPUs have special units for products of 16-bit numbers: large networks train several times as fast and need "
        "less memory. Only new CPUs have special units; other CPUs convert each number."
    )
    exercise = Exercise(
        task="Change this step to mixed precision: the network in bfloat16, the loss and the weights in float32.",
        starter=_STARTER,
        answer=_ANSWER,
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        for event in experiment("precision").run(context):
            # Leaves out the advice for the Train page.
            yield dataclasses.replace(event, sentences=event.sentences[:1]) if isinstance(event, Outcome) else event

    def code(self, context: ExperimentContext) -> str:
        return experiment("precision").code(context)

    def measured(self, figures: Figures) -> Answer:
        times = float(figures["fp32_step_s"]) / float(figures["bf16_step_s"])
        return _FASTER if times > _NEAR else _SLOWER if times < 1 / _NEAR else _SAME

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        fp32_s, bf16_s = float(figures["fp32_step_s"]), float(figures["bf16_step_s"])
        fp32_bytes, bf16_bytes = float(figures["fp32_kept_bytes"]), float(figures["bf16_kept_bytes"])
        why = {
            _FASTER: "Your device has units for 16-bit numbers, or the step mostly waits for memory.",
            _SAME: "Converting the numbers takes the time that 16 bits save, or the step does not wait for memory.",
            _SLOWER: "Your device has no units for bfloat16, or converting the numbers takes more time than it saves. "
            "Other programs that compute at the same time distort the comparison: close them, and measure again.",
        }[str(self.measured(figures))]
        return [
            f"A step takes {milliseconds(fp32_s)} in float32 and {milliseconds(bf16_s)} in bfloat16. {why}",
            f"For the backward pass, bfloat16 keeps {memory(round(bf16_bytes))} and float32 "
            f"{memory(round(fp32_bytes))}: {percent(bf16_bytes / fp32_bytes)}. That is more "
            "than half, because some parts stay in float32.",
            _compare_losses(figures),
        ]

    def card_text(self, figures: Figures) -> str:
        times = float(figures["fp32_step_s"]) / float(figures["bf16_step_s"])
        kept = float(figures["bf16_kept_bytes"]) / float(figures["fp32_kept_bytes"])
        return f"bfloat16 was {times:.2g} times as fast as float32 and kept {percent(kept)} of the memory."


def _compare_losses(figures: Figures) -> str:
    """Return a sentence about the losses at the end."""
    losses = [figures["bf16_loss"], figures["fp32_loss"]]
    bf16, fp32 = (loss if isinstance(loss, str) else decimal(loss) for loss in losses)
    told = f"The losses at the end were {bf16} in bfloat16 and {fp32} in float32"
    if any(isinstance(loss, str) for loss in losses):
        return f"{told}. The training failed where the loss is not finite."
    if figures["bf16_learns"] == "equally":
        return (
            f"{told}: the two curves cover each other. 3 digits are enough for the products if the weights keep all "
            "their digits."
        )
    return f"{told}. They differ by more than rounding: compare more steps before you use bfloat16."
