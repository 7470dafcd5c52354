"""The command line: one module per command. Qt is never imported, torch only by commands that need it.

Start with commands.py, the table of commands and flags, then train.py.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (by default the process's own) and return the exit code.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with the work saved.
    """
    from studio.core.process import prepare_for_training

    prepare_for_training()
    from studio.cli.run_command import run_command

    return run_command(arguments)
