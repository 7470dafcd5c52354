"""Patch surprisal against its definition written as loops, and its reaction to typical errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.engine.quality import surprisal
from studio.engine.quality.surprisal import PatchSurprisal, wasserstein

COLOURS = np.array([[0, 0, 0, 0], [250, 0, 0, 255], [0, 250, 0, 255], [0, 0, 250, 255]], np.uint8)


def _in_three_colours(count: int, seed: int) -> Rgba:
    codes = np.random.default_rng(seed).choice(4, (count, 5, 5), p=[0.4, 0.3, 0.2, 0.1])
    return COLOURS[codes]


def _slowly(sprite: Rgba, others: list[Rgba]) -> float:
    """The surprisal of a sprite by the patches of others, pixel by pixel."""
    codes = [np.pad([[int(np.argmax((p == COLOURS).all(1))) for p in row] for row in one], ((2, 0), (2, 0)))
             for one in (sprite, *others)]  # fmt: skip
    before = [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2)]

    def patches(code: np.ndarray, order: int) -> list[tuple[int, ...]]:
        """The pixels of each patch in which anything is seen, the predicted one last."""
        places = [(y, x) for y in range(2, 7) for x in range(2, 7) if code[y - 2 : y + 1, x - 2 : x + 1].any()]
        return [(*(code[y - up, x - left] for up, left in before[:order]), code[y, x]) for y, x in places]

    bits = []
    for place in range(len(patches(codes[0], 0))):
        probability = 1 / len(COLOURS)
        for order in (0, 1, 2, 3, 8):
            own = patches(codes[0], order)[place]
            known = [patch for other in codes[1:] for patch in patches(other, order)]
            same_context = sum(patch[:-1] == own[:-1] for patch in known)
            probability = (known.count(own) + 2 * probability) / (same_context + 2)
        bits.append(-math.log2(probability))
    return float(np.mean(bits))


def test_surprisal_equals_its_definition() -> None:
    real, new = _in_three_colours(8, seed=0), _in_three_colours(4, seed=1)
    found = PatchSurprisal(real, np.arange(8) // 2, real)  # four groups of two: each is a fold
    own_folds = [[one for other, one in enumerate(real) if other // 2 != place // 2] for place in range(8)]
    assert found.of_real == pytest.approx([_slowly(*each) for each in zip(real, own_folds, strict=True)])
    by_three = [_slowly(new[0], list(np.delete(real, [2 * group, 2 * group + 1], 0))) for group in range(4)]
    assert any(found.of(new)[0] == pytest.approx(bits) for bits in by_three)


def _boxes(count: int, seed: int) -> Rgba:
    """Boxes of one colour with outlines of another, of any size and anywhere."""
    rng, found = np.random.default_rng(seed), np.zeros((count, 12, 12, 4), np.uint8)
    for sprite in found:
        (top, left), (height, width) = rng.integers(0, 5, 2), rng.integers(4, 8, 2)
        inside, outline = COLOURS[1 + rng.permutation(3)[:2]]
        sprite[top : top + height, left : left + width] = outline
        sprite[top + 1 : top + height - 1, left + 1 : left + width - 1] = inside
    return found


def test_specks_raise_and_blanks_lower_the_surprisal() -> None:
    real, others = PatchSurprisal(_boxes(60, seed=0), np.arange(60), COLOURS[None, None, :]), _boxes(60, seed=1)
    rng = np.random.default_rng(0)
    hit = (rng.random(others.shape[:3]) < 0.1) & (others[..., 3] > 0)
    specked, blank = others.copy(), np.zeros_like(others)
    specked[hit] = COLOURS[rng.integers(1, 4, hit.sum())]
    flat = np.where(others[..., 3:] > 0, COLOURS[1], 0).astype(np.uint8)
    assert (real.of(blank) == 0).all()
    assert real.of(specked).mean() > real.of_real.mean() > real.of(flat).mean()
    assert min(map(real.distance, (specked, flat, blank))) > 3 * real.distance(others)


def test_many_sprites_are_processed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    real, new = _boxes(60, seed=0), _boxes(50, seed=1)
    whole = PatchSurprisal(real, np.arange(60), real)
    expected = whole.of(new)
    monkeypatch.setattr(surprisal, "_MAX_PIXELS", 20 * 144)
    np.testing.assert_array_equal(whole.of(new), expected)
    assert len(PatchSurprisal(real, np.arange(60), real).of_real) == 20


def test_empty_sprites_have_no_surprisal() -> None:
    blank = np.zeros((4, 8, 8, 4), np.uint8)
    found = PatchSurprisal(blank, np.arange(4), blank)
    assert found.distance(blank) == 0 and np.isfinite(found.of(_boxes(3, seed=0))).all()


def test_wasserstein_of_equal_sizes_is_the_mean_shift() -> None:
    first, second = np.random.default_rng(0).normal(0, 1, (2, 30)) * [[1], [3]]
    assert wasserstein(first, second) == pytest.approx(np.abs(np.sort(first) - np.sort(second)).mean())
    assert wasserstein(first, np.repeat(second, 2)) == pytest.approx(wasserstein(first, second))
    assert wasserstein(first, first + 2) == pytest.approx(2)
