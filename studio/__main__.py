"""`studio` without a sub-command opens the window; with one it is the command line."""

from __future__ import annotations

import sys

from studio.cli import main

if __name__ == "__main__":
    sys.exit(main())
