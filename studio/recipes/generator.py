"""The generator: draws new sprites from noise, by class-conditional rectified flow with a U-Net.

Rectified flow (Liu et al. 2022, Lipman et al. 2022) joins a sprite x1 and noise x0 by a straight line x_t = (1 - t) x0
+ t x1. The network learns its velocity x1 - x0 from (x_t, t, class). It predicts the clean sprite and derives the
velocity from it, because sprites are flat and clean where noise is not (Li & He 2025). For each pixel it predicts
logits of the colours of a palette, so that sprites consist of real pixel-art colours: see `colours`. Training times are
logit-normal (Esser et al. 2024). Sampling follows the velocity from noise to a sprite.

Near the end of a training some sprites get an inpainting mask with the kept pixels, so that the network learns to fill
in the rest (after Mayet et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional as F

from studio.core.arrays import Indices
from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.data.sprites import Examples, Sprites
from studio.recipes import few_step
from studio.recipes.base import (
    Batch,
    BatchRng,
    Evaluation,
    Preset,
    Recipe,
    Spec,
    TrainingBudget,
    evenly_spread,
    with_attributes,
)
from studio.recipes.capabilities import TRANSPARENT, EditCondition, Student
from studio.recipes.colours import choose_palette, choose_rows
from studio.recipes.flow import (
    CONSTANTS,
    CircularPadding,
    average_tied,
    blend_noise,
    draw_noise,
    guided_velocity,
    invert,
    map_velocity,
    mirror_halves,
    solve,
    timesteps,
)  # fmt: skip
from studio.recipes.flow_loss import (
    AUTO_TIME_MEAN,
    INPAINT_FROM,
    USUAL_TIME_MEAN,
    choose_time_mean,
    flow_error,
    masked_error,
    random_labels,
    sum_of_labels,
)
from studio.recipes.layers import patch_size, whole_groups
from studio.recipes.planning import Planner
from studio.recipes.unet import SoftColours, UNet, known_labels


@dataclass(frozen=True)
class GeneratorConfig(TrainingConfig):
    """The settings of the generator."""

    learning_rate: float = with_default(TrainingConfig, "learning_rate", 4e-3)
    width: int = setting(
        64, "Channels of the network. More channels learn finer detail and train slower.", low=16, high=512
    )
    levels: str = setting(
        "auto", "Number of resolutions in the network; each level has half the resolution of the level before. With "
        "four levels, the network sees a large sprite as a whole. Auto: 3 levels, from 48 pixels on 4.",
        choices=("auto", "3", "4"), legacy_default="3", advanced=True,
    )  # fmt: skip
    class_dropout: float = setting(
        0.1, "Share of sprites trained without their class and attributes, which classifier-free guidance needs.",
        low=0.0, high=1.0, advanced=True, low_text="Off", former_name="label_drop",
    )  # fmt: skip
    colours: int = setting(
        256, "Number of colours in the model's palette, chosen from your sprites. None: colours mix freely, for "
        "painted art; pixel art comes out speckled.",
        unit="colours", label="Palette", low=0, high=1024, low_text="None", legacy_default=0, advanced=True,
    )  # fmt: skip
    time_mean: float = setting(
        AUTO_TIME_MEAN, "The noise levels that training focuses on: negative values mean more noise. Auto: more noise "
        "for large shapes than for fine detail.",
        label="Noise focus", low=AUTO_TIME_MEAN, high=5.0, low_text="Auto", advanced=True,
    )  # fmt: skip
    inpaint_share: float = setting(
        0.33, "Share of sprites with an inpainting mask in the last fifth of the training.",
        low=0.0, high=1.0, legacy_default=0.0, advanced=True, low_text="Off", former_name="filling",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


_PLANNER = Planner(
    width=GeneratorConfig.width, widths=(32, 48, 64, 96, 128), slowing=1.4, most_epochs=300, most_tuning_epochs=600,
    few_epochs=100,
)  # fmt: skip
_LARGE = 48  # pixels; sprites from this size on need four levels
# After inpainting, the seam is redrawn: (distance from the kept pixels in pixels, strength) for each pass.
_SEAMS, _SEAM_STEPS = ((3, 0.4), (2, 0.3), (2, 0.3)), 6  # more steps give worse seams
_BEFORE_SEAMS = 0.6  # share of the steps for the fill itself; the seams take the time of the rest


class Generator(Recipe[GeneratorConfig, UNet]):
    """Model that draws new sprites of a class from noise."""

    name = "generator"
    title = "Generator"
    summary = "Learns to draw new sprites like yours, class by class."
    makes = "sprites"
    Config, Network = GeneratorConfig, UNet
    order = 1
    relative_cost = 11.0
    # Measured noise scales: 50 to 76 sprites in the middle of a training, 560 to 830 at its end.
    largest_batch = 256
    small = GeneratorConfig(width=16, colours=32)
    capabilities = frozenset(
        {"vary", "fill", "mirror", "seamless", "silhouette", "blend", "mix", "attributes", "map", "from_noise", "flow",
         "distil"}
    )  # fmt: skip
    solver = CONSTANTS
    stages = (INPAINT_FROM,)
    fixed_by_weights = ("width", "colours", "levels")
    # The usual rate would soon overwrite the parent's weights. Decay from the start leads to fewer copies.
    fine_tuning = MappingProxyType({"learning_rate": 1e-3, "lr_decay_share": 1.0})

    def examples(self, sprites: Sprites, indices: Indices) -> tuple[Examples, Indices]:
        return with_attributes(sprites), indices

    def resolve(self, config: GeneratorConfig, sprites: Sprites) -> GeneratorConfig:
        is_auto = config.time_mean == AUTO_TIME_MEAN
        return config.replace(time_mean=choose_time_mean(sprites.rgba)) if is_auto else config

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (
            _PLANNER.preset("Quick", "Shapes and colours, for a first impression.", 2.0, 40_000, budget),
            _PLANNER.preset("Standard", "Recognisable sprites on most computers.", 10.0, 200_000, budget),
            _PLANNER.preset("Best", "Finer detail, for a longer break.", 30.0, 370_000, budget),
        )

    def cost(self, size: int) -> float:
        if patch_size(size) == 4:  # takes the time of a sprite of half the size with patches of 2 pixels
            return super().cost(size // 2)
        # With four levels, a sprite takes as long as a sprite of four fifths of the size with three levels.
        return super().cost(round(0.8 * size) if _levels(GeneratorConfig(), size) == 4 else size)

    def fixed_settings(self, config: GeneratorConfig, size: int) -> dict[str, Value]:
        return {**super().fixed_settings(config, size), "levels": str(_levels(config, size))}

    def arguments(self, config: GeneratorConfig, spec: Spec) -> dict[str, Value]:
        classes = len(spec.class_names)
        levels = _levels(config, spec.size)
        return {
            "size": spec.size, "classes": classes, "width": config.width, "colours": config.colours, "levels": levels,
        }  # fmt: skip

    def attribute_arguments(self, spec: Spec) -> dict[str, Value]:
        return {"classes": len(spec.labels), "additive": True} if spec.attributes else {}

    def statistics(self, sprites: Sprites, config: GeneratorConfig) -> Mapping[str, Tensor]:
        return {"head.palette": choose_palette(sprites.rgba, config.colours)} if config.colours else {}

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return {"label.weight": spec.labels}

    def loss(self, network: UNet, batch: Batch, config: GeneratorConfig, rng: BatchRng) -> Tensor:
        t = torch.sigmoid(rng.randn() + _time_mean(config))  # [B], logit-normal
        # For classifier-free guidance, some sprites are trained with the label of any class.
        label = torch.where(rng.rand() < config.class_dropout, network.classes, batch.y)
        return masked_error(network, batch, t, label, config.inpaint_share, rng)

    def loss_of(self, spec: Spec) -> Callable[[UNet, Batch, GeneratorConfig, BatchRng], Tensor]:
        return _attribute_loss if spec.attributes else self.loss

    def evaluate(self, network: UNet, batches: Iterable[Batch], config: GeneratorConfig, spec: Spec) -> Evaluation:
        """Return the loss on validation sprites, at evenly spread training times and with noise of a fixed seed.

        The time and noise of a sprite depend only on its index, so the result does not depend on the batch size.
        """
        total, seen = 0.0, 0
        for batch in batches:
            count = len(batch.x)
            noise = draw_noise(count, batch.x.shape[-1], seed=0, first=seen).to(batch.x.device)
            normal = torch.special.ndtri(evenly_spread(seen, count)).float()  # on the CPU: MPS has no ndtri
            times = torch.sigmoid(normal + _time_mean(config)).to(batch.x.device)
            nothing_kept = torch.zeros_like(batch.x[:, :1])
            rows = choose_rows(network.size, torch.full((count, 1), 0.5, device=times.device))
            label = sum_of_labels(network, batch.y[:, None], batch.targets) if spec.attributes else batch.y
            total += float(flow_error(network, batch, noise, times, label, nothing_kept, rows)) * count
            seen += count
        return Evaluation({"loss": total / seen})

    @staticmethod
    def draw(network: UNet, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0) -> Iterator[Tensor]:
        noise = draw_noise(len(labels), network.size, seed, first).to(labels.device)
        return _draw_from(network, noise, labels, guidance, steps)

    @staticmethod
    def noise(network: UNet, count: int, seed: int, first: int = 0) -> Tensor:
        return draw_noise(count, network.size, seed, first)

    @staticmethod
    def draw_from(
        network: UNet, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int
    ) -> Iterator[Tensor]:
        return _draw_from(network, noise, labels, guidance, steps)

    @staticmethod
    def redraw(
        network: UNet, condition: EditCondition, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        """Redraw sprites: mix in noise, then sample from there (SDEdit, Meng et al. 2022).

        The condition's strength sets the amount of noise; less noise takes fewer steps, at least two. After inpainting,
        the new pixels along the seam are redrawn several times, because they fit better once both sides are known.
        """
        kept, seams = condition.keep, [seam for seam in _SEAMS if seam[1] < condition.strength]
        if kept is None or not seams or not Generator.knows_inpainting(network):
            yield from _redrawn(network, condition, labels, guidance, steps, seed, first)
            return
        x = condition.sprites
        for x in _redrawn(network, condition, labels, guidance, math.ceil(_BEFORE_SEAMS * steps), seed, first):
            yield x
        for number, (reach, strength) in enumerate(seams, 1):
            filled = torch.where(kept == 1, condition.sprites, x)
            # Keep old pixels and new pixels farther than `reach` from them: max_pool2d dilates the mask.
            keep = 1 - F.max_pool2d(kept, 2 * reach + 1, 1, reach) + kept
            seam = replace(condition, sprites=filled, strength=strength, keep=keep)
            for x in _redrawn(network, seam, labels, 1.0, min(steps, _SEAM_STEPS), seed + number, first):
                yield x

    @staticmethod
    def knows_inpainting(network: UNet) -> bool:
        return bool(network.keep.weight.any())  # zeros at initialisation

    @staticmethod
    def blend(network: UNet, sprites: Tensor, labels: Tensor, shares: Tensor, steps: int) -> Iterator[Tensor]:
        known = known_labels(network, labels)
        noise = invert(guided_velocity(SoftColours(network), known, 1.0), sprites, steps)
        each = known if known.is_floating_point() else F.one_hot(known, network.classes + 1).float()
        mixtures = shares @ each
        # The inversion used no guidance; drawing with guidance would not lead back to the same sprites.
        yield from solve(guided_velocity(network, mixtures, 1.0), blend_noise(noise, shares), timesteps(steps))

    @staticmethod
    def draw_map(
        network: UNet, shares: Mapping[int, Tensor], ties: Tensor, guidance: float, steps: int, seed: int,
        given: Tensor | None = None, keep: Tensor | None = None,
    ) -> Iterator[Tensor]:  # fmt: skip
        height, width = ties.shape
        count = height * width // network.size**2
        parts = draw_noise(count, network.size, seed).to(ties.device)  # [count, 4, S, S], enough for the whole map
        # The pixels of a group start from the first pixel's noise.
        first = torch.full((int(ties.max()) + 1,), len(ties.flatten()), device=ties.device)
        first = first.scatter_reduce(0, ties.flatten(), torch.arange(height * width, device=ties.device), "amin")
        noise = parts.view(count, 4, -1).swapaxes(0, 1).reshape(1, 4, -1)[..., first[ties.flatten()]]
        noise = noise.view(1, 4, height, width)
        labels = [label for label in shares if label >= 0]
        of_labels = torch.stack([shares[label] for label in labels])[None]  # [1, K, H, W]
        drawn = map_velocity(network, labels, guidance, has_mask=keep is not None)
        sees_given = keep is not None and Generator.knows_inpainting(network)

        def velocity(x: Tensor, t: float) -> Tensor:
            shown = x
            if given is not None and keep is not None:
                mask = keep.view(1, 1, height, width).to(x.dtype)
                shown = torch.cat([torch.where(keep, given, x) if sees_given else x, mask * sees_given], 1)
            v = drawn(torch.cat([shown, of_labels], 1), t)
            if TRANSPARENT in shares:
                v = v + shares[TRANSPARENT] * (-1 - x) / (1 - t)  # straight to an empty picture
            v = average_tied(v, ties)
            return v if given is None or keep is None else torch.where(keep, given - noise, v)

        return solve(velocity, noise, timesteps(steps))

    @staticmethod
    def trajectory(network: UNet, labels: Tensor, guidance: float, seed: int, first: int = 0) -> Iterator[Tensor]:
        return few_step.trajectory(network, labels, guidance, seed, first)

    @staticmethod
    def student(network: UNet) -> Student:
        return few_step.FewStepStudent(network)


def _levels(config: GeneratorConfig, size: int) -> int:
    """Return the levels of the network for sprites of this size."""
    return (4 if size >= _LARGE else 3) if config.levels == "auto" else int(config.levels)


def _time_mean(config: GeneratorConfig) -> float:
    """Return the mean of the logit of training times; the usual one where no training has resolved *Auto*."""
    return USUAL_TIME_MEAN if config.time_mean == AUTO_TIME_MEAN else config.time_mean


def _attribute_loss(network: UNet, batch: Batch, config: GeneratorConfig, rng: BatchRng) -> Tensor:
    """Return the loss for sprites with attributes: the loss of `Generator` with other labels."""
    t = torch.sigmoid(rng.randn() + _time_mean(config))  # [B], logit-normal
    label = random_labels(network, batch, config.class_dropout, rng)
    return masked_error(network, batch, t, label, config.inpaint_share, rng)


def _draw_from(network: UNet, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int) -> Iterator[Tensor]:
    return solve(guided_velocity(network, known_labels(network, labels), guidance), noise, timesteps(steps))


def _velocity(
    network: UNet, labels: Tensor, guidance: float, condition: EditCondition, noise: Tensor
) -> Callable[[Tensor, float], Tensor]:
    """Return a velocity function that fulfils an edit condition.

    Kept pixels and known alpha move straight from `noise` to their final value. A network trained with inpainting
    masks sees kept pixels without noise. Other networks see them as noisy as the rest of x_t (Lugmayr et al. 2022),
    which gives worse results.
    """
    sprites, keep = condition.sprites, condition.keep
    sees_kept = keep is not None and Generator.knows_inpainting(network)
    padded = CircularPadding(network, *condition.seamless) if any(condition.seamless) else network
    free = guided_velocity(padded, labels, guidance, keep if sees_kept else None)

    def velocity(x: Tensor, t: float) -> Tensor:
        shown = torch.where(keep == 1, sprites, x) if keep is not None and sees_kept else x
        v = mirror_halves(free(shown, t), *condition.mirror)
        if condition.alpha is not None:
            v = torch.cat([v[:, :3], condition.alpha - noise[:, 3:]], 1)
        return v if keep is None else torch.where(keep == 1, sprites - noise, v)

    return velocity


def _redrawn(
    network: UNet, condition: EditCondition, labels: Tensor, guidance: float, steps: int, seed: int, first: int
) -> Iterator[Tensor]:
    """Mix noise into the condition's sprites and redraw them; yields x [N, 4, S, S] after each step."""
    start = 1 - condition.strength
    noise = draw_noise(len(condition.sprites), network.size, seed, first).to(condition.sprites.device)
    noise = mirror_halves(noise, *condition.mirror)
    velocity = _velocity(network, known_labels(network, labels), guidance, condition, noise)
    fewer = min(steps, max(2, math.ceil(steps * condition.strength)))
    return solve(velocity, torch.lerp(noise, condition.sprites, start), timesteps(fewer, start))
