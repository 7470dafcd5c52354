from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from studio.engine.devices.adam import Adam, AdamW


@pytest.mark.parametrize(("ours", "torchs"), [(Adam, torch.optim.Adam), (AdamW, torch.optim.AdamW)])
def test_steps_equal_torchs_without_its_compiler(
    ours: type[torch.optim.Adam], torchs: type[torch.optim.Adam], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, results = torch.randn(8, 5), []
    for kind in (torchs, ours):
        torch.default_generator.manual_seed(0)  # the compiler replaces `torch.manual_seed`
        network = nn.Linear(5, 3)
        optimizer = kind(network.parameters(), lr=0.01, fused=True)
        for _ in range(3):
            optimizer.zero_grad()
            network(inputs).square().sum().backward()
            optimizer.step()
        assert torch.is_grad_enabled()
        results.append((network.weight.detach(), optimizer.state_dict()["state"][0]["exp_avg"]))
        monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # now an import of the compiler fails
    (expected, average), (weight, own_average) = results
    assert torch.equal(weight, expected) and torch.equal(own_average, average)
