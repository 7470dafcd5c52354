"""In place of the other machine's studio: trains nothing until there is a file `enough`, but tells of it in the run's
folder, heeds what is asked there and leaves what a training leaves.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Literal

import numpy as np

from studio.core import files
from studio.core.events import Blocked, CheckpointSaved, Events, LossChunk, RunFinished, RunStarted, SamplesReady
from studio.core.observers import observed
from studio.engine.control import server
from studio.engine.control.control import Control
from studio.engine.runs.folder import RunDir, RunProgress
from studio.engine.runs.samples import save_samples

FAR = Path(os.environ["FAR"])


def main(words: list[str]) -> int:
    assert words[0] == "resume"
    if (FAR / "fails").exists():
        sys.stderr.write("No device works.\nA training step failed.\n")
        return 1
    server.BEAT_S, server.POLL_S = 0.02, 0.01
    with (FAR / "starts").open("a") as starts:
        starts.write(" ".join(words[2:]) + "\n")
    run, control = RunDir(Path(words[1])), Control()
    run.acquire()
    *_, end = observed(training(run, control), [server.RunControlServer(control, can_pause=True)])
    assert isinstance(end, RunFinished)
    return 130 if end.reason == "stopped" else 0


def training(run: RunDir, control: Control) -> Events:
    first = step = run.progress().step
    run.write_progress(RunProgress("training", step, 0.0, {}, device_name="far card"))
    yield RunStarted(run.path, "classifier", "cuda", "bf16", 7, 20, 4, first, 0.0)
    while not is_stopped(control) and not (FAR / "enough").exists():
        time.sleep(0.01)
        while (FAR / "halts").exists():
            yield Blocked("error", "Can't write to there.")
        if (FAR / "breaks").exists():
            run.write_progress(RunProgress("failed", step, 0.01 * step, {}, "The card is gone."))
            sys.exit(1)
        loss = np.array([1 / (step + 1)], np.float32)
        chunk = LossChunk(step, loss, loss, 0.1, 100.0, 0.01 * step, 9.0, 0.5, 1 << 20)
        run.append(chunk)
        yield chunk
        step += 1
        if step % 5 == 0:
            yield save(run, step)
    yield save(run, step)
    reason: Literal["stopped", "finished"] = "stopped" if control.stop else "finished"
    run.write_progress(RunProgress(reason, step, 0.01 * step, {}, device_name="far card"))
    yield RunFinished(reason, step, 0.01 * step, run.path)


def is_stopped(control: Control) -> bool:
    return control.stop and not (FAR / "deaf").exists()


def save(run: RunDir, step: int) -> CheckpointSaved:
    """A checkpoint, of which two are kept, and a picture."""
    save_samples(run, SamplesReady(step, np.full((8, 8, 8, 4), step % 256, np.uint8)))
    if not (target := run.checkpoints / f"step-{step:08d}").exists():
        with files.atomic_path(target, durable=False) as temporary:
            temporary.mkdir()
            for name in ("checkpoint.json", "model.safetensors"):
                (temporary / name).write_bytes(b"%d" % step)
    for old in sorted(run.checkpoints.glob("step-*"))[:-2]:
        files.remove(old)
    run.append({"checkpoint": step})
    run.write_progress(RunProgress("training", step, 0.01 * step, {}, device_name="far card"))
    return CheckpointSaved(step, run.checkpoints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
