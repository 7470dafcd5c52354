from __future__ import annotations

import pytest
import torch
from torch import nn

from studio.core.config import TrainingConfig
from studio.engine.optim import Average, learning_rate, make_optimizer


def test_the_rate_rises_stays_and_falls() -> None:
    config = TrainingConfig(learning_rate=0.1, lr_warmup_steps=10, lr_decay_share=0.5)
    assert learning_rate(config, 0, 0.0) == pytest.approx(0.01)
    assert learning_rate(config, 9, 0.01) == pytest.approx(0.1)
    assert learning_rate(config, 500, 0.5) == pytest.approx(0.1)
    assert learning_rate(config, 750, 0.75) == pytest.approx(0.05)
    assert 0 < learning_rate(config, 999, 1.0) <= 0.001


def test_the_optimizer_agrees_with_the_unfused_reference() -> None:
    torch.manual_seed(0)
    ours, reference = nn.Linear(5, 3), nn.Linear(5, 3)
    reference.load_state_dict(ours.state_dict())
    config = TrainingConfig(learning_rate=0.01, weight_decay=0.1)
    fused = make_optimizer(ours, config)
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


def test_the_average_has_its_half_life() -> None:
    network = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(network.weight)
    average = Average(network, halflife_sprites=1000)
    (weight,) = average.network.parameters()
    weight.fill_(1.0)
    for _ in range(10):  # 10 times 100 sprites, long after the start: one half-life
        average.update(seen_sprites=10_000_000, batch_size=100)
    assert float(weight) == pytest.approx(0.5, abs=1e-5)


def test_the_average_follows_at_once_at_the_start() -> None:
    network = nn.Linear(1, 1, bias=False)
    average = Average(network, halflife_sprites=1_000_000)
    nn.init.constant_(network.weight, 3.0)
    (weight,) = average.network.parameters()
    average.update(seen_sprites=64, batch_size=64)
    assert float(weight) == pytest.approx(3.0, abs=1e-4)
    assert not average.network.training and not weight.requires_grad
