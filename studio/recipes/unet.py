"""The generator's network: a U-Net that guesses the sprite which is hidden in noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.colours import PaletteHead
from studio.recipes.layers import Attention, ResidualBlock, TimeFeatures, group_norm

_PIXEL_FEATURES = 64  # divided by the side of a patch: channels of a pixel, of which the head makes odds
_EARLIER = 0.05  # times t (1 - t)


class UNet(nn.Module):
    """Velocity [B, 4, S, S] from (x_t [B, 4, S, S], t [B] in [0, 1), label [B]); label `classes` stands for any class.

    A label may also be a mixture: float32 [B, classes + 1], the share of each.
    `keep` [B, 1, S, S] is 1 where x_t holds the sprite's own pixels, to which the rest is to fit: there the velocity
    means nothing. Without it, or where it is 0, all is to be drawn.

    With `colours`, what it guesses of a pixel are the odds of so many colours, and the sprite is their mean; at the
    time of the last step it is the likeliest colour instead.

    Works at half resolution through pixel-unshuffle (a quarter from 96 pixels on), then two levels further down, each
    as wide as the first: in little time, most is learnt at the finest level.
    `changes` [B, 3] tells how augmentation changed the sprites, as in `Batch`, so that it does not leak into samples
    (Karras et al. 2022). Any S: the border is padded.
    """

    def __init__(self, size: int, classes: int, width: int, colours: int = 0) -> None:
        super().__init__()
        self.size, self.classes = size, classes
        self.patch = 2 if size < 96 else 4
        self.padding = -size % (4 * self.patch)
        condition, pixels = 4 * width, 4 * self.patch**2
        features = _PIXEL_FEATURES // self.patch if colours else 4
        self.time = nn.Sequential(
            TimeFeatures(128), nn.Linear(128, condition), nn.SiLU(), nn.Linear(condition, condition)
        )
        self.label = nn.Embedding(classes + 1, condition)
        self.changes = nn.Linear(3, condition, bias=False)

        def blocks(count: int, joined: int = 0) -> nn.ModuleList:
            """Residual blocks; the first takes `joined` channels more, of the level that is joined here."""
            return nn.ModuleList(
                [ResidualBlock(width + (joined if i == 0 else 0), width, condition) for i in range(count)]
            )

        self.enter, self.down1 = nn.Conv2d(pixels, width, 3, 1, 1), blocks(3)
        self.pool1, self.down2 = nn.Conv2d(width, width, 3, 2, 1), blocks(2)
        self.pool2, self.bottom, self.attend = nn.Conv2d(width, width, 3, 2, 1), blocks(2), Attention(width)
        self.rise2, self.up2 = nn.Conv2d(width, width, 1), blocks(2, joined=width)
        self.rise1, self.up1 = nn.Conv2d(width, width, 1), blocks(3, joined=width)
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, features * self.patch**2, 3, 1, 1)
        self.head = PaletteHead(features, colours) if colours else None
        self.keep = nn.Conv2d(self.patch**2, width, 3, 1, 1, bias=False)
        nn.init.normal_(self.leave.weight, std=0.02 if colours else 0.0)
        nn.init.zeros_(self.changes.weight)
        nn.init.zeros_(self.keep.weight)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As torch does; weights from before there was `keep` have none for it, which is as if they were 0."""
        without = {"keep.weight": torch.zeros_like(self.keep.weight)}
        return super().load_state_dict({**without, **state_dict}, strict, assign)

    def forward(
        self, x: Tensor, t: Tensor, label: Tensor, changes: Tensor | None = None, keep: Tensor | None = None
    ) -> Tensor:
        features = self.features(x, self.told(t), label, changes, keep)
        return (self.sprite(features, t) - x) / (1 - t)[:, None, None, None]

    def told(self, t: Tensor) -> Tensor:
        """The times that it is told when it draws: earlier, as what is drawn is noisier than what it has learnt from
        (time-shift sampler, Li et al. 2024). Where colours are mixed, that was not measured.
        """
        return t if self.head is None else t - _EARLIER * t * (1 - t)

    def sprite(self, features: Tensor, t: Tensor) -> Tensor:
        """The sprite [B, 4, S, S] that x_t leads to, by its features: float32."""
        if self.head is None:
            return features.float()
        return self.head.mean(features.permute(0, 2, 3, 1), t).permute(0, 3, 1, 2)

    def features(
        self, x: Tensor, t: Tensor, label: Tensor, changes: Tensor | None = None, keep: Tensor | None = None
    ) -> Tensor:
        """What the guess is made of, [B, channels, S, S]: the colour of each pixel, or what the head makes odds of."""
        condition = self.time(t) + (label @ self.label.weight if label.is_floating_point() else self.label(label))
        if changes is not None:
            condition = condition + self.changes(changes)
        condition = F.silu(condition)
        border = (0, self.padding, 0, self.padding)
        fine = self.enter(F.pixel_unshuffle(F.pad(x, border, value=-1.0), self.patch))
        if keep is not None:
            fine = fine + self.keep(F.pixel_unshuffle(F.pad(keep, border), self.patch))
        for block in self.down1:
            fine = block(fine, condition)
        coarse = self.pool1(fine)
        for block in self.down2:
            coarse = block(coarse, condition)
        h = self.pool2(coarse)
        h = self.bottom[1](self.attend(self.bottom[0](h, condition)), condition)
        h = torch.cat([F.interpolate(self.rise2(h), scale_factor=2.0, mode="nearest"), coarse], 1)
        for block in self.up2:
            h = block(h, condition)
        h = torch.cat([F.interpolate(self.rise1(h), scale_factor=2.0, mode="nearest"), fine], 1)
        for block in self.up1:
            h = block(h, condition)
        return F.pixel_shuffle(self.leave(F.hardswish(self.norm(h))), self.patch)[:, :, : self.size, : self.size]


class WithAllOdds:
    """A network that gives no colour precedence in the last step: for what is to be learnt, or followed backwards."""

    def __init__(self, network: UNet) -> None:
        self.classes = network.classes
        self._network = network

    def __call__(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        features = self._network.features(x, self._network.told(t), label)
        sprite = self._network.sprite(features, torch.zeros_like(t))
        return (sprite - x) / (1 - t)[:, None, None, None]


def known_labels(network: UNet, labels: Tensor) -> Tensor:
    """Labels as the network takes them, of int64 [N] with -1 for any class or of shares float32 [N, classes]."""
    if labels.is_floating_point():
        return F.pad(labels, (0, 1))
    return torch.where(labels < 0, network.classes, labels)
