"""The optimizers, the learning rate over a run, and the average of the weights."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig

_MOMENTUM = 0.95
_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's: in five rounds every singular value comes near to 1
_NEWTON_SCHULZ_ROUNDS = 5
_ADAMW_RMS = 0.2  # of one update at a rate of 1 (Liu et al. 2025)


class Muon(torch.optim.Optimizer):
    """Momentum made orthogonal (Jordan 2024), so that a weight learns in all directions at the same speed.

    A weight [out, ...] is taken as a matrix [out, rest]. Updates are made as large as AdamW's are (Liu et al. 2025), so
    that both learn at one rate. `dtype` is the number format of the orthogonalisation.
    """

    def __init__(self, weights: Iterable[Tensor], lr: float, weight_decay: float, dtype: torch.dtype) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})
        self.dtype = dtype
        self.found_inf: Tensor | None = None  # a scalar on the device: weights are left alone where it is not 0
        (group,) = self.param_groups
        by_shape = sorted(group["params"], key=_matrix_shape)
        self._alike = [list(weights) for _, weights in itertools.groupby(by_shape, key=_matrix_shape)]
        for weight in by_shape:
            self.state[weight]["momentum"] = torch.zeros_like(weight)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Change the weights, all of which have gradients; these are used up."""
        (group,) = self.param_groups
        for weights in self._alike:  # in one batch: alone, most matrices are too small to fill a device
            momenta = [self.state[weight]["momentum"] for weight in weights]
            gradients = [weight.grad for weight in weights]
            torch._foreach_lerp_(momenta, gradients, 1 - _MOMENTUM)
            torch._foreach_lerp_(gradients, momenta, _MOMENTUM)  # Nesterov's look ahead
            matrices = torch.stack([gradient.flatten(1) for gradient in gradients if gradient is not None])
            size = _ADAMW_RMS * max(matrices.shape[1:]) ** 0.5
            change = (group["lr"] * size) * orthogonal(matrices.to(self.dtype)).float()
            keep = torch.ones((), device=change.device) - group["lr"] * group["weight_decay"]
            if self.found_inf is not None:
                change = torch.where(self.found_inf == 0, change, 0)
                keep = torch.where(self.found_inf == 0, keep, 1)
            torch._foreach_mul_(weights, keep)
            torch._foreach_sub_(weights, [one.view(weights[0].shape) for one in change.unbind()])


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices [N, rows, columns] with their singular values brought near 1, by Newton-Schulz rounds."""
    a, b, c = _NEWTON_SCHULZ
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x: Tensor = wide / (torch.linalg.vector_norm(wide, dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_NEWTON_SCHULZ_ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide is matrices else x.mT


def _matrix_shape(weight: Tensor) -> tuple[int, ...]:
    return tuple(weight.shape)


def make_optimizers(network: nn.Module, config: TrainingConfig, precision: str) -> list[torch.optim.Optimizer]:
    """Muon for convolutions, if it is chosen, and AdamW (Loshchilov & Hutter 2019) for all other weights.

    AdamW is fused; norms and biases are not decayed.
    """
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    kernels = [weight for weight in weights if weight.ndim == 4] if config.optimizer == "muon" else []
    others = [weight for weight in weights if not kernels or weight.ndim != 4]
    groups = [
        {"params": [weight for weight in others if weight.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [weight for weight in others if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.99), fused=True)
    ]
    if kernels:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        made.append(Muon(kernels, config.learning_rate, config.weight_decay, dtype))
    return made


def learning_rate(config: TrainingConfig, step: int, progress: float) -> float:
    """The rate of a step: a linear rise over the warm-up, level, then a linear fall over the last share of the budget.

    progress: share of the budget that is used up, 0 to 1.
    """
    rise = min(1.0, (step + 1) / max(1, config.lr_warmup_steps))
    fall = min(1.0, (1 - progress) / config.lr_decay_share) if config.lr_decay_share else 1.0
    return config.learning_rate * rise * max(0.01, fall)


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> None:
    """The rate of every weight's next step."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate


def current_rate(optimizers: Sequence[torch.optim.Optimizer]) -> float:
    """The rate of every weight's last step."""
    return float(optimizers[0].param_groups[0]["lr"])


class Average:
    """An exponential moving average of a network's weights; `network` is the averaged copy, in eval mode.

    The half-life is counted in sprites and grows with the run, so that early averages follow quickly
    (Karras et al. 2022).
    """

    def __init__(self, network: nn.Module, halflife_sprites: int) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.halflife_sprites = halflife_sprites
        self._source: list[Tensor] = list(network.parameters())
        self._target: list[Tensor] = list(self.network.parameters())
        self._source_buffers: list[Tensor] = list(network.buffers())
        self._target_buffers: list[Tensor] = list(self.network.buffers())

    @torch.no_grad()
    def update(self, seen_sprites: int, batch_size: int) -> None:
        """Move towards the weights after `seen_sprites` in all, the last `batch_size` of them new."""
        halflife = min(self.halflife_sprites, seen_sprites / 20)
        keep = 0.5 ** (batch_size / halflife) if halflife else 0.0
        torch._foreach_lerp_(self._target, self._source, 1 - keep)
        if self._target_buffers:
            torch._foreach_copy_(self._target_buffers, self._source_buffers)
