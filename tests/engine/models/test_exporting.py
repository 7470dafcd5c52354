"""How an exported model is compared with the live one: what it may differ by goes by the size of what it gives.

And what a format may ask for: settings of its own, what has to be installed, and which models it holds.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch
from torch import Tensor

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.core.events import Exported
from studio.engine import catalog
from studio.engine.models.exporting import check_difference, export, exportable_copy
from studio.exports.base import LARGEST_DIFFERENCE, ExportableModel
from studio.exports.safetensors import Safetensors
from tests.engine.tools import of_kind
from tests.exports.tools import Rounded, RoundedConfig, small_model, small_model_with_attributes


def _priced() -> tuple[ExportableModel, Tensor]:
    """A model of prices near 100,000 and of shares near 0.5, and what it gives."""
    model = small_model(catalog.recipe("regression"))
    for name, numbers in {"mean": [1e5, 0.5], "deviation": [30.0, 0.1]}.items():
        model.network.get_buffer(name).copy_(torch.tensor(numbers))
    exportable = exportable_copy(model)
    return exportable, exportable.outputs(exportable.network)


def _difference(model: ExportableModel, found: Tensor) -> float:
    return check_difference(Safetensors(), model, Config(), found, Path("prices.pt"))


def test_large_numbers_may_differ_by_their_last_digit() -> None:
    model, live = _priced()
    assert _difference(model, live) == 0
    found = torch.nextafter(live, torch.full_like(live, torch.inf))
    assert float((found - live).abs().max()) > 1e-3
    assert 0 < _difference(model, found) < 1e-6


@pytest.mark.parametrize(("column", "wrong_by"), [(0, 20.0), (1, 1e-3)])
def test_each_number_is_measured_by_its_own_size(column: int, wrong_by: float) -> None:
    model, live = _priced()
    found = live.clone()
    found[1, column] += wrong_by
    with pytest.raises(ExportError, match=r"differs from the model by 0\.\d+ %; 0\.01 % is allowed"):
        _difference(model, found)


def test_model_with_zero_outputs_is_compared() -> None:
    model, live = _priced()
    for weight in (*model.network.parameters(), *model.network.buffers()):
        weight.zero_()
    assert _difference(model, torch.zeros_like(live)) == 0
    with pytest.raises(ExportError, match="differs"):
        _difference(model, live)


@pytest.fixture
def rounded(monkeypatch: pytest.MonkeyPatch) -> Rounded:
    """A format that rounds weights, as one of those that there are."""
    form = Rounded()
    monkeypatch.setattr(catalog, "model_exports", lambda: {form.name: form})
    return form


def _exported(target: Path, config: Config | None = None) -> Exported:
    *_, done = export(small_model(catalog.recipe("classifier")), "rounded", target, config)
    assert isinstance(done, Exported)
    return done


def test_coarse_format_has_a_larger_difference_limit(rounded: Rounded, tmp_path: Path) -> None:
    usual, coarse = _exported(tmp_path / "usual"), _exported(tmp_path / "coarse", RoundedConfig(decimals=2))
    assert usual.difference <= LARGEST_DIFFERENCE < coarse.difference < 0.1
    assert usual.size_bytes == usual.paths[0].stat().st_size and "2 decimals" in coarse.snippets["Python"]
    with pytest.raises(ExportError, match=r"rounded differs from the model by \d+ %; 10 % is allowed"):
        _exported(tmp_path / "nothing", RoundedConfig(decimals=0))


def test_files_get_their_final_names_after_they_are_verified(rounded: Rounded, tmp_path: Path) -> None:
    events = export(small_model(catalog.recipe("classifier")), "rounded", tmp_path / "model")
    for _ in range(3):  # the file is written and read back by the third event
        next(events)
    assert [path.name[:5] for path in tmp_path.iterdir()] == [".tmp-"]
    events.close()
    assert list(tmp_path.iterdir()) == []
    done = _exported(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == [done.paths[0].name] == ["model.rounded"]


def test_a_file_that_another_program_wrote_meanwhile_stays(rounded: Rounded, tmp_path: Path) -> None:
    events = export(small_model(catalog.recipe("classifier")), "rounded", tmp_path / "model")
    for _ in range(3):
        next(events)
    other = tmp_path / "model.rounded"
    other.write_text("another program's")
    with pytest.raises(ExportError, match="written by another program"):
        list(events)
    assert other.read_text() == "another program's" and list(tmp_path.iterdir()) == [other]


def test_missing_package_or_unsupported_model_is_an_export_error(
    rounded: Rounded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rounded, "missing", lambda self: "It needs an abacus: buy one.")
    with pytest.raises(ExportError, match="It needs an abacus"):
        _exported(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(catalog, "model_exports", lambda: {rounded.name: rounded})
    with pytest.raises(ExportError, match="numbers are not round"):
        list(export(small_model(catalog.recipe("regression")), "rounded", tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("wrong", "is_taken"), [(0.005, True), (0.05, False)])
def test_few_undecided_pixels_are_tolerated(wrong: float, is_taken: bool) -> None:
    model = exportable_copy(small_model(catalog.recipe("generator")))
    found = model.outputs(model.network).clone()
    places = torch.randperm(found.numel(), generator=torch.Generator().manual_seed(0))[: int(wrong * found.numel())]
    found.view(-1)[places] += 1.0
    if is_taken:
        assert _difference(model, found) == 0
    else:
        with pytest.raises(ExportError, match="differs"):
            _difference(model, found)


SLOW_FORMS = ("onnx", "pt2", "c", "web", "script")


@pytest.mark.parametrize(
    "form", ["state_dict", "safetensors", *(pytest.param(form, marks=pytest.mark.slow) for form in SLOW_FORMS)]
)
def test_formats_take_attributes_by_name(form: str, tmp_path: Path) -> None:
    (made,) = of_kind(list(export(small_model_with_attributes("generator"), form, tmp_path)), Exported)
    if form == "state_dict":
        loader = runpy.run_path(str(made.paths[1]))
        network = loader["load"](made.paths[0])
        ice, fire = (loader["sample"](network, 2, steps=2, attributes={"element": value}) for value in ("ice", "fire"))
        assert ice.shape == fire.shape and loader["label_of"]("", {"x": "small"}).nonzero().tolist() == [
            [len(loader["CLASS_NAMES"]) + 2]
        ]
        with pytest.raises(ValueError, match="no attribute 'kind'"):
            loader["sample"](network, 2, attributes={"kind": "shield"})
    elif form == "onnx":
        assert '"element": np.full(16, -1),  # fire, ice; -1: any' in made.snippets["Python"]
        assert '"attribute_2"' in made.snippets["Python"]  # 'x' is the name of another input


@pytest.mark.parametrize("form", ["state_dict", *(pytest.param(form, marks=pytest.mark.slow) for form in SLOW_FORMS)])
def test_formats_predict_attributes(form: str, tmp_path: Path) -> None:
    (made,) = of_kind(list(export(small_model_with_attributes("classifier"), form, tmp_path)), Exported)
    if form == "state_dict":
        loader = runpy.run_path(str(made.paths[1]))
        found = loader["predict"](loader["load"](made.paths[0]), torch.zeros(2, 8, 8, 4, dtype=torch.uint8))
        of_class, element, x = found.split([3, 2, 1], 1)
        for part in (of_class, element, x):
            torch.testing.assert_close(part.sum(1), torch.ones(2))


def test_formats_without_attributes_refuse_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Safetensors, "takes_attributes", False)
    with pytest.raises(ExportError, match="safetensors can't hold a model with attributes"):
        list(export(small_model_with_attributes("classifier"), "safetensors", tmp_path))
    assert not list(tmp_path.iterdir())
