"""Mixed precision: autocast in bf16 and fp16, and loss scaling for fp16."""

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from studio.engine.devices.adam import AdamW

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_INITIAL_SCALE = 2.0**16
_SCALE_GROWTH_INTERVAL = 2000  # steps without overflow


def autocast(device_type: str, precision: str) -> contextlib.AbstractContextManager[object]:
    """Return the context manager for running networks: torch.autocast for 'bf16' and 'fp16', nothing for 'fp32'."""
    if precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device_type, dtype=DTYPES[precision])


@functools.cache
def honours_found_inf(device: torch.device) -> bool:
    """Return whether fused AdamW skips a step if `found_inf` is 1, by a trial: MPS ignored it until mid-2026."""
    weight = nn.Parameter(torch.ones(1, device=device))
    weight.grad = torch.ones(1, device=device)
    optimizer = AdamW([weight], lr=0.5, fused=True)
    optimizer.found_inf = torch.ones((), device=device)  # type: ignore[attr-defined]
    optimizer.step()
    return weight.item() == 1


class _StepUndo:
    """Optimizer hooks that undo a step if `skip_step`, float32 [], is 1, for optimizers that ignore `found_inf`.

    The copies need memory for a second set of weights and optimizer state.
    """

    def __init__(self, skip_step: Tensor) -> None:
        self._skip_step = skip_step
        # By weight, and the name of its state or '' for the weight itself.
        self._kept: dict[tuple[Tensor, str], Tensor] = {}

    def keep(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Copy the weights and the optimizer state before a step."""
        self._kept = {key: tensor.detach().clone() for key, tensor in self._tensors(optimizer).items()}

    @torch.no_grad()
    def restore(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Undo the step if `skip_step` is 1: restore weights and optimizer state. New state becomes 0."""
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
    """Loss scaling for fp16 (Micikevicius et al. 2018), and skipping of non-finite steps on the device itself.

    After a NaN or infinite loss or gradient, that step and all later ones leave weights and optimizers unchanged: the
    run has diverged. In fp16, small gradients would underflow to 0, so the loss is multiplied by a scale before the
    backward pass and the gradients are divided by it after. Gradients that overflow skip only their step and halve the
    scale, which doubles after many steps without an overflow. An overflow at a scale of 1 means that the run has
    diverged.
    """

    def __init__(
        self, network: nn.Module, optimizers: Sequence[torch.optim.Optimizer], precision: str, device: torch.device
    ) -> None:
        self._weights = [weight for weight in network.parameters() if weight.requires_grad]
        self._has_diverged = torch.zeros((), device=device)  # float32 []: 1 after the first non-finite step
        self.skip_step = self._has_diverged  # float32 []: 1 if optimizers skip this step
        self._state: dict[str, Tensor] = {}  # fp16 only: the scale, and steps since its last change
        if precision == "fp16":
            self.skip_step = torch.zeros((), device=device)
            self._state["scale"] = torch.full((), _INITIAL_SCALE, device=device)
            self._state["sound"] = torch.zeros((), dtype=torch.int32, device=device)
        for optimizer in optimizers:
            optimizer.found_inf = self.skip_step  # type: ignore[attr-defined]  # like torch's GradScaler
            if optimizer.defaults.get("fused") and not honours_found_inf(device):
                undo = _StepUndo(self.skip_step)
                optimizer.register_step_pre_hook(undo.keep)
                optimizer.register_step_post_hook(undo.restore)

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss for the backward pass, multiplied by the scale."""
        return loss * self._state["scale"] if self._state else loss

    def unscale_gradients(self) -> None:
        """Divide the gradients by the scale. Call this before gradient clipping."""
        if self._state:
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            torch._foreach_mul_(gradients, 1 / self._state["scale"])

    def update(self, loss: Tensor, grad_norm: Tensor) -> None:
        """Decide, after the backward pass, whether the optimizers skip this step; in fp16, update the scale.

        loss, grad_norm: float32 [] on the device, unscaled. Sets grad_norm to 0 if the scale made it overflow.
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
        torch._amp_update_scale_(scale, self._state["sound"], found_inf, 2.0, 0.5, _SCALE_GROWTH_INTERVAL)

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the loss scale and its step counter for a checkpoint; empty except in fp16."""
        return {f"{type(self).__name__}/{name}": value for name, value in self._state.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take the loss scale and its step counter out of a checkpoint's tensors; missing ones keep their value."""
        for name in ("scale", "sound"):
            value = tensors.pop(f"{type(self).__name__}/{name}", None)
            if value is not None and name in self._state:
                self._state[name].copy_(value)

    def _note_divergence(self, loss: Tensor, grad_norm: Tensor) -> None:
        is_finite = torch.isfinite(loss + grad_norm)  # bool []; no .item(): the host must not wait for the device
        torch.maximum(self._has_diverged, (~is_finite).float(), out=self._has_diverged)
