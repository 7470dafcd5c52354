from __future__ import annotations

import numpy as np
import pytest
import torch

from studio.engine import copies
from studio.engine.batches import to_input
from studio.engine.copies import nearest_training_sprites

CPU = torch.device("cpu")


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
def test_copies_are_found(change: object) -> None:
    training = _art(20, 0)
    found = nearest_training_sprites(change(training[:5]), training, CPU)  # type: ignore[operator]
    assert found.is_copy.all()
    assert found.index.tolist() == [0, 1, 2, 3, 4]


def test_other_sprites_are_no_copies_and_the_nearest_is_right() -> None:
    training, new = _art(20, 0), _art(5, 1)
    found = nearest_training_sprites(new, training, CPU)
    assert not found.is_copy.any()
    half = new.copy()
    half[:, :, :4] = training[3:8, :, :4]  # near, but no nearer than a third
    assert not nearest_training_sprites(half, training, CPU).is_copy.any()


def test_working_through_them_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    training = _art(50, 0)
    new = np.concatenate([training[:15:2, :, ::-1], _art(15, 1)])
    whole, sizes = nearest_training_sprites(new, training, CPU), list[int]()

    def watched(rgba: torch.Tensor) -> torch.Tensor:
        sizes.append(len(rgba))
        return to_input(rgba)

    monkeypatch.setattr(copies, "_AT_ONCE", 7 * training[0].size * 4)  # of float32
    monkeypatch.setattr(copies, "to_input", watched)
    parts = nearest_training_sprites(new, training, CPU)
    assert np.array_equal(parts.index, whole.index) and np.array_equal(parts.is_copy, whole.is_copy)
    assert whole.is_copy.tolist() == [True] * 8 + [False] * 15
    assert max(sizes) == 7


def test_no_sprites_have_no_copies() -> None:
    assert len(nearest_training_sprites(_art(0, 0), _art(5, 0), CPU).index) == 0


def test_hidden_colour_does_not_count() -> None:
    training = _art(20, 0)
    tinted = training[:3].copy()
    tinted[tinted[..., 3] == 0] = [200, 10, 10, 0]
    assert nearest_training_sprites(tinted, training, CPU).is_copy.all()
