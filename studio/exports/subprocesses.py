"""Run the programs that check an exported file; a check can be cancelled meanwhile."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

_POLL_S = 0.05


def run_program(
    words: Sequence[str],
    timeout_s: float,
    *,
    share: float = 0.0,
    stdin: str = "",
    folder: Path | None = None,
    **options: Any,
) -> Generator[float, None, subprocess.CompletedProcess[str]]:
    """Run a program; yield `share` every 50 ms until it ends, and return its exit code and output.

    Closing the generator kills the program. stdin: text for its standard input. options: further arguments of Popen.
    Raises OSError, and TimeoutExpired after `timeout_s`.
    """
    end_s = time.monotonic() + timeout_s
    pipe = subprocess.PIPE
    # Not a pipe: after a time-out, `communicate` forgets the input that is not sent yet.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as given:
        given.write(stdin)
        given.seek(0)
        with subprocess.Popen(
            words, stdin=given, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace", cwd=folder, **options
        ) as process:
            try:
                while True:
                    try:
                        said, problem = process.communicate(timeout=_POLL_S)
                        return subprocess.CompletedProcess(words, process.returncode, said, problem)
                    except subprocess.TimeoutExpired:
                        if time.monotonic() > end_s:
                            raise subprocess.TimeoutExpired(words, timeout_s) from None
                        yield share
            finally:
                process.kill()
