"""`studio export --format tensorboard`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from studio.cli.messages import WRONG_USAGE
from tests.cli.tools import Studio


def test_a_runs_history_is_written_for_tensorboard(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    logs = tmp_path / "logs"
    said = studio("export", generator_run, "--format", "tensorboard", "--out", logs).out
    assert f"tensorboard --logdir {logs}\n" in said
    assert [path.parent.name for path in logs.glob("*/events.out.tfevents.*")] == [generator_run.name]
    run = shutil.copytree(generator_run, tmp_path / "run")
    found = studio("export", run, "--format", "tensorboard", "--json").objects()[-1]
    assert found == {"type": "EventLogSaved", "path": str(run / "exports" / "tensorboard" / "run")}
    words = ["export", run, "--format", "tensorboard", "--checkpoint", "4"]
    assert "Remove --checkpoint" in studio(*words, code=WRONG_USAGE).err
    assert "tensorboard" in studio("export", "--format", "safetensors", "--help").out


def test_the_printed_command_runs_nothing_of_a_folders_name(
    generator_run: Path, tmp_path: Path, studio: Studio
) -> None:
    logs = tmp_path / "$(touch x) `touch x`"
    said = studio("export", generator_run, "--format", "tensorboard", "--out", logs).out
    printed = said.rpartition("View them:")[2].replace("tensorboard", "echo", 1)
    done = subprocess.run(["sh", "-c", printed], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"--logdir {logs}\n"
    assert not (tmp_path / "x").exists()
