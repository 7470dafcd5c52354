"""In place of studio.lab.child: a child process that hangs, as an experiment may. It does without torch."""

from __future__ import annotations

import subprocess
import sys
import time

from studio.core.events import Progress
from studio.core.worker_process import own_streams, send


def main() -> None:
    """Start a process that hangs, too, send its number in a Progress, and hang."""
    _, answers = own_streams()
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    send(answers, Progress(grandchild.pid, 0, "child"))
    time.sleep(600)
