"""The ranks of a distributed training: processes started by torchrun that share every batch.

DistributedDataParallel averages gradients, so every rank takes equal steps with equal weights. Rank 0 decides what
happens next and writes commands to torchrun's store. The other ranks poll the store, so no collective waits while the
training pauses or draws samples. Only rank 0 locks and writes the run folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from studio.core.config import TrainingConfig
from studio.core.errors import ProcessGoneError, StepTooLargeError, UsageError
from studio.core.events import Events
from studio.engine.control.control import Control
from studio.engine.devices import detection

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

V = TypeVar("V", float, Tensor, float | Tensor)
Loss = Callable[..., Tensor]

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}  # torch uses both names for AMD GPUs, too
_SHORTEST_POLL_S, _LONGEST_POLL_S = 0.0005, 0.02  # pauses between two polls of the store
_STOP_TIMEOUT_S = 3.0  # a stopping rank's longest wait for rank 0, which may be dead
_GONE = "Another process of this training has ended."
_GO_ON = "Checkpoints are saved: resume the run. 'torchrun --max-restarts 3' resumes by itself."


class StartCommand(msgspec.Struct, frozen=True, tag=True):
    """Rank 0's command to start training a run."""

    path: str  # the run folder
    step: int  # the checkpoint to load; -1 without a checkpoint
    precision: str
    minutes: float  # the budget of an extended run; 0 for the run's own budget


class TickCommand(msgspec.Struct, frozen=True, tag=True):
    """Rank 0's command to take training steps."""

    steps: int  # 0 ends the training
    elapsed_s: float  # seconds of training before the steps
    nan_rollbacks: int  # number of times to halve the learning rate
    micro_batches: int  # parts per batch


class Ranks:
    """A distributed training's processes. This base class stands for a single process and returns values unchanged.

    on_device: number of ranks on this rank's device. is_alone: False under torchrun, even with one process.
    """

    def __init__(self, rank: int = 0, world_size: int = 1, on_device: int = 1, *, is_alone: bool = True) -> None:
        self.rank, self.world_size, self.on_device, self.is_alone = rank, world_size, on_device, is_alone
        self.in_sync = True  # False after an error inside a collective

    @property
    def is_first(self) -> bool:
        """Whether this process is rank 0, which decides and writes."""
        return self.rank == 0

    @property
    def devices(self) -> int:
        """The number of devices in the whole group."""
        return self.world_size // self.on_device

    def check_batch_size(self, config: TrainingConfig) -> None:
        """Raise UsageError if a batch has fewer sprites than the group has ranks."""
        if config.batch_size < self.world_size:
            title = f"A batch of {config.batch_size} sprites can't be shared by {self.world_size} processes."
            raise UsageError(title, "Choose a larger batch size or fewer processes.")

    def batch_slice(self, batch_size: int) -> slice:
        """Return this rank's rows of a batch."""
        return slice(batch_size * self.rank // self.world_size, batch_size * (self.rank + 1) // self.world_size)

    def thread_share(self, total: int) -> int:
        """Return how many of `total` CPU threads this rank may use while every rank trains."""
        return total

    def with_all_threads(self, events: Events) -> Events:
        """Run rank 0's work with the CPU threads of every local rank; forward the events."""
        return events

    def all_reduce_sum(self, value: V, device: torch.device) -> V | Tensor:
        """Return the sum of a number or scalar over the ranks. Collective."""
        return value

    def wrap_ddp(self, network: nn.Module, loss: Loss) -> Loss:
        """Wrap `loss`: the backward pass then averages gradients over several ranks. Collective."""
        return loss

    def scale_for_ddp_mean(self, loss: Tensor) -> Tensor:
        """Return the loss times the number of ranks, because DistributedDataParallel averages gradients.

        The loss is already divided by the weight of the whole batch.
        """
        return loss if self.is_alone else loss * self.world_size

    def no_sync(self, loss: Loss) -> contextlib.AbstractContextManager[None]:
        """Skip the all-reduce of gradients inside the block. Use it for every micro-batch except the last."""
        return contextlib.nullcontext()

    def broadcast_weights(self, network: nn.Module) -> None:
        """Copy rank 0's weights and buffers into the network of every rank. Collective."""

    def collective(self) -> contextlib.AbstractContextManager[None]:
        """Mark a block for all ranks at once: after an error in the block, `in_sync` is False."""
        return contextlib.nullcontext()

    def send_command(self, message: StartCommand | TickCommand | None) -> None:
        """Send a command from rank 0 to other ranks; None ends their work. Raises ProcessGoneError."""

    def set_current_run(self, path: Path | None) -> None:
        """Store the run to resume after a restart by torchrun; None without a run."""

    def current_run(self) -> Path | None:
        """Return the run to resume after a restart by torchrun; None if no run was started."""
        return None

    def wrap_rank_errors(self) -> contextlib.AbstractContextManager[None]:
        """Turn torch's error inside the block into a StudioError if another process has died."""
        return contextlib.nullcontext()

    def pop_oom_report(self) -> str:
        """Return and delete a rank's out-of-memory report; '' without a report."""
        return ""


ALONE = Ranks()


class _LossModule(nn.Module):
    """A loss function as a module, because DistributedDataParallel averages gradients only for calls of `forward`."""

    def __init__(self, network: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.network, self._loss = network, loss

    def forward(self, *args: Any) -> Tensor:
        return self._loss(*args)


class Group(Ranks):
    """The ranks of a training under torchrun. Every rank must call the collective methods in equal order.

    local_count: number of ranks on this machine. device: this rank's device, for example 'cuda:0'.
    """

    def __init__(self, store: Store, rank: int, world_size: int, local_count: int, device: str) -> None:
        from torch.distributed.distributed_c10d import PrefixStore  # missing in some builds of torch

        super().__init__(rank, world_size, local_count if device == "cpu" else 1, is_alone=False)
        self.device = device
        self._persistent = PrefixStore("studio", store)  # these keys survive a restart
        self._messages = PrefixStore(f"said {_attempt()}", store)
        self._threads = 0  # CPU threads of the local ranks together; 0 if not training on the CPU
        self._next = 0  # number of the next command
        self._has_ended = False

    def thread_share(self, total: int) -> int:
        self._threads = total
        return max(1, total // self.on_device)

    def with_all_threads(self, events: Events) -> Events:
        own = torch.get_num_threads()
        torch.set_num_threads(self._threads or own)
        try:
            yield from events
        finally:
            torch.set_num_threads(own)

    def all_reduce_sum(self, value: V, device: torch.device) -> V | Tensor:
        total = torch.zeros((), device=device) + value  # does not wait for a copy to the device
        dist.all_reduce(total)
        return total

    def wrap_ddp(self, network: nn.Module, loss: Loss) -> Loss:
        with warnings.catch_warnings():  # torch 2.15 renamed the argument
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            return DistributedDataParallel(_LossModule(network, loss), broadcast_buffers=False)

    def no_sync(self, loss: Loss) -> contextlib.AbstractContextManager[None]:
        assert isinstance(loss, DistributedDataParallel)
        return loss.no_sync()

    @torch.no_grad()
    def broadcast_weights(self, network: nn.Module) -> None:
        for tensor in network.state_dict().values():
            held = tensor.contiguous()  # broadcast needs contiguous memory, unlike channels_last
            dist.broadcast(held, 0)
            tensor.copy_(held)

    @contextlib.contextmanager
    def collective(self) -> Iterator[None]:
        self.in_sync = False  # stays False if the block raises
        yield
        self.in_sync = True

    def send_command(self, message: StartCommand | TickCommand | None) -> None:
        if not self.is_first or self._has_ended:
            return
        with self.wrap_rank_errors():
            self._messages.set(str(self._next), msgspec.json.encode(message).decode())
            self._messages.delete_key(str(self._next - 2))  # every rank took a step since, so read this message
        self._next, self._has_ended = self._next + 1, message is None

    def receive_command(self, control: Control) -> StartCommand | TickCommand | None:
        """Wait for rank 0's next command and return it; None means no more commands. Raises ProcessGoneError.

        Raises KeyboardInterrupt if `control.stop` is set and rank 0 sends no command for a while.
        """
        poll_s, give_up_s = _SHORTEST_POLL_S, float("inf")
        with self.wrap_rank_errors():
            while not (self._has_ended or self._messages.check([str(self._next)])):
                if control.stop:
                    give_up_s = min(give_up_s, time.monotonic() + _STOP_TIMEOUT_S)
                if time.monotonic() > give_up_s:
                    raise KeyboardInterrupt
                time.sleep(poll_s)
                poll_s = min(2 * poll_s, _LONGEST_POLL_S)
            if self._has_ended:
                return None
            message = msgspec.json.decode(self._messages.get(str(self._next)), type=StartCommand | TickCommand | None)
        self._next, self._has_ended = self._next + 1, message is None
        return message

    def set_current_run(self, path: Path | None) -> None:
        with self.wrap_rank_errors():
            if path is not None:
                self._persistent.set("run", str(path.absolute()))
            else:
                self._persistent.delete_key("run")

    def current_run(self) -> Path | None:
        return Path(os.fsdecode(self._persistent.get("run"))) if self._persistent.check(["run"]) else None

    def mark_ended(self) -> None:
        """Record the end of the training, so processes restarted by torchrun end at once."""
        self._persistent.set("ended", "")

    def has_ended(self) -> bool:
        """Return whether the training ended before torchrun restarted this process. Any exit code causes a restart."""
        return self._persistent.check(["ended"])

    def report_oom(self, title: str) -> None:
        """Report an out-of-memory error's title to rank 0, now or after a restart."""
        self._persistent.set("full", title)

    def pop_oom_report(self) -> str:
        if not self._persistent.check(["full"]):
            return ""
        title = self._persistent.get("full").decode()
        self._persistent.delete_key("full")
        return title

    @contextlib.contextmanager
    def wrap_rank_errors(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and "gloo" not in str(error).lower():
                raise
            full = ""
            with contextlib.suppress(RuntimeError):  # torchrun itself may have ended
                full = self.pop_oom_report() if self.is_first else ""
            raise (StepTooLargeError(full, _GO_ON) if full else ProcessGoneError(_GONE, _GO_ON)) from error


def is_torchrun_launched() -> bool:
    """Return whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextlib.contextmanager
def process_group(device: str) -> Iterator[Group]:
    """Join torchrun's process group, on 'auto', 'cpu' or 'cuda', for the block. Collective. Raises UsageError."""
    if sys.platform != "linux":
        raise UsageError("Distributed training works only on Linux.", "Start the command without torchrun.")
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    local_count = int(os.environ["LOCAL_WORLD_SIZE"])
    own = _own_device(device, local_count)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    else:  # torchrun sets one thread, too few for rank 0's work before the training
        torch.set_num_threads(detection.find_device("cpu").threads)
    store, rank, world_size = next(rendezvous("env://"))
    group = Group(store, rank, world_size, local_count, str(own))
    if group.has_ended():  # leaving now would break the other ranks' rendezvous
        yield group
        return
    own_store = PrefixStore(f"group {_attempt()}", store)
    with group.wrap_rank_errors():
        dist.init_process_group(_BACKENDS[own.type], store=own_store, rank=rank, world_size=world_size)
    try:
        yield group
    finally:
        with contextlib.suppress(StepTooLargeError, ProcessGoneError):
            group.send_command(None)
    dist.destroy_process_group()  # not after an error: it would wait for a dead rank


def _own_device(wanted: str, local_count: int) -> torch.device:
    """Return this rank's device. wanted: 'auto', 'cpu' or 'cuda'. Raises UsageError."""
    kind = ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
    if kind not in _BACKENDS:
        title = f"Distributed training on {wanted!r} is not possible, only on NVIDIA or AMD GPUs, or CPUs."
        raise UsageError(title, "Choose --device cuda, with a GPU for each process, or --device cpu.")
    if kind == "cpu":
        return torch.device(kind)
    if (found := torch.cuda.device_count()) < local_count:
        title = f"{local_count} processes need one GPU each; this machine has {found}."
        raise UsageError(title, "Start fewer processes.")
    return torch.device(kind, int(os.environ["LOCAL_RANK"]))


def _attempt() -> str:
    """Return how often torchrun has restarted the processes. The store outlives restarts, so its keys need this."""
    return os.environ["TORCHELASTIC_RESTART_COUNT"]
