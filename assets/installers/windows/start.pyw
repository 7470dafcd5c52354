"""Start Sprite Training Studio. The launcher runs from the wheel beside this file, with the standard library alone."""

import sys
from pathlib import Path

folder = Path(__file__).resolve().parent
sys.path.insert(0, str(next(folder.glob("sprite_training_studio-*.whl"))))

from studio.installing.launcher import main  # noqa: E402  # found in the wheel

sys.exit(main())
