"""A command that torchrun has started several times over: one process speaks and writes, the others compute with it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from studio.cli.arguments import find_device
from studio.cli.interrupts import stopping
from studio.cli.messages import DONE, FAILED, INTERRUPTED
from studio.core.errors import BadInputError, ProcessGoneError, RunError, TrainingError, UsageError
from studio.engine.control.control import Control

if TYPE_CHECKING:
    from studio.engine.distributed.ranks import Group, Ranks


def in_ranks(work: Callable[[argparse.Namespace, Ranks], int], args: argparse.Namespace) -> int:
    """Do `work`; of several processes that torchrun has started the first does it, and the others train along with it.

    Returns the exit code. torchrun takes any but 0 for a failure, after which it starts all of them again: so it is 0
    where the work was saved because somebody asked to stop. Where another start would end alike, as of a command that
    is wrong, it ends at once and without a word. Raises UsageError.
    """
    from studio.engine.distributed.ranks import ALONE, is_launched, launched

    if not is_launched():
        return work(args, ALONE)
    with launched(args.device) as group:
        args.device = group.device
        if group.has_ended():
            return FAILED
        if not group.is_first:
            return _along(args, group)
        try:
            code = work(args, group)
        except (BadInputError, RunError, TrainingError, UsageError) as error:
            if not (isinstance(error, ProcessGoneError) or has_begun(group)):
                group.end_for_good()
            raise
        if code == FAILED:
            group.end_for_good()
    return DONE if code == INTERRUPTED else code


def has_begun(ranks: Ranks) -> bool:
    """Whether there is a run that torchrun's restart is to go on with."""
    path = ranks.remembered()
    return path is not None and (path / "run.json").is_file()


def _along(args: argparse.Namespace, group: Group) -> int:
    """What each process but the first does."""
    from studio.engine.training.loop import train_along

    control = Control()
    try:
        with stopping(control, words=""):
            train_along(find_device(args), control, group)
    except (KeyboardInterrupt, ProcessGoneError):  # the first process, or torchrun, says so
        return FAILED
    return DONE
