"""The builds of PyTorch, and the choice of a build for a computer: `choose(detect())`.

PyTorch publishes a wheel for each kind of graphics card. The package index holds a single build for each system; the
other builds come from PyTorch's own index. The table below describes torch 2.15: a new version in requirements.lock may
need a new table. Drivers: NVIDIA's release notes of CUDA (table 'minor version compatibility'). Compute capabilities:
PyTorch's RELEASE.md.
"""

from __future__ import annotations

import csv
import json
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_GB = 10**9
_ARCHITECTURES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Card:
    """A graphics card. vendor: 'nvidia', 'amd' or 'intel'.

    driver: version of NVIDIA's driver, for example '580.95.05'; '' without a driver.
    architecture: compute capability such as '8.6' (NVIDIA), 'gfx1100' (AMD), 'xe' or 'i915' (Intel's kernel driver);
    '' if unknown.
    """

    vendor: str
    name: str = ""
    driver: str = ""
    architecture: str = ""


@dataclass(frozen=True)
class Computer:
    """The parts of a computer that decide the build. system, machine: as `platform.system()` and `.machine()`."""

    system: str
    machine: str
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True)
class Build:
    """A build of PyTorch. name: a value of uv's option --torch-backend, which knows the index of each build.

    download, disk: bytes to fetch and bytes on the disk, all other packages included.
    on_index: the package index has this build, with hashes; else PyTorch's index has it. torch: the requirement.
    tried: the build was installed and ran here.
    """

    name: str
    title: str
    download: int
    disk: int
    on_index: bool = False
    torch: str = "torch"
    tried: bool = False


@dataclass(frozen=True)
class Choice:
    """The build for a computer, and why. remedy: what makes PyTorch use the card, '' if it does or without a card."""

    build: Build
    reason: str
    remedy: str = ""


def builds(system: str, machine: str) -> tuple[Build, ...]:
    """Return the builds that exist for a system, the usual build first. Empty: PyTorch has none, as on Intel Macs."""
    architecture = _ARCHITECTURES.get(machine.lower(), "")
    if system == "Darwin" and architecture == "arm64":
        return (Build("mps", "Apple GPU", _gb(0.4), _gb(1.3), on_index=True),)
    if system not in ("Linux", "Windows") or not architecture:
        return ()
    linux = system == "Linux"
    cpu = Build("cpu", "Processor only", _gb(0.5), _gb(1.5), on_index=not linux)
    if architecture == "arm64":
        nvidia = Build("cu132", "NVIDIA, CUDA 13.2", _gb(3.2), _gb(6.5), on_index=True)
        return (nvidia, cpu) if linux else (cpu,)
    found = (
        Build("cu132", "NVIDIA, CUDA 13.2", _gb(3.2), _gb(6.5), on_index=linux, tried=linux),
        Build("cu126", "NVIDIA, CUDA 12.6 (older cards and drivers)", _gb(3.2), _gb(6.5), torch="torch<2.15"),
        Build("xpu", "Intel Arc", _gb(2.5), _gb(6)),
        cpu,
    )
    rocm = Build("rocm7.2", "AMD, ROCm 7.2", _gb(5.5), _gb(18))
    return (*found, rocm) if linux else found


# By build: the least driver on Linux and on Windows, the least and the greatest compute capability.
_CUDA = {
    "cu132": ((580, 65), (580, 88), (7, 5), (99, 0)),
    "cu126": ((525, 60), (528, 33), (5, 0), (9, 99)),
}
_ROCM_CARDS = {
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1150",
    "gfx1151", "gfx1200", "gfx1201",
}  # fmt: skip


def choose(computer: Computer) -> Choice | None:
    """Choose the build for a computer; None if PyTorch has no build for the system.

    The first card that a build supports decides: NVIDIA before AMD before Intel. Without such a card the build for the
    processor is chosen, and `remedy` says what to do about the card.
    """
    available = {build.name: build for build in builds(computer.system, computer.machine)}
    if not available:
        return None
    if "mps" in available:
        return Choice(available["mps"], "PyTorch for Macs uses the Apple GPU.")
    remedies = []
    for card in sorted(computer.cards, key=lambda card: ("nvidia", "amd", "intel").index(card.vendor)):
        name, remedy = _build_for_card(card, available, windows=computer.system == "Windows")
        if name:
            return Choice(available[name], f"For {_title(card)}.", remedy)
        remedies.append(remedy)
    reason = "PyTorch can't use the graphics card as it is now." if remedies else "No graphics card for PyTorch found."
    return Choice(available["cpu"], reason, " ".join(filter(None, remedies)))


def _build_for_card(card: Card, available: dict[str, Build], *, windows: bool) -> tuple[str, str]:
    """Return the name of the build for a card, or '', and advice about the card."""
    if card.vendor == "nvidia":
        return _cuda_build(card, available, windows=windows)
    if card.vendor == "amd":
        if "rocm7.2" not in available:
            return "", f"PyTorch supports {_title(card)} on Linux only."
        if card.architecture in _ROCM_CARDS:
            return "rocm7.2", ""
        return "", f"ROCm 7.2 doesn't support {_title(card)}{_in_brackets(card.architecture)}."
    if "xpu" in available and (card.architecture == "xe" or "Arc" in card.name):
        return "xpu", ""
    return "", "If the Intel card is an Arc, choose the build 'Intel Arc'." if "xpu" in available else ""


def _cuda_build(card: Card, available: dict[str, Build], *, windows: bool) -> tuple[str, str]:
    cuda = {name: limits for name, limits in _CUDA.items() if name in available}
    if not cuda:
        return "", f"PyTorch has no build for {_title(card)} on this system."
    if not card.driver:
        return "", f"Install NVIDIA's driver for {_title(card)}, then choose the build again."
    capability, driver = _numbers(card.architecture), _numbers(card.driver)
    fits = [name for name, (*_, least, greatest) in cuda.items() if not capability or least <= capability <= greatest]
    if not fits:
        return "", f"PyTorch has dropped cards as old as {_title(card)} (compute capability {card.architecture})."
    runs = [name for name in fits if driver >= cuda[name][windows]]
    if runs[:1] == fits[:1]:
        return runs[0], ""
    least = ".".join(map(str, cuda[fits[0]][windows]))
    advice = f"Update NVIDIA's driver ({card.driver}) to {least} or newer"
    return (runs[0], f"{advice} for a newer PyTorch.") if runs else ("", f"{advice}, then choose the build again.")


def detect() -> Computer:
    """Find out system, machine and graphics cards, without PyTorch. Unreadable facts are left out."""
    system = platform.system()
    cards = _windows_cards() if system == "Windows" else _linux_cards(Path("/sys")) if system == "Linux" else ()
    nvidia = _nvidia_cards()
    return Computer(system, platform.machine(), (*nvidia, *(c for c in cards if c.vendor != "nvidia" or not nvidia)))


def _nvidia_cards() -> tuple[Card, ...]:
    """Ask nvidia-smi, a part of NVIDIA's driver. Drivers before 510 don't know compute_cap."""
    for fields in ("name,driver_version,compute_cap", "name,driver_version"):
        text = _output(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"])
        rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
        if cards := tuple(Card("nvidia", *row) for row in rows if len(row) == fields.count(",") + 1):
            return cards
    return ()


def _linux_cards(sys_folder: Path) -> tuple[Card, ...]:
    """Return the display controllers on the PCI bus. AMD's architectures come from the kernel's KFD driver."""
    vendors = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
    amd = [
        f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"
        for node in sorted(sys_folder.glob("class/kfd/kfd/topology/nodes/*/properties"))
        if (number := int(_matched(r"^gfx_target_version (\d+)", _text(node)) or 0))
    ]
    cards = []
    for device in sorted(sys_folder.glob("bus/pci/devices/*")):
        vendor = vendors.get(_text(device / "vendor").strip())
        if vendor and _text(device / "class").startswith("0x03"):  # display controllers
            driver = _matched(r"^DRIVER=(\S+)", _text(device / "uevent")) if vendor == "intel" else ""
            cards.append(Card(vendor, architecture=amd.pop(0) if vendor == "amd" and amd else driver))
    return tuple(cards)


def _windows_cards() -> tuple[Card, ...]:
    command = "ConvertTo-Json @((Get-CimInstance Win32_VideoController).Name)"
    try:
        names = json.loads(_output(["powershell", "-NoProfile", "-Command", command]) or "[]")
    except ValueError:
        return ()
    words = {"nvidia": "nvidia", "amd": "amd", "radeon": "amd", "intel": "intel"}
    found = ((name, word) for name in names for word in words if isinstance(name, str) and word in name.lower())
    return tuple(Card(words[word], name) for name, word in dict(found).items())


def _output(command: Sequence[str]) -> str:
    """Return what a command prints; '' if it fails, is missing or takes longer than ten seconds."""
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
            check=True,
            creationflags=flags,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _matched(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def _title(card: Card) -> str:
    return card.name or {"nvidia": "the NVIDIA card", "amd": "the AMD card", "intel": "the Intel card"}[card.vendor]


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _gb(count: float) -> int:
    return int(count * _GB)
