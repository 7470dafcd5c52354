"""The training loop: one step on a real batch, line by line."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal
from studio.lab.experiments.base import IMPORTS, ExperimentContext
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import BATCH, examples, make_network
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table

_FORWARD, _LOSS, _ZERO = "scores = network(x)", "loss = criterion(scores, y)", "optimizer.zero_grad()"
_BACKWARD, _STEP = "loss.backward()", "optimizer.step()"
_LINES = (_FORWARD, _LOSS, _ZERO, _BACKWARD, _STEP)
_MORE_STEPS = 40
_STARTER = IMPORTS + """\

def train(network, optimizer, x, y, steps):
    criterion = nn.CrossEntropyLoss()
    for step in range(steps):
        scores = network(x)
        loss = criterion(scores, y)
        loss.backward()
        optimizer.step()
        # one line is missing: gradients of earlier steps are still there
    return loss.item()


torch.manual_seed(0)
x, y = torch.rand(32, 8), torch.randint(3, (32,))
network = nn.Linear(8, 3)
optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
print(f"loss after 20 steps: {train(network, optimizer, x, y, 20):.3f}")
"""  # fmt: skip
_CODE = IMPORTS + """\
device, classes = "{device}", 3
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)  # a batch of made-up sprites
y = torch.randint(classes, ({batch_size},), device=device)  # the class of each
network = nn.Sequential(nn.Conv2d(4, 16, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(classes)).to(device)
network(x)  # creates the weights of the last layer
optimizer, criterion = torch.optim.AdamW(network.parameters()), nn.CrossEntropyLoss()

for step in range(5):
    scores = network(x)  # 1. forward pass: a score for each class
    loss = criterion(scores, y)  # 2. loss: how wrong the scores are
    optimizer.zero_grad()  # 3. forget the gradients of the last step
    loss.backward()  # 4. backward pass: a gradient for each weight
    optimizer.step()  # 5. change the weights
    print(f"step {{step}}: loss {{loss.item():.4f}}, scores {{tuple(scores.shape)}} on {{scores.device}}")
"""  # fmt: skip


def _check(names: Mapping[str, Any]) -> str:
    """Compare the learner's trained weights with a correct loop's weights."""
    train, trained = names["train"], []
    for loop in (_train_correctly, train):
        torch.manual_seed(1)
        network = nn.Linear(6, 3)
        x, y = torch.rand(16, 6), torch.randint(3, (16,))
        loop(network, torch.optim.SGD(network.parameters(), lr=0.3), x, y, 4)
        trained.append(network.weight.detach())
    if torch.allclose(trained[0], trained[1], atol=1e-6):
        return ""
    return "After 4 steps the weights differ from those of a correct loop. Which line forgets old gradients?"


def _train_correctly(network: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()


class TrainingLoop(Lesson):
    """Executes a training step's five lines one by one, and shows the tensors after every line."""

    name = "training-loop"
    title = "The training loop"
    question = "Which of the five lines of a training step changes the weights?"
    order = 30
    minutes = 6
    seconds = 3.0
    intro = (
        "A network computes an answer from a sprite, with many numbers: its weights. Training changes the weights in "
        "small steps until the answers are good.",
        "Each step takes a batch: some sprites (x) and their classes (y). The loss is a number for the errors on the "
        "batch: the smaller, the better. The gradient of a weight tells how the loss changes if the weight grows a "
        "little. The optimizer uses the gradients to improve the weights.",
        "A step has five lines. In the lines, network computes the scores, a number for each class, and criterion "
        "computes the loss from the scores. You will see the five lines run one by one on a batch of your sprites, "
        "with the tensor that each line makes: a block of numbers with a shape, a number type (dtype) and a device.",
    )
    prediction = Prediction(choices=_LINES)
    read_on = (
        "Optimizing model parameters",
        "https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html",
    )
    plain = _CODE
    gpu = (
        "The five lines stay the same on a GPU; the column 'device' shows 'cuda:0'. Python goes on to the next line "
        "before the GPU has finished; loss.item() waits for the GPU."
    )
    exercise = Exercise(
        task="This loop has only four of the five lines. Add the missing line: each step should start without old "
        "gradients.",
        starter=_STARTER,
        answer=_STARTER.replace(
            "        loss.backward()\n", "        optimizer.zero_grad()\n        loss.backward()\n"
        ).replace("        # one line is missing: gradients of earlier steps are still there\n", ""),
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        data = examples(context)
        x, y = (part.to(context.target) for part in data.batch(BATCH))
        network = make_network(len(data.class_names)).to(context.target)
        optimizer, criterion = torch.optim.AdamW(network.parameters(), lr=0.005), nn.CrossEntropyLoss()
        names: dict[str, Any] = {
            "network": network, "optimizer": optimizer, "criterion": criterion, "x": x, "y": y,
        }  # fmt: skip
        with torch.no_grad():
            losses = [criterion(network(x), y).item()]
        tensors = [_row("the batch", "x: sprites", x), _row("", "y: classes", y)]
        effects, changed_by = [], list[str]()
        for line in _LINES:
            before = [weight.detach().clone() for weight in network.parameters()]
            exec(line, names)  # runs exactly the line in the table
            change = _distance(before, network)
            if change > 0:
                changed_by.append(line)
            tensors.append(_made(line, names, network))
            effects.append((line, decimal(change), _gradient(network)))
        for _ in range(_MORE_STEPS):
            with torch.no_grad():
                losses.append(criterion(network(x), y).item())
            for line in _LINES:
                exec(line, names)
        yield Progress(len(losses), len(losses), "steps")
        figures: dict[str, float | str] = {
            "changed_by": ", ".join(changed_by), "loss_before": losses[0], "loss_after": losses[1],
            "loss_last": losses[-1], "steps": float(_MORE_STEPS), "classes": float(len(data.class_names)),
            "weights": float(sum(weight.numel() for weight in network.parameters())), "batch": float(len(y)),
        }  # fmt: skip
        tables = (
            Table(("line", "makes", "shape", "dtype", "device"), tuple(tensors)),
            Table(("after the line", ">weights changed by", ">size of the gradients"), tuple(effects)),
        )
        steps = tuple(float(step) for step in range(len(losses)))
        plot = Plot(
            "Loss on the same batch", Axis("step"), Axis("loss"), (Line("loss", steps, tuple(losses), dots=False),),
            (Mark(1.0, "the step in the tables"),),
        )  # fmt: skip
        sentences = (f"The loss was {decimal(losses[0])} before the step and {decimal(losses[1])} after it.",)
        yield Outcome((plot,), tables, sentences, figures=figures)

    def measured(self, figures: Figures) -> Answer:
        return str(figures["changed_by"])

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        guess = math.log(float(figures["classes"]))
        sentences = [
            f"Only {figures['changed_by']} changed the {count(round(float(figures['weights'])), 'weight')}. "
            "loss.backward() computed a gradient for each weight and stored it in weight.grad; the weights stayed as "
            "they were.",
        ]
        if answer == _ZERO:
            sentences.append("optimizer.zero_grad() only removes the gradients of the step before.")
        if answer in (_FORWARD, _LOSS):
            sentences.append("The forward pass and the loss only read the weights.")
        sentences.append(
            f"A network that only guesses among {figures['classes']:.0f} classes has a loss of {decimal(guess)}, the "
            f"logarithm of {figures['classes']:.0f}. Your network began at {decimal(float(figures['loss_before']))}, "
            "because its weights were random. After "
            f"{count(1 + round(float(figures['steps'])), 'step')} on the same batch the loss was "
            f"{decimal(float(figures['loss_last']))}."
        )
        return sentences

    def card_text(self, figures: Figures) -> str:
        before, after = (decimal(float(figures[name])) for name in ("loss_before", "loss_after"))
        return f"the loss of one step went from {before} to {after}; {figures['changed_by']} changed the weights."


def _distance(before: list[Tensor], network: nn.Module) -> float:
    """Return how far the weights have moved: the square root of the sum of squared changes."""
    changes = [(now.detach() - old).square().sum() for old, now in zip(before, network.parameters(), strict=True)]
    return float(torch.stack(changes).sum().sqrt())


def _gradient(network: nn.Module) -> str:
    """Return the total gradient norm as a text; 'none' before the first backward pass."""
    gradients = [weight.grad for weight in network.parameters() if weight.grad is not None]
    return decimal(float(nn.utils.get_total_norm(gradients))) if gradients else "none"


def _made(line: str, names: Mapping[str, Any], network: nn.Sequential) -> tuple[str, ...]:
    weight = network[0].weight
    assert isinstance(weight, Tensor)
    match line:
        case "scores = network(x)":
            return _row(line, "scores", names["scores"])
        case "loss = criterion(scores, y)":
            return _row(line, f"loss: {decimal(names['loss'].item())}", names["loss"])
        case "loss.backward()":
            assert weight.grad is not None
            return _row(line, "network[0].weight.grad", weight.grad)
        case "optimizer.step()":
            return _row(line, "network[0].weight, changed", weight)
    return (line, "no gradients", "", "", "")


def _row(line: str, made: str, tensor: Tensor) -> tuple[str, ...]:
    shape = str(list(tensor.shape)) if tensor.shape else "[] (one number)"
    return line, made, shape, str(tensor.dtype).removeprefix("torch."), str(tensor.device)
