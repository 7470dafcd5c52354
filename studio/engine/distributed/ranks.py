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
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

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

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}  # torch calls AMD's cards and their library so, too
_SHORTEST_LOOK_S, _LONGEST_LOOK_S = 0.0005, 0.02  # between two looks into the store
_PATIENCE_S = 3.0  # of a rank that is asked to end, with the first one: that may be gone
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

    def __init__(self, number: int = 0, count: int = 1, on_device: int = 1, *, is_alone: bool = True) -> None:
        """number: of this process. on_device: how many are on its device. is_alone: torchrun has no part in it."""
        self.number, self.count, self.on_device, self.is_alone = number, count, on_device, is_alone
        self.are_in_step = True  # no error has kept one of them from what all do together

    @property
    def is_first(self) -> bool:
        """Whether this one decides and writes."""
        return self.number == 0

    @property
    def devices(self) -> int:
        """How many devices all of them have."""
        return self.count // self.on_device

    def check(self, config: TrainingConfig) -> None:
        """Raise UsageError where a batch has too few sprites for all."""
        if config.batch_size < self.count:
            title = f"A batch of {config.batch_size} sprites can't be shared by {self.count} processes."
            raise UsageError(title, "Take a larger batch size or fewer processes.")

    def rows(self, batch_size: int) -> slice:
        """Which sprites of a batch are this process's."""
        return slice(batch_size * self.number // self.count, batch_size * (self.number + 1) // self.count)

    def threads(self, all_of_them: int) -> int:
        """How many of so many CPU threads are this process's while all train."""
        return all_of_them

    def by_all_threads(self, events: Events) -> Events:
        """The events of what this process does while the others wait: it computes with their threads as well."""
        return events

    def all_reduce_sum(self, value: V, device: torch.device) -> V | Tensor:
        """The sum of what each process has; a tensor is a scalar on the device."""
        return value

    def wrap_ddp(self, loss: nn.Module) -> nn.Module:
        """`loss`, a module that holds the network, so that going backward from it makes the gradients one."""
        return loss

    def scale_for_ddp_mean(self, loss: Tensor) -> Tensor:
        """What to go backward from, of this process's part of a loss."""
        return loss

    def no_sync(self, shared: nn.Module) -> contextlib.AbstractContextManager[None]:
        """Around a loss of a micro-batch, forward and backward, after which others follow: gradients are added up."""
        return contextlib.nullcontext()

    def broadcast_weights(self, network: nn.Module) -> None:
        """Give the network of every process the weights and buffers that it has in the first one."""

    def collective(self) -> contextlib.AbstractContextManager[None]:
        """Around what all processes do at once: after an error in it they are no longer in step."""
        return contextlib.nullcontext()

    def send_command(self, message: StartCommand | Tick | None) -> None:
        """Say to the others what is next; None: there is no more to do. Raises ProcessGoneError."""

    def remember(self, path: Path | None) -> None:
        """Have `remembered` give this run after a restart."""

    def remembered(self) -> Path | None:
        """The run that torchrun's restart is to go on with; None where nothing was begun before."""
        return None

    def faults(self) -> contextlib.AbstractContextManager[None]:
        """Turn what torch says of a process that has gone into a StudioError; other errors pass."""
        return contextlib.nullcontext()

    def take_oom_report(self) -> str:
        """What a process has said of a step for which it had no memory; empty where none has. It is said once."""
        return ""


ALONE = Ranks()


class Group(Ranks):
    """Processes that torchrun has started, all of which must make the same calls of what is marked as collective."""

    def __init__(self, store: Store, number: int, count: int, here: int, device: str) -> None:
        """here: how many of them are on this machine. device: this one's, as torch calls it."""
        from torch.distributed.distributed_c10d import PrefixStore  # not every torch has it

        super().__init__(number, count, here if device == "cpu" else 1, is_alone=False)
        self.device = device
        self._kept = PrefixStore("studio", store)  # outlives a restart
        self._said = PrefixStore(f"said {_attempt()}", store)
        self._threads = 0  # of the CPU, for all processes on it; 0 where it does not train
        self._next = 0  # the number of the next message
        self._is_over = False

    def threads(self, all_of_them: int) -> int:
        self._threads = all_of_them
        return max(1, all_of_them // self.on_device)

    def by_all_threads(self, events: Events) -> Events:
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

    def wrap_ddp(self, loss: nn.Module) -> nn.Module:
        """Collective."""
        with warnings.catch_warnings():  # torch 2.15 has a new name for it, which older versions don't know
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            return DistributedDataParallel(loss, broadcast_buffers=False)

    def scale_for_ddp_mean(self, loss: Tensor) -> Tensor:
        return loss * self.count  # DistributedDataParallel makes the mean of gradients whose sum is wanted

    def no_sync(self, shared: nn.Module) -> contextlib.AbstractContextManager[None]:
        assert isinstance(shared, DistributedDataParallel)
        return shared.no_sync()

    @torch.no_grad()
    def broadcast_weights(self, network: nn.Module) -> None:
        """Collective."""
        for tensor in network.state_dict().values():
            held = tensor.contiguous()  # whatever the order of its channels
            dist.broadcast(held, 0)
            tensor.copy_(held)

    @contextlib.contextmanager
    def collective(self) -> Iterator[None]:
        self.are_in_step = False
        yield
        self.are_in_step = True

    def send_command(self, message: StartCommand | Tick | None) -> None:
        if not self.is_first or self._is_over:
            return
        with self.faults():
            self._said.set(str(self._next), msgspec.json.encode(message).decode())
            self._said.delete_key(str(self._next - 2))  # steps that all have taken since show that all have read it
        self._next, self._is_over = self._next + 1, message is None

    def receive_command(self, control: Control) -> StartCommand | Tick | None:
        """What the first process says next; None: there is no more to do. Raises ProcessGoneError.

        Raises KeyboardInterrupt when `control.stop` is set and the first one, which is asked to stop as well, has not
        said so for a while.
        """
        look_s, give_up_s = _SHORTEST_LOOK_S, float("inf")
        with self.faults():
            while not (self._is_over or self._said.check([str(self._next)])):
                if control.stop:
                    give_up_s = min(give_up_s, time.monotonic() + _PATIENCE_S)
                if time.monotonic() > give_up_s:
                    raise KeyboardInterrupt
                time.sleep(look_s)
                look_s = min(2 * look_s, _LONGEST_LOOK_S)
            if self._is_over:
                return None
            message = msgspec.json.decode(self._said.get(str(self._next)), type=StartCommand | Tick | None)
        self._next, self._is_over = self._next + 1, message is None
        return message

    def remember(self, path: Path | None) -> None:
        with self.faults():
            if path is not None:
                self._kept.set("run", str(path.absolute()))
            else:
                self._kept.delete_key("run")

    def remembered(self) -> Path | None:
        return Path(os.fsdecode(self._kept.get("run"))) if self._kept.check(["run"]) else None

    def end_for_good(self) -> None:
        """Have `has_ended` say, after each restart, that there is nothing to be tried again."""
        self._kept.set("ended", "")

    def has_ended(self) -> bool:
        """Whether an earlier start has said all that there is to say. torchrun knows no exit code that tells it so."""
        return self._kept.check(["ended"])

    def report_oom(self, title: str) -> None:
        """Have `take_oom_report` say so: in the first process, or in that of the next start."""
        self._kept.set("full", title)

    def take_oom_report(self) -> str:
        if not self._kept.check(["full"]):
            return ""
        title = self._kept.get("full").decode()
        self._kept.delete_key("full")
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


def is_launched() -> bool:
    """Whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextlib.contextmanager
def launched(device: str) -> Iterator[Group]:
    """The processes that torchrun has started: in the block this one is one of them. Collective, unless it `has_ended`.

    device: 'auto', 'cpu' or 'cuda', which gives each a card of its own. Raises UsageError.
    """
    if sys.platform != "linux":
        raise UsageError("Only on Linux can several processes train one run.", "Start the command without torchrun.")
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    here = int(os.environ["LOCAL_WORLD_SIZE"])
    own = _own_device(device, here)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    else:  # torchrun's one thread is too few for what the first process does before all of them train
        torch.set_num_threads(detection.find_device("cpu").threads)
    store, number, count = next(rendezvous("env://"))
    group = Group(store, number, count, here, str(own))
    if group.has_ended():  # one that leaves at once would cut the others off while they come together
        yield group
        return
    own_store = PrefixStore(f"group {_attempt()}", store)
    with group.faults():
        dist.init_process_group(_BACKENDS[own.type], store=own_store, rank=number, world_size=count)
    try:
        yield group
    finally:
        with contextlib.suppress(StepTooLargeError, ProcessGoneError):
            group.send_command(None)
    dist.destroy_process_group()  # not after an error: of a group with one that is gone, torch would wait for it


def _own_device(wanted: str, here: int) -> torch.device:
    """The device of this process among so many on this machine."""
    kind = ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
    if kind not in _BACKENDS:
        title = f"Several processes can't train on {wanted!r}: it takes NVIDIA's or AMD's cards, or CPUs."
        raise UsageError(title, "Choose --device cuda, which gives each process a card of its own, or cpu.")
    if kind == "cpu":
        return torch.device(kind)
    if torch.cuda.device_count() < here:
        raise UsageError(f"{here} processes need as many cards; here are {torch.cuda.device_count()}.", "Start fewer.")
    return torch.device(kind, int(os.environ["LOCAL_RANK"]))


def _attempt() -> str:
    """The number of torchrun's start: its store stays the same, and holds what was said after earlier ones."""
    return os.environ["TORCHELASTIC_RESTART_COUNT"]
