"""Evaluation: accuracy on sprites that the network has never seen, without gradients and without dropout."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from studio.core.events import Events, Progress
from studio.core.formatting import count, memory, percent
from studio.lab.experiments.base import IMPORTS, ExperimentContext, kept_bytes
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import BATCH, Examples, Step, examples, make_network
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table

_STEPS, _LEAST_STEPS, _EVERY = 200, 60, 20
_DROPOUT = 0.3
_HELD_OUT = 5  # every fifth sprite
_LITTLE = "The network has learned little by heart."
_STARTER = IMPORTS + """\

def accuracy(network, x, y):
    # 1. switch dropout off  2. record nothing for gradients  3. switch dropout on again at the end
    scores = network(x)
    return (scores.argmax(1) == y).float().mean().item()


torch.manual_seed(0)
network = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 3))
x, y = torch.rand(300, 8), torch.randint(3, (300,))
print(f"accuracy {accuracy(network, x, y):.3f}, and again {accuracy(network, x, y):.3f}")
"""  # fmt: skip
_ANSWER = _STARTER.replace(
    "    scores = network(x)\n    return (scores.argmax(1) == y).float().mean().item()\n",
    "    network.eval()\n    with torch.no_grad():\n        scores = network(x)\n    network.train()\n"
    "    return (scores.argmax(1) == y).float().mean().item()\n",
)
_CODE = IMPORTS + """\
device = "{device}"
network = nn.Sequential(nn.Flatten(), nn.LazyLinear(64), nn.ReLU(), nn.Dropout(0.3), nn.LazyLinear(3))
network.to(device)
x = torch.rand(64, 4, {size}, {size}, device=device)  # made-up sprites
y = torch.randint(3, (64,), device=device)  # their classes

network.eval()  # switches dropout off
with torch.no_grad():  # keeps nothing for gradients
    scores = network(x)
right = (scores.argmax(1) == y).sum().item()  # argmax: the class with the highest score
print(f"{{right}} of {{len(y)}} are right: accuracy {{right / len(y):.1%}}")
print("needs gradients:", scores.requires_grad)
network.train()  # dropout is on again, for the next training step
"""  # fmt: skip


class _Spy(nn.Module):
    """Gives fixed scores, and records how it was called."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores, self.calls = nn.Parameter(scores), list[tuple[bool, bool]]()

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append((self.training, torch.is_grad_enabled() and not torch.is_inference_mode_enabled()))
        return self.scores[: len(x)]


def _check(names: Mapping[str, Any]) -> str:
    """Call the learner's function with a network whose scores are known."""
    spy = _Spy(torch.eye(4))
    found = float(names["accuracy"](spy, torch.rand(4, 8), torch.tensor([0, 1, 2, 0])))
    if abs(found - 0.75) > 1e-6:
        return f"For 3 right answers of 4 the accuracy is 0.75; the function returns {found:.3g}."
    if any(was_training for was_training, _ in spy.calls):
        return "Dropout was on: the network was in training mode when it gave the scores."
    if any(has_grad for _, has_grad in spy.calls):
        return "The network recorded its work for gradients, which takes memory."
    return "" if spy.training else "After the evaluation the network should be in training mode again."


class Evaluation(Lesson):
    """Trains a small network for some seconds, and evaluates it in the right way and in wrong ways."""

    name = "evaluation"
    title = "Evaluation"
    question = "After some seconds of training, how many of 100 unseen sprites does the network recognise?"
    order = 40
    seconds = 8.0
    intro = (
        "A network can learn its training sprites by heart, as pupils learn answers without understanding. Test the "
        "network with other sprites, which were never used for training: the validation sprites. Here, every fifth of "
        "your sprites is a validation sprite.",
        "The network gives a score to each class. The answer is the class with the highest score. Accuracy is the "
        "share of right answers.",
        "An evaluation switches off two parts of training. The first is dropout, which makes learning by heart harder: "
        "during training, random values in the network become zero. network.eval() switches dropout off. The second is "
        "memory for gradients: during training, PyTorch keeps the results of each layer of the network. With "
        "torch.no_grad() PyTorch keeps nothing.",
    )
    prediction = Prediction(unit="%", high=100.0, slack=0.15)
    read_on = ("torch.no_grad", "https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html")
    plain = _CODE
    gpu = (
        "A GPU reaches about the same accuracy. no_grad() saves the same memory, which matters more on a GPU: cards "
        "have less memory than computers, and a large evaluation with gradients can fill a card."
    )
    exercise = Exercise(
        task="accuracy() returns a different number each time, and keeps memory for gradients. Add code for the three "
        "points of the comment.",
        starter=_STARTER,
        answer=_ANSWER,
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        data = examples(context)
        held_out = torch.arange(len(data.y)) % _HELD_OUT == _HELD_OUT - 1
        parts = {
            name: Examples(data.x[which].to(context.target), data.y[which].to(context.target), data.class_names)
            for name, which in {"training": ~held_out, "validation": held_out}.items()
        }
        network = make_network(len(data.class_names), _DROPOUT).to(context.target)
        curves: dict[str, list[float]] = {name: [] for name in parts}
        at = list[float]()
        for done in _train(network, parts["training"], context.seconds):
            if done % _EVERY == 0 or not at:
                at.append(float(done))
                for name, part in parts.items():
                    curves[name].append(_accuracy(network, part))
            yield Progress(done, _STEPS, "training steps")
        found = {name: _accuracy(network, part) for name, part in parts.items()}
        network.train()
        validation = parts["validation"]
        with torch.no_grad():
            dropped = _right(network, validation)
        network.eval()
        kept = kept_bytes(lambda: network(validation.x))
        figures: dict[str, float | str] = {
            "accuracy": 100 * found["validation"], "training_accuracy": 100 * found["training"],
            "dropout_accuracy": 100 * dropped, "kept_bytes": float(kept), "classes": float(len(data.class_names)),
            "steps": float(done), "sprites": float(len(validation.y)),
        }  # fmt: skip
        lines = tuple(Line(name, tuple(at), tuple(100 * value for value in values)) for name, values in curves.items())
        plot = Plot("Accuracy while training", Axis("step"), Axis("right answers in %"), lines)
        yield Outcome((plot,), (_table(parts, found, dropped, kept),), (_sentence(figures),), figures=figures)

    def measured(self, figures: Figures) -> Answer:
        return float(figures["accuracy"])

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        chance, found = 100 / float(figures["classes"]), float(figures["accuracy"])
        gap = float(figures["training_accuracy"]) - found
        overfit = "The gap is what the network has learned by heart." if gap >= 1 else _LITTLE
        if found <= chance:
            overfit = "The network has learned nothing useful yet: train more steps, or with more sprites."
        return [
            f"Guessing among {figures['classes']:.0f} classes gives {chance:.1f} %. The network recognised "
            f"{found:.1f} % of the validation sprites and {found + gap:.1f} % of the training sprites. {overfit}",
            f"With dropout on, the same network recognised {float(figures['dropout_accuracy']):.1f} %: without "
            "network.eval() dropout changes the result, each time differently.",
            f"Without torch.no_grad() the evaluation keeps {memory(round(float(figures['kept_bytes'])))} for "
            "gradients that an evaluation never needs; with torch.no_grad() PyTorch keeps nothing.",
        ]

    def card_text(self, figures: Figures) -> str:
        steps = count(round(float(figures["steps"])), "step")
        return f"{float(figures['accuracy']):.1f} % of the validation sprites after {steps} of training."


def _train(network: nn.Module, data: Examples, seconds: float) -> Iterator[int]:
    """Train for 200 steps, or fewer if they take longer than `seconds`; yield the number of steps after each step."""
    start_s, generator = time.perf_counter(), torch.Generator().manual_seed(0)
    for step in range(1, _STEPS + 1):
        chosen = torch.randint(len(data.y), (BATCH,), generator=generator).to(data.y.device)
        if step == 1:
            take = Step(network, data.x[chosen], data.y[chosen])
        take.x, take.y = data.x[chosen], data.y[chosen]
        network.train()
        take()
        yield step
        if step >= _LEAST_STEPS and time.perf_counter() - start_s > seconds:
            return


def _right(network: nn.Module, data: Examples) -> float:
    """Return the share of right answers, in the network's present mode."""
    return float((network(data.x).argmax(1) == data.y).float().mean())


def _accuracy(network: nn.Module, data: Examples) -> float:
    """Return the share of right answers, without gradients and without dropout."""
    network.eval()
    with torch.no_grad():
        return _right(network, data)


def _table(parts: Mapping[str, Examples], found: Mapping[str, float], dropped: float, kept: int) -> Table:
    rows = [
        (f"{name} sprites, eval() and no_grad()", str(len(part.y)), percent(found[name]), "nothing")
        for name, part in parts.items()
    ]
    number = str(len(parts["validation"].y))
    rows += [
        ("validation sprites, without eval()", number, percent(dropped), "nothing"),
        ("validation sprites, without no_grad()", number, percent(found["validation"]), memory(kept)),
    ]
    return Table(("evaluated", ">sprites", ">accuracy", ">kept for gradients"), tuple(rows))


def _sentence(figures: Figures) -> str:
    steps, sprites = (count(round(float(figures[f"{name}s"])), name) for name in ("step", "sprite"))
    return f"After {steps} the network recognised {figures['accuracy']:.1f} % of {sprites} that it had never seen."
