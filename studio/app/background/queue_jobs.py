"""The window's jobs on the queue of trainings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.background import jobs
from studio.app.background.job_events import QueueChanged
from studio.core.config import TrainingConfig
from studio.core.events import Events
from studio.data.sprites import Sprites
from studio.engine.devices.types import Device, ParentSource
from studio.engine.runs import queue

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary
    from studio.recipes.base import Recipe


def add(sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, source: ParentSource) -> Events:
    """Make a new run that waits, starting from the model that `source` names, if it names one."""
    from studio.engine.training.create import NewRun, queue_new
    from studio.engine.training.parents import load_parent

    parent = load_parent(source, recipe) if source is not None else None
    yield from queue_new(NewRun(jobs.new_folder(sprites, recipe), sprites, recipe, config, device, parent))


def move(run: Path, to: int, waiting: Sequence[RunSummary]) -> Events:
    """Give a run another place, counted from 0."""
    queue.move(run, to, waiting)
    yield QueueChanged()


def remove(run: Path) -> Events:
    """Take a run out of the queue; it is kept."""
    queue.remove(run)
    yield QueueChanged()


def settle(run: Path, why_not_begun: str) -> Events:
    """Take a run that has ended out of the queue, and one that could not even be begun, if it says why."""
    if why_not_begun:
        queue.mark_failed(run, why_not_begun)
    queue.remove_if_ended(run)
    yield QueueChanged()
