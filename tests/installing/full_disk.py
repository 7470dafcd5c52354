"""Install onto a disk that is too small, then onto larger ones: python -m tests.installing.full_disk FOLDER KIND.

Prints a line for each attempt. Needs the right to mount: run it with `unshare --map-root-user --mount`.
KIND: 'stand-ins' for small wheels from this machine, 'real' for the lock's wheels except PyTorch's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from studio.installing import environment
from studio.installing.payload import Payload, read_installed, without_torch
from tests.installing.stand_ins import BUILD, index_of, make_payload

ROOT = Path(__file__).parents[2]


def attempts(payload: Payload, disk: Path, sizes_kb: Iterable[int]) -> None:
    """Install onto disks of growing size until an attempt succeeds."""
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], check=True)
    program = disk / "program"
    for size_kb in sizes_kb:
        subprocess.run(["mount", "-o", f"remount,size={size_kb}k", disk], check=True)
        try:
            for progress in environment.install(payload, BUILD, program):
                assert progress.text
        except environment.InstallError as error:
            print(error, flush=True)  # noqa: T201
            assert read_installed(program) is None and not list(program.glob("env-*"))
        else:
            assert read_installed(program) is not None
            print("installed")  # noqa: T201
            return


def main(folder: Path, kind: str) -> None:
    """Run the attempts."""
    payload = make_payload(folder / "installer", folder / "wheels")
    if kind == "real":
        lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        payload.lock.write_text(without_torch(lock), encoding="utf-8")
        environment.SELF_TEST = "import numpy, PIL, matplotlib\nfrom PySide6 import QtSvg, QtWidgets\n"
        attempts(payload, folder / "disk", (60_000, 200_000, 2_000_000))
        return
    with index_of(folder / "wheels") as index:
        os.environ["UV_DEFAULT_INDEX"] = index.url
        attempts(payload, folder / "disk", range(8, 2000, 32))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
