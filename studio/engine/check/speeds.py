"""Compare measured training speeds with other computers' figures from assets/devices.json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from studio.core import paths, records
from studio.core.formatting import rate
from studio.engine.check.findings import Finding
from studio.engine.devices.types import Device, DeviceMeasured

_SLOW_SHARE = 0.5  # of the device's figure; slower steps give a notice


@dataclass(frozen=True)
class Figure:
    """A measured training speed of a device: the generator with its defaults, 64 sprites of 32 x 32 pixels a step.

    device: torch's name of the card, or the processor's. threads: of a processor, else 0. date: YYYY-MM-DD. how: the
    command and the versions.
    """

    device: str
    threads: int
    precision: str
    sprites_per_s: float
    date: str
    how: str


def read_figures() -> tuple[Figure, ...]:
    """Return the figures in assets/devices.json; an empty tuple for a missing or damaged file."""
    try:
        return records.parse((paths.assets() / "devices.json").read_bytes(), tuple[Figure, ...])
    except (OSError, ValueError):
        return ()


def speed_finding(device: Device, measured: Sequence[DeviceMeasured], figures: Iterable[Figure]) -> Finding:
    """Return the finding about a device that has taken training steps. measured: in one or more precisions."""
    best = max(measured, key=lambda each: each.sprites_per_s)
    title = "Training step" if device.kind == "cpu" else f"Training step on {device.id}"
    threads = f", {device.threads} threads" if device.kind == "cpu" else ""
    text = f"{device.name}{threads}: {rate(best.sprites_per_s)} in {best.precision}."
    same = [each for each in figures if (each.device, each.threads) == (device.name, device.threads)]
    if not same:
        return Finding("training-step", title, "good", f"{text} No comparison: nobody has measured this device.")
    figure = max(same, key=lambda each: each.sprites_per_s)
    text = f"{text} Measured on the same device on {figure.date}: {rate(figure.sprites_per_s)} in {figure.precision}."
    if best.sprites_per_s < _SLOW_SHARE * figure.sprites_per_s:
        advice = "Other programs or a running training may use the device. Close them, then check again."
        return Finding("training-step", title, "notice", text, advice)
    return Finding("training-step", title, "good", text)


def failed_finding(device: Device, reason: str) -> Finding:
    """Return the finding about a device that fails to take a training step."""
    title = f"Training step on {device.id}"
    if device.kind == "cpu":
        return Finding("training-step", title, "problem", reason, "Close other programs, then check again.")
    advice = "Restart the computer. If this stays, update the driver, or train on the processor."
    return Finding("training-step", title, "problem", f"{device.name}: {reason}", advice)
