"""Sets the environment of tests and of the processes that they start. Import it before numpy, torch and Qt.

PLUGINS: the folder of the plug-in package of tests. THREADS: the threads that torch and numpy may use.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_SCREEN = Path(__file__).parent / "app" / "screen.json"  # 1600 x 1200: a window of the usual size fits
os.environ.setdefault("QT_QPA_PLATFORM", f"offscreen:configfile={_SCREEN}")
# Tiny steps on a busy machine would spend their time spinning at barriers: the tests do not spin at all.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Tiny networks and matrices gain nothing by a second thread, and two processes share the tests. numpy and torch read
# this when they are imported. On busy cores two threads of numpy's BLAS take 37 times the CPU time of one.
THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))
# Without bytecode, each of the processes that tests start compiles the studio anew: half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A package of plug-ins outside the studio is installed in all tests, and in the processes that they start: what holds
# for the studio's own recipes, exports and sources holds for a stranger's.
PLUGINS = Path(__file__).parent / "plugin_package"
sys.path.append(str(PLUGINS))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(PLUGINS))))
