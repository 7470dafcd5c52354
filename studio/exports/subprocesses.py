"""Run programs that verify an exported file, with a timeout and the option to cancel."""

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
    # A file, because after a timeout `communicate` drops the rest of the input of a pipe.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as input_file:
        input_file.write(stdin)
        input_file.seek(0)
        with subprocess.Popen(
            words, stdin=input_file, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace", cwd=folder, **options
        ) as process:
            try:
                while True:
                    try:
                        stdout, stderr = process.communicate(timeout=_POLL_S)
                        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)
                    except subprocess.TimeoutExpired:
                        if time.monotonic() > end_s:
                            raise subprocess.TimeoutExpired(words, timeout_s) from None
                        yield share
            finally:
                process.kill()
