"""What every export must do, whoever wrote it: hold the model, say how to load it, and refuse a damaged twin."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from studio.core.config import Config, settings_of
from studio.core.errors import ExportError
from studio.core.events import Exported, Notice, Progress
from studio.engine import catalog
from studio.engine.models.exporting import check_difference, export, exportable_copy
from studio.engine.models.model import TrainedModel
from studio.exports.base import ModelExport
from studio.recipes.base import Recipe
from tests.engine.tools import of_kind
from tests.exports.tools import CELLS, read_back, small_exportable, small_model

EXPORTS = list(catalog.model_exports().values())
RECIPES = list(catalog.recipes().values())

pytestmark = pytest.mark.usefixtures("made_once")


_SLOW = {
    "onnx": ("generator", "classifier", "regression", "autoencoder", "vae", "sets"),
    "pt2": ("generator", "classifier", "regression", "autoencoder", "sets"),
    "c": ("generator", "regression", "sets"),
    "web": ("generator", "regression", "sets"),
    "script": ("generator", "classifier", "regression", "autoencoder", "vae", "sets"),
}


def _param(form: ModelExport, recipe: Recipe | None = None, *, is_slow: bool = False) -> Any:
    """A format, and a recipe that it can hold. To trace, to compile or to load a graph takes seconds: here only the
    smaller ones are, unless there is time.
    """
    marks = [pytest.mark.skipif(bool(form.missing()), reason=form.missing())]
    if is_slow or (recipe is not None and recipe.name in _SLOW.get(form.name, ())):
        marks.append(pytest.mark.slow)
    if recipe is None:
        return pytest.param(form, id=form.name, marks=marks)
    return pytest.param(form, recipe, id=f"{form.name}-{recipe.name}", marks=marks)


_of_each_form = pytest.mark.parametrize("form", [_param(form) for form in EXPORTS])


def _pairs(form: ModelExport, *, one_will_do: bool = False) -> list[Any]:
    """A format with each recipe that it can hold. one_will_do: how files are written is no matter of the recipe, so
    those before the last quick one, which has the smallest network, are tried if there is time.
    """
    recipes = [recipe for recipe in RECIPES if not form.problem(recipe)]
    return [_param(form, recipe, is_slow=one_will_do and recipe is not _quickest(form)) for recipe in recipes]


def _quickest(form: ModelExport) -> Recipe:
    """The last of the recipes that a format can hold, if possible a quick one: it has the smallest network."""
    recipes = [recipe for recipe in RECIPES if not form.problem(recipe)]
    return next((recipe for recipe in reversed(recipes) if recipe.name not in _SLOW.get(form.name, ())), recipes[-1])


_of_each_pair = pytest.mark.parametrize(
    ("form", "model"), [pair for form in EXPORTS for pair in _pairs(form)], indirect=["model"]
)
_of_each_form_with_a_model = pytest.mark.parametrize(
    ("form", "model"), [pair for form in EXPORTS for pair in _pairs(form, one_will_do=True)], indirect=["model"]
)
# Names and places of files are chosen for all formats alike: those that take long to write are tried if there is time.
_of_each_quick_form_with_a_model = pytest.mark.parametrize(
    ("form", "model"),
    [
        pytest.param(*pair.values, id=pair.id, marks=[*pair.marks, *[pytest.mark.slow] * (form.name in ("pt2", "c"))])
        for form in EXPORTS
        for pair in _pairs(form, one_will_do=True)
    ],
    indirect=["model"],
)


@pytest.fixture
def model(request: pytest.FixtureRequest) -> TrainedModel:
    return small_model(request.param)


def quick(form: ModelExport) -> Config:
    """Settings with which a file is small: what is written for each step is written for two."""
    given = {"steps": 2} if any(item.name == "steps" for item in settings_of(form.Config)) else {}
    return form.Config(**given)


def exported(model: TrainedModel, form: ModelExport, target: Path) -> Exported:
    *_, done = export(model, form.name, target, quick(form))
    assert isinstance(done, Exported)
    return done


@_of_each_form
def test_it_introduces_itself(form: ModelExport) -> None:
    assert form.name.isidentifier() and form.title and form.help.endswith(".")
    assert form.suffix.startswith(".") and form.suffix == form.suffix.lower()
    assert sum(other.suffix == form.suffix for other in EXPORTS) == 1


@_of_each_form
def test_a_model_that_it_cannot_hold_is_refused(form: ModelExport, tmp_path: Path) -> None:
    for recipe in RECIPES:
        problem = form.problem(recipe)
        if problem:
            with pytest.raises(ExportError) as refused:
                list(export(small_model(recipe), form.name, tmp_path / "model"))
            assert refused.value.hint == problem and problem.endswith(".")
    assert list(tmp_path.iterdir()) == []


@_of_each_pair
def test_what_is_read_back_gives_what_the_model_gives(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    *progress, done = list(export(model, form.name, tmp_path / f"sub/model{form.suffix}", quick(form)))
    assert isinstance(done, Exported)
    assert (shown := [event.done for event in of_kind(progress, Progress)]) == sorted(shown)
    assert (shown[0], shown[-1]) == (0, 100)
    assert done.difference <= form.largest_difference(exportable_copy(model), quick(form))
    assert done.paths[0] == tmp_path / f"sub/model{form.suffix}"
    assert set(done.paths) == {
        done.paths[0],
        *form.companions(done.paths[0], quick(form)),
    }  # what is removed when an export fails
    assert sorted(done.paths) == sorted((tmp_path / "sub").iterdir())  # nothing temporary is left


@_of_each_form_with_a_model
def test_the_difference_is_measured(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    exportable = exportable_copy(model)
    paths = form.write(exportable, tmp_path / f"model{form.suffix}", quick(form))
    before = read_back(form, paths, exportable, quick(form))
    torch.testing.assert_close(before, form.live(exportable, quick(form)), rtol=1e-4, atol=1e-4)  # another program
    for weight in exportable.network.parameters():
        weight.mul_(0.5)  # the file must not follow the live weights
    torch.testing.assert_close(read_back(form, paths, exportable, quick(form)), before)
    assert not torch.allclose(before, form.live(exportable, quick(form)), atol=1e-3)
    for weight in exportable.network.parameters():
        weight.mul_(2)  # as it was: a graph that is made once holds it, too


@_of_each_form
def test_a_damaged_file_is_refused(form: ModelExport, tmp_path: Path) -> None:
    exportable = small_exportable(_quickest(form).name)
    paths = form.write(exportable, tmp_path / f"model{form.suffix}", quick(form))
    live, whole = form.live(exportable, quick(form)), paths[0].read_bytes()
    for length in (0, 1, 7, 8, 100, len(whole) // 3, len(whole) - 1):
        paths[0].write_bytes(whole[:length])
        with pytest.raises(ExportError):
            read_back(form, paths, exportable, quick(form))
    for place in (*range(0, 64, 7), len(whole) // 2, *range(len(whole) - 64, len(whole), 9)):
        paths[0].write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            found = read_back(form, paths, exportable, quick(form))
            check_difference(
                form, exportable, quick(form), found, paths[0]
            )  # what finds a changed weight where a format has no sums
        except ExportError:
            continue
        apart = (found - live).abs() / live.abs().max()
        assert float((apart > 1.1 * form.largest_difference(exportable, quick(form))).float().mean()) < 0.01
    paths[0].unlink()
    with pytest.raises(ExportError):
        read_back(form, paths, exportable, quick(form))


@pytest.mark.parametrize("form", [_param(form, is_slow=form.name in ("onnx", "pt2", "c")) for form in EXPORTS])
def test_a_file_of_another_model_is_refused(form: ModelExport, tmp_path: Path) -> None:
    exportable, other = small_exportable("classifier"), small_exportable("regression")
    paths = form.write(exportable, tmp_path / f"model{form.suffix}", quick(form))
    shutil.move(form.write(other, tmp_path / f"other{form.suffix}", quick(form))[0], paths[0])
    with pytest.raises(ExportError):
        read_back(form, paths, exportable, quick(form))


@_of_each_form_with_a_model
def test_weights_that_are_not_numbers_are_refused(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    next(iter(model.network.parameters())).fill_(float("nan"))
    with pytest.raises(ExportError, match="NaN or infinite"):
        list(export(model, form.name, tmp_path / f"model{form.suffix}", quick(form)))
    assert list(tmp_path.iterdir()) == []


@_of_each_quick_form_with_a_model
def test_a_file_that_differs_is_not_left_behind(
    form: ModelExport, model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exportable, most = exportable_copy(model), form.largest_difference(exportable_copy(model), quick(form))
    paths = form.write(exportable, tmp_path / f"other/model{form.suffix}", quick(form))
    found = read_back(form, paths, exportable, quick(form)) * (1 + 2 * most)
    shutil.rmtree(tmp_path / "other")
    monkeypatch.setattr(type(form), "read_back", lambda *args: found)
    with pytest.raises(ExportError, match="differs"):
        list(export(model, form.name, tmp_path / f"model{form.suffix}", quick(form)))
    assert list(tmp_path.iterdir()) == []


@_of_each_quick_form_with_a_model
def test_fault_29_nothing_in_the_way_is_replaced(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    target = tmp_path / f"model{form.suffix}"
    occupied = (target, *form.companions(target, quick(form)))
    for path in occupied:
        path.write_text("mine")
    events = list(export(model, form.name, target, quick(form)))
    done = of_kind(events, Exported)[0]
    assert all(path.read_text() == "mine" for path in occupied)
    assert not set(done.paths) & set(occupied)
    assert target.name in of_kind(events, Notice)[0].title and done.paths[0].name in of_kind(events, Notice)[0].title
    occupied[0].unlink()  # a companion alone is in the way, too
    assert not set(exported(model, form, target).paths) & {*occupied[1:], *done.paths}


@_of_each_quick_form_with_a_model
def test_a_folder_or_a_name_without_ending_will_do(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    assert exported(model, form, tmp_path).paths[0] == tmp_path / f"2026-trial{form.suffix}"
    assert exported(model, form, tmp_path / "v1.2").paths[0] == tmp_path / f"v1.2{form.suffix}"


@_of_each_quick_form_with_a_model
def test_a_folder_that_refuses_is_said(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ExportError, match="Can't write"):
        list(export(model, form.name, tmp_path / "file" / "model", quick(form)))


@_of_each_quick_form_with_a_model
def test_closing_the_job_leaves_nothing_behind(form: ModelExport, model: TrainedModel, tmp_path: Path) -> None:
    job = export(model, form.name, tmp_path / "model", quick(form))
    next(job), next(job), next(job)
    job.close()
    assert list(tmp_path.iterdir()) == []


@_of_each_quick_form_with_a_model
@pytest.mark.parametrize(
    ("failure", "told"), [(OSError(28, "No space left"), ExportError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_what_stops_it_at_any_write_leaves_nothing_behind(
    form: ModelExport,
    model: TrainedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    told: type[BaseException],
) -> None:
    honest, calls, most = os.replace, 0, 1000

    def stopped(path: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls > most:
            raise failure
        honest(path, target)

    monkeypatch.setattr(Path, "replace", stopped)
    list(export(model, form.name, tmp_path / "enough" / "model", quick(form)))
    writes = calls
    files = 1 + len(form.companions(tmp_path / "model", quick(form)))
    assert writes == 2 * files  # each file is written, then moved to its final name
    for allowed in range(writes):
        calls, most = 0, allowed
        with pytest.raises(told):
            list(export(model, form.name, tmp_path / "cut short" / "model", quick(form)))
        assert list((tmp_path / "cut short").iterdir()) == []


@_of_each_pair
def test_the_snippet_runs(
    form: ModelExport, model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = exported(model, form, tmp_path / f"my {model.recipe.name}{form.suffix}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    cells = torch.zeros(2, len(CELLS), 8, 8, 4, dtype=torch.uint8)
    given = torch.zeros(2, len(CELLS), dtype=torch.bool)
    space = {"sprites": torch.zeros(2, 8, 8, 4, dtype=torch.uint8), "cells": cells, "given": given}
    exec(done.snippets.get("Python", ""), space)
    result = space.get("result")
    if result is not None:
        assert len(result) in {2, 16} and bool(torch.isfinite(torch.as_tensor(result).float()).all())
