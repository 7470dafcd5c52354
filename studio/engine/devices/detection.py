"""Detect the devices of this computer, time them with real training steps, and wrap their errors."""

import contextlib
import logging
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core import limits
from studio.core.errors import DeviceError, DeviceFullError, UsageError
from studio.core.events import Events
from studio.engine.devices.adam import AdamW
from studio.engine.devices.cuda_graph import CapturedStep, supports_cuda_graphs
from studio.engine.devices.precision import LossScaler, autocast
from studio.engine.devices.types import Device, DevicesFound

_log = logging.getLogger(__name__)

AUTO = "auto"
PROBE_BATCH, PROBE_SIZE = 32, 32  # batch size of the probe, and width of its sprites
_BUSY_BATCH = 512  # large enough that arithmetic dominates, to compare precisions
_MIN_SPEEDUP = 1.05  # factor by which a precision must be faster to be preferred
GPU_TYPES = ("cuda", "xpu")  # AMD GPUs are 'cuda' too
_CPU_BF16 = ("amx_bf16", "avx512_bf16")  # x86; other CPUs are timed
_PROBE_REPEATS = 3
_WARM_UP_STEPS, _TIMED_STEPS = 2, 3  # of a probe
# Raised by torch if a driver or a GPU fails, on the first call or later.
_DRIVER_ERRORS = (RuntimeError, AssertionError, torch.cuda.DeferredCudaCallError)

_NAMES = {"cpu": "This computer", "cuda": "The graphics card", "xpu": "The Intel GPU", "mps": "The Apple GPU"}
# Messages of plain RuntimeErrors: out of memory on MPS, on the CPU and in GPU libraries, and libraries that notice a
# lost GPU before torch does.
_HOST_ALLOCATOR = "DefaultCPUAllocator"
_OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED", "OUT_OF_DEVICE_MEMORY", _HOST_ALLOCATOR)
_DEVICE_LOST = (
    "CUDA error", "cuDNN error", "HIP error", "MIOpen Error", "level_zero backend failed", "Native API failed",
)  # fmt: skip
_OUT_OF_MEMORY_HINT = (
    "Close other programs or choose another device. A smaller batch size or width also needs less memory."
)
_DEVICE_LOST_HINT = "Restart the studio and resume the run, if necessary on the CPU."


def find_devices() -> Events:
    """Probe every device with real training steps; yields one DevicesFound."""
    devices = probe_devices()
    yield DevicesFound(devices, choose_device(devices, AUTO).id)


def probe_devices() -> tuple[Device, ...]:
    """Return every device, GPUs and CPU, with its measured speed. A failing device has a problem text."""
    return tuple(_probe(device) for device in list_devices())


def list_devices() -> tuple[Device, ...]:
    """Return every device without measuring its speed, which would take seconds."""
    found = [_gpu(kind, index) for kind in GPU_TYPES for index in range(torch.get_device_module(kind).device_count())]
    if torch.backends.mps.is_available():
        total = torch.mps.recommended_max_memory()
        found.append(Device("mps", "mps", "Apple GPU", total - torch.mps.current_allocated_memory(), total))
    found.append(_cpu())
    return tuple(replace(device, probed=False) for device in found)


def find_device(wanted: str, *, probe: bool = False) -> Device:
    """Return the device `wanted`, timed if `probe` or to choose for 'auto'. Raises UsageError, DeviceError."""
    found = list_devices()
    if wanted == AUTO and sum(not device.problem for device in found) > 1:
        return choose_device(probe_devices(), AUTO)
    chosen = choose_device(found, wanted)
    return _require_working(chosen) if probe else chosen


def choose_device(devices: tuple[Device, ...], wanted: str) -> Device:
    """Return the device with an id, the first of a kind, or for 'auto' the fastest. Raises UsageError, DeviceError."""
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
    """Return the precision to use; for 'auto' the best, by a probe. Raises DeviceError, also for a slower fp16."""
    if wanted not in (AUTO, "fp16"):
        return wanted
    suits = _require_working(device).precision
    if wanted == "fp16" != suits:
        raise DeviceError(f"fp16 is not faster on {device.name}.", "Set the precision to auto.")
    return suits


@contextlib.contextmanager
def wrap_device_errors(device: torch.device, full: type[DeviceFullError] = DeviceFullError) -> Iterator[None]:
    """Turn torch's errors about a full or lost device in a block into `full` or DeviceError."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        message = str(error)
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or any(part in message for part in _OUT_OF_MEMORY):
            is_host_memory = isinstance(error, MemoryError) or _HOST_ALLOCATOR in message
            title = f"{_NAMES['cpu'] if is_host_memory else _device_title(device)} has no memory left."
            raise full(title, _OUT_OF_MEMORY_HINT) from error
        if isinstance(error, torch.AcceleratorError) or message.startswith(_DEVICE_LOST):
            # A GPU lost earlier breaks CPU work too.
            lost = _NAMES["cuda"] if device.type == "cpu" else _device_title(device)
            title = f"{lost} has stopped working: {_first_line(error).rstrip('.')}."
            raise DeviceError(title, _DEVICE_LOST_HINT) from error
        raise


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished all queued work. Needed before reading a clock."""
    if device.type in GPU_TYPES:
        torch.get_device_module(device).synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def memory_in_use(device: torch.device) -> int:
    """Return the bytes allocated on the device; for the CPU, the memory of this process."""
    if device.type in GPU_TYPES:
        return int(torch.get_device_module(device).memory_allocated(device))
    if device.type == "mps":
        return int(torch.mps.current_allocated_memory())
    return int(psutil.Process().memory_info().rss)


def memory_free(device: torch.device) -> int:
    """Return the free bytes of the device; for the CPU, the memory available without swapping."""
    if device.type in GPU_TYPES:
        torchs = torch.get_device_module(device)
        kept = torchs.memory_reserved(device) - torchs.memory_allocated(device)  # cached by torch, free for new tensors
        return int(_free_and_total(device)[0] + kept)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return limits.usable_memory().free_bytes


def empty_cache(device: torch.device) -> None:
    """Release the memory that torch caches on the device to other programs."""
    with contextlib.suppress(RuntimeError):  # the device is lost, which was reported before
        if device.type != "cpu":
            torch.get_device_module(device).empty_cache()


def probe_step(device: torch.device, precision: str, batch_size: int = PROBE_BATCH) -> float:
    """Run real training steps of a small network and return steps per second. Raises RuntimeError if a step fails."""
    network = nn.Sequential(
        # [B, 4, S, S] -> [B, 4, S/2, S/2]
        nn.Conv2d(4, 64, 3, 2, 1), nn.GroupNorm(4, 64), nn.SiLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.SiLU(),
        nn.Conv2d(64, 64, 3, 1, 1), nn.SiLU(), nn.Conv2d(64, 4, 3, 1, 1),
    ).to(device)  # fmt: skip
    # capturable: the step counter lives on the GPU, as a CUDA graph needs.
    optimizer = AdamW(network.parameters(), fused=True, capturable=supports_cuda_graphs(device))
    scaler = LossScaler(network, [optimizer], precision, device)
    sprites = torch.zeros(batch_size, 4, PROBE_SIZE, PROBE_SIZE, device=device)  # [B, 4, S, S]

    def step(inputs: tuple[Tensor]) -> Tensor:
        (sprites,) = inputs
        optimizer.zero_grad()
        with autocast(device.type, precision):
            loss = F.mse_loss(network(sprites).float(), sprites[:, :, ::2, ::2] + 1)  # [B, 4, S/2, S/2]
        scaler.scale(loss).backward()
        if precision == "fp16":
            scaler.unscale_gradients()
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            scaler.update(loss.detach(), norm)
        optimizer.step()
        return loss.detach()

    def seconds(take: Callable[[tuple[Tensor]], Tensor]) -> float:
        start_s = time.perf_counter()
        if not torch.isfinite(take((sprites,))).item():
            raise RuntimeError("the loss of a training step is NaN or infinite")
        return time.perf_counter() - start_s

    for _ in range(_WARM_UP_STEPS):
        seconds(step)
    take = step
    if supports_cuda_graphs(device):
        try:
            take = CapturedStep(step, (sprites,)).replay  # like a training
        except RuntimeError as error:  # a training runs without graphs then
            _log.warning("Can't capture a step as a CUDA graph.", exc_info=error)
    fastest_s = min(seconds(take) for _ in range(_TIMED_STEPS))
    if scaler.skip_step.item():
        raise RuntimeError("the gradients of a training step are NaN or infinite")
    return 1 / fastest_s


def _require_working(device: Device) -> Device:
    return device if device.probed else choose_device((_probe(device),), device.id)


def _probe(device: Device) -> Device:
    """Measure a device, log the results, and return the device with them."""
    probed = _measured(replace(device, probed=True))
    _log.info("%s", probed)
    return probed


def _measured(device: Device) -> Device:
    """Time training steps on a device in fp32 and bf16, and return the device with the results.

    Alternates and keeps the best of _PROBE_REPEATS, so that other programs hardly influence the comparison.
    """
    if device.problem:
        return device
    fp32 = bf16 = 0.0
    for _ in range(_PROBE_REPEATS):
        try:
            fp32 = max(fp32, probe_step(device.torch, "fp32"))
        except (RuntimeError, NotImplementedError) as error:  # the GPU is too old, full or lost
            return replace(device, problem=f"A training step failed: {_first_line(error)}")
        bf16 = max(bf16, _steps_per_s(device.torch, "bf16"))
    found = replace(device, mixed="bf16" if bf16 else "", steps_per_s=max(fp32, bf16))
    if bf16 and _has_bf16_units(device.torch):
        return replace(found, precision="bf16")
    if device.kind != "cpu":
        return _with_fastest_precision(found)
    return replace(found, precision="bf16" if bf16 > _MIN_SPEEDUP * fp32 else "fp32")


def _with_fastest_precision(device: Device) -> Device:
    """Return the GPU with its fastest precision on large batches, preferably bf16, which needs no loss scaling."""
    speeds = dict.fromkeys(("fp32", "bf16", "fp16"), 0.0)
    for _ in range(_PROBE_REPEATS):
        for precision, speed in speeds.items():
            speeds[precision] = max(speed, _steps_per_s(device.torch, precision, _BUSY_BATCH))
    empty_cache(device.torch)
    for mixed in ("bf16", "fp16"):
        if speeds[mixed] > _MIN_SPEEDUP * speeds["fp32"] > 0:
            return replace(device, precision=mixed, mixed=mixed)
    return device


def _steps_per_s(device: torch.device, precision: str, batch_size: int = PROBE_BATCH) -> float:
    """Return steps per second; 0 if the precision doesn't work or gives NaN or infinity."""
    with contextlib.suppress(RuntimeError, NotImplementedError):
        return probe_step(device, precision, batch_size)
    return 0.0


def _has_bf16_units(device: torch.device) -> bool:
    """Return whether the hardware is known to compute in bf16: NVIDIA Ampere and later, some x86 CPUs.

    A timing could mislead: on a GPU, kernel launches dominate in the probe's small network; on a CPU, other programs
    influence it, and equal seeds would give different runs. AMD GPUs don't report the capability.
    """
    if device.type == "cuda":
        return not torch.version.hip and torch.cuda.get_device_capability(device) >= (8, 0)
    return device.type == "cpu" and any(torch.cpu.get_capabilities().get(name) for name in _CPU_BF16)


def _gpu(kind: str, index: int) -> Device:
    """Return the GPU with this index, with a problem text if it doesn't respond, for example with an old driver."""
    device = torch.device(kind, index)
    maker = "Intel" if kind == "xpu" else "AMD" if torch.version.hip else "NVIDIA"
    name, free, total, problem = f"{maker} GPU {index}", 0, 0, ""
    try:
        name = torch.get_device_module(kind).get_device_name(index).strip() or name
        free, total = memory_free(device), _free_and_total(device)[1]
    except _DRIVER_ERRORS as error:
        problem = f"It does not respond: {_first_line(error)}"
    return Device(str(device), kind, name, free, total, problem=problem)


def _free_and_total(device: torch.device) -> tuple[int, int]:
    """Return free and total bytes of a GPU, without torch's cache. Estimates free bytes for some Intel drivers."""
    torchs = torch.get_device_module(device)
    try:
        free, total = torchs.mem_get_info(device)
    except RuntimeError:
        if device.type != "xpu":
            raise
        total = torchs.get_device_properties(device).total_memory
        free = total - torchs.memory_reserved(device)
    return free, total


def _device_title(device: torch.device) -> str:
    return _NAMES[device.type] + (f" ({device})" if device.type in GPU_TYPES else "")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _cpu() -> Device:
    cores, memory = limits.usable_cpus(), limits.usable_memory()
    threads = min(cores, psutil.cpu_count(logical=False) or cores)
    return Device("cpu", "cpu", _cpu_name(), memory.free_bytes, memory.total_bytes, cores=cores, threads=threads)


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "CPU"
