"""Sprites in memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from studio.data.sets.layout import SetLayout
from studio.data.sprites import Sprites, unstack
from tests.conftest import make_sprites, with_sets
from tests.data.making import sprite


def made() -> Sprites:
    rgba = np.stack([sprite(number) for number in range(4)])
    return Sprites(rgba, np.array([0, 2, 2, 0]), ("a", "none", "b"), ("0", "1", "2", "3"), "set")


def test_counts_size_and_take() -> None:
    assert len(made()) == 4 and made().size == 8
    assert made().class_counts().tolist() == [2, 0, 2]
    assert made().take([]).class_counts().tolist() == [0, 0, 0]
    some = made().take([2, 0])
    assert some.names == ("2", "0") and some.labels.tolist() == [2, 0] and some.class_names == ("a", "none", "b")
    assert (some.rgba[1] == sprite(0)).all()
    assert dataclasses.replace(made(), groups=np.array([0, 0, 2, 2])).take([1, 3, 2]).groups.tolist() == [0, 2, 2]


def test_targets_are_taken_along() -> None:
    assert made().targets.shape == (4, 0) and made().take([1, 2]).targets.shape == (2, 0)
    targets = np.array([[1], [np.nan], [3], [4]], np.float32)
    told = dataclasses.replace(made(), targets=targets, target_names=("price",))
    assert told.take([3, 0]).targets.tolist() == [[4], [1]] and told.take([3]).target_names == ("price",)
    with pytest.raises(AssertionError):
        dataclasses.replace(told, target_names=("price", "weight"))


def test_the_fingerprint_covers_the_training_data() -> None:
    sprites, targets = made(), np.array([[1], [np.nan], [3], [4]], np.float32)
    assert sprites.fingerprint == "1de57f61fb56bb4369a2ac2ece0755c7"  # old runs, without numbers, know their data by it
    told = dataclasses.replace(sprites, targets=targets, target_names=("price",))
    renamed = dataclasses.replace(told, rgba=told.rgba[::-1][::-1], names=("x",) * 4, title="other")
    assert renamed.fingerprint == told.fingerprint
    changed = sprites.rgba.copy()
    changed[3, 4, 4, 0] ^= 1
    changes: dict[str, Any] = {"rgba": changed, "labels": np.array([0, 2, 2, 1]), "class_names": ("a", "none", "c")}
    changes |= {"targets": targets + 1, "target_names": ("weight",)}
    others = [dataclasses.replace(told, **{name: value}) for name, value in changes.items()]
    others += [sprites, told.take([0, 1, 2]), told.take([1, 0, 2, 3])]
    assert len({told.fingerprint, *(other.fingerprint for other in others)}) == 9


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 3], [-1, 0, 1]])
def test_labels_must_fit(labels: list[int]) -> None:
    with pytest.raises(AssertionError):
        Sprites(np.zeros((3, 8, 8, 4), np.uint8), np.array(labels), ("a", "b", "c"), ("0", "1", "2"), "set")


def test_chosen_sets_are_groups_and_follow_taken_sprites() -> None:
    layout = SetLayout(("left", "right"), ("a", "b"), np.array([[0, 2], [3, -1]], np.int32), "names")
    sprites = dataclasses.replace(made(), sets=layout)
    assert sprites.groups.tolist() == [0, 1, 2, 3] and not sprites.sets.chosen
    chosen = sprites.with_chosen_sets()
    assert chosen.groups.tolist() == [0, 1, 0, 3] and chosen.sets.chosen and chosen.fingerprint == made().fingerprint
    assert chosen.take([2, 1]).sets.sets == ("a",) and chosen.take([2, 1]).sets.table.tolist() == [[-1, 0]]
    with pytest.raises(AssertionError):
        dataclasses.replace(sprites, sets=dataclasses.replace(layout, table=layout.table + 1))


def test_sets_are_stacked_as_channels() -> None:
    sprites = with_sets(make_sprites(), ("down", "left", "up"))
    table = sprites.sets.table.copy()
    table[1] = (2, -1, 5)  # a sprite of the first set, and a gap
    sprites = dataclasses.replace(sprites, sets=dataclasses.replace(sprites.sets, table=table))
    stacked = sprites.stacked_sets(np.array([2, 23]))
    assert len(stacked) == 3 and stacked.size == 8 and stacked.rgba.shape == (3, 8, 8, 12)
    assert stacked.targets.tolist() == [[1, 1, 1], [1, 0, 1], [1, 1, 1]] and not stacked.labels.any()
    cells = unstack(stacked.rgba)
    assert np.array_equal(cells[0], sprites.rgba[:3]) and np.array_equal(cells[2], sprites.rgba[21:])
    assert np.array_equal(cells[1, [0, 2]], sprites.rgba[[2, 5]]) and not cells[1, 1].any()
    assert np.array_equal(unstack(stacked.take(np.array([2])).rgba)[0], cells[2])


def test_the_sprites_of_some_sets_are_held_out_whole() -> None:
    sprites = with_sets(make_sprites(), ("down", "left", "up"))
    part = sprites.of_sets(sprites.sets.part(np.arange(8) % 2 == 1, np.array([True, False, True])))
    assert len(part) == 8 and part.sets.cells == ("down", "up") and part.sets.sets == ("set1", "set3", "set5", "set7")
    assert np.array_equal(part.rgba[:2], sprites.rgba[[3, 5]])
    groups = part.groups.reshape(4, 2)
    assert (groups[:, 0] == groups[:, 1]).all() and len(np.unique(groups)) == 4
