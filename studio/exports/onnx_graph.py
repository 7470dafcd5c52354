"""What other programs run of a model, as modules that can be traced: from what they have to what they want."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from studio.exports.base import PROBE, ExportableModel, RecipeTraits

GraphKind = Literal["sampler", "step"]


@dataclass(frozen=True, eq=False)
class ExportGraph:
    """A module of tensors by name, at `PROBE`. The first axis of each is the batch, but for guidance's [1]."""

    module: nn.Module
    inputs: Mapping[str, Tensor]
    output: str

    def describe(self) -> str:
        """What goes in and what comes out, in a sentence."""
        return str(type(self.module).forward.__doc__)

    def live(self) -> Tensor:
        """What it gives."""
        with torch.no_grad():
            return self.module(*self.inputs.values())  # type: ignore[no-any-return]

    def traced(self) -> torch.export.ExportedProgram:
        """Its operators, for batches of any size."""
        batch = torch.export.Dim("batch")
        shapes = tuple(None if name == "guidance" else {0: batch} for name in self.inputs)
        with torch.no_grad():
            return torch.export.export(self.module, tuple(self.inputs.values()), dynamic_shapes=shapes)


class SamplerModule(nn.Module):
    """Sprites from noise. With `network` in place of the model's own, it is that which is asked."""

    def __init__(self, model: ExportableModel, steps: int, network: Any = None) -> None:
        super().__init__()
        self._model, self.steps = model, steps
        self._network = model.network if network is None else network

    def forward(self, noise: Tensor, labels: Tensor, guidance: Tensor) -> Tensor:
        """RGBA float32 [B, S, S, 4] in [0, 1], straight alpha, from noise [B, ...], int64 [B] and float32 [1]."""
        x = self._model.draw_from(self._network, noise, labels, guidance, self.steps)
        return self._model.straight(x).permute(0, 2, 3, 1)


class VelocityModule(nn.Module):
    """The network of a flow; any class is -1 here as well."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__()
        self._network: Any = model.network

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        """Velocity float32 [B, 4, S, S] from x [B, 4, S, S], t [B] in [0, 1) and int64 [B]."""
        return self._network(x, t, torch.where(label < 0, self._network.classes, label)).float()  # type: ignore[no-any-return]


class PredictorModule(nn.Module):
    """What a network says of sprites."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__()
        self._model, self._network = model, model.network

    def forward(self, sprites: Tensor) -> Tensor:
        """Class probabilities [B, K] or numbers [B, T] of RGBA float32 [B, S, S, 4] in [0, 1], straight alpha."""
        return self._model.predict(self._network, self._model.premultiplied(sprites.permute(0, 3, 1, 2)))


def graph_problem(recipe: RecipeTraits) -> str:
    """Why models of a recipe have no graph, in a sentence; empty when they have one."""
    if recipe.makes == "sprites" and "from_noise" not in recipe.capabilities:
        return f"The recipe {recipe.title} can't be given its noise, which a graph takes."
    return ""


def graph_of(model: ExportableModel, kind: GraphKind, steps: int) -> ExportGraph:
    """The graph of a model. `kind` and `steps` make a difference for those that draw."""
    if model.makes != "sprites":
        output = "probabilities" if model.makes == "labels" else "numbers"
        return ExportGraph(PredictorModule(model), {"sprites": PROBE.pixels(model.size)}, output)
    labels = PROBE.labels(len(model.class_names))
    if kind == "step":
        return ExportGraph(
            VelocityModule(model), {"x": PROBE.sprites(model.size), "t": _times(), "label": labels}, "velocity"
        )
    assert model.noise is not None
    inputs = {"noise": model.noise, "labels": labels, "guidance": torch.tensor([PROBE.guidance])}
    return ExportGraph(SamplerModule(model, steps), inputs, "sprites")


def unused_settings(recipe: RecipeTraits) -> Collection[str]:
    """The settings `graph` and `steps`, as far as they make no difference to a model of the recipe."""
    if recipe.makes != "sprites":
        return ("graph", "steps")
    return () if "flow" in recipe.capabilities else ("graph",)


def _times() -> Tensor:
    """Times for the sprites of `PROBE`: float32 [count], from noise to near the end."""
    return torch.linspace(0.02, 0.9, PROBE.count)
