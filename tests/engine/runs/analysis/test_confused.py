"""The sprites behind the cells of a confusion matrix."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import RunError
from studio.core.events import ClassPredictions, Validated
from studio.data.sprites import Sprites
from studio.engine.runs.analysis.confused import confused_sprites
from studio.engine.runs.history import read_history
from tests.conftest import with_tones
from tests.engine.tools import of_kind, train_classifier


def test_each_cell_has_as_many_sprites_as_its_count(run_path: Path, sprites: Sprites) -> None:
    events = list(train_classifier(run_path, sprites))
    confusion, validated = read_history(run_path).confusion, of_kind(events, Validated)[-1]
    assert confusion is not None and confusion.predictions is not None and validated.predictions is not None
    np.testing.assert_array_equal(confusion.predictions.classes, validated.predictions.classes)
    shown: list[str] = []
    for true, predicted in np.ndindex(2, 2):
        found = confused_sprites(run_path, confusion.predictions, true, predicted).sprites
        assert len(found) == confusion.counts[true, predicted] and set(found.labels.tolist()) <= {true}
        shown += found.names
    assert len(set(shown)) == len(shown) == 4  # the validation set


def test_each_value_of_an_attribute_has_its_sprites(run_path: Path, sprites: Sprites) -> None:
    events = list(train_classifier(run_path, with_tones(sprites)))
    history, validated = read_history(run_path), of_kind(events, Validated)[-1]
    assert {"accuracy hue", "accuracy tone"} <= set(history.validation)
    assert history.confusion is not None
    found = history.confusion.attributes["tone"]
    np.testing.assert_array_equal(found.counts, validated.attributes["tone"].counts)
    assert found.predictions is not None
    for true, predicted in np.ndindex(2, 2):
        shown = confused_sprites(run_path, found.predictions, true, predicted, "tone").sprites
        assert len(shown) == found.counts[true, predicted]
        assert set(shown.attributes.table[:, 1].tolist()) <= {true}
    with pytest.raises(RunError, match="does not match its sprites"):
        confused_sprites(run_path, found.predictions, 0, 0, "element")


def test_predictions_of_other_sprites_are_refused(run_path: Path, sprites: Sprites) -> None:
    list(train_classifier(run_path, sprites))
    others = ClassPredictions(np.array([10_000]), np.array([0]))
    with pytest.raises(RunError, match="does not match its sprites"):
        confused_sprites(run_path, others, 0, 0)


def test_matrix_of_an_older_version_is_read_without_predictions(run_path: Path, sprites: Sprites) -> None:
    list(train_classifier(run_path, sprites))
    file = run_path / "confusion.json"
    found = json.loads(file.read_text())
    assert len(found.pop("sprites")) == len(found.pop("predicted")) == 4
    file.write_text(json.dumps(found))
    confusion = read_history(run_path).confusion
    assert confusion is not None and confusion.predictions is None
