"""Muon and AdamW, the learning rate schedule, loss scaling for fp16, and the EMA of the weights."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig

_MOMENTUM = 0.95
_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's: five iterations bring every singular value near 1
_NEWTON_SCHULZ_STEPS = 5
_ADAMW_RMS = 0.2  # of one update at a rate of 1 (Liu et al. 2025)
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_FIRST_SCALE = 2.0**16
_SCALE_GROWS_AFTER = 2000  # sound steps


class Muon(torch.optim.Optimizer):
    """Momentum orthogonalised by Newton-Schulz iterations (Jordan 2024).

    A weight [out, ...] is taken as a matrix [out, rest]. Updates are scaled to the RMS of AdamW's (Liu et al. 2025), so
    that both share a learning rate. dtype: of the orthogonalisation. may_skip: training goes on after a step that
    `found_inf` skips (fp16), so that the momentum is left alone, too.
    """

    def __init__(
        self, weights: Iterable[Tensor], lr: float | Tensor, weight_decay: float, dtype: torch.dtype, *,
        may_skip: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})
        self.dtype, self.may_skip = dtype, may_skip
        self.found_inf: Tensor | None = None  # a scalar on the device: weights are left alone where it is not 0
        (group,) = self.param_groups
        by_shape = sorted(group["params"], key=_matrix_shape)
        self._alike = [list(weights) for _, weights in itertools.groupby(by_shape, key=_matrix_shape)]
        for weight in by_shape:
            self.state[weight]["momentum"] = torch.zeros_like(weight)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the weights, all of which must have gradients; the gradients are overwritten."""
        (group,) = self.param_groups
        for weights in self._alike:  # in one batch: alone, most matrices are too small to fill a device
            momenta = [self.state[weight]["momentum"] for weight in weights]
            gradients = [weight.grad for weight in weights]
            if self.may_skip and self.found_inf is not None:  # lerp of a momentum towards itself leaves it as it is
                pairs = zip(momenta, gradients, strict=True)
                gradients = [torch.where(self.found_inf == 0, gradient, momentum) for momentum, gradient in pairs]
            torch._foreach_lerp_(momenta, gradients, 1 - _MOMENTUM)
            torch._foreach_lerp_(gradients, momenta, _MOMENTUM)  # Nesterov's look ahead
            matrices = torch.stack([gradient.flatten(1) for gradient in gradients if gradient is not None])
            size = _ADAMW_RMS * max(matrices.shape[1:]) ** 0.5
            change = (group["lr"] * size) * orthogonal(matrices, self.dtype).float()
            keep = torch.ones((), device=change.device) - group["lr"] * group["weight_decay"]
            if self.found_inf is not None:
                change = torch.where(self.found_inf == 0, change, 0)
                keep = torch.where(self.found_inf == 0, keep, 1)
            torch._foreach_mul_(weights, keep)
            torch._foreach_sub_(weights, [one.view(weights[0].shape) for one in change.unbind()])


def orthogonal(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """float32 [N, rows, columns] with all singular values brought near 1 by Newton-Schulz iterations in `dtype`."""
    a, b, c = _NEWTON_SCHULZ
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    norms = torch.linalg.vector_norm(wide, dim=(1, 2), keepdim=True)
    x: Tensor = (wide / (norms + 1e-7)).to(dtype)  # before that, what is small would be 0 in fp16
    for _ in range(_NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide is matrices else x.mT


def _matrix_shape(weight: Tensor) -> tuple[int, ...]:
    return tuple(weight.shape)


def make_optimizers(network: nn.Module, config: TrainingConfig, precision: str) -> list[torch.optim.Optimizer]:
    """The optimizers that are chosen: Muon for convolutions and AdamW (Loshchilov & Hutter 2019) for all other weights,
    AdamW for all, or Adam (Kingma & Ba 2015) for all.

    The last two are fused. AdamW does not decay norms and biases, Adam decays nothing. On a CUDA card the rate is a
    tensor there, so that a CUDA graph of a step can be given another one.
    """
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    rate: float | Tensor = config.learning_rate
    if on_cuda := weights[0].device.type == "cuda":
        rate = torch.full((), config.learning_rate, device=weights[0].device)
    if config.optimizer == "adam":
        return [torch.optim.Adam(weights, lr=rate, fused=True, capturable=on_cuda)]
    kernels = [weight for weight in weights if weight.ndim == 4] if config.optimizer == "muon" else []
    others = [weight for weight in weights if not kernels or weight.ndim != 4]
    groups = [
        {"params": [weight for weight in others if weight.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [weight for weight in others if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), fused=True, capturable=on_cuda)
    ]
    if kernels:
        dtype = DTYPES.get(precision, torch.float32)
        made.append(Muon(kernels, rate, config.weight_decay, dtype, may_skip=precision == "fp16"))
    return made


@functools.cache
def skips_on_found_inf(device: torch.device) -> bool:
    """Return whether torch's fused AdamW leaves weights alone when `found_inf` is 1.

    The kernel for Apple GPUs ignored `found_inf` until mid-2026: try a step of one weight instead of asking versions.
    """
    weight = nn.Parameter(torch.ones(1, device=device))
    weight.grad = torch.ones(1, device=device)
    optimizer = torch.optim.AdamW([weight], lr=0.5, fused=True)
    optimizer.found_inf = torch.ones((), device=device)  # type: ignore[attr-defined]
    optimizer.step()
    return weight.item() == 1


class _StepUndo:
    """Hooks that undo a step where an optimizer ignores `found_inf`, without a read-back from the device.

    The copies need the memory of the weights and the optimizer state once more.
    skip_step: float32 [] on the device, 1 to undo the step, as in LossScaler.
    """

    def __init__(self, skip_step: Tensor) -> None:
        self._skip_step = skip_step
        self._kept: dict[tuple[Tensor, str], Tensor] = {}  # by weight and name of its state; '' for the weight itself

    def keep(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Copy weights and state before a step."""
        self._kept = {key: tensor.detach().clone() for key, tensor in self._tensors(optimizer).items()}

    @torch.no_grad()
    def restore(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Put weights and state back after a skipped step; state created by that step becomes 0."""
        for key, tensor in self._tensors(optimizer).items():
            before = self._kept.get(key)
            before = torch.zeros_like(tensor) if before is None else before
            tensor.copy_(torch.where(self._skip_step == 0, tensor, before))
        self._kept = {}

    @staticmethod
    def _tensors(optimizer: torch.optim.Optimizer) -> dict[tuple[Tensor, str], Tensor]:
        found: dict[tuple[Tensor, str], Tensor] = {}
        for group in optimizer.param_groups:
            for weight in group["params"]:
                found |= {(weight, ""): weight.detach()}
                found |= {(weight, name): value for name, value in optimizer.state.get(weight, {}).items()}
        return found


class LossScaler:
    """Skips steps that are not finite, on the device itself, and scales the loss in fp16 (Micikevicius et al. 2018).

    After a loss or a gradient that is not finite, that step and all later ones leave weights and optimizers alone: the
    run has diverged. In fp16 small gradients would underflow to 0, so the loss is multiplied by a scale before the
    backward pass and the gradients are divided by it after. Gradients that overflow because of the scale skip their
    step alone and halve the scale; it doubles after many steps without an overflow. At a scale of 1 an overflow is not
    the scale's fault: the run has diverged.
    """

    def __init__(
        self, network: nn.Module, optimizers: Sequence[torch.optim.Optimizer], precision: str, device: torch.device
    ) -> None:
        self._weights = [weight for weight in network.parameters() if weight.requires_grad]
        self._has_diverged = torch.zeros((), device=device)  # float32 []: 1 from the first step on that is not finite
        self.skip_step = self._has_diverged  # float32 []: 1 where optimizers leave everything as it is
        self._state: dict[str, Tensor] = {}  # fp16 only: the scale, and the number of steps since it last changed
        if precision == "fp16":
            self.skip_step = torch.zeros((), device=device)
            self._state["scale"] = torch.full((), _FIRST_SCALE, device=device)
            self._state["sound"] = torch.zeros((), dtype=torch.int32, device=device)
        for optimizer in optimizers:
            optimizer.found_inf = self.skip_step  # type: ignore[attr-defined]  # as torch's GradScaler does
            if not isinstance(optimizer, Muon) and not skips_on_found_inf(device):
                undo = _StepUndo(self.skip_step)
                optimizer.register_step_pre_hook(undo.keep)
                optimizer.register_step_post_hook(undo.restore)

    def scale(self, loss: Tensor) -> Tensor:
        """The loss to go backward from."""
        return loss * self._state["scale"] if self._state else loss

    def unscale_gradients(self) -> None:
        """Divide the gradients by the scale: to be done before they are clipped."""
        if self._state:
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            torch._foreach_mul_(gradients, 1 / self._state["scale"])

    def update(self, loss: Tensor, grad_norm: Tensor) -> None:
        """Decide whether the optimizers skip this step; in fp16, update the scale.

        loss, grad_norm: float32 [] on the device, unscaled. The norm is set to 0 where the scale made it overflow.
        """
        if not self._state:
            self._note_divergence(loss, grad_norm)
            return
        scale = self._state["scale"]
        overflow = torch.isfinite(loss) & ~torch.isfinite(grad_norm) & (scale > 1) & (self._has_diverged == 0)
        grad_norm.masked_fill_(overflow, 0)
        self._note_divergence(loss, grad_norm)
        found_inf = overflow.float()
        torch.maximum(self._has_diverged, found_inf, out=self.skip_step)
        torch._amp_update_scale_(scale, self._state["sound"], found_inf, 2.0, 0.5, _SCALE_GROWS_AFTER)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of it; empty but in fp16."""
        return {f"{type(self).__name__}/{name}": value for name, value in self._state.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take back, out of `tensors`, what `tensors()` gave; where it is missing or not needed it stays as it is."""
        for name in ("scale", "sound"):
            value = tensors.pop(f"{type(self).__name__}/{name}", None)
            if value is not None and name in self._state:
                self._state[name].copy_(value)

    def _note_divergence(self, loss: Tensor, grad_norm: Tensor) -> None:
        is_finite = torch.isfinite(loss + grad_norm)
        torch.maximum(self._has_diverged, (~is_finite).float(), out=self._has_diverged)


def learning_rate(config: TrainingConfig, step: int, progress: float) -> float:
    """The rate of a step: linear warm-up, constant, then linear decay over the last share of the budget.

    progress: share of the budget that is used up, 0 to 1.
    """
    warm_up = min(1.0, (step + 1) / max(1, config.lr_warmup_steps))
    decay = min(1.0, (1 - progress) / config.lr_decay_share) if config.lr_decay_share else 1.0
    return config.learning_rate * warm_up * max(0.01, decay)


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> None:
    """The rate of every weight's next step."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


def ema_decay(halflife_sprites: int, seen_sprites: int, batch_size: int) -> float:
    """How much of an average stays in a step: its half-life ramps up as a run begins (Karras et al. 2022, EDM)."""
    halflife = min(halflife_sprites, seen_sprites / 20)
    return 0.5 ** (batch_size / halflife) if halflife else 0.0


class EMA:
    """An exponential moving average of a network's weights; `network` is the averaged copy, in eval mode.

    torch's AveragedModel knows no ramp and looks at its counter, a tensor, twice a step.
    """

    def __init__(self, network: nn.Module, halflife_sprites: int) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.halflife_sprites = halflife_sprites
        self._source: list[Tensor] = list(network.parameters())
        self._target: list[Tensor] = list(self.network.parameters())
        self._source_buffers: list[Tensor] = list(network.buffers())
        self._target_buffers: list[Tensor] = list(self.network.buffers())
        self._share = torch.ones((), device=self._target[0].device)  # of a step's weights in their new average

    def begin_step(self, seen_sprites: int, batch_size: int) -> None:
        """How much the next `update` takes in: `seen_sprites` of the run, with the `batch_size` of that step."""
        self._share.fill_(1 - ema_decay(self.halflife_sprites, seen_sprites, batch_size))

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights of a step. All that it needs is on the device: a CUDA graph can hold it."""
        changes = torch._foreach_sub(self._source, self._target)
        torch._foreach_mul_(changes, self._share)
        torch._foreach_add_(self._target, changes)
        if self._target_buffers:
            torch._foreach_copy_(self._target_buffers, self._source_buffers)
