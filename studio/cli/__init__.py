"""The command line: the same words as the window. Qt is never imported here, torch only by what needs it."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process by default, and return its exit code.

    0 done, 1 the job failed, 2 wrong usage, 130 interrupted (with the work saved).
    """
    from studio.cli.boundary import run

    return run(arguments)
