"""`studio devices`: the devices that can train, and how fast they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core.formatting import count, memory, rate
from studio.engine.devices.types import Device, DeviceMeasured, DevicesFound

_BAR_LETTERS = 24


def devices(args: argparse.Namespace) -> int:
    """List the devices; with --measure, time training steps on each. Raises UsageError."""
    from studio.engine.devices.detection import PROBE_BATCH, PROBE_SIZE, find_devices

    reporter = reporter_for(args)
    found = run_job(find_devices(), reporter, DevicesFound)
    columns = ("device", "name", ">memory free", "best in", "")
    reporter.print_table(columns, [_device_row(device, found.fastest) for device in found.devices])
    if args.measure:
        figures = _measured([device for device in found.devices if not device.problem], args, reporter)
        top = max(item.sprites_per_s for item in figures)
        reporter.print()
        headings = ("device", "precision", ">speed", "", ">transfer", ">compute")
        reporter.print_table(headings, [_measure_row(item, top) for item in figures])
        if args.recipe:  # authors of a recipe copy this number into it
            speeds = {device.id: device.steps_per_s * PROBE_BATCH for device in found.devices}
            best = max(figures, key=lambda item: item.sprites_per_s)
            cost = speeds[best.device_id] * (PROBE_SIZE / args.size) ** 2 / best.sprites_per_s
            reporter.print(f"relative_cost = {cost:.1f}, on {best.device_id} in {best.precision}")
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
    bar = "█" * max(1, round(_BAR_LETTERS * item.sprites_per_s / top))
    transfer, compute = f"{item.transfer_ms:.1f} ms", f"{item.compute_ms:.1f} ms"
    return (item.device_id, item.precision, rate(item.sprites_per_s, f"{item.noun}s"), bar, transfer, compute)
