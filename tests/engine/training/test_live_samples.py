"""The live samples that a training yields and saves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import RunError
from studio.core.events import Event, Progress, RunFinished, SamplesReady
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.runs.analysis.timelapse import timelapse
from studio.engine.runs.samples import read_samples
from tests.conftest import make_sprites, with_sets
from tests.engine.tools import of_kind, train_autoencoder, train_classifier, train_sets, train_toy


def test_a_classifier_saves_its_predictions_of_heldout_sprites(run_path: Path, sprites: Sprites) -> None:
    shown = of_kind(list(train_classifier(run_path, sprites)), SamplesReady)
    saved = read_samples(run_path, sprites.size)
    assert [sample.step for sample in saved] == [sample.step for sample in shown] == [0, 8]
    for one, other in zip(saved, shown, strict=True):
        np.testing.assert_array_equal(one.sprites, other.sprites)
        assert one.captions == other.captions
    names = list(sprites.class_names)
    known = {*names, *(f"✗ {wrong} (is {name})" for wrong in names for name in names)}
    assert set(saved[-1].captions) <= known
    with pytest.raises(RunError, match="never change"):
        timelapse(run_path)


def test_an_autoencoder_saves_reconstructions_with_their_originals(run_path: Path, sprites: Sprites) -> None:
    shown = of_kind(list(train_autoencoder(run_path, sprites, steps=2)), SamplesReady)
    saved = read_samples(run_path, sprites.size)
    assert [sample.step for sample in saved] == [sample.step for sample in shown] == [0, 2]
    known = {sprite.tobytes() for sprite in sprites.rgba}
    for one, other in zip(saved, shown, strict=True):
        assert one.originals is not None and other.originals is not None
        np.testing.assert_array_equal(one.cells(), other.cells())
        assert one.captions == other.captions and len(one.captions) == len(one.sprites) == len(one.originals)
        assert {original.tobytes() for original in one.originals} <= known
    assert len(timelapse(run_path).sprites) == 2


def test_stop_ends_live_samples(run_path: Path, sprites: Sprites) -> None:
    control, events = Control(), list[Event]()
    for event in train_toy(run_path, sprites, control):
        events.append(event)
        control.stop |= isinstance(event, Progress)
    assert not of_kind(events, SamplesReady)
    assert of_kind(events, RunFinished)[0].step == 0


def test_sets_are_saved_as_given_true_and_drawn_cells(run_path: Path) -> None:
    cells = ("down/stand", "down/step", "up/stand", "up/step", "side/stand", "side/step")
    shown = of_kind(list(train_sets(run_path, with_sets(make_sprites(per_class=36), cells))), SamplesReady)
    for one, other in zip(read_samples(run_path, 8), shown, strict=True):
        assert one.given == other.given == (True, False, False)
        assert one.captions == other.captions and one.captions[:3] == ("down", "up", "side")
        assert one.originals is not None and other.originals is not None
        np.testing.assert_array_equal(one.sprites, other.sprites)
        np.testing.assert_array_equal(one.originals, other.originals)
        np.testing.assert_array_equal(one.cells()[::5], one.sprites[::3])  # a row: given, two true, two drawn
    assert timelapse(run_path).sprites.shape[1:3] == (8 * 2 * 11, (8 * 5 + 4) * 11)
