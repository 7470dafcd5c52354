"""Drawing in few strides: a network that goes from noise to sprites in four looks, once it has been taught to."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from studio.recipes.capabilities import Student
from studio.recipes.colours import SHARPEST, some_of
from studio.recipes.flow import draw_noise, guided, solve, timesteps
from studio.recipes.unet import UNet, WithAllOdds, known_labels

_STEPS = 10  # of the paths that are learnt from
# The states of such a path that are between two strides, the first and the last one included.
_BETWEEN = (0, 4, 7, 8, 10)
_BETWEEN_MIXED = (0, 2, 4, 6, 8, 10)  # where colours are mixed: fewer were not measured
_BETWEEN_EARLIER = (0, 3, 5, 7, 9, 10)  # of networks with a palette that were taught before they told their times
_LEADING = 64  # colours


def trajectory(network: UNet, labels: Tensor, guidance: float, seed: int, first: int = 0) -> Iterator[Tensor]:
    """From noise to sprites as the network draws them: the states between the strides that lead there."""
    noise = draw_noise(len(labels), network.size, seed, first).to(labels.device)
    velocity = guided(WithAllOdds(network), known_labels(network, labels), guidance)
    states = itertools.chain([noise], solve(velocity, noise, timesteps(_STEPS)))
    return (state for place, state in enumerate(states) if place in _places(network))


class FewStepStudent(Student):
    """A generator's network that knows strides.

    All strides but the last guess with a head of their own that knows few colours, in a third of the time that all
    would take. The last one, in eval mode, takes the likeliest colour of each pixel.

    times: float32 [strides + 1], where strides begin, and where the last one ends. leading: that head.
    """

    times: Tensor

    def __init__(self, network: UNet) -> None:
        super().__init__()
        self.network, self.leading = copy.deepcopy(network), copy.deepcopy(network.head)
        if self.leading is not None:
            palette = self.leading.palette
            self.leading.palette = some_of(palette.cpu(), _LEADING).to(palette.device)
        self.register_buffer("times", _times(_places(network)).to(network.label.weight.device))
        self.requires_grad_(True)
        for unused in (self.network.keep, self.network.changes):  # by strides
            unused.requires_grad_(False)

    @property
    def steps(self) -> int:
        return len(self.times) - 1

    def forward(self, x: Tensor, number: int, labels: Tensor) -> Tensor:
        network, t, t_next = self.network, self.times[number], self.times[number + 1]
        features = network.features(x, network.told(t.expand(len(x))), known_labels(network, labels))
        sprite = self._guess(features, is_last=number == self.steps - 1)
        return x + (t_next - t) / (1 - t) * (sprite - x)

    def _guess(self, features: Tensor, *, is_last: bool) -> Tensor:
        """The sprite [B, 4, S, S] that the features tell of: float32."""
        head = self.network.head if is_last else self.leading
        if head is None:
            return features.float()
        sharpness = SHARPEST if is_last and not self.training else 1.0
        return head.expected(features.permute(0, 2, 3, 1), sharpness).permute(0, 3, 1, 2)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As torch does, for any number of strides and colours. Networks that were taught before strides were told had
        five, and one head.
        """
        if "times" not in state_dict:
            times = _times(_BETWEEN_MIXED if self.leading is None else _BETWEEN_EARLIER)
            weights = {f"network.{name}": weight for name, weight in state_dict.items()}
            heads = {name: weight for name, weight in state_dict.items() if name.startswith("head.")}
            leading = {name.replace("head", "leading", 1): weight for name, weight in heads.items()}
            state_dict = {**weights, **leading, "times": times}
        self.times = self.times.new_empty(state_dict["times"].shape)
        if self.leading is not None:
            self.leading.palette = self.leading.palette.new_empty(state_dict["leading.palette"].shape)
        return super().load_state_dict(state_dict, strict, assign)


def _places(network: UNet) -> tuple[int, ...]:
    return _BETWEEN_MIXED if network.head is None else _BETWEEN


def _times(places: tuple[int, ...]) -> Tensor:
    return torch.tensor([timesteps(_STEPS)[place] for place in places])
