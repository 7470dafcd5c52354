"""The generator's network: a U-Net that predicts the clean sprite from a noisy sprite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.colours import PaletteHead
from studio.recipes.layers import Attention, ResidualBlock, TimeFeatures, group_norm, patch_size

_PIXEL_FEATURES = 64  # divided by the patch size: feature channels per pixel, the input of the palette head
_TIME_SHIFT = 0.05  # in t - shift * t * (1 - t)


class UNet(nn.Module):
    """U-Net that predicts the velocity [B, 4, S, S] from (x_t [B, 4, S, S], t [B] in [0, 1), label [B]).

    label: class index, `classes` for any class; or float32 [B, classes + 1], shares of classes; or float32
    [B, blocks, classes + 1], shares for each residual block. The values of attributes count as classes, after the
    others; a condition adds up the class and the values of a sprite.
    additive: adds the embeddings of class and values after the nonlinearity of the condition instead of before. Each
    value then changes scales and shifts in the same way beside any class and other values, so the network draws
    combinations that no training sprite has.
    keep: inpainting mask [B, 1, S, S], 1 where x_t holds pixels of the final sprite; their velocity is meaningless.
    changes: the augmentation [B, 3] as in `Batch.augment_labels`; knowing it, the network draws new sprites without
    augmentation (Karras et al. 2022).
    colours: size of the palette. The network predicts logits of the colours for each pixel; the sprite is their mean,
    and in the last step the most likely colour. With 0 colours the network predicts RGBA.

    The network works at half resolution through pixel-unshuffle (a quarter from 96 pixels on) and has two coarser
    levels of the same width, because in short trainings the finest level contributes most. With four `levels`, the
    three levels work at half of this resolution, between the two blocks of an outer level: a large sprite needs a level
    so coarse that the network sees the whole sprite. S may be any size: the border is padded.
    """

    def __init__(
        self, size: int, classes: int, width: int, colours: int = 0, levels: int = 3, additive: bool = False
    ) -> None:
        super().__init__()
        self.size, self.classes, self.levels, self.additive = size, classes, levels, additive
        self.patch = patch_size(size)
        self.padding = -size % (2 ** (levels - 1) * self.patch)
        condition, pixels = 4 * width, 4 * self.patch**2
        features = _PIXEL_FEATURES // self.patch if colours else 4
        self.time = nn.Sequential(
            TimeFeatures(128), nn.Linear(128, condition), nn.SiLU(), nn.Linear(condition, condition)
        )
        self.label = nn.Embedding(classes + 1, condition)
        self.changes = nn.Linear(3, condition, bias=False)

        def blocks(count: int, joined: int = 0) -> nn.ModuleList:
            """Create residual blocks; the first takes `joined` more channels, from the skip connection."""
            return nn.ModuleList(
                [ResidualBlock(width + (joined if i == 0 else 0), width, condition) for i in range(count)]
            )

        self.enter = nn.Conv2d(pixels, width, 3, 1, 1)
        if levels == 4:  # [B, width, 2 R, 2 R]
            self.down0, self.pool0 = blocks(1), nn.Conv2d(width, width, 3, 2, 1)
            self.rise0, self.up0 = nn.Conv2d(width, width, 1), blocks(1, joined=width)
        # R: 16 for sprites of 32 pixels, the padded size divided by the patch size; with four levels half of this.
        self.down1 = blocks(3)  # [B, width, R, R]
        self.pool1, self.down2 = nn.Conv2d(width, width, 3, 2, 1), blocks(2)  # [B, width, R / 2, R / 2]
        self.pool2, self.bottom, self.attend = nn.Conv2d(width, width, 3, 2, 1), blocks(2), Attention(width)
        self.rise2, self.up2 = nn.Conv2d(width, width, 1), blocks(2, joined=width)
        self.rise1, self.up1 = nn.Conv2d(width, width, 1), blocks(3, joined=width)
        self.blocks = sum(isinstance(module, ResidualBlock) for module in self.modules())
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, features * self.patch**2, 3, 1, 1)
        self.head = PaletteHead(features, colours) if colours else None
        self.keep = nn.Conv2d(self.patch**2, width, 3, 1, 1, bias=False)
        nn.init.normal_(self.leave.weight, std=0.02 if colours else 0.0)
        # Zeros: a new network ignores augmentation and masks.
        nn.init.zeros_(self.changes.weight)
        nn.init.zeros_(self.keep.weight)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load weights; older weights, which lack the inpainting layer `keep`, get zeros for this layer."""
        default = {"keep.weight": torch.zeros_like(self.keep.weight)}
        return super().load_state_dict({**default, **state_dict}, strict, assign)

    def forward(
        self, x: Tensor, t: Tensor, label: Tensor, changes: Tensor | None = None, keep: Tensor | None = None
    ) -> Tensor:
        features = self.features(x, self.sampling_times(t), label, changes, keep)
        # The straight line from x_t to the predicted sprite takes the remaining time 1 - t.
        return (self.sprite(features, t) - x) / (1 - t)[:, None, None, None]

    def sampling_times(self, t: Tensor) -> Tensor:
        """Return times [B] slightly earlier than t, for conditioning the network while sampling.

        Sampled states are noisier than training states of the same time (time-shift sampler, Li et al. 2024). The shift
        was only measured for networks with a palette; the others use t.
        """
        return t if self.head is None else t - _TIME_SHIFT * t * (1 - t)

    def sprite(self, features: Tensor, t: Tensor) -> Tensor:
        """Convert features of x_t at times t to the predicted clean sprites, float32 [B, 4, S, S]."""
        if self.head is None:
            return features.float()
        return self.head.expected_at(features.permute(0, 2, 3, 1), t).permute(0, 3, 1, 2)

    def features(
        self, x: Tensor, t: Tensor, label: Tensor, changes: Tensor | None = None, keep: Tensor | None = None
    ) -> Tensor:
        """Run the U-Net; return features [B, channels, S, S] for the palette head, or RGBA without a palette."""
        shared = self.time(t) if changes is None else self.time(t) + self.changes(changes)
        shared = shared[:, None] if label.ndim == 3 else shared
        # [B, 4 * width] or, with labels for each block, [B, blocks, 4 * width].
        embedded = label @ self.label.weight if label.is_floating_point() else self.label(label)
        condition = F.silu(shared) + embedded if self.additive else F.silu(shared + embedded)
        conditions = iter(condition.unbind(1) if label.ndim == 3 else [condition] * self.blocks)
        border = (0, self.padding, 0, self.padding)  # right and bottom, up to a multiple of the coarsest level
        fine = self.enter(F.pixel_unshuffle(F.pad(x, border, value=-1.0), self.patch))
        if keep is not None:
            fine = fine + self.keep(F.pixel_unshuffle(F.pad(keep, border), self.patch))
        finest = fine  # [B, width, 2 R, 2 R] with four levels
        if self.levels == 4:
            finest = self.down0[0](fine, next(conditions))
            fine = self.pool0(finest)
        for block in self.down1:
            fine = block(fine, next(conditions))
        coarse = self.pool1(fine)  # [B, width, R / 2, R / 2]
        for block in self.down2:
            coarse = block(coarse, next(conditions))
        h = self.pool2(coarse)  # [B, width, R / 4, R / 4]
        h = self.bottom[1](self.attend(self.bottom[0](h, next(conditions))), next(conditions))
        # Back up: upsample and concatenate the skip connection, [B, 2 * width, R / 2, R / 2], then [.., R, R].
        h = torch.cat([F.interpolate(self.rise2(h), scale_factor=2.0, mode="nearest"), coarse], 1)
        for block in self.up2:
            h = block(h, next(conditions))
        h = torch.cat([F.interpolate(self.rise1(h), scale_factor=2.0, mode="nearest"), fine], 1)
        for block in self.up1:
            h = block(h, next(conditions))
        if self.levels == 4:
            h = torch.cat([F.interpolate(self.rise0(h), scale_factor=2.0, mode="nearest"), finest], 1)
            h = self.up0[0](h, next(conditions))
        return F.pixel_shuffle(self.leave(F.hardswish(self.norm(h))), self.patch)[:, :, : self.size, : self.size]


class SoftColours:
    """Wraps a network to predict the mean colour of each pixel even in the last step.

    Distillation and inversion need this smooth velocity.
    """

    def __init__(self, network: UNet) -> None:
        self.classes = network.classes
        self._network = network

    def __call__(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        features = self._network.features(x, self._network.sampling_times(t), label)
        sprite = self._network.sprite(features, torch.zeros_like(t))  # at t = 0 the mean colour is taken
        return (sprite - x) / (1 - t)[:, None, None, None]


def known_labels(network: UNet, labels: Tensor) -> Tensor:
    """Convert labels to network inputs: `classes` instead of -1 for any class, or shares with a column for it.

    labels: int64 [N] with -1 for any class, or float32 [N, classes], shares of classes, zeros for any class.
    Returns int64 [N] or float32 [N, classes + 1].
    """
    if labels.is_floating_point():
        return torch.cat([labels, (labels.sum(1, keepdim=True) == 0).to(labels.dtype)], 1)  # [N, classes + 1]
    return torch.where(labels < 0, network.classes, labels)
