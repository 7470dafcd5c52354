"""What the classifier learns of attributes, beside the class."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studio.core.errors import TrainingError
from studio.data.sprites import Sprites
from studio.engine.steps.batches import device_examples
from studio.recipes.base import Spec
from studio.recipes.classifier import Classifier
from studio.recipes.predictors import Predictor
from tests.conftest import make_sprites, with_tones


class _Fixed(Predictor):
    """Predicts the second of two classes, and 'hue1' and 'dark'."""

    def __init__(self) -> None:
        super().__init__()
        self.leave, self.dropout = nn.Linear(1, 6), 0.0

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return torch.tensor([[0.0, 1, 0, 1, 1, 0]]).expand(len(x), -1)


@pytest.fixture
def toned() -> Sprites:
    """Eight sprites of two hues and tones, of which the first has no tone."""
    sprites = with_tones(make_sprites(4))
    table = sprites.attributes.table.copy()
    table[0, 1] = -1
    return dataclasses.replace(sprites, attributes=dataclasses.replace(sprites.attributes, table=table))


def test_each_attribute_has_an_accuracy_and_a_matrix(toned: Sprites) -> None:
    recipe, data = Classifier(), device_examples(Classifier(), toned, torch.device("cpu"))
    found = recipe.evaluate(_Fixed(), data.plain_batches(3, 8), recipe.small, Spec.of(toned))
    assert found.metrics["accuracy"] == 0.5 and found.metrics["accuracy hue"] == 0.5
    assert found.metrics["accuracy tone"] == pytest.approx(3 / 7)
    counts, values = found.attributes["tone"]
    assert counts.tolist() == [[3, 0], [4, 0]] and values.tolist() == [0] * 8
    assert found.confusion is not None and found.confusion.tolist() == [[0, 4], [0, 4]]
    right, wrong = np.log(1 + np.exp(-1)), np.log(1 + np.exp(1))
    assert found.metrics["loss"] == pytest.approx((4 * 2 * right + 4 * 2 * wrong + 3 * right + 4 * wrong) / 8, rel=1e-5)


def test_probabilities_sum_to_one_for_each_attribute(toned: Sprites) -> None:
    parts = Classifier().predictor_of(Spec.of(toned))(_Fixed(), torch.zeros(3, 4, 8, 8)).split(2, 1)
    assert all(torch.allclose(part.sum(1), torch.ones(3)) for part in parts)


def test_attributes_are_enough_for_a_classifier(toned: Sprites) -> None:
    single = dataclasses.replace(toned, labels=toned.labels * 0, class_names=("all",))
    recipe = Classifier()
    assert recipe.select(single, recipe.small) == (single, [])
    assert recipe.attribute_arguments(Spec.of(single)) == {"outputs": 5}
    assert recipe.attribute_arguments(Spec.of(make_sprites(4))) == {}
    data = device_examples(recipe, single, torch.device("cpu"))
    network = recipe.build(recipe.small, Spec.of(single)).requires_grad_(False)
    found = recipe.evaluate(network, data.plain_batches(8, 8), recipe.small, Spec.of(single)).metrics
    assert found["accuracy"] == pytest.approx((found["accuracy hue"] + found["accuracy tone"]) / 2)
    with pytest.raises(TrainingError, match="at least two classes"):
        recipe.select(dataclasses.replace(make_sprites(4, classes=1)), recipe.small)
