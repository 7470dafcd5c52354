from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import psutil
import pytest
import torch

from studio.core import limits
from studio.core.errors import DeviceError, UsageError
from studio.engine.devices import detection
from studio.engine.devices.detection import choose_device, find_device, find_devices, probe_devices, resolve_precision
from studio.engine.devices.types import Device, DeviceMeasured, DevicesFound
from studio.engine.models.loading import precision_for
from studio.engine.steps.benchmark import measure
from studio.recipes.base import Spec
from studio.recipes.classifier import Classifier
from tests.engine.tools import CPU, of_kind, small_classifier

SLOW = Device("cpu", "cpu", "slow", 1, 1, steps_per_s=1.0)
FAST = Device("cuda:0", "cuda", "fast", 1, 1, steps_per_s=9.0, precision="bf16")
BROKEN = Device("cuda:1", "cuda", "broken", 1, 1, problem="A training step failed: no kernel image")


def stand_in(monkeypatch: pytest.MonkeyPatch, kind: str, **facts: Any) -> None:
    """Let torch tell of one card of a kind."""
    known = {
        "device_count": 1, "get_device_name": "a card", "mem_get_info": (1, 2), "memory_reserved": 0,
        "memory_allocated": 0, "get_device_capability": (7, 5), "empty_cache": None,
    }  # fmt: skip
    for name, value in {**known, **facts}.items():
        monkeypatch.setattr(torch.get_device_module(kind), name, lambda *_, value=value: value)


def probes(monkeypatch: pytest.MonkeyPatch, **speeds: float | None) -> Mock:
    """Let probes find these steps per second in a precision, 1 if it is not named; where it is None they fail.

    On a card no precision is faster than fp32 in small batches.
    """

    def probe(device: torch.device, precision: str, batch_size: int = detection.PROBE_BATCH) -> float:
        speed = speeds.get(precision, 1.0)
        if speed is None:
            raise RuntimeError("no kernel image is available\nand a long story")
        return min(speed, 1.0) if device.type != "cpu" and batch_size == detection.PROBE_BATCH else speed

    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    monkeypatch.setattr(detection, "probe_step", probed := Mock(side_effect=probe))
    return probed


@pytest.fixture
def small_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PROBE_BATCH", 2), ("PROBE_SIZE", 8), ("_BUSY_BATCH", 4)):
        monkeypatch.setattr(detection, name, value)


@pytest.mark.usefixtures("small_probes")
def test_the_cpu_is_always_there_and_works() -> None:
    (found,) = find_devices()
    assert isinstance(found, DevicesFound) and found.fastest in [device.id for device in found.devices]
    cpu = found.devices[-1]
    assert cpu.id == "cpu" and not cpu.problem and cpu.steps_per_s > 0
    assert cpu.threads >= 1 and cpu.memory_total_bytes > cpu.memory_free_bytes > 0


def test_fault_36_a_containers_limits_are_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    probes(monkeypatch)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 32)
    monkeypatch.setattr(limits, "usable_cpus", lambda: 3)
    monkeypatch.setattr(limits, "usable_memory", lambda: limits.Memory(2_000, 500))
    cpu = probe_devices()[-1]
    assert (cpu.cores, cpu.threads, cpu.memory_total_bytes, cpu.memory_free_bytes) == (3, 3, 2_000, 500)
    assert detection.memory_free(torch.device("cpu")) == 500  # by which sprites are placed


def test_a_device_that_fails_its_probe_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    probes(monkeypatch, fp32=None)
    cpu = probe_devices()[-1]
    assert cpu.problem == "A training step failed: no kernel image is available"
    with pytest.raises(DeviceError):
        choose_device((cpu,), "auto")


def test_gpu_with_a_failing_driver_is_listed_and_the_cpu_works(monkeypatch: pytest.MonkeyPatch) -> None:
    too_old = "The NVIDIA driver on your system is too old (found version 11040)."
    stand_in(monkeypatch, "cuda")
    monkeypatch.setattr(torch.cuda, "get_device_name", Mock(side_effect=RuntimeError(f"{too_old}\nPlease update it.")))
    probes(monkeypatch)
    card, *_, cpu = probe_devices()
    assert (card.id, card.name, card.problem) == ("cuda:0", "NVIDIA GPU 0", f"It does not respond: {too_old}")
    assert choose_device((card, cpu), "auto") is cpu and choose_device((card, cpu), "cpu") is cpu


def test_auto_takes_the_fastest_that_works() -> None:
    assert choose_device((SLOW, FAST, BROKEN), "auto") is FAST
    assert choose_device((SLOW, FAST, BROKEN), "cpu") is SLOW
    assert choose_device((SLOW, FAST, BROKEN), "cuda") is FAST


def test_single_device_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    probed = probes(monkeypatch)
    cpu, card = replace(CPU, probed=False), Device("cuda:0", "cuda", "a card", 1, 1, problem="It does not respond")
    monkeypatch.setattr(detection, "list_devices", lambda: (card, cpu))
    assert find_device("auto").id == find_device("cpu").id == "cpu" and not probed.mock_calls
    with pytest.raises(UsageError, match="no device named 'tpu'"):
        find_device("tpu")
    for name in ("cuda", "cuda:0"):
        with pytest.raises(DeviceError, match="a card does not work"):
            find_device(name)
    assert find_device("cpu", probe=True).probed and probed.mock_calls
    probed.reset_mock()
    monkeypatch.setattr(detection, "list_devices", lambda: (replace(cpu, id="cpu:1", kind="card"), cpu))
    assert find_device("cpu") == cpu and not probed.mock_calls
    assert find_device("auto").probed and probed.mock_calls


@pytest.mark.parametrize(("bf16", "precision"), [(2.0, "bf16"), (0.5, "fp32")])
def test_a_device_that_was_not_probed_computes_in_the_same_precision(
    monkeypatch: pytest.MonkeyPatch, bf16: float, precision: str
) -> None:
    probed = probes(monkeypatch, bf16=bf16)
    device = next(device for device in detection.list_devices() if device.kind == "cpu")
    assert not device.probed
    record: Any = SimpleNamespace(device="cpu", device_name=device.name, precision="fp16")
    assert precision_for(record, device, "auto") == "fp16"  # where it began
    assert resolve_precision(device, "fp32") == "fp32" and not probed.mock_calls
    record.device = "cuda:0"
    assert precision_for(record, device, "auto") == precision and probed.mock_calls
    assert precision == resolve_precision(detection._probe(device), "auto")
    monkeypatch.setattr(detection, "_probe", lambda device: replace(device, problem="It is lost", probed=True))
    with pytest.raises(DeviceError, match="does not work"):
        resolve_precision(device, "auto")


def test_precision_is_what_was_asked_for_or_the_faster_and_a_run_begun_in_fp16_goes_on_anywhere() -> None:
    card = replace(FAST, precision="fp16", mixed="fp16")
    for device, asked, expected in (
        (FAST, "auto", "bf16"), (SLOW, "auto", "fp32"), (FAST, "fp32", "fp32"), (card, "fp16", "fp16"),
    ):  # fmt: skip
        assert resolve_precision(device, asked) == expected
    with pytest.raises(DeviceError, match="not faster"):
        resolve_precision(FAST, "fp16")
    record: Any = SimpleNamespace(device="cuda:7", device_name="an old card", precision="fp16")
    assert precision_for(record, FAST, "fp16") == "bf16"


@pytest.mark.parametrize(
    ("capability", "hip", "bf16", "fp16", "precision", "mixed"),
    [
        ((8, 0), None, 0.8, 0.8, "bf16", "bf16"),  # made for it, though the small probe is slower
        ((12, 0), None, 0.8, 0.8, "bf16", "bf16"),
        ((10, 3), "6.4", 0.8, 0.8, "fp32", "bf16"),  # RDNA 2: what an AMD card calls its capability is none for bf16
        ((7, 5), None, 0.8, 0.8, "fp32", "bf16"),
        ((7, 5), None, 0.3, 3.0, "fp16", "fp16"),
        ((7, 5), None, 0.3, 1.0, "fp32", "bf16"),  # no faster
        ((7, 5), None, 0.3, None, "fp32", "bf16"),  # not finite
        ((7, 5), None, 1.5, 3.0, "bf16", "bf16"),  # bf16 suits it
        ((7, 5), None, None, 3.0, "fp16", "fp16"),
        ((7, 5), None, None, None, "fp32", ""),
    ],
)
def test_gpu_gets_its_native_or_fastest_finite_precision(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], hip: str | None, bf16: float | None,
    fp16: float | None, precision: str, mixed: str,
) -> None:  # fmt: skip
    stand_in(monkeypatch, "cuda", get_device_capability=capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    probes(monkeypatch, bf16=bf16, fp16=fp16)
    card, *_, cpu = probe_devices()
    assert resolve_precision(card, "auto") == card.precision == precision and card.mixed == mixed
    assert cpu.precision != "fp16"  # which nobody has asked for there


@pytest.mark.usefixtures("small_probes")
def test_fp16_probe_rejects_nan_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert detection.probe_step(cpu, "fp16", 2) > 0
    monkeypatch.setattr("studio.engine.devices.precision.LossScaler.scale", lambda scaler, loss: loss * torch.nan)
    with pytest.raises(RuntimeError, match="NaN or infinite"):
        detection.probe_step(cpu, "fp16", 2)


@pytest.mark.parametrize(
    ("kind", "hip", "told", "name"),
    [
        ("cuda", None, "", "NVIDIA GPU 0"), ("cuda", "6.4", "", "AMD GPU 0"), ("xpu", None, "", "Intel GPU 0"),
        ("cuda", "6.4", "AMD Radeon RX 7900 XT", "AMD Radeon RX 7900 XT"),
    ],
)  # fmt: skip
def test_gpu_without_a_name_gets_its_makers_name(
    monkeypatch: pytest.MonkeyPatch, kind: str, hip: str | None, told: str, name: str
) -> None:
    stand_in(monkeypatch, kind, get_device_name=told)
    monkeypatch.setattr(torch.version, "hip", hip)
    probes(monkeypatch)
    assert probe_devices()[0].name == name


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_a_card_is_listed_and_used(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    stand_in(monkeypatch, kind, memory_reserved=700, memory_allocated=300, mem_get_info=(2_000, 10_000))
    calls, torchs = Mock(), torch.get_device_module(kind)
    monkeypatch.setattr(torchs, "synchronize", calls.wait)
    monkeypatch.setattr(torchs, "empty_cache", calls.give_back)
    probes(monkeypatch)
    card, *_, cpu = probe_devices()
    assert (card.id, card.kind, card.name) == (f"{kind}:0", kind, "a card") and choose_device((card, cpu), kind) is card
    assert (card.memory_free_bytes, card.memory_total_bytes) == (2_400, 10_000)  # what torch keeps is free
    target = card.torch
    assert detection.memory_in_use(target) == 300
    calls.reset_mock()
    for device in (target, torch.device("cpu")):
        detection.synchronize(device)
        detection.empty_cache(device)
    assert calls.mock_calls == [call.wait(target), call.give_back()]


def test_intel_driver_without_free_memory_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = RuntimeError("The device doesn't support querying the available free memory.")
    stand_in(monkeypatch, "xpu", get_device_properties=SimpleNamespace(total_memory=10_000), memory_reserved=700)
    monkeypatch.setattr(torch.xpu, "mem_get_info", Mock(side_effect=refused))
    probes(monkeypatch)
    gpu = probe_devices()[0]
    assert not gpu.problem and (gpu.memory_free_bytes, gpu.memory_total_bytes) == (10_000, 10_000)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("capability", "made_for_it"), [("avx2", False), ("amx_bf16", True), ("avx512_bf16", True)])
def test_a_cpu_made_for_bf16_takes_it_whichever_wins_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, capability: str, made_for_it: bool, precision: str
) -> None:
    probes(monkeypatch, **{"fp32": 0.8, "bf16": 0.8, precision: 1.0})
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {capability: True})
    assert resolve_precision(probe_devices()[-1], "auto") == ("bf16" if made_for_it else precision)


def test_cache_is_emptied_unless_the_gpu_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, given_back = Mock(side_effect=RuntimeError("CUDA error: unspecified launch failure")), Mock()
    monkeypatch.setattr(torch.cuda, "empty_cache", lost)
    monkeypatch.setattr(torch.mps, "empty_cache", given_back)
    for name in ("cuda:0", "mps", "cpu"):
        detection.empty_cache(torch.device(name))
    assert lost.call_count == given_back.call_count == 1


FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
LOST = torch.AcceleratorError("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later.")


@pytest.mark.parametrize(
    ("device", "error", "title"),
    [
        ("cuda:1", FULL, "The graphics card (cuda:1) has no memory left."),
        ("mps", RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)."), "The Apple GPU has no memory left."),
        ("cuda:0", RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9."),
         "This computer has no memory left."),
        ("cuda:0", MemoryError(), "This computer has no memory left."),
        ("cuda:1", LOST, "The graphics card (cuda:1) has stopped working: CUDA error: unspecified launch failure."),
        ("cpu", LOST, "The graphics card has stopped working: CUDA error: unspecified launch failure."),
        ("xpu:0", RuntimeError("level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"),
         "The Intel GPU (xpu:0) has stopped working: level_zero backend failed with error: 20"
         " (UR_RESULT_ERROR_DEVICE_LOST)."),
    ],
)  # fmt: skip
def test_torch_errors_become_device_errors(device: str, error: Exception, title: str) -> None:
    with pytest.raises(DeviceError) as caught, detection.wrap_device_errors(torch.device(device)):
        raise error
    assert caught.value.title == title and caught.value.__cause__ is error


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(RuntimeError, match="shapes"), detection.wrap_device_errors(torch.device("cuda:0")):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


@pytest.mark.parametrize("mixed", ["bf16", "fp16", ""])
def test_measuring_takes_real_steps_in_both_precisions(monkeypatch: pytest.MonkeyPatch, mixed: str) -> None:
    for name, value in (("MIN_S", 0.0), ("MIN_STEPS", 1), ("WARM_UP_STEPS", 1)):
        monkeypatch.setattr(f"studio.engine.steps.benchmark.{name}", value)
    device = replace(CPU, mixed=mixed)
    events = list(measure(Classifier(), small_classifier(), Spec(8, ("a", "b")), device))
    found = of_kind(events, DeviceMeasured)
    assert [event.precision for event in found] == (["fp32", mixed] if mixed else ["fp32"])
    for event in found:
        assert event.sprites_per_s == pytest.approx(1000 * 4 / event.compute_ms)
        assert event.transfer_ms > 0


@pytest.mark.usefixtures("small_probes")
def test_probe_runs_without_a_cuda_graph_if_capture_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Mock(side_effect=RuntimeError("operation not permitted when stream is capturing"))
    monkeypatch.setattr(detection, "supports_cuda_graphs", lambda device: True)
    monkeypatch.setattr(detection, "CapturedStep", recording)
    assert detection.probe_step(torch.device("cpu"), "fp32", 2) > 0 and recording.called
