"""Traceable modules for ONNX and .pt2 exports: a sampler, a velocity network or a predictor, on plain tensors."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from studio.exports.base import PROBE, ExportableModel, RecipeTraits, label_shares

_RESERVED = ("x", "t", "label", "noise", "labels", "guidance", "sprites", "velocity")  # inputs and outputs
GraphKind = Literal["sampler", "step"]


@dataclass(frozen=True, eq=False)
class ExportGraph:
    """A module to export. The first axis of each input is the batch; guidance and variety have the shape [1]."""

    module: nn.Module
    inputs: Mapping[str, Tensor]  # example inputs by name, attributes last
    output: str  # name of the output
    attributes: int = 0  # number of attribute inputs, joined into one argument of `forward`

    @property
    def _plain(self) -> int:
        """The number of inputs that are no attributes."""
        return len(self.inputs) - self.attributes

    def describe(self) -> str:
        """Return a sentence about the module's inputs and output, for the exported file."""
        return str(type(self.module).forward.__doc__)

    def live(self) -> Tensor:
        """Run the module on the example inputs; return the output as float32."""
        with torch.no_grad():
            return as_floats(self.module(*self.inputs.values()))

    def traced(self) -> torch.export.ExportedProgram:
        """Trace the module with torch.export, with a dynamic batch size."""
        batch = torch.export.Dim("batch")
        shapes: tuple[Any, ...] = tuple(
            None if name in ("guidance", "variety") else {0: batch} for name in [*self.inputs][: self._plain]
        )
        shapes = (*shapes, ({0: batch},) * self.attributes) if self.attributes else shapes
        with torch.no_grad():
            return torch.export.export(self.module, tuple(self.inputs.values()), dynamic_shapes=shapes)


def as_floats(output: Tensor) -> Tensor:
    """Convert pixels from uint8 to float32 in [0, 1]; return other outputs unchanged."""
    return output.float() / 255 if output.dtype == torch.uint8 else output


class SamplerModule(nn.Module):
    """Draws sprites from noise in `steps` sampler steps. network: used instead of the model's network if given."""

    def __init__(self, model: ExportableModel, steps: int, network: Any = None) -> None:
        super().__init__()
        self._model, self.steps = model, steps
        self._network = model.network if network is None else network

    def forward(self, noise: Tensor, labels: Tensor, guidance: Tensor) -> Tensor:
        """RGBA float32 [B, S, S, 4] in [0, 1], straight alpha, from noise [B, ...], int64 [B] and float32 [1]."""
        x = self._model.draw_from(self._network, noise, labels, guidance, self.steps)
        return self._model.straight(x).permute(0, 2, 3, 1)


class AttributeSamplerModule(SamplerModule):
    """Draws sprites of a model with attributes from noise."""

    def forward(self, noise: Tensor, labels: Tensor, guidance: Tensor, *values: Tensor) -> Tensor:
        """RGBA float32 [B, S, S, 4] in [0, 1], straight alpha, from noise [B, ...], labels int64 [B] and float32 [1],
        and a value of each attribute int64 [B]; -1 is any class or value."""
        return super().forward(noise, label_shares((labels, *values), self._model.label_counts), guidance)


class VelocityModule(nn.Module):
    """The velocity network of a flow-matching model. The class index -1 means any class."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__()
        self._network: Any = model.network

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        """Velocity float32 [B, 4, S, S] from x [B, 4, S, S], t [B] in [0, 1) and int64 [B]."""
        return self._network(x, t, torch.where(label < 0, self._network.classes, label)).float()  # type: ignore[no-any-return]


class AttributeVelocityModule(VelocityModule):
    """The velocity network of a flow-matching model with attributes."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__(model)
        self._counts = model.label_counts

    def forward(self, x: Tensor, t: Tensor, label: Tensor, *values: Tensor) -> Tensor:
        """Velocity float32 [B, 4, S, S] from x [B, 4, S, S], t [B] in [0, 1), label int64 [B], and a value of each
        attribute int64 [B]; -1 is any class or value."""
        shares = label_shares((label, *values), self._counts)
        whole = torch.cat([shares, (shares.sum(1, keepdim=True) == 0).float()], 1)  # last column: any class
        return self._network(x, t, whole).float()  # type: ignore[no-any-return]


class NetworkModule(nn.Module):
    """The velocity network of a flow-matching model with attributes, whose label is float32 [B, K + 1]."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__()
        self._network = model.network

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        """Velocity float32 [B, 4, S, S] from x [B, 4, S, S], t [B] in [0, 1) and label float32 [B, K + 1]."""
        return self._network(x, t, label).float()  # type: ignore[no-any-return]


class SetsModule(nn.Module):
    """Draws the missing cells of sets in `steps` rounds. network: used instead of the model's network if given."""

    def __init__(self, model: ExportableModel, steps: int, network: Any = None) -> None:
        super().__init__()
        self._model, self.steps = model, steps
        self._network = model.network if network is None else network

    def forward(self, cells: Tensor, given: Tensor, chances: Tensor, variety: Tensor) -> Tensor:
        """All cells, RGBA uint8 [B, C, S, S, 4], straight alpha, from cells (ignored where missing), given bool [B, C],
        uniform random chances [B, rounds, 2, C, S, S] in (0, 1), and variety float32 [1]."""
        return self._model.draw_missing(self._network, cells, given, chances, variety)


class OddsModule(nn.Module):
    """The network of a model of sets."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__()
        self._network = model.network

    def forward(self, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
        """Logits [B, C, P, S, S] from index int64 [B, C, S, S], palette [B, P, 4] and known [B, C, S, S]."""
        return self._network(index, palette, known)  # type: ignore[no-any-return]


class SoftmaxModule(OddsModule):
    """The network of a model of sets, with probabilities instead of logits."""

    def forward(self, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
        """Odds [B, C, P, S, S] from index int64 [B, C, S, S], palette [B, P, 4] and known [B, C, S, S]."""
        return super().forward(index, palette, known).softmax(2)


class PredictorModule(nn.Module):
    """Runs a classifier or regressor on RGBA images."""

    def __init__(self, model: ExportableModel) -> None:
        super().__init__()
        self._model, self._network = model, model.network

    def forward(self, sprites: Tensor) -> Tensor:
        """Class probabilities [B, K] or numbers [B, T] of RGBA float32 [B, S, S, 4] in [0, 1], straight alpha."""
        return self._model.predict(self._network, self._model.premultiplied(sprites.permute(0, 3, 1, 2)))


def graph_problem(recipe: RecipeTraits) -> str:
    """Return a sentence that says why models of this recipe can't be traced; empty if they can."""
    if recipe.makes == "sprites" and "from_noise" not in recipe.capabilities:
        return f"The recipe {recipe.title} can't draw from given noise, which a graph needs as input."
    return ""


def graph_of(model: ExportableModel, kind: GraphKind, steps: int) -> ExportGraph:
    """Return the module to export for a model, with example inputs.

    kind: no effect on predictors. steps: of the sampler; the rounds of a model of sets.
    """
    if model.makes == "sets":
        return _graph_of_sets(model, kind, steps)
    if model.makes != "sprites":
        output = "probabilities" if model.makes == "labels" else "numbers"
        return ExportGraph(PredictorModule(model), {"sprites": PROBE.pixels(model.size)}, output)
    labels, *indices = PROBE.label_indices(model.label_counts)
    values = dict(zip(input_names(model), indices, strict=True))
    if kind == "step":
        times = torch.linspace(0.02, 0.9, PROBE.count)  # example flow times, close to noise and close to a sprite
        inputs = {"x": PROBE.sprites(model.size), "t": times, "label": labels, **values}
        velocity = AttributeVelocityModule(model) if values else VelocityModule(model)
        return ExportGraph(velocity, inputs, "velocity", len(values))
    assert model.noise is not None
    inputs = {"noise": model.noise, "labels": labels, "guidance": torch.tensor([PROBE.guidance]), **values}
    sampler = AttributeSamplerModule if values else SamplerModule
    return ExportGraph(sampler(model, steps), inputs, "sprites", len(values))


def network_of(model: ExportableModel, steps: int) -> ExportGraph:
    """Return the network that a sampler calls, with example inputs. steps: as in `graph_of`."""
    graph = graph_of(model, "step", steps)
    if not model.attributes:
        return graph
    label = torch.zeros(PROBE.count, sum(model.label_counts) + 1)
    inputs = {"x": graph.inputs["x"], "t": graph.inputs["t"], "label": label}
    return ExportGraph(NetworkModule(model), inputs, graph.output)


def input_names(model: ExportableModel) -> list[str]:
    """Return the name of the input of each attribute: its own name, without blanks and signs, or a numbered one."""
    found = list[str]()
    for number, name in enumerate(model.attributes, 1):
        plain = re.sub(r"\W", "_", name)
        found.append(f"attribute_{number}" if not plain[:1].isalpha() or plain in (*_RESERVED, *found) else plain)
    return found


def _graph_of_sets(model: ExportableModel, kind: GraphKind, steps: int) -> ExportGraph:
    count, size = len(model.cells), model.size
    if kind == "sampler":
        cells, given = PROBE.sets(count, size)
        chances, variety = PROBE.chances(steps, count, size), torch.tensor([PROBE.variety])
        inputs = {"cells": cells, "given": given, "chances": chances, "variety": variety}
        return ExportGraph(SetsModule(model, steps), inputs, "drawn")
    colours = model.network.get_buffer("palettes").shape[1]
    known = PROBE.chances(1, count, size)[:, 0, 0]
    inputs = {"index": (known * colours).long(), "palette": PROBE.palettes(colours), "known": (known > 0.5).float()}
    return ExportGraph(OddsModule(model), inputs, "logits")


def unused_settings(recipe: RecipeTraits) -> Collection[str]:
    """Return the settings (`graph`, `steps`) that have no effect for models of this recipe."""
    if recipe.makes in ("labels", "numbers"):
        return ("graph", "steps")
    return () if "flow" in recipe.capabilities else ("graph",)
