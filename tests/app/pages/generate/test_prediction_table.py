"""Predictions beside the true classes and numbers."""

from __future__ import annotations

import dataclasses

import numpy as np

from studio.app.pages.generate.prediction_table import ClassTable, prediction_table
from studio.core.events import Classified, NumbersPredicted
from studio.data.attributes.attributes import Attributes
from tests.conftest import make_sprites, with_numbers

SPRITES = make_sprites(per_class=2)  # class0, class0, class1, class1
SURE = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]], np.float32)  # the second and the last are wrong
UNKNOWN = Classified(SURE, ("gem", "potion"))


def test_totals_orders_and_wrong_classes() -> None:
    table = prediction_table(SPRITES, Classified(SURE, ("class0", "class1")))
    assert isinstance(table, ClassTable) and table.summary() == "4 sprites: 2 of 4 right (50 %)"
    assert table.why_not_wrong_only() == ""
    assert table.order("File order", wrong_only=True).tolist() == [1, 3]
    assert table.order("Least certain first", wrong_only=False).tolist() == [1, 3, 2, 0]
    assert table.order("Most certain first", wrong_only=True).tolist() == [3, 1]
    lines = table.csv().splitlines()
    assert lines[0] == "sprite,predicted,confidence,true,right,p(class0),p(class1)"
    assert lines[2] == f"{SPRITES.names[1]},class1,0.6000,class0,no,0.4000,0.6000" and len(lines) == 5


def test_unknown_classes_are_not_counted() -> None:
    table = prediction_table(SPRITES, UNKNOWN)
    assert isinstance(table, ClassTable) and table.summary() == "4 sprites"
    assert "no folder is named like a class" in table.why_not_wrong_only()
    assert ",gem,0.9000,,,0.9000," in table.csv()
    some = prediction_table(SPRITES, Classified(SURE, ("class0", "potion")))
    assert some.summary() == "4 sprites: 1 of 2 right (50 %)"


def test_attributes_have_tables_of_their_own() -> None:
    values = np.array([[1, 0], [0.3, 0.7], [0.6, 0.4], [0.5, 0.5]], np.float32)
    answer = Classified(SURE, ("class0", "class1"), {"tone": Classified(values, ("light", "dark")), "rarity": UNKNOWN})
    toned = Attributes(("tone",), (("dark", "light"),), np.array([[1], [1], [0], [-1]], np.int16))
    table = prediction_table(dataclasses.replace(SPRITES, attributes=toned), answer)
    assert isinstance(table, ClassTable)
    tone, rarity = table.attributes.values()
    assert tone.summary() == "4 sprites: 1 of 3 right (33.3 %)"
    assert tone.order("File order", wrong_only=True).tolist() == [1, 2]
    assert rarity.why_not_wrong_only() == "The true values are unknown: the sprites have no 'rarity'."
    head, first, *_, last = table.csv().splitlines()
    assert head.startswith("sprite,predicted,") and ",tone predicted,tone confidence,tone true,tone right," in head
    assert ",light,1.0000,light,yes,1.0000,0.0000," in first and ",light,0.5000,,,0.5000,0.5000," in last


def test_numbers_are_sorted_by_their_error() -> None:
    sprites = with_numbers(SPRITES)
    errors = np.array([3.0, 1.0, 2.0, 0.0], np.float32)[:, None]
    true = sprites.targets[:, :1]
    table = prediction_table(sprites, NumbersPredicted(true + errors, (sprites.target_names[0],)))
    known = ~np.isnan(true[:, 0])
    worst = table.order("Largest error first", wrong_only=False).tolist()
    assert worst[: known.sum()] == [row for row in (0, 2, 1, 3) if known[row]]
    assert table.order("Smallest error first", wrong_only=False).tolist()[0] == max(np.flatnonzero(known))
    assert "mean error: " in table.summary() and table.why_not_wrong_only()
    assert len(table.csv().splitlines()) == 5
    others = prediction_table(SPRITES, NumbersPredicted(errors, ("price",)))
    assert others.summary() == "4 sprites" and others.csv().splitlines()[1] == f"{SPRITES.names[0]},3,"
