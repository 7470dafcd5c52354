from __future__ import annotations

import psutil
import pytest
import torch

from studio.core import limits
from studio.core.errors import DeviceError, UsageError
from studio.engine import devices
from studio.engine.devices import Device, DevicesFound, choose, detect, find_devices, resolve_precision
from studio.engine.measure import DeviceMeasured, measure
from studio.recipes.base import Spec
from studio.recipes.classifier import Classifier
from tests.engine.tools import CPU, of_kind, small_classifier

SLOW = Device("cpu", "cpu", "slow", 1, 1, steps_per_s=1.0)
FAST = Device("cuda:0", "cuda", "fast", 1, 1, steps_per_s=9.0, bf16=True)
BROKEN = Device("cuda:1", "cuda", "broken", 1, 1, problem="A training step failed: no kernel image")


def test_the_cpu_is_always_there_and_works() -> None:
    cpu = detect()[-1]
    assert cpu.id == "cpu" and not cpu.problem and cpu.steps_per_s > 0
    assert cpu.threads >= 1 and cpu.memory_total_bytes > cpu.memory_free_bytes > 0


def test_fault_36_a_containers_limits_are_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "probe_step", lambda device, precision: 1.0)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 32)
    monkeypatch.setattr(limits, "cpus", lambda: 3)
    monkeypatch.setattr(limits, "memory", lambda: limits.Memory(2_000, 500))
    cpu = detect()[-1]
    assert (cpu.cores, cpu.threads, cpu.memory_total_bytes, cpu.memory_free_bytes) == (3, 3, 2_000, 500)
    assert devices.memory_free(torch.device("cpu")) == 500  # by which sprites are placed


def test_a_device_that_fails_its_probe_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(device: torch.device, precision: str) -> float:
        raise RuntimeError("no kernel image is available\nand a long story")

    monkeypatch.setattr(devices, "probe_step", fail)
    cpu = detect()[-1]
    assert cpu.problem == "A training step failed: no kernel image is available"
    with pytest.raises(DeviceError):
        choose((cpu,), "auto")


def test_a_card_whose_driver_refuses_is_listed_and_leaves_the_cpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(index: int) -> str:
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nPlease update it.")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", refuse)
    monkeypatch.setattr(devices, "probe_step", lambda device, precision: 1.0)
    card, *_, cpu = detect()
    assert card.id == "cuda:0" and card.name == "NVIDIA GPU 0"
    assert card.problem == "It does not answer: The NVIDIA driver on your system is too old (found version 11040)."
    assert choose((card, cpu), "auto") is cpu and choose((card, cpu), "cpu") is cpu


def test_auto_takes_the_fastest_that_works() -> None:
    assert choose((SLOW, FAST, BROKEN), "auto") is FAST
    assert choose((SLOW, FAST, BROKEN), "cpu") is SLOW
    assert choose((SLOW, FAST, BROKEN), "cuda") is FAST
    with pytest.raises(DeviceError, match="broken does not work"):
        choose((SLOW, FAST, BROKEN), "cuda:1")
    with pytest.raises(UsageError, match="tpu"):
        choose((SLOW, FAST), "tpu")


def test_precision_is_what_was_asked_for_or_the_faster() -> None:
    assert resolve_precision(FAST, "auto") == "bf16"
    assert resolve_precision(SLOW, "auto") == "fp32"
    assert resolve_precision(FAST, "fp32") == "fp32"


@pytest.mark.parametrize(("capability", "precision"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((12, 0), "bf16")])
def test_a_card_made_for_bf16_takes_it_though_the_small_probe_is_slower(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], precision: str
) -> None:
    for name, value in {
        "device_count": 1, "get_device_name": "a card", "mem_get_info": (1, 2), "memory_reserved": 0,
        "memory_allocated": 0, "get_device_capability": capability,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    monkeypatch.setattr(devices, "probe_step", lambda device, precision: 1.0 if precision == "fp32" else 0.8)
    card, *_, cpu = detect()
    assert resolve_precision(card, "auto") == precision and resolve_precision(cpu, "auto") == "fp32"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("capability", "made_for_it"), [("avx2", False), ("amx_bf16", True), ("avx512_bf16", True)])
def test_a_cpu_made_for_bf16_takes_it_whichever_wins_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, capability: str, made_for_it: bool, precision: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {capability: True})
    monkeypatch.setattr(devices, "probe_step", lambda device, probed: 1.0 if probed == precision else 0.8)
    assert resolve_precision(detect()[-1], "auto") == ("bf16" if made_for_it else precision)


def test_finding_is_a_job() -> None:
    (found,) = find_devices()
    assert isinstance(found, DevicesFound) and found.fastest in [device.id for device in found.devices]


def test_memory_that_torch_keeps_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2_000, 10_000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 7_000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 3_000)
    assert devices.memory_free(torch.device("cuda:0")) == 6_000


def test_kept_memory_is_given_back_unless_the_card_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def lost() -> None:
        calls.append("lost")
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(torch.cuda, "empty_cache", lost)
    monkeypatch.setattr(torch.mps, "empty_cache", lambda: calls.append("mps"))
    for name in ("cuda:0", "mps", "cpu"):
        devices.give_back_memory(torch.device(name))
    assert calls == ["lost", "mps"]


def test_the_clock_waits_for_the_card_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_for: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited_for.append)
    devices.synchronize(torch.device("cuda:1"))
    devices.synchronize(torch.device("cpu"))
    assert waited_for == [torch.device("cuda:1")]


def test_measuring_takes_real_steps_in_both_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.measure.LEAST_S", 0.0)
    events = list(measure(Classifier(), small_classifier(), Spec(8, ("a", "b")), CPU))
    found = of_kind(events, DeviceMeasured)
    assert [event.precision for event in found] == ["fp32", "bf16"]
    for event in found:
        assert event.sprites_per_s == pytest.approx(1000 * 4 / event.compute_ms)
        assert event.transfer_ms > 0
