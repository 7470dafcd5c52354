"""Each layer's update size, gradient norm and dead units, from single steps, probed with forward hooks."""

import contextlib
import functools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.utils.hooks import RemovableHandle

from studio.engine.runs.metrics import LAYER_FIGURES, LayerStats

MAX_LAYERS = 40
_EVERY_S = 10.0
_PROBES = 48  # least number of probes in a short training
_SHARE = 0.008  # of the training time, at most
_TINY = 1e-12  # avoids division by the norm of zero weights
_DEAD = 0.01  # of the median spread of a layer's inputs: a unit with less is dead

Layers = dict[str, list[Tensor]]


def group_layers(network: nn.Module) -> Layers:
    """Return the network's weight matrices and convolution kernels by module name, in the network's order.

    With more than MAX_LAYERS modules, deep modules are merged: 'down.0.conv1' becomes 'down.0'.
    """
    weights = {name: weight for name, weight in network.named_parameters() if weight.ndim > 1 and weight.requires_grad}
    deepest = max((name.count(".") for name in weights), default=1)
    for depth in range(max(1, deepest), 0, -1):
        groups = Layers()
        for name, weight in weights.items():
            module = (name.rpartition(".")[0] or name).split(".")[:depth]
            groups.setdefault(".".join(module), []).append(weight)
        if len(groups) <= MAX_LAYERS:
            break
    return groups


@dataclass(eq=False)
class LayerProbe:
    """The recording hooks of a probed step. lowest, highest: range of the input units by module, float32 [units]."""

    lowest: dict[nn.Module, Tensor] = field(default_factory=dict)
    highest: dict[nn.Module, Tensor] = field(default_factory=dict)
    hooks: list[RemovableHandle] = field(default_factory=list)


class LayerMonitor:
    """Measures statistics by layer, by probing a training step about every 10 s.

    Probes more often in a short training; takes less than 1 % of the time. Statistics per layer: the update's norm
    relative to the weights' norm, the gradient norm before clipping, and the share of dead inputs. A dead input has one
    value for the whole batch, sprites and positions alike. A unit dead behind a ReLU shows only in the next layer's
    inputs. Values stay on the device until the tick ends.
    """

    def __init__(self, network: nn.Module, *, is_on: bool = True) -> None:
        self._layers = group_layers(network) if is_on else {}
        self._weights = [weight for group in self._layers.values() for weight in group]
        layer_of = {weight: name for name, group in self._layers.items() for weight in group}
        self._units: dict[nn.Module, str] = {  # layer name by convolution or linear module
            module: layer_of[module.weight] for module in network.modules()
            if isinstance(module, _ConvNd | nn.Linear) and module.weight in layer_of
        }  # fmt: skip
        self._probe: LayerProbe | None = None
        self._start_s: float | None = None  # when this process began to train
        self._probed_s = -math.inf  # time of the last probe
        self._cost_s = 0.0  # seconds spent so far
        self.values: list[Tensor] = []  # float32 []; one statistic for every layer, then the next statistic

    def begin_tick(self, elapsed_s: float, planned_s: float) -> None:
        """Add forward hooks that probe the next step, if a probe is due. The first step is never probed.

        elapsed_s, planned_s: seconds of training so far, and estimated seconds of the whole training.
        """
        self.values = []
        if not self._layers:
            return
        if self._start_s is None:  # the first step and a probe in it take longer
            self._start_s = elapsed_s
            return
        is_due = elapsed_s - self._probed_s >= min(_EVERY_S, planned_s / _PROBES)
        if not is_due or self._cost_s > _SHARE * (elapsed_s - self._start_s):
            return
        self._probed_s = elapsed_s
        self._probe = probe = LayerProbe()
        record = functools.partial(self._record_inputs, probe)
        probe.hooks += [module.register_forward_pre_hook(record) for module in self._units]

    @property
    def is_probing(self) -> bool:
        """Whether the next step records statistics of each layer."""
        return self._probe is not None

    @contextlib.contextmanager
    def probe_step(self) -> Iterator[None]:
        """Compute a probed step's statistics, from unclipped gradients on entry and the weights' update on exit."""
        probe = self._probe
        if probe is None:
            yield
            return
        self._probe = None
        with self._timed(), torch.no_grad():
            for hook in probe.hooks:
                hook.remove()
            gradients = [_norm([_gradient_of(weight) for weight in group]) for group in self._layers.values()]
            before = [weight.detach().clone() for weight in self._weights]  # optimizers update weights in place
        yield
        with self._timed(), torch.no_grad():
            changes = iter(torch._foreach_sub([weight.detach() for weight in self._weights], before))
            groups = self._layers.values()  # ratios are relative to the new weights, because some start at 0
            ratios = [_norm([next(changes) for _ in group]) / _norm(group).clamp(min=_TINY) for group in groups]
            self.values = [*ratios, *gradients, *self._dead(probe)]

    def read(self, step: int, values: NDArray[np.float32]) -> list[LayerStats]:
        """Return the probed step's statistics from `values`, float32 [3 * layers], read back from the device.

        Returns an empty list if no step was probed, or if a value is not finite, because fp16 skips that step.
        """
        if not values.size:
            return []
        rows = np.reshape(values, (len(LAYER_FIGURES), -1)).T.tolist()
        if not all(math.isfinite(update) and math.isfinite(gradient) for update, gradient, _ in rows):
            return []
        return [LayerStats(step, {name: to_row(row) for name, row in zip(self._layers, rows, strict=True)})]

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Add the block's seconds to the cost of probing. On a GPU they are only the time to launch the kernels."""
        start_s = time.perf_counter()
        yield
        self._cost_s += time.perf_counter() - start_s

    def _record_inputs(self, probe: LayerProbe, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Widen the recorded range of a module's inputs. A forward hook, called once per micro-batch."""
        if not inputs[0].requires_grad:
            return  # the sprites themselves: no unit made them
        with self._timed(), torch.no_grad():
            values = inputs[0].detach().float()  # [B, C, H, W], or [B, ..., C] for a linear layer
            axis = values.ndim - 1 if isinstance(module, nn.Linear) else 1  # the channel axis
            others = [dim for dim in range(values.ndim) if dim != axis]
            lowest, highest = (values.amin(others), values.amax(others)) if others else (values, values)
            known = module in probe.lowest
            probe.lowest[module] = torch.minimum(probe.lowest[module], lowest) if known else lowest
            probe.highest[module] = torch.maximum(probe.highest[module], highest) if known else highest

    def _dead(self, probe: LayerProbe) -> Iterator[Tensor]:
        """Yield each layer's share of dead inputs, float32 []; NaN for the layer that reads the sprites."""
        shares = {name: list[Tensor]() for name in self._layers}
        for module, lowest in probe.lowest.items():
            spread = probe.highest[module] - lowest
            shares[self._units[module]].append((spread <= _DEAD * spread.median()).float())
        nothing = torch.full((), math.nan, device=self._weights[0].device)
        for found in shares.values():
            yield torch.cat(found).mean() if found else nothing


def _gradient_of(weight: Tensor) -> Tensor:
    """Return a weight's gradient; zeros if the backward pass did not reach the weight."""
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


def _norm(tensors: Sequence[Tensor]) -> Tensor:
    """Return the norm of the concatenated tensors: float32 []."""
    length: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm([*map(Tensor.detach, tensors)])).float())
    return length


def to_row(row: Sequence[float]) -> tuple[float, float, float | None]:
    """Round one layer's statistics to four digits; NaN becomes None."""
    update, gradient, dead = (float(f"{value:.4g}") for value in row)
    return update, gradient, None if math.isnan(dead) else dead
