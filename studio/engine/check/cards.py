"""Explain whether PyTorch uses each graphics card, and why not: pure functions of facts about cards and PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from studio.core.formatting import memory
from studio.engine.check.findings import Finding, State
from studio.engine.devices.types import Device
from studio.installing import torch_builds
from studio.installing.torch_builds import Build, Card, Choice, Computer

_LEAST_FREE_BYTES, _LEAST_TOTAL_BYTES = 1_000_000_000, 2_000_000_000
_LEAST_DRIVERS = {11: (450, 80), 12: (525, 60), 13: (580, 65)}  # by major version of CUDA; NVIDIA's release notes
_CHANGE = "'Change PyTorch build…' in Help > System check, and the end of 'studio check', show the commands."
_MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
_CHECK, _TITLE = "graphics-card", "Graphics card"
# Parts of nvidia-smi's messages, with the fault and advice.
_DRIVER_FAULTS = (
    (
        "version mismatch", "The driver was updated while the old driver is still loaded.",
        "Restart the computer.",
    ),
    (
        "couldn't communicate", "NVIDIA's driver is installed but not loaded.",
        "Restart the computer. If this stays: reinstall the driver, and with Secure Boot, sign or enroll its module.",
    ),
    ("did not answer", "NVIDIA's driver does not answer.", "Restart the computer, then update the driver."),
    ("no devices were found", "NVIDIA's driver finds no card.", "Check the card's power and slot."),
    ("insufficient permissions", "You have no permission to use the card.", "Ask who manages this computer."),
)  # fmt: skip

_KFD_FAULTS = {
    "denied": (
        "You have no permission for /dev/kfd.",
        "Add yourself to the groups: sudo usermod -aG render,video $USER. Then log in again.",
    ),
    "missing": (
        "The kernel driver for AMD cards is not loaded: /dev/kfd is missing.", "Install the driver amdgpu with ROCm.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class TorchFacts:
    """Facts about the installed PyTorch and PyTorch's devices. cuda, hip: versions, '' in other builds.

    architectures: targets of the included CUDA code, for example 'sm_86' or 'compute_120'. error: why CUDA does not
    start, or ''. hidden: environment variables that hide cards, for example 'CUDA_VISIBLE_DEVICES='.
    """

    version: str
    cuda: str = ""
    hip: str = ""
    xpu: bool = False
    mps: bool = False
    architectures: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    error: str = ""
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemFacts:
    """Facts from the system about its cards. nvidia_smi: error message of nvidia-smi, or ''.

    kfd: 'ok', 'missing' or 'denied': the device file of AMD's compute driver. translated: an Intel Python on an Apple
    processor.
    """

    computer: Computer
    nvidia_smi: str = ""
    kfd: str = "missing"
    translated: bool = False


def build_name(torch: TorchFacts) -> str:
    """Return the name of the installed PyTorch build, as in uv's --torch-backend."""
    if torch.cuda:
        return "cu" + "".join(torch.cuda.split(".")[:2])
    if torch.hip:
        return "rocm" + ".".join(torch.hip.split(".")[:2])
    return "xpu" if torch.xpu else "mps" if torch.mps else "cpu"


def describe_build(torch: TorchFacts) -> str:
    """Return a text about the installed build, for example 'for NVIDIA cards, CUDA 13.2'."""
    if torch.cuda:
        return f"for NVIDIA cards, CUDA {torch.cuda}"
    if torch.hip:
        return f"for AMD cards, ROCm {torch.hip}"
    return "for Intel cards" if torch.xpu else "for Apple GPUs" if torch.mps else "for processors only"


def explain_cards(system: SystemFacts, torch: TorchFacts) -> Iterator[Finding]:
    """Yield a finding for each graphics card, or a single finding about a computer without cards."""
    if system.computer.system == "Darwin":
        yield _apple(system, torch)
        return
    cards = [
        card for card in system.computer.cards if card.vendor != "intel" or _choice(card, system).build.name == "xpu"
    ]
    if not cards and torch.devices and all(device.kind == "cpu" for device in torch.devices) and not system.nvidia_smi:
        yield Finding(
            _CHECK, _TITLE, "notice", "No card found that PyTorch can use. Models train on the processor.",
            "For faster training, use a computer with an NVIDIA card, or 'studio train --on' a computer that has one.",
        )  # fmt: skip
        return
    if system.nvidia_smi and not any(card.vendor == "nvidia" for card in cards):
        cards.append(Card("nvidia"))
    used = [device for device in torch.devices if device.kind != "cpu"]
    found = []
    for card in cards:
        device = _take_device(card, used, torch)
        works = device is not None and not device.problem
        found.append(_used(device) if device and works else _unused(card, system, torch, device))
    found += [_used(device) for device in used if not device.problem]  # the system does not list these cards
    is_any_used = any(device.kind != "cpu" and not device.problem for device in torch.devices)
    # Beside a card that is used, the processor's own graphics are not worth a notice.
    yield from (each for each in found if not (is_any_used and each.state == "notice" and "is not used" in each.text))


def _choice(card: Card, system: SystemFacts) -> Choice:
    """Return the build of PyTorch for this card alone; PyTorch's build for processors on an unknown system."""
    choice = torch_builds.choose(replace(system.computer, cards=(card,)))
    return choice or Choice(Build("cpu", "Processor only", 0, 0), "")


def _take_device(card: Card, devices: list[Device], torch: TorchFacts) -> Device | None:
    """Remove a card's device from the list and return the device; None if PyTorch lacks the card."""
    kind = "xpu" if card.vendor == "intel" else "cuda"
    if (card.vendor == "amd") != bool(torch.hip) and kind == "cuda":
        return None
    fitting = [device for device in devices if device.kind == kind]
    named = [device for device in fitting if card.name and card.name in device.name]
    if found := next(iter(named or (fitting if not card.name or card.vendor != "nvidia" else [])), None):
        devices.remove(found)
    return found


def _used(device: Device) -> Finding:
    free, total = device.memory_free_bytes, device.memory_total_bytes
    text = f"{device.name} is used as {device.id}. Memory free: {memory(free, total)}."
    if 0 < total < _LEAST_TOTAL_BYTES:
        return Finding(_CHECK, _TITLE, "notice", text, "The memory is small: choose a smaller width or batch size.")
    if total and free < _LEAST_FREE_BYTES:
        return Finding(_CHECK, _TITLE, "notice", text, "Close other programs that use the card.")
    return Finding(_CHECK, _TITLE, "good", text)


def _unused(card: Card, system: SystemFacts, torch: TorchFacts, device: Device | None) -> Finding:
    """Return the finding about an unused card. device: the failing device, or None if PyTorch lacks the card."""
    name = card.name or f"The {_MAKERS[card.vendor]} card"
    reason, advice, changes = _reason(card, system, torch, device)
    text = f"{name} is not used. {reason}"
    state: State = "problem" if card.vendor == "nvidia" or changes else "notice"
    if changes:
        title = _choice(card, system).build.title
        advice = (
            f"{advice} {'Then change' if advice else 'Change'} the build of PyTorch to '{title}'. {_CHANGE}".strip()
        )
    return Finding(_CHECK, _TITLE, state, text, advice, changes_build=changes)


def _reason(card: Card, system: SystemFacts, torch: TorchFacts, device: Device | None) -> tuple[str, str, bool]:
    """Return why torch doesn't use a card: a sentence, advice, and True if only another PyTorch build helps."""
    choice = _choice(card, system)
    fits = bool({"nvidia": torch.cuda, "amd": torch.hip, "intel": torch.xpu}[card.vendor])
    if card.vendor == "nvidia" and (fault := _driver_fault(card, system)):
        return (*fault, not fits)
    if card.vendor != "nvidia" and choice.build.name == "cpu":
        return choice.remedy or "PyTorch can't use it.", "", False
    if not fits:
        return f"The installed PyTorch {torch.version} is {describe_build(torch)}.", "", True
    if card.vendor == "amd" and system.kfd != "ok":
        return (*_KFD_FAULTS[system.kfd], False)
    return _nvidia_reason(card, torch, choice, device) if card.vendor == "nvidia" else _last_reason(torch, device)


def _driver_fault(card: Card, system: SystemFacts) -> tuple[str, str] | None:
    """Return the NVIDIA driver's fault and advice; None for a working driver."""
    message = system.nvidia_smi.lower()
    for part, reason, advice in _DRIVER_FAULTS:
        if part in message:
            return reason, advice
    if system.nvidia_smi:
        return f"NVIDIA's driver reports: {system.nvidia_smi.rstrip('.')}.", "Reinstall NVIDIA's driver."
    if not card.driver:
        advice = "Install NVIDIA's driver"
        on_linux = system.computer.system == "Linux"
        return (
            "NVIDIA's driver is missing.",
            f"{advice}{' from your distribution' * on_linux}, then restart the computer.",
        )
    return None


def _nvidia_reason(card: Card, torch: TorchFacts, choice: Choice, device: Device | None) -> tuple[str, str, bool]:
    """Return why a card with a driver and a build for NVIDIA is not used."""
    major = int(torch.cuda.split(".")[0])
    least = _LEAST_DRIVERS.get(major, (0, 0))
    other = choice.build.name not in ("cpu", build_name(torch))
    if _numbers(card.driver) < least:
        reason = f"The driver {card.driver} is too old for CUDA {torch.cuda} of the installed PyTorch."
        advice = f"Update NVIDIA's driver to {least[0]}.{least[1]} or newer."
        return reason, f"{advice} Or keep the driver." if other else advice, other
    if card.architecture and torch.architectures and not runs_on(card.architecture, torch.architectures):
        oldest = min(map(_capability, torch.architectures))
        age = "old" if _numbers(card.architecture) < oldest else "new"
        reason = (
            f"The card (compute capability {card.architecture}) is too {age} for the installed PyTorch {torch.version}."
        )
        if choice.build.name == "cpu":
            return reason, choice.remedy, False
        return reason, choice.remedy if other else "Update PyTorch.", other or age == "new"
    return _last_reason(torch, device)


def _last_reason(torch: TorchFacts, device: Device | None) -> tuple[str, str, bool]:
    if torch.hidden and device is None:
        names = ", ".join(torch.hidden)
        return f"An environment variable hides it: {names}.", "Remove the variable, then start the studio again.", False
    if device is not None:
        if "out of memory" in device.problem:
            return device.problem, "Close other programs that use the card.", False
        return device.problem, "Restart the computer. If this stays, update the driver of the card.", False
    reason = f"PyTorch reports: {torch.error.rstrip('.')}." if torch.error else "PyTorch does not find it."
    return reason, "Restart the computer. If this stays, update the driver of the card.", False


def runs_on(capability: str, architectures: Sequence[str]) -> bool:
    """Return whether CUDA code for the architectures runs on a card. capability: the card's, for example '8.6'.

    Code for sm_XY runs on cards X.Y and later cards with equal X; sm_90a runs only on 9.0. For newer cards, CUDA
    compiles code for compute_XY while loading.
    """
    card = _numbers(capability)
    for name in architectures:
        code = _capability(name)
        if name.startswith("compute") and code <= card:
            return True
        if name.startswith("sm") and (code == card if name.endswith("a") else code[0] == card[0] and code <= card):
            return True
    return False


def _capability(architecture: str) -> tuple[int, int]:
    """Return (8, 6) for 'sm_86', and (12, 0) for 'compute_120'."""
    digits = "".join(re.findall(r"\d", architecture)) or "00"
    return int(digits[:-1] or 0), int(digits[-1])


def _numbers(text: str) -> tuple[int, int]:
    first, second, *_ = [*map(int, re.findall(r"\d+", text)[:2]), 0, 0]
    return first, second


def _apple(system: SystemFacts, torch: TorchFacts) -> Finding:
    gpu = next((device for device in torch.devices if device.kind == "mps"), None)
    if gpu is not None:
        return (
            _used(gpu) if not gpu.problem else Finding(_CHECK, _TITLE, "problem", gpu.problem, "Restart the computer.")
        )
    if system.translated:
        text = "The Apple GPU is not used. This Python is for Intel processors and runs translated."
        return Finding(
            _CHECK, _TITLE, "problem", text, "Install Python for Apple processors, then install the studio anew."
        )
    if system.computer.machine != "arm64":
        return Finding(_CHECK, _TITLE, "notice", "PyTorch does not use the cards of Intel Macs.", "")
    if not torch.mps:
        text = f"The Apple GPU is not used. The installed PyTorch {torch.version} is {describe_build(torch)}."
        return Finding(_CHECK, _TITLE, "problem", text, f"Install PyTorch again. {_CHANGE}", changes_build=True)
    return Finding(_CHECK, _TITLE, "problem", "The Apple GPU is not used.", "Update to macOS 14 or newer.")
