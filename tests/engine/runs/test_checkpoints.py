from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from studio.core import files
from studio.core.errors import DamagedError, RunError
from studio.core.metrics import LOSS, Quality
from studio.engine.runs import checkpoints
from studio.engine.runs.analysis import advice
from studio.engine.runs.checkpoints import (
    CheckpointInfo,
    add_metrics,
    best_checkpoint,
    checkpoint_path,
    list_checkpoints,
    load_into,
    load_tensors,
    rotate,
    save,
    scan,
)
from studio.engine.steps.optim import Muon
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator

PARTS = {part: {"weight": torch.arange(12.0).reshape(3, 4)} for part in ("model", "average", "optimizer")}


def _save(folder: Path, step: int, number: int, **metrics: float) -> Path:
    return save(folder, CheckpointInfo(step, number, 1.5 * step, metrics, {}), PARTS)


def _steps(folder: Path) -> list[int]:
    return [info.step for _, info in list_checkpoints(folder)]


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    path = _save(tmp_path, 40, 1, loss=0.5)
    ((found, info),) = list_checkpoints(tmp_path)
    assert found == path and (info.step, info.elapsed_s, info.metrics) == (40, 60.0, {"loss": 0.5})
    assert torch.equal(load_tensors(found, info, "average")["weight"], PARTS["average"]["weight"])
    assert sorted(child.name for child in path.iterdir()) == [
        "average.safetensors", "checkpoint.json", "model.safetensors", "optimizer.safetensors",
    ]  # fmt: skip


def test_short_read_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path, 40, 1)
    ((path, info),) = list_checkpoints(tmp_path)
    reads, read = list[Path](), Path.read_bytes

    def short_at_first(file: Path) -> bytes:
        reads.append(file)
        return read(file)[: 100 if len(reads) == 1 else None]

    monkeypatch.setattr(Path, "read_bytes", short_at_first)
    assert torch.equal(load_tensors(path, info, "model")["weight"], PARTS["model"]["weight"]) and len(reads) == 2


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(["checkpoint.json", "model.safetensors"]),
    part=st.floats(0, 1),
    bit=st.integers(0, 7) | st.none(),
)
def test_fault_19_any_damage_is_found(
    tmp_path_factory: pytest.TempPathFactory, name: str, part: float, bit: int | None
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = _save(folder, 1, 1, loss=0.25)
    content = bytearray((path / name).read_bytes())
    place = round(part * (len(content) - 1))
    if bit is None:
        content = content[:place]
    else:
        content[place] ^= 1 << bit
    (path / name).write_bytes(content)
    if name == "checkpoint.json":
        assert scan(folder) == ([], [path])
    else:
        ((_, info),) = list_checkpoints(folder)
        with pytest.raises(DamagedError, match="damaged"):
            load_tensors(path, info, "model")


def test_rotation_keeps_the_last_two_the_best_and_ever_sparser_ones(tmp_path: Path) -> None:
    for number in range(1, 21):
        _save(tmp_path, number * 10, number, loss=abs(number - 7) + 1.0)
        rotate(tmp_path, LOSS)
    assert _steps(tmp_path) == [10, 20, 40, 70, 80, 160, 190, 200]
    for headline, best in ((LOSS, 70), (replace(LOSS, better="high"), 200)):
        assert best_checkpoint(list_checkpoints(tmp_path), headline) == checkpoint_path(tmp_path, best)


def test_newest_is_best_without_metrics(tmp_path: Path) -> None:
    """Of few sprites, the loss on held-out ones rises while new ones still get better."""
    for number, loss in enumerate([1.0, 0.5, 0.7], 1):
        _save(tmp_path, 100 * number, number, loss=loss)
    assert best_checkpoint(list_checkpoints(tmp_path), Generator().best_by) == checkpoint_path(tmp_path, 300)
    assert best_checkpoint(list_checkpoints(tmp_path), LOSS) == checkpoint_path(tmp_path, 200)


@pytest.mark.parametrize(
    ("copies", "best"),
    [((0.0, 0.3, None), 3), ((0.0, 0.0, 0.3), 2), ((None, 0.2, 0.3), 1), ((0.4, 0.2, 0.3), 2), ((0.3, 0.3, 0.3), 3)],
)
def test_newest_checkpoint_without_copies_is_best(tmp_path: Path, copies: tuple[float | None, ...], best: int) -> None:
    for number, share in enumerate(copies, 1):
        _save(tmp_path, 100 * number, number, **({} if share is None else {"copies": share, "copies_real": 0.01}))
    assert best_checkpoint(list_checkpoints(tmp_path), None) == checkpoint_path(tmp_path, 100 * best)


def test_undertrained_checkpoint_is_not_best_for_lack_of_copies(tmp_path: Path) -> None:
    for number, (loss, share) in enumerate([(3.0, 0.0), (2.0, 0.2), (2.5, 0.3), (2.6, 0.4)], 1):
        _save(tmp_path, 100 * number, number, loss=loss, copies=share, copies_real=0.01)
        rotate(tmp_path, None)
    assert best_checkpoint(list_checkpoints(tmp_path), None) == checkpoint_path(tmp_path, 200)


def test_lowest_loss_checkpoint_is_kept_without_measurements(tmp_path: Path) -> None:
    for number in range(1, 21):
        _save(tmp_path, 10 * number, number, loss=abs(number - 7) + 1.0)
        rotate(tmp_path, None)
    assert 70 in _steps(tmp_path)


def test_first_of_equal_values_is_best(tmp_path: Path) -> None:
    for number, accuracy in enumerate([0.5, 1.0, 1.0], 1):
        _save(tmp_path, 100 * number, number, accuracy=accuracy)
    assert best_checkpoint(list_checkpoints(tmp_path), Classifier().best_by) == checkpoint_path(tmp_path, 200)


FIGURES = {"kid_error": 0.01, "kid_real": 0.0, "copies": 0.0, "copies_real": 0.05}


@pytest.mark.parametrize(
    ("figures", "best"),
    [
        ([], None),
        ([{}, {}], 2),  # without figures the last
        ([{"kid": 0.3, "loss": 0.1}, {"kid": 0.1, "loss": 0.2}, {"kid": 0.2, "loss": 0.3}, {"loss": 0.05}], 2),
        ([{"kid": 0.3, "copies": 0.1}, {"kid": 0.1, "copies": 0.4}], 1),  # the other copies
        ([{"kid": 0.3}, {"kid": 0.1}, {"loss": 0.5}], 3),  # after the best that was measured: better still
    ],
)
def test_best_checkpoint(tmp_path: Path, figures: list[dict[str, float]], best: int | None) -> None:
    for number, one in enumerate(figures, 1):
        _save(tmp_path, 100 * number, number, **{**(FIGURES if "kid" in one else {}), **one})
    expected = best and checkpoint_path(tmp_path, 100 * best)
    assert best_checkpoint(list_checkpoints(tmp_path), LOSS) == expected


def test_the_best_measured_one_is_kept_while_newer_ones_are_taken_to_be_better(tmp_path: Path) -> None:
    for number in range(1, 7):
        _save(tmp_path, 100 * number, number)
        rotate(tmp_path, LOSS)
        if number == 3:
            add_metrics(tmp_path, 300, FIGURES | {"kid": 0.05})
    assert _steps(tmp_path) == [100, 200, 300, 400, 500, 600]
    for step in (500, 600):  # as if they had been measured since
        add_metrics(tmp_path, step, FIGURES | {"kid": 0.04, "copies": 0.9})
    assert best_checkpoint(list_checkpoints(tmp_path), LOSS) == checkpoint_path(tmp_path, 300)


def test_the_newest_measurement_is_kept_so_that_the_best_stays_the_best(tmp_path: Path) -> None:
    for number in range(1, 12):
        measured = {5: {"kid": 0.05}, 6: {"kid": 0.5}}.get(number)
        _save(tmp_path, 100 * number, number, **(FIGURES | measured if measured else {}))
        rotate(tmp_path, LOSS)
    best = best_checkpoint(list_checkpoints(tmp_path), LOSS)
    assert best == checkpoint_path(tmp_path, 500)  # not the last, which was never measured


def test_rotation_keeps_steps_in_use(tmp_path: Path) -> None:
    for number in range(1, 8):
        _save(tmp_path, 100 * number, number)
        rotate(tmp_path, LOSS, in_use={300})
    assert _steps(tmp_path) == [100, 200, 300, 400, 600, 700]


def test_rotation_does_not_change_the_best_checkpoint(tmp_path: Path) -> None:
    rng, measured = np.random.default_rng(0), list[advice.Measurement]()
    for number in range(1, 17):
        _save(tmp_path, number, number)
        rotate(tmp_path, LOSS)
        figures = FIGURES | {"kid": 0.1 + 0.001 * number + rng.normal(0, 0.004), "copies": 0.2 * rng.random()}
        measured.append(advice.Measurement(number, Quality(**figures)))
        add_metrics(tmp_path, number, figures)
        kept = [
            advice.Measurement(info.step, Quality(**info.metrics))
            for _, info in list_checkpoints(tmp_path)
            if info.metrics
        ]
        assert advice.best_step(kept) == advice.best_step(measured)


def test_fault_20_a_crash_while_old_checkpoints_are_removed_leaves_no_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(folder: Path, **named: object) -> None:
        (folder / "checkpoint.json").unlink()
        raise KeyboardInterrupt

    for number in range(1, 6):
        _save(tmp_path, number, number)
    monkeypatch.setattr("studio.core.files.shutil.rmtree", crash)
    with pytest.raises(KeyboardInterrupt):
        rotate(tmp_path, LOSS)
    assert _steps(tmp_path) == [1, 2, 4, 5] and not scan(tmp_path)[1]


def test_scan_during_rotation_finds_no_damaged_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 5):
        _save(tmp_path, number, number)
    read = checkpoints._read_record

    def removed_before_it_is_read(path: Path) -> CheckpointInfo:
        if path.name.endswith("3"):
            files.remove(path)
        return read(path)

    monkeypatch.setattr(checkpoints, "_read_record", removed_before_it_is_read)
    found, damaged = scan(tmp_path)
    assert [info.step for _, info in found] == [1, 2, 4] and damaged == []


def test_figures_can_be_added_to_a_checkpoint_that_is_still_there(tmp_path: Path) -> None:
    _save(tmp_path, 10, 1, loss=0.5)
    path = save(tmp_path, CheckpointInfo(20, 2, 12, {"loss": 12, "found": True}, {}), PARTS)  # whole numbers do
    add_metrics(tmp_path, 20, {"kid": 1})
    add_metrics(tmp_path, 30, {"kid": 0.2})
    (_, first), (_, info) = list_checkpoints(tmp_path)
    assert first.metrics == {"loss": 0.5}
    assert (info.elapsed_s, dict(info.metrics)) == (12.0, {"loss": 12.0, "found": 1.0, "kid": 1.0})
    assert torch.equal(load_tensors(path, info, "average")["weight"], PARTS["average"]["weight"])


def test_distilled_network_is_added_to_its_own_checkpoint(tmp_path: Path) -> None:
    paths = [_save(tmp_path, step, number) for number, step in enumerate((10, 20, 30), 1)]
    checkpoints.add_distilled(tmp_path, 20, PARTS["average"])
    assert [(path / "distilled.safetensors").exists() for path in paths] == [False, True, False]
    (_, (path, info), _) = list_checkpoints(tmp_path)
    assert torch.equal(load_tensors(path, info, "distilled")["weight"], PARTS["average"]["weight"])


def test_weights_that_dont_fit_or_are_nan_are_refused() -> None:
    network = nn.Linear(4, 3)
    before = network.weight.clone()
    with pytest.raises(RunError, match="does not fit"):
        load_into(network, {"weight": torch.zeros(2, 2), "bias": torch.zeros(3)}, "trial")
    with pytest.raises(RunError, match="NaN or infinite"):
        load_into(network, {"weight": torch.full((3, 4), float("nan")), "bias": torch.zeros(3)}, "trial")
    assert torch.equal(network.weight, before)


def test_the_optimizer_state_of_another_network_is_refused() -> None:
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(2, 2))], fused=True)
    for name, shape in (("AdamW/5/exp_avg", (2, 2)), ("AdamW/0/exp_avg", (3, 7)), ("Muon/0/momentum", (2, 2))):
        with pytest.raises(RunError, match="does not fit"):
            checkpoints.load_optimizers([optimizer], {name: torch.zeros(shape)})


def test_a_weight_that_came_later_begins_with_the_optimizer_state_of_a_new_one() -> None:
    weights = [nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(2, 3))]
    optimizer = Muon(weights, lr=0.1, weight_decay=0.0, dtype=torch.float32)
    checkpoints.load_optimizers([optimizer], {"Muon/0/momentum": torch.full((2, 3), 7.0)})
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    momenta = [optimizer.state[weight]["momentum"] for weight in weights]
    assert torch.allclose(momenta[0], torch.full((2, 3), 0.95 * 7 + 0.05))
    assert torch.allclose(momenta[1], torch.full((2, 3), 0.05))
