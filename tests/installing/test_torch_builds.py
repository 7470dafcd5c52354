"""The build of PyTorch that a computer gets, on tables of systems, cards and drivers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from studio.installing import torch_builds
from studio.installing.torch_builds import Card, Computer, builds, choose, detect

ROOT = Path(__file__).parents[2]
LINUX, WINDOWS, MAC = ("Linux", "x86_64"), ("Windows", "AMD64"), ("Darwin", "arm64")
RTX_3060 = Card("nvidia", "GeForce RTX 3060", "580.95.05", "8.6")


def nvidia(driver: str, capability: str) -> Card:
    return Card("nvidia", "A card", driver, capability)


@pytest.mark.parametrize(
    ("place", "card", "name", "remedy"),
    [
        (LINUX, None, "cpu", ""),
        (WINDOWS, None, "cpu", ""),
        (("Windows", "ARM64"), None, "cpu", ""),
        (("Linux", "aarch64"), None, "cpu", ""),
        (MAC, None, "mps", ""),
        # NVIDIA, by driver and compute capability
        (LINUX, RTX_3060, "cu132", ""),
        (LINUX, nvidia("580.65.06", "7.5"), "cu132", ""),
        (LINUX, nvidia("580.65.06", "12.0"), "cu132", ""),
        (LINUX, nvidia("575.64", "8.9"), "cu126", "Update NVIDIA's driver (575.64) to 580.65"),
        (LINUX, nvidia("525.60.13", "9.0"), "cu126", "for a newer PyTorch"),
        (LINUX, nvidia("525.59", "8.6"), "cpu", "Update NVIDIA's driver (525.59) to 580.65"),
        (LINUX, nvidia("570.86", "12.0"), "cpu", "Update NVIDIA's driver (570.86)"),
        (LINUX, nvidia("580.95", "6.1"), "cu126", ""),
        (LINUX, nvidia("550.1", "5.0"), "cu126", ""),
        (LINUX, nvidia("470.1", "6.1"), "cpu", "to 525.60"),
        (LINUX, nvidia("470.1", "3.5"), "cpu", "as old as A card (compute capability 3.5)"),
        (LINUX, nvidia("580.95", ""), "cu132", ""),
        (LINUX, nvidia("470.1", ""), "cpu", "Update"),
        (LINUX, nvidia("", ""), "cpu", "Install NVIDIA's driver for A card"),
        (LINUX, Card("nvidia"), "cpu", "for the NVIDIA card"),
        (WINDOWS, nvidia("580.88", "8.6"), "cu132", ""),
        (WINDOWS, nvidia("580.70", "8.6"), "cu126", "to 580.88"),
        (WINDOWS, nvidia("526.00", "8.6"), "cpu", "Update"),
        (("Linux", "aarch64"), nvidia("580.95", "9.0"), "cu132", ""),
        (("Windows", "ARM64"), nvidia("580.95", "9.0"), "cpu", "no build for A card on this system"),
        (MAC, RTX_3060, "mps", ""),
        # AMD
        (LINUX, Card("amd", architecture="gfx1100"), "rocm7.2", ""),
        (LINUX, Card("amd", architecture="gfx803"), "cpu", "doesn't support the AMD card (gfx803)"),
        (LINUX, Card("amd"), "cpu", "doesn't support"),
        (WINDOWS, Card("amd", "Radeon RX 7900"), "cpu", "Radeon RX 7900 on Linux only"),
        # Intel
        (LINUX, Card("intel", architecture="xe"), "xpu", ""),
        (LINUX, Card("intel", architecture="i915"), "cpu", "If the Intel card is an Arc"),
        (WINDOWS, Card("intel", "Intel(R) Arc(TM) A770"), "xpu", ""),
        (WINDOWS, Card("intel", "Intel(R) UHD Graphics"), "cpu", "If the Intel card is an Arc"),
        (("Linux", "aarch64"), Card("intel"), "cpu", ""),
    ],
)
def test_build_for_a_card(place: tuple[str, str], card: Card | None, name: str, remedy: str) -> None:
    choice = choose(Computer(*place, (card,) if card else ()))
    assert choice is not None and choice.build in builds(*place)
    assert choice.build.name == name
    assert remedy in choice.remedy and bool(remedy) == bool(choice.remedy)
    assert choice.reason.endswith(".")


def test_the_best_of_several_cards_decides() -> None:
    intel, amd = Card("intel", architecture="i915"), Card("amd", architecture="gfx1100")
    choices = [
        choose(Computer(*LINUX, cards)) for cards in ((intel, amd, RTX_3060), (intel, amd), (Card("nvidia"), amd))
    ]
    assert [choice and choice.build.name for choice in choices] == ["cu132", "rocm7.2", "rocm7.2"]
    both = choose(Computer(*LINUX, (intel, Card("nvidia"))))
    assert both and "driver" in both.remedy and "Arc" in both.remedy


@pytest.mark.parametrize("place", [("Darwin", "x86_64"), ("FreeBSD", "amd64"), ("Linux", "riscv64"), ("Linux", "i686")])
def test_systems_without_pytorch(place: tuple[str, str]) -> None:
    assert choose(Computer(*place)) is None


def test_places_and_sizes_of_builds() -> None:
    cuda, *_, cpu, _ = builds(*LINUX)
    assert cuda.on_index and not cpu.on_index
    assert [build.name for build in builds(*WINDOWS) if build.on_index] == ["cpu"]
    for place in (LINUX, WINDOWS, MAC):
        assert all(0 < build.download < build.disk for build in builds(*place))


def test_the_table_describes_the_locked_torch() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert re.search(r"^torch==2\.15\.", lock, re.MULTILINE), "new torch: check the tables of builds and cards"
    assert re.search(r"^cuda-toolkit==13\.2\.", lock, re.MULTILINE)


def test_cards_on_the_pci_bus(tmp_path: Path) -> None:
    devices = (("0x10de", "0x030000", ""), ("0x1002", "0x038000", "amdgpu"), ("0x8086", "0x030000", "xe"))
    for number, (vendor, kind, driver) in enumerate((*devices, ("0x8086", "0x020000", "e1000"))):
        device = tmp_path / f"bus/pci/devices/{number}"
        device.mkdir(parents=True)
        for name, text in (("vendor", vendor), ("class", kind), ("uevent", f"DRIVER={driver}\nPCI_ID=1\n")):
            (device / name).write_text(text + "\n")
    for number, version in enumerate((0, 90010)):
        node = tmp_path / f"class/kfd/kfd/topology/nodes/{number}/properties"
        node.parent.mkdir(parents=True)
        node.write_text(f"cpu_cores_count 4\ngfx_target_version {version}\n")
    found = torch_builds._linux_cards(tmp_path)
    assert [(card.vendor, card.architecture) for card in found] == [("nvidia", ""), ("amd", "gfx90a"), ("intel", "xe")]
    assert torch_builds._linux_cards(tmp_path / "missing") == ()


def test_cards_that_nvidia_smi_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(command: list[str]) -> str:
        asked = command[1].partition("=")[2]
        return {"name,driver_version": "Tesla K80, 470.82.01\nTesla K80, 470.82.01\n"}.get(asked, "")

    monkeypatch.setattr(torch_builds, "_output", answers)
    assert torch_builds._nvidia_cards() == (Card("nvidia", "Tesla K80", "470.82.01"),) * 2
    monkeypatch.setattr(torch_builds, "_output", lambda command: "NVIDIA GeForce RTX 3060, 580.95.05, 8.6\n")
    assert torch_builds._nvidia_cards() == (Card("nvidia", "NVIDIA GeForce RTX 3060", "580.95.05", "8.6"),)
    monkeypatch.setattr(torch_builds, "_output", lambda command: "NVIDIA-SMI has failed\n")
    assert torch_builds._nvidia_cards() == ()


def test_cards_that_windows_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    names = '["NVIDIA GeForce RTX 3060", "Intel(R) UHD Graphics 770", "Microsoft Basic Display", "AMD Radeon RX 7600"]'
    monkeypatch.setattr(torch_builds, "_output", lambda command: names)
    assert [card.vendor for card in torch_builds._windows_cards()] == ["nvidia", "intel", "amd"]
    monkeypatch.setattr(torch_builds, "_output", lambda command: "")
    assert torch_builds._windows_cards() == ()


def test_a_failing_command_prints_nothing() -> None:
    assert torch_builds._output(["/no/such/command"]) == ""
    assert torch_builds._output([sys.executable, "-Ic", "print('text'); raise SystemExit(1)"]) == ""


def test_this_computer_has_a_build() -> None:
    assert choose(detect()) is not None
