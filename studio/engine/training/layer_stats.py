"""Watching the layers of a network as it learns: what one training step now and then does to each of them.

A step is looked at as it is: forward hooks that are there for that step alone read what the layers are given, and
nothing that is learnt depends on whether anybody looks.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.utils.hooks import RemovableHandle

from studio.engine.runs.metrics import LAYER_FIGURES, LayerStats

MAX_LAYERS = 40
_EVERY_S = 10.0
_PROBES = 48  # in a training that would have fewer of them at that pace
_SHARE = 0.008  # of the time, at most
_TINY = 1e-12  # the length of weights that are 0
_DEAD = 0.01  # of the usual spread of a layer's inputs: a unit that varies by less says nothing

Layers = dict[str, list[Tensor]]


def group_layers(network: nn.Module) -> Layers:
    """The weights with more than one dimension by the module that they belong to, in the network's order.

    Where that makes more than MOST_LAYERS, modules deep down are taken together: 'down.0.conv1' becomes 'down.0'.
    """
    weights = {name: weight for name, weight in network.named_parameters() if weight.ndim > 1 and weight.requires_grad}
    deepest = max((name.count(".") for name in weights), default=1)
    for depth in range(max(1, deepest), 0, -1):
        groups = Layers()
        for name, weight in weights.items():
            groups.setdefault(_cut(name.rpartition(".")[0] or name, depth), []).append(weight)
        if len(groups) <= MAX_LAYERS:
            break
    return groups


def _cut(name: str, depth: int) -> str:
    """('down.0.conv1', 2) -> 'down.0'"""
    return ".".join(name.split(".")[:depth])


@dataclass(eq=False)
class LayerProbe:
    """One step, while it is looked at.

    lowest, highest: by module, what each unit has given it: float32 [units]. All of it is on the device.
    """

    lowest: dict[nn.Module, Tensor]
    highest: dict[nn.Module, Tensor]
    hooks: list[RemovableHandle]


class LayerMonitor:
    """Looks at a step about every 10 s, more often in a short training, and in all for less than 1 % of the time.

    Of each layer: the length of a step's update to that of the weights, the length of the gradient before clipping, and
    the share of dead units among those whose outputs it is given: they say the same for every sprite and every place of
    the batch. A dead unit shows at the next layer: before ReLU cuts it off, its output still varies. All of it stays on
    the device until the tick reads it.
    """

    def __init__(self, network: nn.Module, *, is_on: bool = True) -> None:
        self._layers = group_layers(network) if is_on else {}
        self._weights = [weight for group in self._layers.values() for weight in group]
        layer_of = {weight: name for name, group in self._layers.items() for weight in group}
        self._units: dict[nn.Module, str] = {  # the layer of each
            module: layer_of[module.weight] for module in network.modules()
            if isinstance(module, _ConvNd | nn.Linear) and module.weight in layer_of
        }  # fmt: skip
        self._probe: LayerProbe | None = None
        self._start_s: float | None = None  # of the training, as far as this process has seen it
        self._probed_s = -math.inf  # when it last looked
        self._cost_s = 0.0  # of all looks; at one of them the machine may have been busy
        self.values: list[Tensor] = []  # float32 [], of the layers in their order: all of one figure, then the next

    def begin_tick(self, elapsed_s: float, planned_s: float) -> None:
        """Look at the next step, if it is time: so many seconds into a training that is to take that many. The first
        step is never looked at.
        """
        self.values = []
        if not self._layers:
            return
        if self._start_s is None:  # all that is done for the first time takes longer: looks as well
            self._start_s = elapsed_s
            return
        is_due = elapsed_s - self._probed_s >= min(_EVERY_S, planned_s / _PROBES)
        if not is_due or self._cost_s > _SHARE * (elapsed_s - self._start_s):
            return
        self._probed_s = elapsed_s
        self._probe = probe = LayerProbe({}, {}, [])
        for module in self._units:
            hook = module.register_forward_pre_hook(functools.partial(self._record_inputs, probe))
            probe.hooks.append(hook)

    @property
    def is_probing(self) -> bool:
        """Whether it looks at the next step."""
        return self._probe is not None

    @contextlib.contextmanager
    def probe_step(self) -> Iterator[None]:
        """Around what moves the weights, from gradients that are not yet clipped."""
        probe = self._probe
        if probe is None:
            yield
            return
        self._probe = None
        with self._timed(), torch.no_grad():
            for hook in probe.hooks:
                hook.remove()
            gradients = [_norm([_gradient_of(weight) for weight in group]) for group in self._layers.values()]
            before = [weight.detach().clone() for weight in self._weights]
        yield
        with self._timed(), torch.no_grad():
            changes = iter(torch._foreach_sub([weight.detach() for weight in self._weights], before))
            ratios = [  # to the weights after the step: some begin at 0
                _norm([next(changes) for _ in group]) / _norm(group).clamp(min=_TINY) for group in self._layers.values()
            ]
            self.values = [*ratios, *gradients, *self._dead(probe)]

    def read(self, step: int, values: NDArray[np.float32]) -> list[LayerStats]:
        """What the probe before this step has found, of the `values` read from the device; nothing where there was
        none, nor where a number is infinite: fp16 skips such a step.
        """
        if not values.size:
            return []
        rows = np.reshape(values, (len(LAYER_FIGURES), -1)).T.tolist()
        if not all(math.isfinite(update) and math.isfinite(gradient) for update, gradient, _ in rows):
            return []
        return [LayerStats(step, {name: to_row(row) for name, row in zip(self._layers, rows, strict=True)})]

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Seconds in which the step could have gone on; on a card, those in which it is asked to probe."""
        start_s = time.perf_counter()
        yield
        self._cost_s += time.perf_counter() - start_s

    def _record_inputs(self, probe: LayerProbe, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Note between which values each unit is; what a micro-batch or another pass gave before counts, too."""
        if not inputs[0].requires_grad:
            return  # data: no unit has made them
        with self._timed(), torch.no_grad():
            values = inputs[0].detach().float()
            axis = values.ndim - 1 if isinstance(module, nn.Linear) else 1
            others = [dim for dim in range(values.ndim) if dim != axis]
            lowest, highest = (values.amin(others), values.amax(others)) if others else (values, values)
            known = module in probe.lowest
            probe.lowest[module] = torch.minimum(probe.lowest[module], lowest) if known else lowest
            probe.highest[module] = torch.maximum(probe.highest[module], highest) if known else highest

    def _dead(self, probe: LayerProbe) -> Iterator[Tensor]:
        """The share of dead units among those that each layer is given; not a number where it is given none."""
        shares = {name: list[Tensor]() for name in self._layers}
        for module, lowest in probe.lowest.items():
            spread = probe.highest[module] - lowest
            shares[self._units[module]].append((spread <= _DEAD * spread.median()).float())
        nothing = torch.full((), math.nan, device=self._weights[0].device)
        for found in shares.values():
            yield torch.cat(found).mean() if found else nothing


def _gradient_of(weight: Tensor) -> Tensor:
    """As it is after a backward pass; 0 where that did not come by."""
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


def _norm(tensors: Sequence[Tensor]) -> Tensor:
    """The length of all of these as one vector: float32 []."""
    length: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm([*map(Tensor.detach, tensors)])).float())
    return length


def to_row(row: Sequence[float]) -> tuple[float, float, float | None]:
    update, gradient, dead = (float(f"{value:.4g}") for value in row)
    return update, gradient, None if math.isnan(dead) else dead
