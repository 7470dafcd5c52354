"""Few-step drawing: a student network that draws sprites in three steps after distillation."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from studio.recipes.capabilities import Student
from studio.recipes.colours import SHARPEST, reduce_palette
from studio.recipes.flow import draw_noise, guided_velocity, solve, timesteps
from studio.recipes.unet import SoftColours, UNet, known_labels

_TEACHER_STEPS = 10
# The teacher's states where the student's steps begin and end.
_BOUNDARIES = (0, 5, 8, 10)
_BOUNDARIES_RGBA = (0, 2, 4, 6, 8, 10)  # without a palette; fewer steps were not measured
_BOUNDARIES_LEGACY = (0, 3, 5, 7, 9, 10)  # for palette students of versions that stored no times
_LEADING_COLOURS = 64


def trajectory(network: UNet, labels: Tensor, guidance: float, seed: int, first: int = 0) -> Iterator[Tensor]:
    """Draw with the teacher network; yields x [N, 4, S, S] at the start of each student step, then the sprites.

    labels: int64 [N] on the network's device, -1 for any class.
    """
    noise = draw_noise(len(labels), network.size, seed, first).to(labels.device)
    velocity = guided_velocity(SoftColours(network), known_labels(network, labels), guidance)
    states = itertools.chain([noise], solve(velocity, noise, timesteps(_TEACHER_STEPS)))
    return (state for index, state in enumerate(states) if index in _boundaries(network))


class FewStepStudent(Student):
    """A copy of the generator's network that learns to draw in a few steps.

    times: float32 [steps + 1], start times of the steps, then the end time. leading: a palette head with only
    _LEADING_COLOURS colours for every step except the last, which cuts the drawing time to a third. In eval mode, the
    last step returns the most likely colour by pixel.
    """

    times: Tensor

    def __init__(self, network: UNet) -> None:
        super().__init__()
        self.network, self.leading = copy.deepcopy(network), copy.deepcopy(network.head)
        if self.leading is not None:
            palette = self.leading.palette
            self.leading.palette = reduce_palette(palette.cpu(), _LEADING_COLOURS).to(palette.device)
        self.register_buffer("times", _times(_boundaries(network)).to(network.label.weight.device))
        self.requires_grad_(True)
        for unused in (self.network.keep, self.network.changes):  # no masks and no augmentation in few steps
            unused.requires_grad_(False)

    @property
    def steps(self) -> int:
        return len(self.times) - 1

    def forward(self, x: Tensor, step: int, labels: Tensor) -> Tensor:
        network, t, t_next = self.network, self.times[step], self.times[step + 1]
        times = network.sampling_times(t.expand(x.shape[0]))  # len(x) would fix the number in an exported model
        features = network.features(x, times, known_labels(network, labels))
        sprite = self._guess(features, is_last=step == self.steps - 1)
        # An Euler step along the straight line to the predicted sprite.
        return x + (t_next - t) / (1 - t) * (sprite - x)

    def _guess(self, features: Tensor, *, is_last: bool) -> Tensor:
        """Predict the clean sprites, float32 [N, 4, S, S], from the network's features [N, channels, S, S]."""
        head = self.network.head if is_last else self.leading
        if head is None:
            return features.float()
        sharpness = SHARPEST if is_last and not self.training else 1.0
        return head.expected(features.permute(0, 2, 3, 1), sharpness).permute(0, 3, 1, 2)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load weights, after resizing the student to the weights' number of steps and colours.

        The weights of older students lack `times`: older students have five steps and a single palette head.
        """
        if "times" not in state_dict:
            times = _times(_BOUNDARIES_RGBA if self.leading is None else _BOUNDARIES_LEGACY)
            weights = {f"network.{name}": weight for name, weight in state_dict.items()}
            heads = {name: weight for name, weight in state_dict.items() if name.startswith("head.")}
            leading = {name.replace("head", "leading", 1): weight for name, weight in heads.items()}
            state_dict = {**weights, **leading, "times": times}
        self.times = self.times.new_empty(state_dict["times"].shape)
        if self.leading is not None:
            self.leading.palette = self.leading.palette.new_empty(state_dict["leading.palette"].shape)
        return super().load_state_dict(state_dict, strict, assign)


def _boundaries(network: UNet) -> tuple[int, ...]:
    return _BOUNDARIES_RGBA if network.head is None else _BOUNDARIES


def _times(boundaries: tuple[int, ...]) -> Tensor:
    return torch.tensor([timesteps(_TEACHER_STEPS)[index] for index in boundaries])
