"""Processes for a campaign to ruin: forked from a server that has imported all they need, and computed nothing."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tests.campaigns.works import LIBRARIES

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(LIBRARIES)


def in_own_process(work: Callable[..., str], *arguments: Any) -> str:
    """What `work` returns, from a process that ends with it; what goes wrong there fails the test with its words."""
    ours, theirs = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_report, args=(theirs, work, arguments))
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
