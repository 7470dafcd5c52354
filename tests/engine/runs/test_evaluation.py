"""What `studio evaluate` has found is kept with the run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from studio.core.events import Notice
from studio.engine.control.control import Control
from studio.engine.runs.evaluation import (
    CheckpointEvaluation,
    read_evaluations,
    remove_evaluations_after,
    save_evaluation,
)
from studio.engine.training.loop import train_resumed
from tests.conftest import make_sprites
from tests.engine.tools import CPU, bare_run, train_toy


def _of(step: int, kid: float = 0.5) -> CheckpointEvaluation:
    return CheckpointEvaluation(step, "2026-01-01T00:00:00+00:00", {"kid_heldout": kid}, {}, 20, 80, 64, {"seed": 0})


def test_the_latest_of_each_checkpoint_is_kept(tmp_path: Path) -> None:
    run = bare_run(tmp_path)
    for found in (_of(10), _of(20), _of(10, 0.25)):
        assert not list(save_evaluation(tmp_path, found))
    assert read_evaluations(tmp_path) == (_of(20), _of(10, 0.25))
    remove_evaluations_after(run, 15)
    assert read_evaluations(tmp_path) == (_of(10, 0.25),)


@pytest.mark.parametrize("text", ["", "{", '[{"step": "x"}]', "[1]"])
def test_a_damaged_file_holds_nothing_and_is_written_anew(tmp_path: Path, text: str) -> None:
    (bare_run(tmp_path).path / "evaluation.json").write_text(text)
    assert read_evaluations(tmp_path) == ()
    assert not list(save_evaluation(tmp_path, _of(10))) and read_evaluations(tmp_path) == (_of(10),)


def test_unsaved_evaluation_is_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(target: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run = bare_run(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    (notice,) = save_evaluation(run.path, _of(10))
    assert isinstance(notice, Notice) and "were not saved" in notice.title


def test_resume_removes_later_evaluations(run_path: Path) -> None:
    list(train_toy(run_path, make_sprites(), steps=4))
    for step in (4, 6):
        list(save_evaluation(run_path, _of(step)))
    list(train_resumed(run_path, CPU, Control()))
    assert read_evaluations(run_path) == (_of(4),)
