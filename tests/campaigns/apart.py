"""Processes for a campaign to ruin: forked from a server that has imported all they need, and computed nothing."""

from __future__ import annotations

import functools
import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from tests.campaigns.works import LIBRARIES


@functools.cache
def server() -> ForkServerContext:
    """What makes such processes; Windows has none."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


def in_own_process(work: Callable[..., str], *arguments: Any) -> str:
    """What `work` returns, from a process that ends with it; what goes wrong there fails the test with its words."""
    ours, theirs = server().Pipe(duplex=False)
    process = server().Process(target=_report, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        good, said = ours.recv()
    finally:
        process.kill()
        process.join()
    assert good, said
    return str(said)


def _report(line: Connection, work: Callable[..., str], arguments: tuple[Any, ...]) -> None:
    try:
        line.send((True, work(*arguments)))
    except BaseException:  # noqa: BLE001 - whatever it was, the test says it
        line.send((False, traceback.format_exc()))
