"""The command line, one module per command, with the words of the window. It imports torch late and Qt never.

Start with parser.py, which declares the commands, then train.py.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process by default, and return its exit code.

    0 done, 1 the job failed, 2 wrong usage, 130 interrupted (with the work saved).
    """
    from studio.cli.boundary import run

    return run(arguments)
