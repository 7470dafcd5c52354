from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig
from studio.engine.devices.precision import LossScaler, honours_found_inf
from studio.engine.steps.optim import EMA, Muon, learning_rate, make_optimizers, orthogonalize


def test_learning_rate_warms_up_and_decays() -> None:
    config = TrainingConfig(learning_rate=0.1, lr_warmup_steps=10, lr_decay_share=0.5)
    assert learning_rate(config, 0, 0.0) == pytest.approx(0.01)
    assert learning_rate(config, 9, 0.01) == pytest.approx(0.1)
    assert learning_rate(config, 500, 0.5) == pytest.approx(0.1)
    assert learning_rate(config, 750, 0.75) == pytest.approx(0.05)
    assert 0 < learning_rate(config, 999, 1.0) <= 0.001


def test_fused_adamw_equals_the_unfused() -> None:
    torch.manual_seed(0)
    ours, reference = nn.Linear(5, 3), nn.Linear(5, 3)
    reference.load_state_dict(ours.state_dict())
    config = TrainingConfig(learning_rate=0.01, weight_decay=0.1)
    (fused,) = make_optimizers(ours, config, "fp32")
    groups = [{"params": [reference.weight], "weight_decay": 0.1}, {"params": [reference.bias], "weight_decay": 0.0}]
    plain = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.99), fused=False, foreach=False)
    for _ in range(20):
        x = torch.randn(8, 5)
        for network, optimizer in ((ours, fused), (reference, plain)):
            optimizer.zero_grad()
            network(x).square().sum().backward()
            optimizer.step()
    assert torch.allclose(ours.weight, reference.weight, atol=1e-6)
    assert torch.allclose(ours.bias, reference.bias, atol=1e-6)


def test_adam_equals_torchs() -> None:
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Conv2d(4, 3, 3), nn.Flatten(), nn.Linear(3, 2))
    reference = copy.deepcopy(ours)
    (adam,) = make_optimizers(ours, TrainingConfig(learning_rate=0.01, optimizer="adam", weight_decay=0.5), "fp32")
    plain = torch.optim.Adam(reference.parameters(), lr=0.01, fused=False, foreach=False)
    for _ in range(20):
        x = torch.randn(8, 4, 3, 3)
        for network, optimizer in ((ours, adam), (reference, plain)):
            optimizer.zero_grad()
            network(x).square().sum().backward()
            optimizer.step()
    for weight, other in zip(ours.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-4, atol=1e-6)


def test_muon_gets_convolutions_adamw_the_rest() -> None:
    network = nn.Sequential(nn.Conv2d(4, 16, 3), nn.GroupNorm(1, 16), nn.Flatten(), nn.Linear(16, 3))
    adamw, muon = make_optimizers(network, TrainingConfig(), "fp32")
    assert [group["params"] for group in muon.param_groups] == [[network[0].weight]]
    decayed, plain = (group["params"] for group in adamw.param_groups)
    assert {weight.ndim for weight in decayed} == {2} and {weight.ndim for weight in plain} == {1}
    assert len(make_optimizers(network, TrainingConfig(optimizer="adamw"), "fp32")) == 1


def test_muon_equals_torchs_for_matrices() -> None:
    torch.manual_seed(0)
    ours = [torch.randn(shape, requires_grad=True) for shape in ((6, 4), (6, 4), (3, 8))]
    theirs = [weight.detach().clone().requires_grad_() for weight in ours]
    muon = Muon(ours, lr=0.01, weight_decay=0.1, dtype=torch.bfloat16)
    reference = torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for step in range(10):
        for weights, optimizer in ((ours, muon), (theirs, reference)):
            for number, weight in enumerate(weights):
                weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(10 * step + number))
            optimizer.step()
    for weight, other in zip(ours, theirs, strict=True):  # to the last bits of bf16
        assert torch.allclose(weight, other, atol=2e-3)
        assert not torch.allclose(weight, other * 1.01, atol=2e-3)


def test_muon_flattens_kernels() -> None:
    torch.manual_seed(0)
    kernel = torch.randn(8, 4, 3, 3).to(memory_format=torch.channels_last).requires_grad_()
    matrix = kernel.detach().flatten(1).clone().requires_grad_()
    for weight in (kernel, matrix):
        weight.grad = torch.arange(288.0).sin().view(weight.shape)
        Muon([weight], lr=0.1, weight_decay=0.0, dtype=torch.float32).step()
    torch.testing.assert_close(kernel.flatten(1), matrix)


@pytest.mark.parametrize("shape", [(2, 5, 9), (3, 9, 5), (1, 7, 7)])
def test_orthogonalize_keeps_singular_vectors(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    values = u.mT @ orthogonalize(matrices) @ vh.mT
    diagonal = values.diagonal(dim1=1, dim2=2)
    assert torch.allclose(values, torch.diag_embed(diagonal), atol=1e-4)
    assert 0.6 < float(diagonal.min()) <= float(diagonal.max()) < 1.3


def tiny_fp16(optimizer: str = "muon") -> tuple[nn.Module, list[torch.optim.Optimizer], LossScaler]:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(8, 1))
    optimizers = make_optimizers(network, TrainingConfig(optimizer=optimizer), "fp16")
    return network, optimizers, LossScaler(network, optimizers, "fp16", torch.device("cpu"))


def fp16_step(network: nn.Module, optimizers: list[torch.optim.Optimizer], scaler: LossScaler, times: float) -> Tensor:
    """A step whose gradient is multiplied; returns the norm of it."""
    loss = network(torch.ones(2, 4, 3, 3)).square().mean()
    (scaler.scale(loss) * times).backward()
    scaler.unscale_gradients()
    grad_norm = nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    scaler.update(loss.detach(), grad_norm)
    for optimizer in optimizers:
        optimizer.step()
    network.zero_grad()
    return grad_norm


def test_loss_scale_adapts_and_skips_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.devices.precision._SCALE_GROWTH_INTERVAL", 2)
    network, optimizers, scaler = tiny_fp16()
    fp16_step(network, optimizers, scaler, 1.0)

    def everything() -> list[Tensor]:
        states = [value for one in optimizers for state in one.state.values() for value in state.values()]
        return [tensor.detach().clone() for tensor in (*network.parameters(), *states)]

    before = everything()
    norm = fp16_step(network, optimizers, scaler, torch.inf)
    assert float(norm) == 0 and float(scaler.skip_step) == 1
    assert all(torch.equal(*pair) for pair in zip(before, everything(), strict=True))
    scales = [float(scaler.state_tensors()["LossScaler/scale"])]
    for _ in range(2):
        fp16_step(network, optimizers, scaler, 1.0)
        scales.append(float(scaler.state_tensors()["LossScaler/scale"]))
    assert scales == [2.0**15, 2.0**15, 2.0**16]
    assert not any(torch.equal(*pair) for pair in zip(before, everything(), strict=True))


@pytest.fixture
def deaf_adam(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fused Adam as torch had it for Apple GPUs until mid-2026: the kernels ignore `found_inf`."""
    for name in ("_fused_adam_", "_fused_adamw_"):
        kernel = getattr(torch, name)
        monkeypatch.setattr(
            torch, name, lambda *args, kernel=kernel, **named: kernel(*args, **{**named, "found_inf": None})
        )
    honours_found_inf.cache_clear()
    yield
    honours_found_inf.cache_clear()


@pytest.mark.usefixtures("deaf_adam")
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_adam_without_found_inf_still_skips_steps(optimizer: str) -> None:
    assert not honours_found_inf(torch.device("cpu"))
    scales = (torch.inf, 1.0, torch.inf, 1.0, 1.0)  # the first step, which creates the state, is skipped, too
    deaf = _trained(optimizer, scales)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in deaf)
    sound = _trained(optimizer, tuple(scale for scale in scales if scale == 1.0))
    assert all(torch.equal(*pair) for pair in zip(deaf, sound, strict=True))


def test_fused_adam_skips_on_found_inf_here() -> None:
    assert honours_found_inf(torch.device("cpu"))


def _trained(optimizer: str, scales: Sequence[float]) -> list[Tensor]:
    """The weights and the state of Adam after steps whose gradients were scaled so."""
    network, optimizers, scaler = tiny_fp16(optimizer)
    scaler.load({"LossScaler/scale": torch.tensor(2.0**20)})  # high enough for the overflows
    for scale in scales:
        fp16_step(network, optimizers, scaler, scale)
    states = [value for state in optimizers[0].state.values() for value in state.values()]
    return [tensor.detach().clone() for tensor in (*network.parameters(), *states)]


def test_fp16_fails_when_no_scale_helps() -> None:
    network, optimizers, scaler = tiny_fp16()
    scaler.update(torch.tensor(torch.nan), torch.tensor(1.0))
    before = [weight.detach().clone() for weight in network.parameters()]
    fp16_step(network, optimizers, scaler, 1.0)  # sound, but after one that was not
    assert all(torch.equal(*pair) for pair in zip(before, network.parameters(), strict=True))


def test_checkpoints_without_loss_scale_load() -> None:
    *_, scaler = tiny_fp16()
    scaler.update(torch.tensor(1.0), torch.tensor(torch.inf))
    kept = scaler.state_tensors()
    network, optimizers, again = tiny_fp16()
    again.load({})
    assert float(again.state_tensors()["LossScaler/scale"]) == 2.0**16
    other, held = {**kept, "AdamW/0/step": torch.ones(())}, {**kept}
    again.load(other)
    assert again.state_tensors() == kept and list(other) == ["AdamW/0/step"]
    plain = LossScaler(network, optimizers, "bf16", torch.device("cpu"))
    plain.load(held)
    assert not plain.state_tensors() and not held and plain.scale(kept["LossScaler/scale"]) is kept["LossScaler/scale"]


def test_small_gradients_are_orthogonalized_in_fp16() -> None:
    matrices = 1e-6 * torch.randn(2, 8, 12, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(orthogonalize(matrices, torch.float16).float(), orthogonalize(matrices), atol=0.02)


def test_ema_ramps_up_to_its_half_life() -> None:
    network = nn.Linear(1, 1, bias=False)
    average = EMA(network, halflife_sprites=1_000_000)
    nn.init.constant_(network.weight, 3.0)
    (weight,) = average.network.parameters()
    average.begin_step(seen_sprites=64, batch_size=64)
    average.update()
    assert float(weight) == pytest.approx(3.0, abs=1e-4)
    assert not average.network.training and not weight.requires_grad
    nn.init.zeros_(network.weight)
    average = EMA(network, halflife_sprites=1000)
    (weight,) = average.network.parameters()
    weight.fill_(1.0)
    for _ in range(10):  # 10 times 100 sprites, long after the start: one half-life
        average.begin_step(seen_sprites=10_000_000, batch_size=100)
        average.update()
    assert float(weight) == pytest.approx(0.5, abs=1e-5)
