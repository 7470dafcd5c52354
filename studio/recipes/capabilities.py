"""Optional capabilities of a recipe (a kind of model), as protocols: a recipe that defines the methods conforms.

Code that needs a capability tests `isinstance(recipe, DrawsMaps)`. `Recipe.capabilities` lists capabilities for the
window, the command line and exports; some share a protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from studio.core import former_names

# vary, fill, mirror, seamless, silhouette: EditsSprites, with an EditCondition. blend: BlendsSprites. map: DrawsMaps.
# from_noise: DrawsFromNoise. encode, decode: Encodes, Decodes. distil: Distils. mix: `draw` accepts shares of classes.
# attributes: the recipe learns attribute values; `draw` then accepts shares of `Spec.labels`.
# flow: the network predicts the velocity [B, 4, S, S] of (x [B, 4, S, S], t [B], label [B]), see `recipes.flow`, and
# `draw_from` calls nothing else of the network.
Capability = Literal[
    "vary", "fill", "mirror", "seamless", "silhouette", "blend", "mix", "map", "from_noise", "encode", "decode", "flow",
    "distil", "attributes",
]  # fmt: skip
TRANSPARENT = -1  # instead of a class index in a map: an empty picture


@dataclass(frozen=True, eq=False)
class EditCondition:
    """Constraints on variants of existing sprites. The tensors are on the network's device."""

    sprites: Tensor  # float32 [N, 4, S, S], premultiplied RGBA in [-1, 1], the existing sprite for each new one
    strength: float  # 0 to 1, the share of noise mixed in at the start; 1 starts from noise alone
    keep: Tensor | None = None  # float32 [N, 1, S, S], inpainting mask, 1 where pixels stay
    mirror: tuple[bool, bool] = (False, False)  # the right half mirrors the left half, the lower half the upper half
    seamless: tuple[bool, bool] = (False, False)  # the sprite tiles horizontally, and vertically
    alpha: Tensor | None = None  # float32 [N, 1, S, S], final alpha by pixel, in [-1, 1]; None leaves alpha free


@dataclass(frozen=True, eq=False)
class SetCondition:
    """The given cells of sets to complete. The tensors are on the network's device."""

    index: Tensor  # int64 [N, C, S, S], palette index by pixel of the given cells; values of other cells don't matter
    palette: Tensor  # float32 [N, P, 4], premultiplied RGBA in [-1, 1]; entry 0 is transparent, unused alphas are -2
    given: Tensor  # bool [N, C]


class Student(nn.Module, ABC):
    """A distilled network: it draws in a few steps, with one network evaluation per step."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        former_names.rename_members(cls)

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of steps from noise to sprites."""

    @abstractmethod
    def forward(self, x: Tensor, step: int, labels: Tensor) -> Tensor:
        """Advance the states x [N, 4, S, S] by one drawing step; return the new states.

        step: index from 0 to `steps` - 1.
        labels: int64 [N], -1 for any class, or float32 [N, K], shares of classes.
        """


@runtime_checkable
class DrawsFromNoise(Protocol):
    """Draws sprites from noise that the caller passes, as in exported programs."""

    @staticmethod
    def noise(network: Any, count: int, seed: int, first: int = 0) -> Tensor:
        """Return the noise for `count` sprites, float32 [count, ...], on the CPU. first: index of the first sprite."""

    @staticmethod
    def draw_from(
        network: Any, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int
    ) -> Iterator[Tensor]:
        """Draw one sprite per label from this noise; yields x [N, 4, S, S] after each step.

        Can be traced for export if guidance is a float32 tensor [1].
        """


@runtime_checkable
class Encodes(Protocol):
    """Turns sprites into codes: similar sprites get similar vectors."""

    @staticmethod
    def encode(network: Any, x: Tensor) -> Tensor:
        """Return the codes float32 [B, D] of sprites x [B, 4, S, S]."""


@runtime_checkable
class Decodes(Protocol):
    """Turns codes, vectors of a few numbers, into sprites."""

    @staticmethod
    def decode(network: Any, codes: Tensor) -> Tensor:
        """Return the sprites x [B, 4, S, S] that codes float32 [B, D] stand for."""


@runtime_checkable
class EditsSprites(Protocol):
    """Draws new sprites from existing ones: variations, inpainting, mirrored, seamless or with a given silhouette."""

    @staticmethod
    def redraw(
        network: Any, condition: EditCondition, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        """Redraw the condition's sprites; yields x [N, 4, S, S] after each step. Kept pixels may change a little."""

    @staticmethod
    def knows_inpainting(network: Any) -> bool:
        """Return whether the network was trained with inpainting masks, which makes filled areas fit better."""


@runtime_checkable
class BlendsSprites(Protocol):
    """Interpolates between sprites."""

    @staticmethod
    def blend(network: Any, sprites: Tensor, labels: Tensor, shares: Tensor, steps: int) -> Iterator[Tensor]:
        """Interpolate between sprites; yields x [N, 4, S, S] after each step. The result is deterministic.

        sprites: x [M, 4, S, S]. labels: int64 [M], classes of the sprites. shares: float32 [N, M], the weight of each
        input sprite in each output; a weight of 1 nearly reproduces the sprite.
        """


@runtime_checkable
class DrawsMaps(Protocol):
    """Draws a map: a large seamless picture; every pixel has a mixture of classes."""

    @staticmethod
    def draw_map(
        network: Any, shares: Mapping[int, Tensor], ties: Tensor, guidance: float, steps: int, seed: int,
        given: Tensor | None = None, keep: Tensor | None = None,
    ) -> Iterator[Tensor]:  # fmt: skip
        """Draw a large picture; yields x [1, 4, H, W] after each step. H and W are multiples of a sprite's size.

        shares: by class index or TRANSPARENT, the weight of the class in each pixel, float32 [H, W]; the sum is 1.
        ties: int64 [H, W], group numbers from 0 without gaps; all pixels of a group come out equal.
        given: float32 [1, 4, H, W], a picture that the pixels in keep, bool [H, W], are taken from; equal where tied.
        """


@runtime_checkable
class CompletesSets(Protocol):
    """Draws the missing cells of sets."""

    @staticmethod
    def complete(network: Any, condition: SetCondition, chances: Tensor, variety: float | Tensor) -> Iterator[Tensor]:
        """Draw the missing cells in rounds; yields the cells' palette indices after a round: int64 [N, C, S, S].

        chances: uniform random numbers float32 [N, rounds, 2, C, S, S] in (0, 1). variety: a number, or float32 [N];
        0 draws the most likely colours in one round, 1 samples colours by their probability. For a set without given
        cells, the first rounds sample the first cell; the last round draws the other cells without variety. Can be
        traced for export if variety is a float32 tensor [1].
        """


@runtime_checkable
class Distils(DrawsFromNoise, Protocol):
    """Can be distilled: a student network learns to draw the same sprites in fewer steps."""

    @staticmethod
    def student(network: Any) -> Student:
        """Create an untrained student as a copy, on the same device. Only trainable parameters require gradients."""

    @staticmethod
    def trajectory(network: Any, labels: Tensor, guidance: float, seed: int, first: int = 0) -> Iterator[Tensor]:
        """Draw with the teacher network; yields x [N, 4, S, S] at the start of each student step, then the sprites.

        labels: int64 [N] on the network's device.
        """
