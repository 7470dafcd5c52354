"""Start the ranks of a training like torchrun, but without its agent: forked from a server with all imports done."""

from __future__ import annotations

import functools
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from studio.engine.distributed.ranks import process_group

Work = Callable[..., Any]
_LONGEST_S = 120.0


@functools.cache
def server() -> ForkServerContext:
    """What makes such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo", "tests.engine.tools"])
    return context


class Failure(str):
    """What went wrong in a process: its traceback."""


class Launcher:
    """Stands for torchrun: holds the store, and starts so many processes; each time that it does is a restart."""

    def __init__(self, count: int) -> None:
        self._count, self._starts = count, 0
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def results(self, work: Work, *arguments: Any) -> list[Any]:
        """What each process returned from `work(*arguments)`, or its Failure; None for one that was killed."""
        started = [self._started(number, work, arguments) for number in range(self._count)]
        self._starts += 1
        try:
            return [_received(line) for _, line in started]
        finally:
            for process, _ in started:
                process.kill()
                process.join()

    def _started(self, number: int, work: Work, arguments: tuple[Any, ...]) -> tuple[BaseProcess, Connection]:
        ours, theirs = server().Pipe(duplex=False)
        told = {
            **os.environ, "RANK": str(number), "WORLD_SIZE": str(self._count), "LOCAL_RANK": str(number),
            "LOCAL_WORLD_SIZE": str(self._count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_RUN_ID": "test", "TORCHELASTIC_RESTART_COUNT": str(self._starts),
            "TORCHELASTIC_USE_AGENT_STORE": "True", "GLOO_SOCKET_IFNAME": "lo",
        }  # fmt: skip
        process = server().Process(target=_live, args=(told, theirs, work, arguments))
        process.start()
        theirs.close()
        return process, ours


def in_group(count: int, work: Work, *arguments: Any) -> list[Any]:
    """What each of so many processes returned from `work(group, *arguments)`; none of them fails."""
    results = Launcher(count).results(grouped, work, *arguments)
    for result in results:
        assert not isinstance(result, Failure), result
    return results


def grouped(work: Work, *arguments: Any) -> Any:
    """`work(group, *arguments)` in a process of a group."""
    with process_group("cpu") as group:
        return work(group, *arguments)


def _received(line: Connection) -> Any:
    try:
        return line.recv() if line.poll(_LONGEST_S) else Failure("It did not end.")
    except EOFError:
        return None


def _live(told: dict[str, str], line: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(told)
    torch.set_num_threads(1)
    try:
        line.send(work(*arguments))
    except BaseException:  # noqa: BLE001 - not every error finds its way from one process to another
        line.send(Failure(traceback.format_exc()))
