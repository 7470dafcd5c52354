"""The validation sprites behind a cell of a classifier's confusion matrix."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.core.errors import RunError
from studio.core.events import ClassPredictions, Event
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.runs.folder import RunDir


@dataclass(frozen=True, eq=False)
class ConfusedSprites(Event):
    """Validation sprites of class `true` for which a classifier predicted class `predicted`.

    attribute: the attribute if `true` and `predicted` are attribute values; '' for classes.
    """

    run: Path
    attribute: str
    true: int
    predicted: int
    sprites: Sprites


def confused_sprites(
    run: Path, predictions: ClassPredictions, true: int, predicted: int, attribute: str = ""
) -> ConfusedSprites:
    """Load the validation sprites behind a cell of the confusion matrix. Raises BadInputError, RunError.

    attribute: the attribute if `true` and `predicted` are attribute values; '' for classes.
    """
    sprites = packed.load(RunDir(run).data)
    is_known = not attribute or attribute in sprites.attributes.names
    if not is_known or (len(predictions.sprites) and int(predictions.sprites.max()) >= len(sprites)):
        title = f"The confusion matrix of '{run.name}' does not match its sprites."
        raise RunError(title, "Train the run longer to write the matrix again.")
    names, table = sprites.attributes.names, sprites.attributes.table
    labels = table[:, names.index(attribute)] if attribute else sprites.labels
    is_in_cell = (labels[predictions.sprites] == true) & (predictions.classes == predicted)
    return ConfusedSprites(run, attribute, true, predicted, sprites.take(np.sort(predictions.sprites[is_in_cell])))
