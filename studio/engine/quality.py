"""How good a generator's sprites are while it trains, measured in slices so short that training hardly waits."""

from __future__ import annotations

import copy
import dataclasses

from studio.core.events import Event, Events, Progress, QualityMeasured
from studio.engine.copies import nearest_training_sprites
from studio.engine.evaluate import FEWEST, classes_to_draw
from studio.engine.features import features_of
from studio.engine.generate import GenerateSettings, draw
from studio.engine.scores import kid
from studio.engine.training import Training

COUNT = 128  # sprites a measurement
MOST_COMPARED = 8192  # training sprites: more take long to look through, and are not learnt by heart


class QualityMeter:
    """Measures new sprites of a training over and over; a recipe that draws none is never measured."""

    def __init__(self, training: Training) -> None:
        enough = min(len(training.train_sprites), len(training.heldout)) >= FEWEST
        self._run = training.run
        self._slices: Events | None = None
        if training.recipe.makes == "sprites" and enough:
            self._slices = _measurements(training)

    def advance(self) -> Events:
        """Work on for about as long as a training step takes: yields QualityMeasured when a measurement is done."""
        event: Event | None = next(self._slices) if self._slices is not None else None
        if isinstance(event, QualityMeasured):
            self._run.append(event)
            yield event


def _measurements(training: Training) -> Events:
    """Learn to see, then draw and judge without end: yields Progress after each slice, and each QualityMeasured.

    Sprites are drawn as users get them, always of the same classes and noise, from the weights as they were at first.
    """
    sprites = training.train_sprites
    features = yield from features_of(sprites, training.device, training.precision)
    real = features.of(training.heldout_sprites)
    labels = classes_to_draw(sprites, COUNT, seed=0)
    while True:
        model = training.model()
        model = dataclasses.replace(model, network=copy.deepcopy(model.network))
        new = yield from draw(model, labels, GenerateSettings())
        distance = kid(real, features.of(new))
        figures = {"kid_heldout": distance.value, "kid_heldout_error": distance.error}
        yield Progress(1, 2, "sprites judged")
        if len(sprites) <= MOST_COMPARED:
            nearest = nearest_training_sprites(new, sprites.rgba, training.device)
            figures["copies"] = float(nearest.is_copy.mean())
        yield QualityMeasured(model.step, figures)
