"""What runs take on the disk, and what of it can go without taking anything that is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.core import paths
from studio.core.events import Event, Notice, RunStarted
from studio.core.metrics import LOSS
from studio.engine.control.control import Control
from studio.engine.models import loading
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import (
    CheckpointInfo,
    best_checkpoint,
    checkpoint_path,
    essential_checkpoints,
    list_checkpoints,
    save,
)
from studio.engine.runs.folder import RunDir
from studio.engine.runs.maintenance.disk_use import (
    CLEANUP_KINDS,
    KEPT_SAMPLES,
    Removable,
    SpaceFound,
    SpaceFreed,
    UseMeasured,
    disk_use,
    measure_use,
    total_bytes,
)
from studio.engine.runs.maintenance.free_space import find_space, free_space
from studio.engine.runs.samples import sample_paths
from studio.engine.training.loop import train_resumed
from tests.conftest import make_sprites, posix
from tests.engine.tools import CPU, kept_run, of_kind, train_toy

PARTS = {part: {"weight": torch.zeros(3)} for part in checkpoints.PARTS}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three steps, trained once."""
    return kept_run(tmp_path_factory, make_sprites(), train_toy, steps=3)


@pytest.fixture
def run(trained: Path, run_path: Path) -> RunDir:
    """A run with many checkpoints, and with whatever else can go."""
    made = RunDir(shutil.copytree(trained, run_path))
    for number in range(4, 9):
        info = CheckpointInfo(number, number, 1.0 * number, {"loss": float(number)}, {})
        save(made.checkpoints, info, {part: _part(made, part) for part in checkpoints.PARTS})
    for step in range(1000, 1060):
        (made.samples / f"{step:08d}.png").write_bytes(b"x" * 10)
    (made.checkpoints / "damaged-step-00000001").mkdir()
    (made.checkpoints / "damaged-step-00000001" / "model.safetensors").write_bytes(b"x" * 100)
    (made.path / "exports").mkdir()
    (made.path / "exports" / "model.onnx").write_bytes(b"x" * 1000)
    paths.cache().mkdir(parents=True)
    (paths.cache() / "import").write_bytes(b"x" * 500)
    return made


def _part(run: RunDir, part: str) -> checkpoints.Tensors:
    path, info = list_checkpoints(run.checkpoints)[-1]
    return checkpoints.load_tensors(path, info, part)


def _found(*runs: Path) -> SpaceFound:
    (found,) = of_kind(list(find_space(runs, with_cache=True)), SpaceFound)
    return found


def _of(found: SpaceFound, *kinds: str) -> list[Removable]:
    return [item for item in found.items if item.kind in kinds]


def _freed(events: Sequence[Event]) -> int:
    (freed,) = of_kind(list(events), SpaceFreed)
    return freed.size_bytes


def _measured(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_deletable_files_are_found_by_kind_with_sizes(run: RunDir) -> None:
    found, steps = _found(run.path), [info.step for _, info in list_checkpoints(run.checkpoints)]
    assert {kind.name for kind in CLEANUP_KINDS} == {item.kind for item in found.items}
    saved = list_checkpoints(run.checkpoints)
    essential = essential_checkpoints(saved, None)
    assert [item.path for item in _of(found, "checkpoints")] == [path for path, _ in saved if path not in essential]
    assert 0 < len(_of(found, "checkpoints")) < len(steps)
    assert len(_of(found, "samples")) == len(sample_paths(run)) - KEPT_SAMPLES
    for item in found.items:
        size = item.path.stat().st_size if item.path.is_file() else _measured(item.path)
        assert item.size_bytes == size > 0


def test_freeing_usual_kinds_keeps_the_run_usable(run: RunDir) -> None:
    best = loading.find_checkpoint(run.path, "best")[1].step
    needed = essential_checkpoints(list_checkpoints(run.checkpoints), None)
    usual = [kind.name for kind in CLEANUP_KINDS if kind.is_usual]
    found = _found(run.path)
    before = _measured(run.path)
    assert _freed(list(free_space(_of(found, *usual)))) == before - _measured(run.path) > 0
    assert {path for path, _ in list_checkpoints(run.checkpoints)} == needed
    assert loading.find_checkpoint(run.path, "best")[1].step == best
    assert (run.path / "exports" / "model.onnx").exists() and len(sample_paths(run)) > KEPT_SAMPLES
    assert not _of(_found(run.path), *usual)
    assert not run.is_busy() and (paths.cache() / "import").exists()
    resumed = train_resumed(run.path, CPU, Control(), 1.0)
    assert next(event for event in resumed if isinstance(event, RunStarted)).first_step == 8
    resumed.close()


def test_selected_kinds_are_freed(run: RunDir) -> None:
    list(free_space(_of(_found(run.path), "samples", "exports", "cache")))
    steps = list(sample_paths(run))
    assert len(steps) == KEPT_SAMPLES and steps[-1] == 1059
    assert not list((run.path / "exports").iterdir()) and not list(paths.cache().iterdir())


def test_a_run_that_trains_is_left_alone(run: RunDir) -> None:
    items = _found(run.path).items
    other = RunDir(run.path)
    other.acquire()
    try:
        found = _found(run.path)
        assert found.busy == (run.path,) and {item.kind for item in found.items} == {"cache"}
        events = list(free_space([item for item in items if item.run]))
    finally:
        other.release()
    assert _freed(events) == 0 and "being trained" in of_kind(events, Notice)[0].title
    assert _found(run.path).items == items


def test_no_checkpoint_goes_where_one_that_stays_is_damaged(run: RunDir) -> None:
    items = _of(_found(run.path), "checkpoints")
    (checkpoint_path(run.checkpoints, 8) / "model.safetensors").write_bytes(b"gone bad")
    events = list(free_space(items))
    assert _freed(events) == 0 and "damaged" in of_kind(events, Notice)[0].title
    assert all(item.path.exists() for item in items) and not run.is_busy()


def test_bytes_that_could_not_be_removed_are_not_counted_as_freed(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    items, before = _of(_found(run.path), "checkpoints"), _measured(run.path)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda path, **named: (path / "model.safetensors").unlink())
        freed = _freed(list(free_space(items)))
    assert 0 < freed == before - _measured(run.path) < sum(item.size_bytes for item in items)
    assert (
        sum(item.size_bytes for item in _of(_found(run.path), "leftovers"))
        >= sum(item.size_bytes for item in items) - freed
    )


def test_files_needed_again_are_kept(run: RunDir) -> None:
    items = _of(_found(run.path), "checkpoints")
    for path, info in list_checkpoints(run.checkpoints)[-2:]:
        if info.step == 8:
            checkpoints.quarantine(path)
    list(free_space(items))
    assert checkpoint_path(run.checkpoints, 7).exists()


def test_nothing_goes_of_a_run_that_can_not_be_read_or_has_gone(run: RunDir, tmp_path: Path) -> None:
    (run.path / "run.json").write_text("{")
    assert not _of(_found(run.path, tmp_path / "gone"), "checkpoints", "samples", "exports", "leftovers")
    gone = Removable("exports", tmp_path / "gone", tmp_path / "gone" / "exports", 5)
    assert _freed(list(free_space([gone]))) == 0 and not (tmp_path / "gone").exists()


@posix
def test_shared_files_count_once_and_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "own").write_bytes(b"x" * 100)
    (one / "sprites").write_bytes(b"x" * 1000)
    os.link(one / "sprites", two / "sprites")
    (two / "all").symlink_to(tmp_path)
    link = (two / "all").lstat().st_size
    (measured,) = of_kind(list(measure_use([one, two])), UseMeasured)
    assert [use.size_bytes for use in measured.uses.values()] == [1100, 1100 + link]
    assert total_bytes(measured.uses.values()) == 1200 + link
    assert disk_use(tmp_path / "nowhere").size_bytes == 0
    for folder in (one, two):
        os.link(folder / "inner" / "own", folder / "inner" / "more")
    real = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: os.stat_result((real(path).st_mode, 0, *real(path)[2:])))
    own = [disk_use(folder / "inner" / "own") for folder in (one, two)]
    assert total_bytes(own) == 200  # on a drive that numbers no files, two files of one size are two files


_FIGURES = st.fixed_dictionaries(
    {"loss": st.sampled_from([0.1, 0.2, 0.3])},
    optional={"kid": st.sampled_from([0.0, 0.05, 0.055, 0.2, 2.0]), "copies": st.sampled_from([0.0, 0.4, 0.9])},
)


@settings(max_examples=200, deadline=None)
@given(figures=st.lists(_FIGURES, min_size=1, max_size=8))
@pytest.mark.slow
def test_the_best_is_the_same_among_those_that_stay(figures: list[dict[str, float]]) -> None:
    measured = {"kid_error": 0.01, "kid_real": 0.0, "copies": 0.0, "copies_real": 0.05}
    found = [
        (Path(str(step)), CheckpointInfo(step, step, 1.0, {**(measured if "kid" in one else {}), **one}, {}))
        for step, one in enumerate(figures, 1)
    ]
    keep = essential_checkpoints(found, LOSS)
    stays = [entry for entry in found if entry[0] in keep]
    assert best_checkpoint(stays, LOSS) == best_checkpoint(found, LOSS) and stays[-1] == found[-1]
    assert essential_checkpoints(stays, LOSS) == keep
