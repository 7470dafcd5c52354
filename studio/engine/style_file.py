"""style.json of a run: what its model draws true pixels by."""

from __future__ import annotations

import json

from studio.core import files
from studio.core.errors import RunError
from studio.data import packed
from studio.data.true_pixels import PixelStyle, style_of
from studio.engine.rundir import RunDir, writing

_NAME = "style.json"


def save_style(run: RunDir, style: PixelStyle) -> None:
    """Write the style of the run's sprites. Raises UnwritableError."""
    with writing(run.path):
        files.write_atomic(run.path / _NAME, json.dumps(style.to_json()).encode())


def load_style(run: RunDir) -> PixelStyle:
    """The style of the run's sprites; found out anew from them where the file is missing. Raises RunError."""
    try:
        return PixelStyle.from_json(json.loads((run.path / _NAME).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return style_of(packed.load(run.data))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{_NAME} of {run.path.name} can't be read.", "Delete it, and it is made anew.") from error
