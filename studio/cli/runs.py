"""The commands that look and change nothing: devices, runs. See inspect.py for sprites."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core.formatting import count, duration, memory, number, rate
from studio.core.metrics import format_metric, metric_title
from studio.core.names import nfc
from studio.engine.devices.types import Device, DeviceMeasured, DevicesFound
from studio.engine.runs.listing import RunsListed, RunSummary, data_label, list_runs, remembered_runs
from studio.engine.runs.maintenance.disk_use import disk_use, total_bytes

_BAR = 24  # letters


def runs(args: argparse.Namespace) -> int:
    """List every run, the newest first."""
    reporter = reporter_for(args)
    listed = list(list_runs(extra=remembered_runs()))[-1]
    assert isinstance(listed, RunsListed)
    chosen = [run for run in listed.runs if _is_wanted(run, args)]
    uses = {run.path: disk_use(run.path) for run in chosen} if args.disk else {}
    for run in chosen:
        size = {"size_bytes": uses[run.path].size_bytes} if args.disk else {}
        reporter.record({"type": "RunSummary", **vars(run), **size})
    if not listed.runs:
        reporter.say("There are no runs yet. 'studio train FOLDER' makes one.")
        return 0
    if not chosen:
        reporter.say(f"None of {count(len(listed.runs), 'run')} is like that.")
        return 0
    more: dict[str, list[str]] = {}
    if any(run.notes.tags for run in chosen):
        more["tags"] = [", ".join(run.notes.tags) for run in chosen]
    if args.disk:
        more[">on disk"] = [memory(uses[run.path].size_bytes) for run in chosen]
    columns = ("name", "recipe", "data", "device", ">steps", ">held out", ">time", "state", *more)
    reporter.table(columns, [(*_run_row(run), *rest) for run, *rest in zip(chosen, *more.values(), strict=True)])
    if args.disk:
        reporter.say(
            f"{count(len(chosen), 'run')}: {memory(total_bytes(uses.values()))}. 'studio free' says what can go."
        )
    return 0


def devices(args: argparse.Namespace) -> int:
    """List the devices, and time them on request."""
    from studio.engine.devices.detection import PROBE_BATCH, PROBE_SIZE, find_devices

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
        if args.recipe:  # whoever writes one wants to know
            speeds = {device.id: device.steps_per_s * PROBE_BATCH for device in found.devices}
            best = max(figures, key=lambda item: item.sprites_per_s)
            cost = speeds[best.device_id] * (PROBE_SIZE / args.size) ** 2 / best.sprites_per_s
            reporter.say(f"relative_cost = {cost:.1f}, on {best.device_id} in {best.precision}")
    return 0


def _measured(found: Sequence[Device], args: argparse.Namespace, reporter: Reporter) -> list[DeviceMeasured]:
    from studio.core.errors import UsageError
    from studio.data.options import LARGEST_CANVAS
    from studio.engine import catalog
    from studio.engine.steps.benchmark import measure
    from studio.recipes.base import Spec

    if not 4 <= args.size <= LARGEST_CANVAS:
        raise UsageError(f"--size must be from 4 to {LARGEST_CANVAS}, not {args.size}.")
    recipe = catalog.recipe(args.recipe)
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
    return (device.id, name, free, device.precision, "fastest" if device.id == fastest else "")


def _measure_row(item: DeviceMeasured, top: float) -> tuple[str, ...]:
    bar = "█" * max(1, round(_BAR * item.sprites_per_s / top))
    transfer, compute = f"{item.transfer_ms:.1f} ms", f"{item.compute_ms:.1f} ms"
    return (item.device_id, item.precision, rate(item.sprites_per_s), bar, transfer, compute)


def _is_wanted(run: RunSummary, args: argparse.Namespace) -> bool:
    tags = {tag.casefold() for tag in run.notes.tags}
    return {nfc(tag).casefold() for tag in args.tag} <= tags and (run.notes.starred or not args.starred)


def _run_row(run: RunSummary) -> tuple[str, ...]:
    record, progress = run.record, run.progress
    name = f"★ {run.title}" if run.notes.starred else run.title
    if record is None or progress is None:
        return (name, "", "", "", "", "", "", f"{run.standing}: {run.problem}")
    heldout = ", ".join(
        f"{metric_title(name)} {format_metric(name, value)}" for name, value in progress.headline.items()
    )
    state = f"{run.standing}: {progress.message}" if progress.message else run.standing
    return (
        name, record.recipe, data_label(record), record.device, number(run.step), heldout,
        duration(run.elapsed_s), state,
    )  # fmt: skip
