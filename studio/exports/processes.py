"""Programs that a check of an exported file runs: they can be given up while they run."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

_GLANCE_S = 0.05


def run_program(
    words: Sequence[str],
    patience_s: float,
    *,
    share: float = 0.0,
    given: str = "",
    folder: Path | None = None,
    **how: Any,
) -> Generator[float, None, subprocess.CompletedProcess[str]]:
    """Run a program with the input `given`; yield `share` every 50 ms until it ends, and return how it has ended.

    Closing the generator kills the program. how: for Popen. Raises OSError, and TimeoutExpired after `patience_s`.
    """
    end_s = time.monotonic() + patience_s
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace", cwd=folder, **how
    ) as process:
        waiting: str | None = given
        try:
            while True:
                try:
                    said, problem = process.communicate(waiting, _GLANCE_S)
                    return subprocess.CompletedProcess(words, process.returncode, said, problem)
                except subprocess.TimeoutExpired:
                    if time.monotonic() > end_s:
                        raise subprocess.TimeoutExpired(words, patience_s) from None
                    waiting = None  # it is being written
                    yield share
        finally:
            process.kill()
