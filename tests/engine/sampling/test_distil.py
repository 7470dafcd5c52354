"""Distillation: a student learns the paths of its teacher, and fast mode draws with the student."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from studio.core.errors import DeviceFullError, RunError, UsageError
from studio.core.events import Distilled, Event, Notice, Progress, SpritesGenerated
from studio.core.generators import run_to_end
from studio.engine.models.loading import load_model
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.sampling import distil as module
from studio.engine.sampling.distil import DistilSettings, distil
from studio.engine.sampling.generate import generate, proportional_labels, solver_states
from studio.engine.sampling.settings import GenerateSettings
from studio.recipes.capabilities import Distils, Student
from studio.recipes.colours import SHARPEST
from studio.recipes.few_step import FewStepStudent
from studio.recipes.flow import draw_noise, timesteps
from studio.recipes.unet import UNet
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind, train_classifier

SETTINGS = DistilSettings(count=128)


@pytest.fixture(scope="module")
def distilled(generator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """Distil a copy of the run in a single pass, with a higher learning rate for the few steps."""
    run = shutil.copytree(generator_run, tmp_path_factory.mktemp("distilled") / "run")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_PASSES", 1), ("_WARM_UP", 2), ("_RATE", 2e-3), ("_COMPARED", 8)):
            patch.setattr(module, name, value)
        return run, list(distil(run, "last", CPU, SETTINGS))


@pytest.fixture
def run(generator_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(generator_run, tmp_path / "run")


def strided(student: Student, labels: torch.Tensor, seed: int) -> list[torch.Tensor]:
    """Return the student's sprites after each stride, from the noise of a seed."""
    states = [draw_noise(len(labels), 8, seed)]
    for number in range(student.steps):
        states.append(student(states[-1], number, labels))
    return states[1:]


def error_left(run: Path) -> float:
    """Return the student's distance from the teacher's path, relative to an untrained student.

    0: on the path; 1: nothing learned. Starts from noise outside the training.
    """
    model, labels = load_model(run, "last", CPU), torch.arange(32) % 2
    assert model.distilled is not None and isinstance(model.recipe, Distils)

    with torch.no_grad():
        paths = (
            list(model.recipe.trajectory(model.network, labels, GenerateSettings().guidance, 77))[1:],
            list(solver_states(model, labels, GenerateSettings(seed=77, quick=True), 0)),
            strided(model.recipe.student(model.network), labels, 77),
        )
    usual, quick, untaught = (states[1] for states in paths)  # of four strides: later, single pixels may differ
    return float((quick - usual).square().mean() / (untaught - usual).square().mean())


def test_student_follows_the_teachers_paths(distilled: tuple[Path, list[Event]]) -> None:
    assert error_left(distilled[0]) < 0.9


@pytest.mark.slow
def test_student_of_four_passes_follows_the_teachers_paths(run: Path) -> None:
    list(distil(run, "last", CPU, SETTINGS))
    assert error_left(run) < 0.75


def test_student_is_added_to_an_unchanged_checkpoint(generator_run: Path, distilled: tuple[Path, list[Event]]) -> None:
    run, events = distilled
    (path, info), (_, before) = (
        checkpoints.list_checkpoints(RunDir(folder).checkpoints)[-1] for folder in (run, generator_run)
    )
    assert {name: info.sha256[name] for name in before.sha256} == before.sha256
    assert info.metrics == before.metrics and (path / "distilled.safetensors").exists()
    progress = of_kind(events, Progress)
    assert progress[-1].done == progress[-1].total == 2 * 3 and len(progress) > 6
    (found,) = of_kind(events, Distilled)
    assert found.step == info.step == 60 and 0 < found.alike <= 1
    assert min(found.sprites_per_s, found.usual_sprites_per_s) > 0  # other processes may slow down either


def test_fast_mode_draws_with_the_student(distilled: tuple[Path, list[Event]]) -> None:
    model = load_model(distilled[0], "last", CPU)

    def made(**how: object) -> SpritesGenerated:
        events = list(generate(model, GenerateSettings(count=4).replace(**how)))  # type: ignore[arg-type]
        assert of_kind(events, Progress)[-1].done == 4
        return of_kind(events, SpritesGenerated)[0]

    assert len(of_kind(list(generate(model, GenerateSettings(count=4, quick=True))), Progress)) == 3
    assert not np.array_equal(made(quick=True).sprites, made().sprites)
    for how in ({"guidance": 2.0}, {"steps": 5}):
        with pytest.raises(UsageError, match=r"a guidance of 1\.5 in 3 steps"):
            made(quick=True, **how)


def test_fast_mode_with_unsupported_settings_is_a_usage_error(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="trial has no distilled network at step 60"):
        list(generate(load_model(run, "last", CPU), GenerateSettings(count=1, quick=True)))
    list(train_classifier(tmp_path / "classifier", make_sprites(), steps=1))
    with pytest.raises(UsageError, match="classifier is a classifier and can't be distilled"):
        list(distil(tmp_path / "classifier", "last", CPU, SETTINGS))


def test_a_run_that_is_trained_elsewhere_is_left_alone(run: Path) -> None:
    trainer = RunDir(run)
    trainer.acquire()
    with pytest.raises(RunError, match="being trained elsewhere"):
        next(distil(run, "last", CPU, SETTINGS))
    trainer.release()


def test_cancelled_distillation_stores_nothing(run: Path) -> None:
    before = sorted(path.name for path in run.rglob("*"))
    events = distil(run, "last", CPU, SETTINGS)
    next(event for event in events if isinstance(event, Progress) and event.done)
    events.close()
    assert sorted(path.name for path in run.rglob("*")) == before and not RunDir(run).is_busy()


def test_distilling_a_deleted_checkpoint_is_an_error(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "list_checkpoints", lambda folder: [])
    with pytest.raises(RunError, match="step 60 was deleted"):
        checkpoints.add_distilled(RunDir(run).checkpoints, 60, {})


def test_damaged_distilled_network_is_skipped_with_a_notice(
    distilled: tuple[Path, list[Event]], tmp_path: Path
) -> None:
    run = shutil.copytree(distilled[0], tmp_path / "damaged")
    (path,) = run.rglob("distilled.safetensors")
    path.write_bytes(path.read_bytes()[:-8])
    model = load_model(run, "last", CPU)
    assert model.distilled is None and model.step == 60
    assert [notice.title for notice in model.notices] == [
        "The distilled network was skipped. Checkpoint step-00000060 is damaged."
    ]


@pytest.mark.slow
def test_fault_33_micro_batches_learn_the_same_when_memory_is_short(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PASSES", 1)

    def learnt(most: int) -> tuple[dict[str, torch.Tensor], int]:
        refused, forward = list[int](), FewStepStudent.forward

        def limited(student: FewStepStudent, x: torch.Tensor, *more: Any) -> torch.Tensor:
            if len(x) > most:
                refused.append(len(x))
                raise DeviceFullError("cpu")
            return forward(student, x, *more)

        with monkeypatch.context() as patch:
            patch.setattr(FewStepStudent, "forward", limited)
            model = load_model(run, "last", CPU)
            return run_to_end(module._train_student(model, DistilSettings(count=128))).state_dict(), len(refused)

    (whole, never), (in_parts, once) = learnt(64), learnt(40)
    assert (never, once) == (0, 1)
    for name, value in whole.items():
        torch.testing.assert_close(in_parts[name], value, rtol=0.02, atol=0.02)


def test_older_student_with_five_strides_draws_the_same(distilled: tuple[Path, list[Event]], tmp_path: Path) -> None:
    """An old file has only weights, named as in the generator, and no temperature of the colours."""
    run = shutil.copytree(distilled[0], tmp_path / "earlier")
    model, labels = load_model(run, "last", CPU), torch.arange(4) % 2
    network = model.network
    assert isinstance(network, UNet) and network.head is not None
    checkpoints.add_distilled(RunDir(run).checkpoints, model.step, network.state_dict())
    times = [timesteps(10)[place] for place in (0, 3, 5, 7, 9, 10)]
    x = draw_noise(4, 8, 7)
    with torch.no_grad():
        for t, t_next in itertools.pairwise(times):
            features = network.features(x, network.sampling_times(torch.full((4,), t)), labels).permute(0, 2, 3, 1)
            guess = network.head.expected(features, SHARPEST if t == times[-2] else 1.0).permute(0, 3, 1, 2)
            x = x + (t_next - t) / (1 - t) * (guess - x)
    read = load_model(run, "last", CPU).distilled
    assert read is not None and read.steps == 5
    *_, drawn = strided(read, labels, 7)
    torch.testing.assert_close(drawn, x, rtol=1e-4, atol=1e-4)


def test_leading_colours_represent_the_palette() -> None:
    torch.manual_seed(0)
    network = UNet(8, 2, 16, 200)
    assert network.head is not None
    palette = network.head.palette
    palette[150:, 3] = -2.0  # unused entries
    leading = FewStepStudent(network).leading
    assert leading is not None
    colours = leading.palette
    assert 48 <= len(colours) <= 64 and torch.cdist(colours, palette[:150]).amin(1).max() < 0.01
    assert torch.cdist(palette[:150], colours).amin(1).max() < torch.cdist(palette[:150], palette[:64]).amin(1).max()
    palette[30:, 3] = -2.0
    assert torch.equal(FewStepStudent(network).leading.palette, palette[:30])  # type: ignore[union-attr]


def test_classes_come_in_proportion() -> None:
    labels = proportional_labels((30, 10), 400)
    assert np.bincount(labels).tolist() == pytest.approx([300, 100], abs=2)
    np.testing.assert_array_equal(proportional_labels((30, 10), 100, 300), labels[300:])


def test_students_learn_classes_attributes_and_both(generator_run: Path) -> None:
    model, rng = load_model(generator_run, "last", CPU), torch.Generator().manual_seed(0)
    assert (
        module.path_labels(model, 128, rng).tolist() == proportional_labels(model.style.class_counts, 128, 128).tolist()
    )
    spec = dataclasses.replace(model.spec, attributes={"element": ("fire", "ice"), "kind": ("gem", "key", "shield")})
    labels = module.path_labels(dataclasses.replace(model, spec=spec), 0, rng)
    first, element, kind = (part.sum(1) for part in labels.split([len(spec.class_names), 2, 3], 1))
    assert labels.shape == (128, len(spec.labels)) and max(first.max(), element.max(), kind.max()) == 1
    seen = {(int(a), int(b), int(c)) for a, b, c in zip(first, element, kind, strict=True)}
    assert seen >= {(1, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0), (1, 1, 1)}


def test_the_notice_about_a_damaged_student_is_forwarded(distilled: tuple[Path, list[Event]], tmp_path: Path) -> None:
    run = shutil.copytree(distilled[0], tmp_path / "passed over")
    (path,) = run.rglob("distilled.safetensors")
    path.unlink()
    assert isinstance(next(distil(run, "last", CPU, SETTINGS)), Notice)
