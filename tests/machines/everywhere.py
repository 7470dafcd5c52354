"""All tests on one machine after another, as far as one machine can be them: `make everywhere`, about an hour.

Each setting is a run of pytest of its own, with two processes; what is given on the command line goes to pytest:
`python -m tests.machines.everywhere tests/engine`. Ends with a table, and with 1 if anything failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

# What it is called, the environment, and more words for pytest.
SETTINGS: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("one thread", {"OMP_NUM_THREADS": "1"}, ()),  # as it is by default
    ("four threads", {"OMP_NUM_THREADS": "4"}, ()),
    # What oneDNN, which computes convolutions, may use of the processor.
    *((f"oneDNN {isa}", {"ONEDNN_MAX_CPU_ISA": isa}, ()) for isa in ("SSE41", "AVX2", "AVX512_CORE")),
    # The same for torch's own kernels; without it the studio also learns what the processor really has.
    *((f"torch {isa}", {"ATEN_CPU_CAPABILITY": isa}, ()) for isa in ("default", "avx2")),
    ("other kernels", {}, ("-p", "tests.machines.other_kernels")),
    *((f"random order {seed}", {}, ("-p", "randomly", f"--randomly-seed={seed}")) for seed in (1, 2, 3)),
)


def main(words: list[str]) -> int:
    """Run the tests under each setting; 1 if any of them failed."""
    console, table = Console(), Table("setting", "passed", "failed", "skipped", "seconds")
    broken = False
    for name, environment, more in SETTINGS:
        console.rule(name)
        with tempfile.TemporaryDirectory() as folder:
            report, started_s = Path(folder) / "report.xml", time.perf_counter()
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", f"--junit-xml={report}"]
            done = subprocess.run([*command, *more, *words], env={**os.environ, **environment}, check=False)
            seconds = time.perf_counter() - started_s
            counts = _counts(report)
        broken |= done.returncode != 0
        table.add_row(name, *map(str, counts), f"{seconds:.0f}", style="red" if done.returncode else "")
    console.print(table)
    return int(broken)


def _counts(report: Path) -> tuple[int, int, int]:
    """How many passed, failed and were skipped; zeros where pytest did not get to writing its report."""
    suite = ElementTree.parse(report).find("testsuite") if report.exists() else None
    if suite is None:
        return 0, 0, 0
    failed, skipped = int(suite.get("failures", 0)) + int(suite.get("errors", 0)), int(suite.get("skipped", 0))
    return int(suite.get("tests", 0)) - failed - skipped, failed, skipped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
