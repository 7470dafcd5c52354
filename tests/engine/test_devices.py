from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from studio.core import limits
from studio.core.errors import DeviceError, UsageError
from studio.engine import devices
from studio.engine.devices import choose, detect, find, find_devices, resolve_precision
from studio.engine.measure import measure
from studio.engine.types import Device, DeviceMeasured, DevicesFound
from studio.recipes.base import Spec
from studio.recipes.classifier import Classifier
from tests.engine.tools import CPU, of_kind, small_classifier

SLOW = Device("cpu", "cpu", "slow", 1, 1, steps_per_s=1.0)
FAST = Device("cuda:0", "cuda", "fast", 1, 1, steps_per_s=9.0, precision="bf16")
BROKEN = Device("cuda:1", "cuda", "broken", 1, 1, problem="A training step failed: no kernel image")


def test_the_cpu_is_always_there_and_works() -> None:
    cpu = detect()[-1]
    assert cpu.id == "cpu" and not cpu.problem and cpu.steps_per_s > 0
    assert cpu.threads >= 1 and cpu.memory_total_bytes > cpu.memory_free_bytes > 0


def test_fault_36_a_containers_limits_are_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "probe_step", lambda *_: 1.0)
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

    stand_in(monkeypatch, "cuda")
    monkeypatch.setattr(torch.cuda, "get_device_name", refuse)
    monkeypatch.setattr(devices, "probe_step", lambda *_: 1.0)
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


def stand_in(monkeypatch: pytest.MonkeyPatch, kind: str, **facts: Any) -> None:
    """Let torch tell of one card of a kind."""
    known = {
        "device_count": 1, "get_device_name": "a card", "mem_get_info": (1, 2), "memory_reserved": 0,
        "memory_allocated": 0, "get_device_capability": (7, 5), "empty_cache": None,
    }  # fmt: skip
    for name, value in {**known, **facts}.items():
        monkeypatch.setattr(torch.get_device_module(kind), name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)


def _count_probes(monkeypatch: pytest.MonkeyPatch, bf16: float) -> list[str]:
    """The precision of each probe from now on; bf16 is so many times as fast as fp32."""
    steps: list[str] = []

    def probe(device: torch.device, precision: str, batch_size: int = 0) -> float:
        steps.append(precision)
        return bf16 if precision == "bf16" else 1.0

    monkeypatch.setattr(devices, "probe_step", probe)
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    return steps


def test_nothing_is_probed_where_there_is_nothing_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _count_probes(monkeypatch, bf16=1.0)
    cpu, card = replace(CPU, probed=False), Device("cuda:0", "cuda", "a card", 1, 1, problem="It does not answer")
    monkeypatch.setattr(devices, "listed", lambda: (card, cpu))
    assert find("auto").id == find("cpu").id == "cpu" and not steps
    with pytest.raises(UsageError, match="no device named 'tpu'"):
        find("tpu")
    with pytest.raises(DeviceError, match="a card does not work"):
        find("cuda")
    assert find("cpu", probe=True).probed and steps
    steps.clear()
    monkeypatch.setattr(devices, "listed", lambda: (replace(cpu, id="cpu:1", kind="card"), cpu))
    assert find("cpu") == cpu and not steps
    assert find("auto").probed and steps


@pytest.mark.parametrize(("bf16", "precision"), [(2.0, "bf16"), (0.5, "fp32")])
def test_a_device_that_was_not_probed_computes_in_the_same_precision(
    monkeypatch: pytest.MonkeyPatch, bf16: float, precision: str
) -> None:
    steps = _count_probes(monkeypatch, bf16)
    device = next(device for device in devices.listed() if device.kind == "cpu")
    assert not device.probed
    record: Any = SimpleNamespace(device="cpu", device_name=device.name, precision="fp16")
    assert devices.precision_of(record, device, "auto") == "fp16"  # where it began
    assert resolve_precision(device, "fp32") == "fp32" and not steps
    record.device = "cuda:0"
    assert devices.precision_of(record, device, "auto") == precision and steps
    assert precision == resolve_precision(devices._probed(device), "auto")
    monkeypatch.setattr(devices, "_probed", lambda device: replace(device, problem="It is lost", probed=True))
    with pytest.raises(DeviceError, match="does not work"):
        resolve_precision(device, "auto")


def test_precision_is_what_was_asked_for_or_the_faster_and_a_run_begun_in_fp16_goes_on_anywhere() -> None:
    card = replace(FAST, precision="fp16", mixed="fp16")
    for device, asked, expected in (
        (FAST, "auto", "bf16"), (SLOW, "auto", "fp32"), (FAST, "fp32", "fp32"), (card, "fp16", "fp16"),
    ):  # fmt: skip
        assert resolve_precision(device, asked) == expected
    with pytest.raises(DeviceError, match="no faster in fp16"):
        resolve_precision(FAST, "fp16")
    record: Any = SimpleNamespace(device="cuda:7", device_name="an old card", precision="fp16")
    assert devices.precision_of(record, FAST, "fp16") == "bf16"


@pytest.mark.parametrize(
    ("capability", "hip", "precision"),
    [
        ((7, 5), None, "fp32"), ((8, 0), None, "bf16"), ((12, 0), None, "bf16"),
        ((10, 3), "6.4", "fp32"),  # RDNA 2: what an AMD card calls its capability is none for bf16
    ],
)  # fmt: skip
def test_a_card_made_for_bf16_takes_it_though_the_small_probe_is_slower(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], hip: str | None, precision: str
) -> None:
    stand_in(monkeypatch, "cuda", get_device_capability=capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(devices, "probe_step", lambda device, precision, *_: 1.0 if precision == "fp32" else 0.8)
    card, *_, cpu = detect()
    assert resolve_precision(card, "auto") == precision and resolve_precision(cpu, "auto") == "fp32"


@pytest.mark.parametrize(
    ("bf16", "fp16", "precision", "mixed"),
    [
        (0.3, 3.0, "fp16", "fp16"),
        (0.3, 1.0, "fp32", "bf16"),  # no faster
        (0.3, None, "fp32", "bf16"),  # not finite
        (1.5, 3.0, "bf16", "bf16"),  # bf16 suits it
        (None, 3.0, "fp16", "fp16"),
        (None, None, "fp32", ""),
    ],
)
def test_fp16_is_taken_where_it_is_finite_and_faster_and_bf16_does_not_suit(
    monkeypatch: pytest.MonkeyPatch, bf16: float | None, fp16: float | None, precision: str, mixed: str
) -> None:
    def probe(device: torch.device, precision: str, batch_size: int = devices.PROBE_BATCH) -> float:
        speed = {"fp32": 1.0, "bf16": bf16, "fp16": fp16}[precision]
        if speed is None:
            raise RuntimeError("a training step gave a number that is not finite")
        return speed if batch_size > devices.PROBE_BATCH else min(speed, 1.0)

    stand_in(monkeypatch, "cuda")
    monkeypatch.setattr(devices, "probe_step", probe)
    card, *_, cpu = detect()
    assert (card.precision, card.mixed) == (precision, mixed)
    assert cpu.precision == "fp32"  # where nobody has asked for fp16


def test_a_probe_in_fp16_takes_real_steps_and_refuses_gradients_that_are_no_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu = torch.device("cpu")
    assert devices.probe_step(cpu, "fp16", 2) > 0
    monkeypatch.setattr("studio.engine.optim.LossScaler.scale", lambda scaler, loss: loss * torch.nan)
    with pytest.raises(RuntimeError, match="not finite"):
        devices.probe_step(cpu, "fp16", 2)


@pytest.mark.parametrize(
    ("kind", "hip", "told", "name"),
    [
        ("cuda", None, "", "NVIDIA GPU 0"), ("cuda", "6.4", "", "AMD GPU 0"), ("xpu", None, "", "Intel GPU 0"),
        ("cuda", "6.4", "AMD Radeon RX 7900 XT", "AMD Radeon RX 7900 XT"),
    ],
)  # fmt: skip
def test_a_card_that_tells_no_name_is_called_after_its_maker(
    monkeypatch: pytest.MonkeyPatch, kind: str, hip: str | None, told: str, name: str
) -> None:
    stand_in(monkeypatch, kind, get_device_name=told)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(devices, "probe_step", lambda *_: 1.0)
    assert detect()[0].name == name


def test_an_intel_gpu_is_listed_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[torch.device | None] = []
    stand_in(monkeypatch, "xpu", memory_reserved=700, memory_allocated=300, mem_get_info=(2_000, 10_000))
    monkeypatch.setattr(torch.xpu, "synchronize", calls.append)
    monkeypatch.setattr(torch.xpu, "empty_cache", lambda: calls.append(None))
    monkeypatch.setattr(devices, "probe_step", lambda device, *_: 3.0 if device.type == "xpu" else 1.0)
    gpu, *_, cpu = detect()
    assert (gpu.id, gpu.kind, gpu.name) == ("xpu:0", "xpu", "a card") and choose((gpu, cpu), "xpu") is gpu
    assert (gpu.memory_free_bytes, gpu.memory_total_bytes) == (2_400, 10_000)
    target = torch.device(gpu.id)
    assert devices.memory_in_use(target) == 300
    calls.clear()
    devices.synchronize(target)
    devices.give_back_memory(target)
    assert calls == [target, None]
    with pytest.raises(DeviceError, match=r"The Intel GPU \(xpu:0\) has stopped working"), devices.faults(target):
        raise RuntimeError("level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)")


def test_an_intel_driver_that_does_not_tell_what_is_free_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(device: torch.device) -> None:
        raise RuntimeError("The device doesn't support querying the available free memory.")

    stand_in(monkeypatch, "xpu", get_device_properties=SimpleNamespace(total_memory=10_000), memory_reserved=700)
    monkeypatch.setattr(torch.xpu, "mem_get_info", refuse)
    monkeypatch.setattr(devices, "probe_step", lambda *_: 1.0)
    gpu = detect()[0]
    assert not gpu.problem and (gpu.memory_free_bytes, gpu.memory_total_bytes) == (10_000, 10_000)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("capability", "made_for_it"), [("avx2", False), ("amx_bf16", True), ("avx512_bf16", True)])
def test_a_cpu_made_for_bf16_takes_it_whichever_wins_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, capability: str, made_for_it: bool, precision: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {capability: True})
    monkeypatch.setattr(devices, "probe_step", lambda device, probed, *_: 1.0 if probed == precision else 0.8)
    assert resolve_precision(detect()[-1], "auto") == ("bf16" if made_for_it else precision)


def test_finding_is_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "probe_step", lambda *_: 1.0)
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


@pytest.mark.parametrize("mixed", ["bf16", "fp16", ""])
def test_measuring_takes_real_steps_in_both_precisions(monkeypatch: pytest.MonkeyPatch, mixed: str) -> None:
    monkeypatch.setattr("studio.engine.measure.LEAST_S", 0.0)
    device = replace(CPU, mixed=mixed)
    events = list(measure(Classifier(), small_classifier(), Spec(8, ("a", "b")), device))
    found = of_kind(events, DeviceMeasured)
    assert [event.precision for event in found] == (["fp32", mixed] if mixed else ["fp32"])
    for event in found:
        assert event.sprites_per_s == pytest.approx(1000 * 4 / event.compute_ms)
        assert event.transfer_ms > 0
