"""An experiment: what larger kernels cost. It is found by the entry-point group 'studio.lab.experiments'."""

from __future__ import annotations

import time

import torch
from torch import nn

from studio.core.events import Events, Progress
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Outcome, Plot

SIDES = (1, 3, 5)


class Kernels(Experiment):
    """Times convolutions of several kernel sizes."""

    name = "kernels"
    title = "Kernels"
    question = "What do larger kernels cost?"
    seconds = 2.0

    def run(self, context: ExperimentContext) -> Events:
        x, times_ms = (
            torch.rand(8, 16, context.sprites.size, context.sprites.size, device=context.target),
            list[float](),
        )
        for side in SIDES:
            layer = nn.Conv2d(16, 16, side, padding="same", device=context.target)
            layer(x).sum().item()
            start_s = time.perf_counter()
            layer(x).sum().item()
            times_ms.append(1000 * (time.perf_counter() - start_s))
            yield Progress(len(times_ms), len(SIDES), "kernels")
        line = Line("forward", tuple(map(float, SIDES)), tuple(times_ms))
        sentence = f"A kernel of 5 x 5 takes {times_ms[-1] / times_ms[0]:.2g} times as long as one of 1 x 1."
        yield Outcome((Plot("Time by kernel", Axis("side"), Axis("ms"), (line,)),), (), (sentence,))

    def code(self, context: ExperimentContext) -> str:
        return "import torch\n\nprint(torch.nn.Conv2d(16, 16, 5, padding=2)(torch.rand(8, 16, 32, 32)).shape)\n"
