"""How an exported model is compared with the live one: what it may differ by goes by the size of what it gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from studio.core.errors import ExportError
from studio.engine import catalog
from studio.engine.exporting import as_exportable, compare
from studio.exports.base import ExportableModel
from tests.exports.tools import small_model


def _priced() -> tuple[ExportableModel, Tensor]:
    """A model of prices near 100,000 and of shares near 0.5, and what it gives."""
    model = small_model(catalog.recipe("regression"))
    for name, numbers in {"mean": [1e5, 0.5], "deviation": [30.0, 0.1]}.items():
        model.network.get_buffer(name).copy_(torch.tensor(numbers))
    exportable = as_exportable(model)
    return exportable, exportable.outputs(exportable.network)


def test_large_numbers_may_differ_by_their_last_digit() -> None:
    model, live = _priced()
    assert compare(model, live, Path("prices.pt")) == 0
    found = torch.nextafter(live, torch.full_like(live, torch.inf))
    assert float((found - live).abs().max()) > 1e-3
    assert 0 < compare(model, found, Path("prices.pt")) < 1e-6


@pytest.mark.parametrize(("column", "wrong_by"), [(0, 20.0), (1, 1e-3)])
def test_each_number_is_measured_by_its_own_size(column: int, wrong_by: float) -> None:
    model, live = _priced()
    found = live.clone()
    found[1, column] += wrong_by
    with pytest.raises(ExportError, match=r"differs from the model by 0\.\d+ %: more than 0\.01 %"):
        compare(model, found, Path("prices.pt"))


def test_a_model_that_gives_nothing_but_zeros_is_compared_too() -> None:
    model, live = _priced()
    for weight in (*model.network.parameters(), *model.network.buffers()):
        weight.zero_()
    assert compare(model, torch.zeros_like(live), Path("prices.pt")) == 0
    with pytest.raises(ExportError, match="differs"):
        compare(model, live, Path("prices.pt"))
