"""One training by several processes, its ranks, which torchrun starts: each takes a part of every batch.

DistributedDataParallel makes their gradients one, so that all ranks take the same steps with the same weights. What is
to be done next the first rank decides: it says so in torchrun's store, where the others look for it, so that no
collective waits while the training is paused or samples are drawn. It alone locks the run's folder and writes to it.
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

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}  # torch calls AMD's cards and their library so, too
_SHORTEST_POLL_S, _LONGEST_POLL_S = 0.0005, 0.02  # between two looks into the store
_STOP_TIMEOUT_S = 3.0  # of a rank that is asked to end, with the first one: that may be gone
_GONE = "Another process of this training has ended."
_GO_ON = "Saved checkpoints are kept: resume the run. 'torchrun --max-restarts 3' does so by itself."


class StartCommand(msgspec.Struct, frozen=True, tag=True):
    """A training begins, or goes on from a checkpoint; `step`: of that, or -1 where there is none.

    minutes: as in RunProgress.
    """

    path: str
    step: int
    precision: str
    minutes: float


class Tick(msgspec.Struct, frozen=True, tag=True):
    """Steps are to be taken, with what they depend on beside the weights and their number; none: the training ends.

    elapsed_s: of the training before them. nan_rollbacks, micro_batches: as in RunProgress.
    """

    steps: int
    elapsed_s: float
    nan_rollbacks: int
    micro_batches: int


class Ranks:
    """The processes of a training, as one of them sees them. Here it is the only one: nothing of this costs a thing."""

    def __init__(self, rank: int = 0, world_size: int = 1, on_device: int = 1, *, is_alone: bool = True) -> None:
        """rank: of this process. on_device: how many are on its device. is_alone: torchrun has no part in it."""
        self.rank, self.world_size, self.on_device, self.is_alone = rank, world_size, on_device, is_alone
        self.in_sync = True  # no error has kept one of them from what all do together

    @property
    def is_first(self) -> bool:
        """Whether this one decides and writes."""
        return self.rank == 0

    @property
    def devices(self) -> int:
        """How many devices all of them have."""
        return self.world_size // self.on_device

    def check(self, config: TrainingConfig) -> None:
        """Raise UsageError where a batch has too few sprites for all."""
        if config.batch_size < self.world_size:
            title = f"A batch of {config.batch_size} sprites can't be shared by {self.world_size} processes."
            raise UsageError(title, "Take a larger batch size or fewer processes.")

    def rows(self, batch_size: int) -> slice:
        """Which sprites of a batch are this process's."""
        return slice(batch_size * self.rank // self.world_size, batch_size * (self.rank + 1) // self.world_size)

    def threads(self, all_of_them: int) -> int:
        """How many of so many CPU threads are this process's while all train."""
        return all_of_them

    def with_all_threads(self, events: Events) -> Events:
        """The events of what this process does while the others wait: it computes with their threads as well."""
        return events

    def all_reduce_sum(self, value: V, device: torch.device) -> V | Tensor:
        """The sum of what each process has; a tensor is a scalar on the device."""
        return value

    def wrap_ddp(self, network: nn.Module, loss: Loss) -> Loss:
        """Return `loss`, a function of the network, so that its backward pass averages gradients over all ranks."""
        return loss

    def scale_for_ddp_mean(self, loss: Tensor) -> Tensor:
        """What to go backward from, of this process's part of a loss."""
        return loss

    def no_sync(self, loss: Loss) -> contextlib.AbstractContextManager[None]:
        """Around a loss of a micro-batch, forward and backward, after which others follow: gradients are added up."""
        return contextlib.nullcontext()

    def broadcast_weights(self, network: nn.Module) -> None:
        """Give the network of every process the weights and buffers that it has in the first one."""

    def collective(self) -> contextlib.AbstractContextManager[None]:
        """Around what all processes do at once: after an error in it they are no longer in step."""
        return contextlib.nullcontext()

    def send_command(self, message: StartCommand | Tick | None) -> None:
        """Say to the others what is next; None: there is no more to do. Raises ProcessGoneError."""

    def set_current_run(self, path: Path | None) -> None:
        """Have `current_run` give this run after a restart."""

    def current_run(self) -> Path | None:
        """The run that torchrun's restart is to go on with; None where nothing was begun before."""
        return None

    def faults(self) -> contextlib.AbstractContextManager[None]:
        """Turn what torch says of a process that has gone into a StudioError; other errors pass."""
        return contextlib.nullcontext()

    def take_oom_report(self) -> str:
        """What a process has said of a step for which it had no memory; empty where none has. It is said once."""
        return ""


ALONE = Ranks()


class _LossModule(nn.Module):
    """A loss as a module, because DistributedDataParallel synchronizes gradients of a module's `forward` only."""

    def __init__(self, network: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.network, self._loss = network, loss

    def forward(self, *args: Any) -> Tensor:
        return self._loss(*args)


class Group(Ranks):
    """Processes that torchrun has started, all of which must make the same calls of what is marked as collective."""

    def __init__(self, store: Store, rank: int, world_size: int, local_count: int, device: str) -> None:
        """local_count: how many of them are on this machine. device: this one's, as torch calls it."""
        from torch.distributed.distributed_c10d import PrefixStore  # not every torch has it

        super().__init__(rank, world_size, local_count if device == "cpu" else 1, is_alone=False)
        self.device = device
        self._persistent = PrefixStore("studio", store)  # outlives a restart
        self._messages = PrefixStore(f"said {_attempt()}", store)
        self._threads = 0  # of the CPU, for all processes on it; 0 where it does not train
        self._next = 0  # the number of the next message
        self._has_ended = False

    def threads(self, all_of_them: int) -> int:
        self._threads = all_of_them
        return max(1, all_of_them // self.on_device)

    def with_all_threads(self, events: Events) -> Events:
        own = torch.get_num_threads()
        torch.set_num_threads(self._threads or own)
        try:
            yield from events
        finally:
            torch.set_num_threads(own)

    def all_reduce_sum(self, value: V, device: torch.device) -> V | Tensor:
        """Collective."""
        total = torch.zeros((), device=device) + value  # waits for no copy to the device
        dist.all_reduce(total)
        return total

    def wrap_ddp(self, network: nn.Module, loss: Loss) -> Loss:
        """Collective."""
        with warnings.catch_warnings():  # torch 2.15 has a new name for it, which older versions don't know
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            return DistributedDataParallel(_LossModule(network, loss), broadcast_buffers=False)

    def scale_for_ddp_mean(self, loss: Tensor) -> Tensor:
        return loss * self.world_size  # DistributedDataParallel makes the mean of gradients whose sum is wanted

    def no_sync(self, loss: Loss) -> contextlib.AbstractContextManager[None]:
        assert isinstance(loss, DistributedDataParallel)
        return loss.no_sync()

    @torch.no_grad()
    def broadcast_weights(self, network: nn.Module) -> None:
        """Collective."""
        for tensor in network.state_dict().values():
            held = tensor.contiguous()  # whatever the order of its channels
            dist.broadcast(held, 0)
            tensor.copy_(held)

    @contextlib.contextmanager
    def collective(self) -> Iterator[None]:
        self.in_sync = False
        yield
        self.in_sync = True

    def send_command(self, message: StartCommand | Tick | None) -> None:
        if not self.is_first or self._has_ended:
            return
        with self.faults():
            self._messages.set(str(self._next), msgspec.json.encode(message).decode())
            self._messages.delete_key(str(self._next - 2))  # steps that all have taken since show that all have read it
        self._next, self._has_ended = self._next + 1, message is None

    def receive_command(self, control: Control) -> StartCommand | Tick | None:
        """What the first process says next; None: there is no more to do. Raises ProcessGoneError.

        Raises KeyboardInterrupt when `control.stop` is set and the first one, which is asked to stop as well, has not
        said so for a while.
        """
        poll_s, give_up_s = _SHORTEST_POLL_S, float("inf")
        with self.faults():
            while not (self._has_ended or self._messages.check([str(self._next)])):
                if control.stop:
                    give_up_s = min(give_up_s, time.monotonic() + _STOP_TIMEOUT_S)
                if time.monotonic() > give_up_s:
                    raise KeyboardInterrupt
                time.sleep(poll_s)
                poll_s = min(2 * poll_s, _LONGEST_POLL_S)
            if self._has_ended:
                return None
            message = msgspec.json.decode(self._messages.get(str(self._next)), type=StartCommand | Tick | None)
        self._next, self._has_ended = self._next + 1, message is None
        return message

    def set_current_run(self, path: Path | None) -> None:
        with self.faults():
            if path is not None:
                self._persistent.set("run", str(path.absolute()))
            else:
                self._persistent.delete_key("run")

    def current_run(self) -> Path | None:
        return Path(os.fsdecode(self._persistent.get("run"))) if self._persistent.check(["run"]) else None

    def mark_ended(self) -> None:
        """Have `has_ended` say, after each restart, that there is nothing to be tried again."""
        self._persistent.set("ended", "")

    def has_ended(self) -> bool:
        """Whether an earlier start has said all that there is to say. torchrun knows no exit code that tells it so."""
        return self._persistent.check(["ended"])

    def report_oom(self, title: str) -> None:
        """Have `take_oom_report` say so: in the first process, or in that of the next start."""
        self._persistent.set("full", title)

    def take_oom_report(self) -> str:
        if not self._persistent.check(["full"]):
            return ""
        title = self._persistent.get("full").decode()
        self._persistent.delete_key("full")
        return title

    @contextlib.contextmanager
    def faults(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and "gloo" not in str(error).lower():
                raise
            full = ""
            with contextlib.suppress(RuntimeError):  # it may be torchrun that has ended
                full = self.take_oom_report() if self.is_first else ""
            raise (StepTooLargeError(full, _GO_ON) if full else ProcessGoneError(_GONE, _GO_ON)) from error


def is_torchrun_launched() -> bool:
    """Whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextlib.contextmanager
def process_group(device: str) -> Iterator[Group]:
    """The processes that torchrun has started: in the block this one is one of them. Collective, unless it `has_ended`.

    device: 'auto', 'cpu' or 'cuda', which gives each a card of its own. Raises UsageError.
    """
    if sys.platform != "linux":
        raise UsageError("Only on Linux can several processes train one run.", "Start the command without torchrun.")
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    local_count = int(os.environ["LOCAL_WORLD_SIZE"])
    own = _own_device(device, local_count)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    else:  # torchrun's one thread is too few for what the first process does before all of them train
        torch.set_num_threads(detection.find_device("cpu").threads)
    store, rank, world_size = next(rendezvous("env://"))
    group = Group(store, rank, world_size, local_count, str(own))
    if group.has_ended():  # one that leaves at once would cut the others off while they come together
        yield group
        return
    own_store = PrefixStore(f"group {_attempt()}", store)
    with group.faults():
        dist.init_process_group(_BACKENDS[own.type], store=own_store, rank=rank, world_size=world_size)
    try:
        yield group
    finally:
        with contextlib.suppress(StepTooLargeError, ProcessGoneError):
            group.send_command(None)
    dist.destroy_process_group()  # not after an error: of a group with one that is gone, torch would wait for it


def _own_device(wanted: str, local_count: int) -> torch.device:
    """The device of this process among so many on this machine."""
    kind = ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
    if kind not in _BACKENDS:
        title = f"Several processes can't train on {wanted!r}: it takes NVIDIA's or AMD's cards, or CPUs."
        raise UsageError(title, "Choose --device cuda, which gives each process a card of its own, or cpu.")
    if kind == "cpu":
        return torch.device(kind)
    if torch.cuda.device_count() < local_count:
        raise UsageError(
            f"{local_count} processes need as many cards; here are {torch.cuda.device_count()}.", "Start fewer."
        )
    return torch.device(kind, int(os.environ["LOCAL_RANK"]))


def _attempt() -> str:
    """The number of torchrun's start: its store stays the same, and holds what was said after earlier ones."""
    return os.environ["TORCHELASTIC_RESTART_COUNT"]
