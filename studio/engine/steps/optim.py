"""Muon and AdamW, the learning-rate schedule, and the EMA of the weights."""

import copy
import itertools
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig
from studio.engine.devices.adam import Adam, AdamW
from studio.engine.devices.precision import DTYPES

_MOMENTUM = 0.95
_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's coefficients: five iterations bring every singular value near 1
_NEWTON_SCHULZ_STEPS = 5
_ADAMW_RMS = 0.2  # RMS of AdamW's update at learning rate 1 (Liu et al. 2025)


class Muon(torch.optim.Optimizer):
    """SGD with momentum whose updates are orthogonalized by Newton-Schulz iterations (Jordan 2024) in `dtype`.

    A kernel [out, in, height, width] counts as a matrix [out, rest]. Updates have the RMS of AdamW's (Liu et al. 2025),
    so both share a learning rate. may_skip: for fp16, whose overflows skip steps, which leaves the momentum unchanged.
    """

    def __init__(
        self, weights: Iterable[Tensor], lr: float | Tensor, weight_decay: float, dtype: torch.dtype, *,
        may_skip: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})
        self.dtype, self.may_skip = dtype, may_skip
        self.found_inf: Tensor | None = None  # a scalar on the device; not 0: skip the step
        (group,) = self.param_groups
        by_shape = sorted(group["params"], key=_shape)
        self._alike = [list(weights) for _, weights in itertools.groupby(by_shape, key=_shape)]
        for weight in by_shape:
            self.state[weight]["momentum"] = torch.zeros_like(weight)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the weights. Every weight needs a gradient; the step overwrites the gradients."""
        (group,) = self.param_groups
        for weights in self._alike:  # in one batch, because single matrices are too small to use a GPU well
            momenta = [self.state[weight]["momentum"] for weight in weights]
            gradients = [weight.grad for weight in weights]
            if self.may_skip and self.found_inf is not None:  # on overflow, lerp the momentum with itself: no change
                pairs = zip(momenta, gradients, strict=True)
                gradients = [torch.where(self.found_inf == 0, gradient, momentum) for momentum, gradient in pairs]
            torch._foreach_lerp_(momenta, gradients, 1 - _MOMENTUM)  # momentum = 0.95 momentum + 0.05 gradient
            torch._foreach_lerp_(gradients, momenta, _MOMENTUM)  # Nesterov momentum
            # Kernels of equal shape, stacked as matrices: [N, out, in * height * width]
            matrices = torch.stack([gradient.flatten(1) for gradient in gradients if gradient is not None])
            size = _ADAMW_RMS * max(matrices.shape[1:]) ** 0.5  # an orthogonal matrix has RMS 1 / sqrt(longer side)
            change = (group["lr"] * size) * orthogonalize(matrices, self.dtype).float()
            keep = torch.ones((), device=change.device) - group["lr"] * group["weight_decay"]
            if self.found_inf is not None:
                change = torch.where(self.found_inf == 0, change, 0)
                keep = torch.where(self.found_inf == 0, keep, 1)
            torch._foreach_mul_(weights, keep)  # decoupled weight decay
            torch._foreach_sub_(weights, [one.view(weights[0].shape) for one in change.unbind()])


def orthogonalize(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bring all singular values of float32 [N, rows, columns] near 1 by Newton-Schulz iterations in `dtype`."""
    a, b, c = _NEWTON_SCHULZ
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT  # the shorter side first
    norms = torch.linalg.vector_norm(wide, dim=(1, 2), keepdim=True)
    x: Tensor = (wide / (norms + 1e-7)).to(dtype)  # normalized before the cast: small values would become 0 in fp16
    for _ in range(_NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT  # [N, rows, rows]; rows <= columns keeps this product small
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide is matrices else x.mT  # [N, rows, columns]


def _shape(weight: Tensor) -> tuple[int, ...]:
    return tuple(weight.shape)


def make_optimizers(network: nn.Module, config: TrainingConfig, precision: str) -> list[torch.optim.Optimizer]:
    """Create the optimizers for the network's weights: Muon with AdamW, AdamW alone, or Adam.

    Muon updates convolution kernels, AdamW (Loshchilov & Hutter 2019) other weights, without decay of norms and biases.
    Adam (Kingma & Ba 2015) decays nothing. On CUDA the rate is a tensor that a CUDA graph can read.
    """
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    rate: float | Tensor = config.learning_rate
    if on_cuda := weights[0].device.type == "cuda":
        rate = torch.full((), config.learning_rate, device=weights[0].device)
    if config.optimizer == "adam":
        return [Adam(weights, lr=rate, fused=True, capturable=on_cuda)]
    kernels = [weight for weight in weights if weight.ndim == 4] if config.optimizer == "muon" else []  # convolutions
    others = [weight for weight in weights if not kernels or weight.ndim != 4]
    groups = [
        {"params": [weight for weight in others if weight.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [weight for weight in others if weight.ndim <= 1], "weight_decay": 0.0},  # norms and biases
    ]
    adamw = AdamW(groups, lr=rate, betas=(0.9, 0.99), fused=True, capturable=on_cuda)
    if not kernels:
        return [adamw]
    dtype, may_skip = DTYPES.get(precision, torch.float32), precision == "fp16"
    return [adamw, Muon(kernels, rate, config.weight_decay, dtype, may_skip=may_skip)]


def learning_rate(config: TrainingConfig, step: int, progress: float) -> float:
    """Return a step's rate: warm-up, constant, then decay. progress: used share of the budget, 0 to 1."""
    warm_up = min(1.0, (step + 1) / max(1, config.lr_warmup_steps))
    decay = min(1.0, (1 - progress) / config.lr_decay_share) if config.lr_decay_share else 1.0
    return config.learning_rate * warm_up * max(0.01, decay)


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> None:
    """Set the learning rate in every optimizer."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)  # in place, because a CUDA graph reads this tensor
            else:
                group["lr"] = rate


def ema_decay(halflife_sprites: int, seen_sprites: int, batch_size: int) -> float:
    """Return the old average's weight; its half-life grows at first (Karras et al. 2022). seen_sprites: so far."""
    halflife = min(halflife_sprites, seen_sprites / 20)  # forget the bad early weights soon
    return 0.5 ** (batch_size / halflife) if halflife else 0.0


class EMA:
    """An exponential moving average of a network's weights; its attribute `network` is the averaged copy, in eval mode.

    Unlike torch's AveragedModel, its half-life grows at first, and it reads no tensor back from the device.
    """

    def __init__(self, network: nn.Module, halflife_sprites: int) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)  # draws samples; never trained
        self.halflife_sprites = halflife_sprites
        self._source: list[Tensor] = list(network.parameters())
        self._target: list[Tensor] = list(self.network.parameters())
        self._source_buffers: list[Tensor] = list(network.buffers())
        self._target_buffers: list[Tensor] = list(self.network.buffers())
        self._share = torch.ones((), device=self._target[0].device)  # weight of the current weights in the new average

    def begin_step(self, seen_sprites: int, batch_size: int) -> None:
        """Set the decay of the next `update`. seen_sprites: trained on so far, including this step's batch."""
        self._share.fill_(1 - ema_decay(self.halflife_sprites, seen_sprites, batch_size))

    @torch.no_grad()
    def update(self) -> None:
        """Update the averaged weights. Uses only tensors on the device, so a CUDA graph can record it."""
        # average += share * (weights - average), for the whole list of weights at once
        changes = torch._foreach_sub(self._source, self._target)
        torch._foreach_mul_(changes, self._share)
        torch._foreach_add_(self._target, changes)
        if self._target_buffers:
            torch._foreach_copy_(self._target_buffers, self._source_buffers)  # copy statistics, don't average them
