"""The devices that can train here, each proven by a real training step, and how each is best used."""

from __future__ import annotations

import contextlib
import logging
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import torch
from torch import nn
from torch.nn import functional as F

from studio.core import limits
from studio.core.errors import DeviceError, DeviceFullError, UsageError
from studio.core.events import Event, Events
from studio.engine.rundir import RunRecord

AUTO = "auto"
PROBE_BATCH, PROBE_SIZE = 32, 32  # what the devices' probe trains on: sprites a step, and their side in pixels
_log = logging.getLogger(__name__)
_CPU_BF16 = ("amx_bf16", "avx512_bf16")  # x86's; what others make of bf16 is found out by a race
_PROBES = 3
# How torch says that a driver or a card refuses, on the first call to it and on later ones.
_REFUSALS = (RuntimeError, AssertionError, torch.cuda.DeferredCudaCallError)

_NAMES = {"cpu": "This computer", "cuda": "The graphics card", "mps": "The Apple GPU"}
# What torch's plain RuntimeErrors hold where it raises no class of their own: memory of MPS, CUDA's libraries and the
# CPU, and libraries that find the card gone before torch does.
_FULL_HOST = "DefaultCPUAllocator"
_FULL = ("out of memory", "ALLOC_FAILED", _FULL_HOST)
_LOST = ("CUDA error", "cuDNN error")
_FULL_HINT = (
    "Close other programs or choose another device. In training, a smaller batch size or width needs less memory, too."
)
_LOST_HINT = (
    "Start the studio again. A training keeps its last checkpoint: resume the run from there, on the CPU if need be."
)


@dataclass(frozen=True)
class Device:
    """A device and what its probe found: `problem` is empty when it works, `bf16` says that bf16 is what suits it."""

    id: str  # what torch calls it: 'cuda:0', 'mps', 'cpu'
    kind: str
    name: str
    memory_free_bytes: int
    memory_total_bytes: int
    cores: int = 0  # CPU only
    threads: int = 0  # CPU only: how many training uses
    bf16: bool = False
    steps_per_s: float = 0.0  # of the probe's small network, in the faster precision: ranks the devices
    problem: str = ""


@dataclass(frozen=True)
class DevicesFound(Event):
    """All devices, usable or not, and the id of the fastest."""

    devices: tuple[Device, ...]
    fastest: str


def find_devices() -> Events:
    """Detect and probe every device; yields one DevicesFound."""
    devices = detect()
    yield DevicesFound(devices, choose(devices, AUTO).id)


def detect() -> tuple[Device, ...]:
    """Every cuda card, mps and the CPU, each probed. A device that fails is listed with its reason."""
    found = [_cuda_card(index) for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        total = torch.mps.recommended_max_memory()
        found.append(Device("mps", "mps", "Apple GPU", total - torch.mps.current_allocated_memory(), total))
    found.append(_cpu())
    probed = tuple(_probed(device) for device in found)
    for device in probed:
        _log.info("%s", device)
    return probed


def choose(devices: tuple[Device, ...], wanted: str) -> Device:
    """The device of that id ('cuda' means 'cuda:0'), or the fastest for 'auto'. Raises UsageError or DeviceError."""
    usable = [device for device in devices if not device.problem]
    if wanted == AUTO:
        if not usable:
            raise DeviceError("No device works.", devices[-1].problem)
        return max(usable, key=lambda device: device.steps_per_s)
    matches = [device for device in devices if wanted in (device.id, device.kind)]
    if not matches:
        names = ", ".join([AUTO, *(device.id for device in devices)])
        raise UsageError(f"There is no device named {wanted!r} here.", f"Choose one of: {names}.")
    if matches[0].problem:
        raise DeviceError(f"{matches[0].name} does not work.", matches[0].problem)
    return matches[0]


def resolve_precision(device: Device, wanted: str) -> str:
    """'fp32' or 'bf16': what was asked for, or for 'auto' what suits this device."""
    if wanted != AUTO:
        return wanted
    return "bf16" if device.bf16 else "fp32"


def precision_of(record: RunRecord, device: Device, wanted: str) -> str:
    """The precision of a run that goes on or is used: where it began its own, whatever a new probe finds the faster."""
    if (device.id, device.name) == (record.device, record.device_name):
        return record.precision
    return resolve_precision(device, wanted)


def autocast(device_type: str, precision: str) -> contextlib.AbstractContextManager[object]:
    """The context in which networks run: mixed precision for 'bf16', nothing for 'fp32'."""
    if precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device_type, dtype=torch.bfloat16)


@contextlib.contextmanager
def faults(device: torch.device) -> Iterator[None]:
    """Turn what torch says of a device that is full or lost into a DeviceError; other errors pass."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        said = str(error)
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in said for words in _FULL):
            of_the_host = isinstance(error, MemoryError) or _FULL_HOST in said
            title = f"{_NAMES['cpu'] if of_the_host else _named(device)} has no memory left."
            raise DeviceFullError(title, _FULL_HINT) from error
        if isinstance(error, torch.AcceleratorError) or said.startswith(_LOST):
            lost = _NAMES["cuda"] if device.type == "cpu" else _named(device)  # a card lost before ends work there, too
            title = f"{lost} has stopped working: {_first_line(error).rstrip('.')}."
            raise DeviceError(title, _LOST_HINT) from error
        raise


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what was asked of it, so that a clock tells the truth."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def memory_in_use(device: torch.device) -> int:
    """Bytes held on the device; for the CPU, what the process holds."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    if device.type == "mps":
        return int(torch.mps.current_allocated_memory())
    return int(psutil.Process().memory_info().rss)


def memory_free(device: torch.device) -> int:
    """Bytes that are free on the device; for the CPU, those that programs can have without others being moved out."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, for what comes next
        return int(torch.cuda.mem_get_info(device)[0] + kept)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return limits.memory().free_bytes


def give_back_memory(device: torch.device) -> None:
    """Let other programs have the memory that torch keeps for what comes next."""
    with contextlib.suppress(RuntimeError):  # a device that was lost has none to give, and was reported
        if device.type == "cuda":
            torch.cuda.empty_cache()
        elif device.type == "mps":
            torch.mps.empty_cache()


def probe_step(device: torch.device, precision: str) -> float:
    """Take real training steps of a small network and return steps per second. Raises RuntimeError when one fails."""
    network = nn.Sequential(
        nn.Conv2d(4, 64, 3, 2, 1), nn.GroupNorm(4, 64), nn.SiLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.SiLU(),
        nn.Conv2d(64, 64, 3, 1, 1), nn.SiLU(), nn.Conv2d(64, 4, 3, 1, 1),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    sprites = torch.zeros(PROBE_BATCH, 4, PROBE_SIZE, PROBE_SIZE, device=device)
    durations_s = []
    for _ in range(5):
        start = time.perf_counter()
        with autocast(device.type, precision):
            loss = F.mse_loss(network(sprites).float(), sprites[:, :, ::2, ::2] + 1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not torch.isfinite(loss.detach()).item():
            raise RuntimeError("a training step gave a number that is not finite")
        durations_s.append(time.perf_counter() - start)
    return 1 / min(durations_s[2:])  # the first steps pay for warming up


def _probed(device: Device) -> Device:
    """Both precisions in turn, the best of a few tries each: other programs must not decide which is the faster."""
    if device.problem:
        return device
    torch_device = torch.device(device.id)
    fp32 = bf16 = 0.0
    for _ in range(_PROBES):
        try:
            fp32 = max(fp32, probe_step(torch_device, "fp32"))
        except (RuntimeError, NotImplementedError) as error:  # what torch raises for a card too old, full or lost
            return replace(device, problem=f"A training step failed: {_first_line(error)}")
        with contextlib.suppress(RuntimeError, NotImplementedError):  # no bf16 is no fault
            bf16 = max(bf16, probe_step(torch_device, "bf16"))
    suits = bf16 > 1.05 * fp32 or (bf16 > 0 and _computes_in_bf16(torch_device))
    return replace(device, bf16=suits, steps_per_s=max(fp32, bf16))


def _computes_in_bf16(device: torch.device) -> bool:
    """Whether it is made for bf16, a card (Ampere and later) or a CPU, which then needs to win no race.

    The probe's steps are so small that such a card spends them on being told what to do, of which mixed precision
    needs more; in real trainings its tensor cores and half the memory traffic count. On a CPU other programs would
    decide it, and a seed give one run today and another tomorrow.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return device.type == "cpu" and any(torch.cpu.get_capabilities().get(name) for name in _CPU_BF16)


def _cuda_card(index: int) -> Device:
    """A card that was counted; with a driver too old or a card that hangs, the first question to it raises."""
    name, free, total, problem = f"NVIDIA GPU {index}", 0, 0, ""
    try:
        name = torch.cuda.get_device_name(index)
        free, total = memory_free(torch.device("cuda", index)), torch.cuda.mem_get_info(index)[1]
    except _REFUSALS as error:
        problem = f"It does not answer: {_first_line(error)}"
    return Device(f"cuda:{index}", "cuda", name, free, total, problem=problem)


def _named(device: torch.device) -> str:
    return _NAMES[device.type] + (f" ({device})" if device.type == "cuda" else "")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _cpu() -> Device:
    cores, memory = limits.cpus(), limits.memory()
    threads = min(cores, psutil.cpu_count(logical=False) or cores)
    return Device("cpu", "cpu", _cpu_name(), memory.free_bytes, memory.total_bytes, cores=cores, threads=threads)


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "CPU"
