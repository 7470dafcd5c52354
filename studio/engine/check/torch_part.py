"""The part of the system check that imports torch: facts about torch and the cards, and real training steps."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from studio.core.errors import StudioError
from studio.core.events import Event, Progress
from studio.engine.check import cards, speeds
from studio.engine.check.cards import SystemFacts, TorchFacts
from studio.engine.check.findings import BuildChosen, Finding
from studio.engine.devices.types import Device, DeviceMeasured
from studio.installing import torch_builds

_NVIDIA_SMI_S = 15.0
_HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ONEAPI_DEVICE_SELECTOR")
_SPRITE_PX, _CLASSES = 32, 10  # width and number of classes of made-up sprites


def check_torch() -> Iterator[Event]:
    """Check torch, the graphics cards and a training step on each device. Yields Finding, BuildChosen and Progress."""
    yield Progress(0, 0, "graphics cards")
    system = system_facts()
    choice = torch_builds.choose(system.computer)
    suggested = choice.build.name if choice else ""
    yield Progress(0, 0, "PyTorch")
    try:
        import torch
    except Exception as error:  # noqa: BLE001 - a damaged installation raises anything
        yield BuildChosen(suggested, "")
        yield _import_failed(error)
        return
    facts = torch_facts()
    yield BuildChosen(suggested, cards.build_name(facts))
    yield Finding("pytorch", "PyTorch", "good", f"{torch.__version__}, {cards.describe_build(facts)}.")
    yield from cards.explain_cards(system, facts)
    yield from _check_steps(facts.devices)


def system_facts() -> SystemFacts:
    """Ask the system about graphics cards and drivers."""
    computer = torch_builds.detect()
    has_driver = any(card.driver for card in computer.cards)
    kfd = Path("/dev/kfd")
    access = "ok" if os.access(kfd, os.R_OK | os.W_OK) else "denied" if kfd.exists() else "missing"
    return SystemFacts(computer, "" if has_driver else _nvidia_smi_message(), access, _is_translated())


def torch_facts() -> TorchFacts:
    """Ask torch about the build and the devices."""
    import torch

    from studio.engine.devices.detection import list_devices

    error = ""
    if torch.version.cuda or torch.version.hip:
        try:
            torch.cuda.init()
        except (RuntimeError, AssertionError) as failure:
            error = str(failure).partition("\n")[0]
    return TorchFacts(
        version=torch.__version__, cuda=torch.version.cuda or "", hip=torch.version.hip or "",
        xpu=bool(getattr(torch.version, "xpu", None)), mps=torch.backends.mps.is_built(),
        architectures=tuple(torch.cuda.get_arch_list()), devices=list_devices(), error=error,
        hidden=tuple(f"{name}={os.environ[name]}" for name in _HIDING if name in os.environ),
    )  # fmt: skip


def _import_failed(error: Exception) -> Finding:
    reason = (str(error) or type(error).__name__).partition("\n")[0]
    advice = "Repair the studio, or install PyTorch again."
    if platform.system() == "Windows" and isinstance(error, OSError):
        advice = "Install Microsoft's Visual C++ Redistributable. If this stays, repair the studio."
    return Finding(
        "pytorch", "PyTorch", "problem", f"PyTorch can't be loaded: {reason.rstrip('.')}.", advice,
        prevents_training=True, changes_build=True,
    )  # fmt: skip


def _check_steps(devices: tuple[Device, ...]) -> Iterator[Event]:
    """Take training steps on each device. If no device can take one, the last finding prevents training."""
    works, figures = False, speeds.read_figures()
    for device in devices:
        if device.problem:
            continue
        measured: list[DeviceMeasured] = []
        try:
            for event in _training_steps(device):
                if isinstance(event, DeviceMeasured):
                    measured.append(event)
                else:
                    yield event
        except Exception as error:  # noqa: BLE001 - a driver or a library raises anything
            reason = error.title if isinstance(error, StudioError) else str(error).partition("\n")[0]
            finding = speeds.failed_finding(device, f"A training step failed: {reason.rstrip('.')}.")
            yield replace(finding, prevents_training=device is devices[-1] and not works)
        else:
            works = True
            yield speeds.speed_finding(device, measured, figures)


def _training_steps(device: Device) -> Iterator[Event]:
    """Train a generator with its default settings on made-up sprites for a few seconds."""
    from studio.engine import catalog
    from studio.engine.steps.benchmark import measure
    from studio.recipes.base import Spec

    recipe = catalog.recipe()  # draws sprites
    spec = Spec(_SPRITE_PX, tuple(f"class {number}" for number in range(_CLASSES)))
    yield Progress(0, 0, f"training steps on {device.name}")
    yield from measure(recipe, recipe.Config(), spec, device)


def _nvidia_smi_message() -> str:
    """Return the message of a failing nvidia-smi; '' for a working or missing nvidia-smi."""
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, encoding="utf-8", errors="replace", timeout=_NVIDIA_SMI_S,
            check=False, creationflags=flags,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"nvidia-smi did not answer for {_NVIDIA_SMI_S:.0f} s"
    except OSError:
        return ""
    words = " ".join(f"{done.stdout} {done.stderr}".split())
    if done.returncode or not done.stdout.strip():
        return words or f"nvidia-smi failed with code {done.returncode}"
    return ""


def _is_translated() -> bool:
    """Return whether this is a Python for Intel processors on an Apple processor."""
    if platform.system() != "Darwin" or platform.machine() == "arm64":
        return False
    try:
        words = ["sysctl", "-n", "sysctl.proc_translated"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_NVIDIA_SMI_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "1"
