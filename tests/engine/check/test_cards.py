"""Why a graphics card is not used, on tables of made-up facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from studio.engine.check.cards import SystemFacts, TorchFacts, build_name, explain_cards, runs_on
from studio.engine.check.findings import Finding
from studio.engine.devices.types import Device
from studio.installing.torch_builds import Card, Computer

GB = 10**9
CPU = Device("cpu", "cpu", "A processor", 8 * GB, 16 * GB)
GPU = Device("cuda:0", "cuda", "NVIDIA GeForce RTX 3060", 11 * GB, 12 * GB)
CUDA13 = TorchFacts(
    "2.15.0+cu132", cuda="13.2", devices=(CPU,),
    architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_120", "compute_120"),
)  # fmt: skip
CUDA12 = TorchFacts("2.14.0+cu126", cuda="12.6", architectures=("sm_50", "sm_60", "sm_80", "sm_90"), devices=(CPU,))
CPU_ONLY = TorchFacts("2.15.0+cpu", devices=(CPU,))
ROCM = TorchFacts("2.15.0+rocm7.2", hip="7.2.1", devices=(CPU,))
RTX = Card("nvidia", "NVIDIA GeForce RTX 3060", "580.95.05", "8.6")
GTX = Card("nvidia", "NVIDIA GeForce GTX 1080", "580.95.05", "6.1")
RADEON = Card("amd", "", "", "gfx1100")


def system(*cards: Card, name: str = "Linux", machine: str = "x86_64", **facts: object) -> SystemFacts:
    return replace(SystemFacts(Computer(name, machine, cards), kfd="ok"), **facts)  # type: ignore[arg-type]


def only(facts: SystemFacts, torch: TorchFacts) -> Finding:
    (found,) = explain_cards(facts, torch)
    return found


def with_gpu(torch: TorchFacts, **changes: object) -> TorchFacts:
    return replace(torch, devices=(replace(GPU, **changes), CPU))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "torch", "state", "text", "advice", "changes"),
    [
        (system(RTX), CPU_ONLY, "problem", "for processors only", "CUDA 13.2'", True),
        (system(RTX), ROCM, "problem", "for AMD cards, ROCm 7.2.1", "CUDA 13.2'", True),
        (system(RTX, name="Windows", machine="AMD64"), CPU_ONLY, "problem", "processors only", "CUDA 13.2'", True),
        (system(replace(RTX, driver="")), CUDA13, "problem", "driver is missing", "from your distribution", False),
        (system(replace(RTX, driver="")), CPU_ONLY, "problem", "driver is missing", "Then change the build", True),
        (system(replace(RTX, driver="550.54")), CUDA13, "problem", "550.54 is too old for CUDA 13.2", "580.65", True),
        (system(replace(RTX, driver="470.1")), CUDA12, "problem", "470.1 is too old for CUDA 12.6", "525.60", False),
        (system(GTX), CUDA13, "problem", "(compute capability 6.1) is too old", "CUDA 12.6", True),
        (system(replace(GTX, architecture="3.5")), CUDA13, "problem", "is too old", "has dropped cards", False),
        (system(replace(RTX, architecture="12.0")), CUDA12, "problem", "is too new", "CUDA 13.2'", True),
        (system(RTX), replace(CUDA13, hidden=("CUDA_VISIBLE_DEVICES=",)), "problem", "hides it: CUDA", "Remove", False),
        (system(RTX), replace(CUDA13, error="CUDA unknown error."), "problem", "CUDA unknown error.", "Restart", False),
        (system(RTX), CUDA13, "problem", "does not find it", "Restart", False),
        (system(RTX), with_gpu(CUDA13, problem="CUDA out of memory"), "problem", "out of memory", "Close other", False),
        (system(RTX), with_gpu(CUDA13, problem="It does not respond"), "problem", "not respond", "Restart", False),
        (system(RTX), with_gpu(CUDA13), "good", "used as cuda:0", "", False),
        (system(), with_gpu(CUDA13), "good", "used as cuda:0", "", False),
        (system(RTX), with_gpu(CUDA13, memory_free_bytes=GB // 2), "notice", "Memory free", "Close other", False),
        (system(RTX), with_gpu(CUDA13, memory_total_bytes=GB), "notice", "Memory free", "smaller width", False),
        (system(), CPU_ONLY, "notice", "No card found", "--on", False),
        (system(Card("intel", architecture="i915")), CPU_ONLY, "notice", "No card found", "--on", False),
        (system(Card("intel", "Arc A770", "", "xe")), CPU_ONLY, "problem", "processors only", "Intel Arc", True),
        (system(RADEON), CPU_ONLY, "problem", "processors only", "ROCm 7.2'", True),
        (system(RADEON, kfd="denied"), ROCM, "notice", "no permission for /dev/kfd", "usermod", False),
        (system(RADEON, kfd="missing"), ROCM, "notice", "/dev/kfd is missing", "amdgpu", False),
        (system(replace(RADEON, architecture="gfx1036")), CPU_ONLY, "notice", "doesn't support", "", False),
        (system(RADEON, name="Windows"), CPU_ONLY, "notice", "on Linux only", "", False),
    ],
)  # fmt: skip
def test_reason_and_advice(
    facts: SystemFacts, torch: TorchFacts, state: str, text: str, advice: str, changes: bool
) -> None:
    found = only(facts, torch)
    assert (found.state, found.changes_build) == (state, changes), found
    assert text in found.text and advice in found.advice, found
    assert not found.prevents_training
    assert ("is not used" in found.text) == (state == "problem" or "AMD" in found.text)


@pytest.mark.parametrize(
    ("message", "text", "advice"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "was updated", "Restart"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "not loaded", "Secure Boot"),
        ("nvidia-smi did not answer for 15 s", "does not answer", "Restart"),
        ("No devices were found", "finds no card", "power"),
        ("Unable to determine the device handle: GPU is lost.", "GPU is lost", "Reinstall"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cards", [(), (Card("nvidia"),)])
def test_failing_nvidia_smi_is_explained(message: str, text: str, advice: str, cards: tuple[Card, ...]) -> None:
    found = only(system(*cards, nvidia_smi=message), CUDA13)
    assert found.state == "problem" and text in found.text and advice in found.advice


def test_every_card_has_a_finding_but_graphics_of_the_processor() -> None:
    two = system(RTX, GTX, Card("amd", architecture="gfx1036"))
    states = [found.state for found in explain_cards(two, with_gpu(CUDA13))]
    assert states == ["good", "problem"]


@pytest.mark.parametrize(
    ("facts", "torch", "text", "advice"),
    [
        (system(name="Darwin", machine="arm64"), replace(CPU_ONLY, mps=True), "not used", "macOS 14"),
        (system(name="Darwin", machine="arm64"), CPU_ONLY, "processors only", "Install PyTorch again"),
        (system(name="Darwin", translated=True), CPU_ONLY, "runs translated", "for Apple processors"),
        (system(name="Darwin"), CPU_ONLY, "Intel Macs", ""),
        (
            system(name="Darwin", machine="arm64"),
            replace(CPU_ONLY, mps=True, devices=(Device("mps", "mps", "Apple GPU", 5 * GB, 8 * GB), CPU)),
            "used as mps", "",
        ),
    ],
)  # fmt: skip
def test_macs(facts: SystemFacts, torch: TorchFacts, text: str, advice: str) -> None:
    found = only(facts, torch)
    assert text in found.text and advice in found.advice


@pytest.mark.parametrize(
    ("capability", "architectures", "runs"),
    [
        ("8.6", ["sm_80"], True), ("8.0", ["sm_86"], False), ("9.0", ["sm_86"], False), ("9.0", ["compute_80"], True),
        ("9.0", ["sm_90a"], True), ("9.1", ["sm_90a"], False), ("12.1", ["sm_120"], True), ("7.0", ["sm_75"], False),
        ("10.3", ["sm_100f"], True),
    ],
)  # fmt: skip
def test_code_runs_on_a_card(capability: str, architectures: list[str], runs: bool) -> None:
    assert runs_on(capability, architectures) == runs


def test_names_of_builds() -> None:
    assert [build_name(each) for each in (CUDA13, CUDA12, CPU_ONLY, ROCM)] == ["cu132", "cu126", "cpu", "rocm7.2"]
