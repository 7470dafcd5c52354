from __future__ import annotations

import numpy as np
import pytest
import torch

from studio.data.sprites import Sprites
from studio.engine.quality import copies
from studio.engine.quality.copies import Nearest
from studio.engine.steps.batches import to_input
from tests.engine.tools import nearest_training_sprites

CPU = torch.device("cpu")


def _nearest(sprites: np.ndarray, training: np.ndarray, groups: list[int] | None = None) -> Nearest:
    labels, names = np.zeros(len(training), np.int64), ("",) * len(training)
    known = Sprites(training, labels, ("art",), names, "art", groups=np.array(groups or range(len(training))))
    return nearest_training_sprites(sprites, known, None, CPU)


def _art(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    art = rng.integers(0, 256, (count, 8, 8, 4), dtype=np.uint8)
    art[..., 3] = np.where(rng.random((count, 8, 8)) < 0.5, 255, 0)
    art[art[..., 3] == 0] = 0
    art[:, [0, -1]] = art[:, :, [0, -1]] = 0  # room to move
    return art


@pytest.mark.parametrize(
    "change",
    [
        lambda art: art,
        lambda art: art[:, :, ::-1],
        lambda art: np.roll(art, (1, -1), (1, 2)),
        lambda art: np.where(art > 0, art - (art > 9), art),
    ],
    ids=["as it is", "mirrored", "moved", "a shade darker"],
)
def test_find_copies_finds_mirrored_and_moved_copies(change: object) -> None:
    training = _art(20, 0)
    found = _nearest(change(training[:5]), training)  # type: ignore[operator]
    assert found.is_copy.all()
    assert found.index.tolist() == [0, 1, 2, 3, 4]


def test_other_sprites_are_not_copies() -> None:
    training, new = _art(20, 0), _art(5, 1)
    found = _nearest(new, training)
    assert not found.is_copy.any()
    half = new.copy()
    half[:, :, :4] = training[3:8, :, :4]  # near, but no nearer than a third
    assert not _nearest(half, training).is_copy.any()


def test_search_in_parts_gives_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    training = _art(50, 0)
    new = np.concatenate([training[:15:2, :, ::-1], _art(15, 1)])
    whole, sizes = _nearest(new, training), list[int]()

    def watched(rgba: torch.Tensor) -> torch.Tensor:
        sizes.append(len(rgba))
        return to_input(rgba)

    monkeypatch.setattr(copies, "_MAX_BYTES", 7 * training[0].size * 4)  # of float32
    monkeypatch.setattr(copies, "to_input", watched)
    parts = _nearest(new, training)
    for found in (whole, parts):
        assert found.is_copy.tolist() == [True] * 8 + [False] * 15
        assert found.index[:8].tolist() == list(range(0, 15, 2))
    assert (parts.index == whole.index).mean() > 0.9  # of two that are as near, either may be the nearest
    assert max(sizes) == 7


def test_hidden_colour_and_own_group_do_not_count() -> None:
    training = _art(20, 0)
    tinted = training[:3].copy()
    tinted[tinted[..., 3] == 0] = [200, 10, 10, 0]
    assert _nearest(tinted, training).is_copy.all()
    assert not _nearest(training, training, [0] * 20).is_copy.any()
    assert len(_nearest(training[:0], training).index) == 0


@pytest.mark.parametrize("number", [2, 20])
def test_copy_of_a_sprite_with_near_duplicates_is_found(number: int) -> None:
    training = _art(20, 0)
    twins = training.copy()
    twins[:, 2, 3] = [9, 9, 9, 255]
    both, new = np.concatenate([training, twins]), training[:number].copy()
    new[:, 4, 4] = [90, 9, 9, 255]  # as far from the one as the twin is
    assert not _nearest(new, both).is_copy.all()
    found = _nearest(new, both, [*range(20), *range(20)])
    assert found.is_copy.all() and (found.index % 20 == range(number)).all()


def test_only_training_sprites_count_as_copied() -> None:
    training = _art(20, 0)
    known = Sprites(training, np.zeros(20, np.int64), ("art",), ("",) * 20, "art")
    found = nearest_training_sprites(training[:4], known, np.array([1, 3, *range(9, 20)]), CPU)
    assert found.is_copy.tolist() == [False, True, False, True] and found.index[[1, 3]].tolist() == [1, 3]


def test_nearest_sprites_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    training = _art(40, 3)
    known = Sprites(training, np.zeros(40, np.int64), ("art",), ("",) * 40, "art")
    nearly = training[11].copy()
    nearly[3, 3:6] = 255
    training[7], training[30] = np.roll(training[11][:, ::-1], 1, 0), nearly
    indices = np.delete(np.arange(40), 5)
    for at_once in (copies._MAX_BYTES, 1):
        monkeypatch.setattr(copies, "_MAX_BYTES", at_once)
        found = copies.nearest_sprites(training[11], known, indices, 3, CPU)
        assert set(found[:2].tolist()) == {7, 11} and found[2] == 30
        assert copies.nearest_sprites(training[5], known, indices, 50, CPU).tolist().count(5) == 0
