"""Measure how improbable a sprite's pixels are, given the neighbouring pixels, without a network and at every size.

A network's features average over a sprite, so a few wrong pixels hardly change the features. People see wrong pixels
first: specks, broken outlines, a pixel too many. Here a 3 x 3 patch predicts its last corner pixel, by how often real
sprites contain the patch. A sprite's surprisal averages -log2 of these probabilities, in bits per pixel. Blank or
blurred sprites have less surprisal than real sprites, speckled sprites have more. Hence the score measures the distance
between the surprisals of new and real sprites.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Indices, Mask, Rgba
from studio.data.colour.palette import dominant_colours, nearest_colours, to_oklab
from studio.data.images.canvas import as_rgba, as_uint32
from studio.engine.runs.split import shuffle_by_group
from studio.engine.steps.batches import stride_subsample

Codes = NDArray[np.int64]

_MAX_COLOURS = 32
_MAX_PIXELS = 1 << 22  # pixels to process at a time; patches repeat, so a subsample of real sprites suffices
_FOLDS = 4
_WEIGHT = 2.0  # weight for the prediction from fewer neighbours, counted in pixels
_NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2))  # (rows above, columns left)
_ORDERS = (0, 1, 2, 3, 8)  # numbers of predicting neighbours: three in a 2 x 2 patch, eight in a 3 x 3 patch
_REACH = 2


class PatchSurprisal:
    """Computes the surprisal of sprites' pixels from patch counts of real sprites.

    real: at least four sprites uint8 [N, S, S, 4]; very large or very many sprites are subsampled. groups: int64 [N].
    training: sprites uint8 [M, S, S, 4] whose main colours form the palette; a palette from the real sprites would
    favour real sprites over new sprites.

    The real sprites form folds, with groups kept together. Three folds predict a real sprite: the folds without the
    sprite. Three folds also predict a new sprite, leaving out fold 0, 1, 2 or 3 in turn, so both references have equal
    size.
    """

    def __init__(self, real: Rgba, groups: Indices, training: Rgba) -> None:
        self._palette = dominant_colours(training, _MAX_COLOURS)
        most = max(_FOLDS, _MAX_PIXELS // real[0, ..., 0].size)
        real, groups = stride_subsample(real, most), stride_subsample(groups, most)
        folds = np.empty(len(real), np.int64)
        folds[shuffle_by_group(groups, seed=0)] = np.arange(len(real)) * _FOLDS // len(real)  # groups stay in one fold
        patches = self._patches(real)
        fold_of = folds[patches.sprite]
        self._counts = [(_Counts(patch, fold_of), _Counts(context, fold_of)) for patch, context in patches.by_order]
        self.of_real = self._bits(patches, folds)

    def of(self, sprites: Rgba, where: Mask | None = None) -> NDArray[np.float64]:
        """Return bits per pixel, float64 [M]. sprites: uint8 [M, S, S, 4]. where: bool [M, S, S], pixels to count."""
        step = max(1, _MAX_PIXELS // sprites[0, ..., 0].size)
        found = []
        for start in range(0, len(sprites), step):
            part = slice(start, start + step)
            patches, indices = self._patches(sprites[part]), np.arange(len(sprites))[part]
            found.append(self._bits(patches, indices % _FOLDS, None if where is None else where[part]))
        return np.concatenate(found)

    def distance(self, sprites: Rgba) -> float:
        """Return the Wasserstein distance between surprisals of sprites, uint8 [M, S, S, 4], and of real sprites."""
        return wasserstein(self.of_real, self.of(sprites))

    def _patches(self, sprites: Rgba) -> _Patches:
        """Return the patches of sprites. Pixels become palette indices from 1 on; 0 means transparent."""
        values, indices = np.unique(as_uint32(sprites), return_inverse=True)
        colours = as_rgba(values)
        codes = np.where(colours[:, 3] < 128, 0, 1)  # 0: transparent
        if len(self._palette):
            codes *= 1 + nearest_colours(to_oklab(colours[:, :3]), to_oklab(self._palette[:, :3]))
        return _Patches(codes[indices].reshape(sprites.shape[:3]), len(self._palette) + 1)

    def _bits(self, patches: _Patches, left_out: Indices, where: Mask | None = None) -> NDArray[np.float64]:
        """Return surprisals in bits per pixel, float64 [N]. left_out: fold to ignore, by sprite, int64 [N].

        Patches with more neighbours occur less often. The rarer a patch, the more the prediction from fewer neighbours
        counts (Dirichlet smoothing, MacKay & Peto 1995).
        """
        fold_of = left_out[patches.sprite]
        probability = np.full(len(fold_of), 1 / (len(self._palette) + 1))  # uniform, refined below by each order
        for (patch, context), (of_patch, of_context) in zip(patches.by_order, self._counts, strict=True):
            expected = of_patch.outside(fold_of, patch) + _WEIGHT * probability  # count plus prior
            probability = expected / (of_context.outside(fold_of, context) + _WEIGHT)
        count = len(left_out)
        counts = np.ones(len(fold_of)) if where is None else where.ravel()[patches.pixel_index].astype(np.float64)
        total = np.bincount(patches.sprite, -np.log2(probability) * counts, count)
        return np.asarray(total / np.bincount(patches.sprite, counts, count).clip(min=1))


class _Patches:
    """The P patches with a visible pixel.

    sprite: int64 [P], sprite by patch. pixel_index: int64 [P], predicted pixel's index in the stack of sprites.
    by_order: per order, two numbers that stand for the patch and the context, int64 [P]. A context is a patch without
    the predicted pixel.
    """

    def __init__(self, codes: Codes, colours: int) -> None:
        size = codes.shape[1]
        padded = np.pad(codes, ((0, 0), (_REACH, 0), (_REACH, 0)))  # transparent beyond the top and left edges

        def neighbour(up: int, left: int) -> Codes:
            y, x = _REACH - up, _REACH - left
            return np.asarray(padded[:, y : y + size, x : x + size])

        seen = (codes > 0) | np.any([neighbour(*place) > 0 for place in _NEIGHBOURS], axis=0)
        self.sprite, self.pixel_index = np.nonzero(seen)[0], np.flatnonzero(seen)
        pixel, context = codes[seen], np.zeros(len(self.sprite), np.int64)
        self.by_order: list[tuple[Codes, Codes]] = []
        for order, place in enumerate((None, *_NEIGHBOURS)):
            if place is not None:
                context = context * colours + neighbour(*place)[seen]  # digits in base `colours`
            if order in _ORDERS:
                self.by_order.append((context * colours + pixel, context))


class _Counts:
    """Counts the real sprites' patches by number (a number stands for a patch) and fold."""

    def __init__(self, numbers: Codes, fold_of: Indices) -> None:
        self._numbers, indices = np.unique(numbers, return_inverse=True)
        in_fold = np.bincount(indices * _FOLDS + fold_of, minlength=len(self._numbers) * _FOLDS).reshape(-1, _FOLDS)
        self._outside = in_fold.sum(1, keepdims=True) - in_fold  # [numbers, folds]

    def outside(self, fold_of: Indices, numbers: Codes) -> NDArray[np.int64]:
        """Return the counts of `numbers` outside the folds `fold_of`: int64 [P]. numbers, fold_of: int64 [P]."""
        if not len(self._numbers):
            return np.zeros_like(numbers)
        indices = np.searchsorted(self._numbers, numbers).clip(max=len(self._numbers) - 1)
        return np.where(self._numbers[indices] == numbers, self._outside[indices, fold_of], 0)


def wasserstein(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the Wasserstein-1 distance between two samples of numbers, float64 [N] and [M]."""
    values = np.sort(np.concatenate([first, second]))
    shares = [np.searchsorted(np.sort(one), values[:-1], side="right") / len(one) for one in (first, second)]
    return float(np.abs(shares[0] - shares[1]) @ np.diff(values))
