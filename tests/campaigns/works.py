"""What is killed or runs out of room: a training, an import, an export, a drawing of new sprites. Each can be repeated.

A work takes the folder that it works in, and says as it goes on how far it is.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from studio.cli import main as studio_main
from studio.core.events import Blocked, CheckpointSaved, Events, LossChunk, RunFinished, RunStarted
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.reading import reader_pool
from studio.engine.control.control import Control
from studio.engine.steps import timing
from studio.engine.training import live_samples, loop
from studio.engine.training.loop import train_resumed
from tests.campaigns.file_calls import FileCalls
from tests.conftest import make_sprites
from tests.engine.tools import CPU, Clock, train_classifier, train_generator

Say = Callable[..., None]
Work = Callable[[Path, Say], None]

STEPS, INTERVAL = 24, 4  # of a training, and between two of its checkpoints
KINDS = ("classifier", "generator")
EXPORTS = {"safetensors": "model.safetensors", "state_dict": "model.pt"}
# What is imported before anything is forked: also what commands and the first step of an optimizer import late.
LIBRARIES = [
    __name__, "torch._dynamo", "studio.cli.generate", "studio.engine.models.exporting", "studio.exports.png",
    "studio.exports.state_dict",
]  # fmt: skip


def pass_time_by_steps() -> None:
    """In this process a training's minutes pass by a clock of their own, a tick is a step, and samples cost little."""
    timing.time = Clock()  # type: ignore[assignment,attr-defined]
    loop.TICK_S = 0.0
    live_samples.SAMPLE_COUNT, live_samples.SAMPLE_STEPS = 4, 2


def train_on(kind: str, steps: int, interval: int, folder: Path, say: Say) -> None:
    """Begin a run, or go on with the one that is there; a checkpoint and samples every `interval` steps."""
    pass_time_by_steps()
    run, control = folder / "run", Control()
    events: Events
    if (run / "run.json").exists():
        events = train_resumed(run, CPU, control)
    elif kind == "classifier":
        events = train_classifier(run, make_sprites(per_class=8), control, steps=steps)
    else:
        events = train_generator(run, make_sprites(per_class=8), control, steps=steps)
    for event in events:
        if isinstance(event, RunStarted):
            assert not list(run.rglob(".tmp-*")), "What a crash has left half-written is still there."
            say("started", event.first_step)
        elif isinstance(event, LossChunk):
            done = event.first_step + len(event.losses)
            say("step", done)
            control.checkpoint_now = control.sample_now = done % interval == 0
        elif isinstance(event, CheckpointSaved):
            say("checkpoint", event.step)
        elif isinstance(event, Blocked):
            say("halted", control)
        elif isinstance(event, RunFinished):
            say("finished", event.step)


def import_all(folder: Path, say: Say) -> None:
    """Import the folder 'sprites', kept in 'cache'."""
    reader_pool._MIN_FILES = reader_pool._FILES_PER_PROCESS = 150
    for event in import_sprites([folder / "sprites"], ImportOptions(), folder / "cache"):
        if isinstance(event, SpritesImported):
            left_out = [(item.name, item.reason) for item in (*event.quarantine, *event.notes)]
            say("imported", (event.sprites.fingerprint, event.sprites.names, left_out))
            say("from the cache", event.from_cache)


def export_as(form: str, folder: Path, say: Say) -> None:
    """Export the model of 'run' to the folder 'out'."""
    _command(say, "export", str(folder / "run"), "--format", form, "--out", str(folder / "out" / EXPORTS[form]))


def generate_into(name: str, folder: Path, say: Say) -> None:
    """Draw new sprites with the model of 'run', as a sheet ('sheet.png') or as files in a folder, into 'out'."""
    flags = ["--count", "6", "--steps", "2", "--device", "cpu", "--out", str(folder / "out" / name)]
    _command(say, "generate", str(folder / "run"), *flags)


def _command(say: Say, *words: str) -> None:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):  # noqa: PTH123
        say("exit code", studio_main([*words]))


WORKS: dict[str, Work] = {
    **{f"train {kind}": partial(train_on, kind, STEPS, INTERVAL) for kind in KINDS},
    "import": import_all,
    **{f"export {form}": partial(export_as, form) for form in EXPORTS},
    "generate sheet": partial(generate_into, "sheet.png"),
    "generate files": partial(generate_into, "sprites"),
}


def plain(name: str, data: bytes) -> bytes:
    """What is in a file, the same each time: safetensors writes the texts of its header in no order."""
    if not name.endswith(".safetensors"):
        return data
    end = 8 + int.from_bytes(data[:8], "little")
    return json.dumps(json.loads(data[8:end]), sort_keys=True).encode() + data[end:]


def make_folder(name: str, folder: Path) -> None:
    """What a work of that name needs to be there."""
    folder.mkdir(parents=True)
    if name == "import":
        sprites = make_sprites(per_class=200)
        for rgba, path in zip(sprites.rgba, sprites.names, strict=True):
            (folder / "sprites" / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rgba).save(folder / "sprites" / path)
        (folder / "sprites" / "broken.png").write_text("not a picture")
    elif name.startswith(("export", "generate")):
        (folder / "out").mkdir()
        train_on("generator", 6, 2, folder, lambda *_: None)


def live(name: str, folder: Path, kill_at_call: int | None, line: Connection) -> None:
    """The life of a process that works, to its end or to its call of this number that changes a file.

    It tells by the line what it does, as (word, value), at the end how many calls it made, and what went wrong.
    """
    os.setsid()  # so that what it starts is known as its own
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["STUDIO_HOME"] = str(folder / "home")
    torch.set_num_threads(1)
    calls = FileCalls(folder)
    if kill_at_call is not None:
        calls.kill_at(kill_at_call, lambda call: line.send(("killed at", call)))

    def say(word: str, value: Any) -> None:
        line.send((word, value))

    try:
        say("begun", None)
        WORKS[name](folder, say)
        say("calls", calls.count)
    except BaseException:
        say("wrong", traceback.format_exc())
        raise
