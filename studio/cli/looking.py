"""The commands that look and change nothing: devices, inspect, runs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from studio.cli.finding import read_sprites
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core.wording import count, decimal, duration, figure, figure_title, memory, number, rate
from studio.data.imported import Quarantined
from studio.data.sprites import Sprites
from studio.engine.history import RunsListed, RunSummary, list_runs
from studio.engine.known_runs import known_runs

if TYPE_CHECKING:
    from studio.engine.devices import Device
    from studio.engine.measure import DeviceMeasured

_MOST_CLASSES = 30
_MOST_NAMES = 5
_BAR = 24  # letters


def runs(args: argparse.Namespace) -> int:
    """List every run, the newest first."""
    reporter = reporter_for(args)
    listed = list(list_runs(extra=known_runs()))[-1]
    assert isinstance(listed, RunsListed)
    for run in listed.runs:
        reporter.record({"type": "RunSummary", **vars(run)})
    if not listed.runs:
        reporter.say("There are no runs yet. 'studio train FOLDER' makes one.")
        return 0
    columns = ("name", "recipe", "data", "device", ">steps", ">best", ">time", "state")
    reporter.table(columns, [_run_row(run) for run in listed.runs])
    return 0


def inspect(args: argparse.Namespace) -> int:
    """Say what an import finds."""
    reporter = reporter_for(args)
    found = read_sprites(args, args.paths, reporter)
    sprites = found.sprites
    reporter.say(
        f"{sprites.title}: {count(len(sprites), 'sprite')} in {count(len(sprites.class_names), 'class', 'classes')}, "
        f"canvas {sprites.size} x {sprites.size} pixels"
        + (f" (proposed: {found.proposed_size})" if found.proposed_size != sprites.size else "")
    )
    sizes = Counter(dict(found.sizes)).most_common(_MOST_NAMES)
    more = f", and {len(found.sizes) - len(sizes)} more" if len(found.sizes) > len(sizes) else ""
    reporter.say("Sizes: " + ", ".join(f"{w} x {h} ({number(total)})" for (w, h), total in sizes) + more)
    counts = sorted(zip(sprites.class_counts().tolist(), sprites.class_names, strict=True), key=lambda pair: -pair[0])
    reporter.say()
    reporter.table(("class", ">sprites"), [(name, number(total)) for total, name in counts[:_MOST_CLASSES]])
    if len(counts) > _MOST_CLASSES:
        reporter.say(f"and {count(len(counts) - _MOST_CLASSES, 'more class', 'more classes')}")
    _say_numbers(reporter, sprites)
    most = max(len(found.quarantine), len(found.notes)) if args.all else _MOST_NAMES
    _say_groups(reporter, "Left out", found.quarantine, most)
    _say_groups(reporter, "Kept, but worth a look", found.notes, most)
    return 0


def devices(args: argparse.Namespace) -> int:
    """List the devices, and time them on request."""
    from studio.engine.devices import DevicesFound, find_devices

    reporter = reporter_for(args)
    found = follow(find_devices(), reporter, DevicesFound)
    columns = ("device", "name", ">memory free", "best in", "")
    reporter.table(columns, [_device_row(device, found.fastest) for device in found.devices])
    if args.measure:
        figures = _measured([device for device in found.devices if not device.problem], args, reporter)
        top = max(item.sprites_per_s for item in figures)
        reporter.say()
        headings = ("device", "precision", ">speed", "", ">transfer", ">compute")
        reporter.table(headings, [_measure_row(item, top) for item in figures])
    return 0


def _measured(found: Sequence[Device], args: argparse.Namespace, reporter: Reporter) -> list[DeviceMeasured]:
    from studio.core.errors import UsageError
    from studio.data.imported import LARGEST_CANVAS
    from studio.engine import catalogue
    from studio.engine.measure import DeviceMeasured, measure
    from studio.recipes.base import Spec

    if not 4 <= args.size <= LARGEST_CANVAS:
        raise UsageError(f"--size must be from 4 to {LARGEST_CANVAS}, not {args.size}.")
    recipe = catalogue.recipe(args.recipe)
    spec = Spec(args.size, tuple(f"class {number}" for number in range(10)))
    figures: list[DeviceMeasured] = []
    for device in found:
        for event in measure(recipe, recipe.Config(), spec, device):
            reporter.show(event)
            if isinstance(event, DeviceMeasured):
                figures.append(event)
    reporter.clear()
    return figures


def _device_row(device: Device, fastest: str) -> tuple[str, ...]:
    if device.problem:
        return (device.id, device.name, "", "", f"does not work: {device.problem}")
    name = f"{device.name} ({count(device.threads, 'thread')})" if device.threads else device.name
    free = memory(device.memory_free_bytes, device.memory_total_bytes)
    return (device.id, name, free, "bf16" if device.bf16 else "fp32", "fastest" if device.id == fastest else "")


def _measure_row(item: DeviceMeasured, top: float) -> tuple[str, ...]:
    bar = "█" * max(1, round(_BAR * item.sprites_per_s / top))
    transfer, compute = f"{item.transfer_ms:.1f} ms", f"{item.compute_ms:.1f} ms"
    return (item.device_id, item.precision, rate(item.sprites_per_s), bar, transfer, compute)


def _run_row(run: RunSummary) -> tuple[str, ...]:
    record, progress = run.record, run.progress
    if record is None or progress is None:
        return (run.path.name, "", "", "", "", "", "", f"{run.standing}: {run.problem}")
    best = ", ".join(f"{figure_title(name)} {figure(name, value)}" for name, value in progress.headline.items())
    data = f"{record.data_title} ({number(record.data_count)})"
    state = f"{run.standing}: {progress.message}" if progress.message else run.standing
    return (
        record.name, record.recipe, data, record.device, number(progress.step), best,
        duration(progress.elapsed_s), state,
    )  # fmt: skip


def _say_numbers(reporter: Reporter, sprites: Sprites) -> None:
    """Each number that a labels.csv gives: how many sprites have it, and what it is from and to."""
    rows = []
    for name, column in zip(sprites.target_names, sprites.targets.T, strict=True):
        known = column[~np.isnan(column)]
        ends = (decimal(float(known.min())), decimal(float(known.max()))) if len(known) else ("", "")
        rows.append((name, number(len(known)), *ends))
    if rows:
        reporter.say()
        reporter.table(("number", ">sprites", ">from", ">to"), rows)


def _say_groups(reporter: Reporter, title: str, items: Iterable[Quarantined], most: int) -> None:
    """Groups with their counts, and the first `most` names of each."""
    groups: dict[str, list[Quarantined]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    if groups:
        reporter.say(f"\n{title}:")
    for group, members in groups.items():
        reporter.say(f"  {group}: {number(len(members))}")
        for item in members[:most]:
            reporter.say(f"    {item.name}: {item.reason}")
        if len(members) > most:
            reporter.say(f"    and {number(len(members) - most)} more; --all names them")
