"""Processes for a campaign to ruin: forked from a server that has imported all they need, and computed nothing."""

from __future__ import annotations

import functools
import multiprocessing
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
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
    with ProcessPoolExecutor(1, mp_context=server()) as pool:
        return pool.submit(_in_words, work, *arguments).result()


def _in_words(work: Callable[..., str], *arguments: Any) -> str:
    try:
        return work(*arguments)
    except BaseException:  # noqa: BLE001 - not every error finds its way from one process to another
        raise AssertionError(traceback.format_exc()) from None
