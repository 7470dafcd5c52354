"""What the list of runs says of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.core.events import LossChunk, RunFinished
from studio.data.sprites import Sprites
from studio.engine.runs.folder import METRICS_FILE
from studio.engine.runs.listing import run_folders, summarise
from studio.engine.runs.metrics import newest_loss_line
from tests.engine.tools import bare_run, of_kind, train_toy

TICK = '{"step":%d,"loss":[1.0,2.0],"grad_norm":[0.1,0.1],"lr":0.1,"sprites_per_s":9,"elapsed_s":%g,"memory_bytes":1}\n'


def test_a_run_that_trains_shows_the_steps_since_its_last_checkpoint(run_path: Path, sprites: Sprites) -> None:
    events = []
    for event in train_toy(run_path, sprites):
        events.append(event)
        if isinstance(event, LossChunk) and event.first_step:
            seen = summarise(run_path)
            assert seen.standing == "training" and seen.progress is not None and seen.progress.step == 0
            assert seen.step == event.first_step + len(event.losses)
            assert seen.elapsed_s == pytest.approx(event.elapsed_s, abs=1e-3)
    end = summarise(run_path)
    assert (end.step, end.elapsed_s) == (8, of_kind(events, RunFinished)[0].elapsed_s)


def test_fault_10_loop_of_links_hides_no_run(tmp_path: Path) -> None:
    run, loop = bare_run(tmp_path / "run").path, tmp_path / "loop"
    loop.symlink_to(loop)
    assert run_folders([loop, run]) == [run]


@pytest.mark.parametrize(
    ("lines", "step"),
    [
        (TICK % (0, 1.0) + TICK % (2, 2.0), 2),
        (TICK % (0, 1.0) + '{"step":2,"metrics":{"loss":1.0}}\n' + '{"step":2,"loss":[1.', 0),
        (TICK % (0, 1.0) + '{"resumed":0,"device":"cpu"}\n', None),
        (TICK % (0, 1.0) + '{"failed_step":2,"step":0,"lr_scale":0.5}\n', None),
        ("\n" + "x" * 300_000 + "\n" + TICK % (4, 3.0), 4),
        ("", None),
    ],
)  # fmt: skip
def test_the_newest_steps_are_read_from_the_end_of_the_file(tmp_path: Path, lines: str, step: int | None) -> None:
    (tmp_path / METRICS_FILE).write_text(lines)
    found = newest_loss_line(tmp_path / METRICS_FILE)
    assert (None if found is None else found.step) == step
