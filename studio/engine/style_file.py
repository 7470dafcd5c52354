"""style.json of a run: what its model draws true pixels by."""

from __future__ import annotations

import json

from studio.core import files
from studio.core.errors import RunError
from studio.data import packed
from studio.data.sprites import Sprites
from studio.data.true_pixels import PixelStyle, style_of
from studio.engine import catalogue
from studio.engine.batches import sampled
from studio.engine.rundir import RunDir, writing
from studio.engine.split import split_of

_NAME = "style.json"


def save_style(run: RunDir, sprites: Sprites) -> None:
    """Write the style of what the run learns from of its sprites. Raises UnwritableError."""
    with writing(run.path):
        files.write_atomic(run.path / _NAME, json.dumps(_style_learnt(run, sprites).to_json()).encode())


def load_style(run: RunDir) -> PixelStyle:
    """The style of what the run learns from; found out anew where the file is missing. Raises RunError."""
    try:
        return PixelStyle.from_json(json.loads((run.path / _NAME).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return _style_learnt(run, packed.load(run.data))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{_NAME} of {run.path.name} can't be read.", "Delete it, and it is made anew.") from error


def _style_learnt(run: RunDir, sprites: Sprites) -> PixelStyle:
    """Without the sprites that are held out: a colour that only they have is not the model's to use."""
    record = run.record()
    config = catalogue.recipe(record.recipe).Config.from_json(record.config)
    return style_of(sampled(sprites, split_of(record, config, sprites).training))
