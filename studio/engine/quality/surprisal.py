"""How improbable the pixels of sprites are, given those beside them: no network, and no sprite is too small for it.

The features of a network are means over a sprite, which a few odd pixels hardly change; people see these first: specks,
broken outlines, a pixel too many. Here each pixel is predicted from the patch of 3 x 3 pixels whose last corner it is,
by how often real sprites have that patch. A sprite's surprisal is the mean of -log2 of these probabilities, in bits a
pixel. Blank or blurred sprites have less of it than real ones, speckled ones more: what tells is the distance between
the surprisals of the new and of the real sprites.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.colour.palette import dominant_colours, nearest_colours, to_oklab
from studio.data.images.canvas import as_rgba, as_uint32
from studio.engine.runs.split import Indices, shuffle_by_group
from studio.engine.steps.batches import stride_subsample

Codes = NDArray[np.int64]

_MOST_COLOURS = 32
_MOST_PIXELS = 1 << 22  # that are looked at at a time; of more real ones a choice: their patches have been seen
_FOLDS = 4
_WEIGHT = 2.0  # of what is predicted from fewer neighbours, in pixels seen
_NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2))  # rows above, columns left of the pixel
_ORDERS = (0, 1, 2, 3, 8)  # how many of them predict: those of a patch of 2 x 2 are three, of 3 x 3 eight
_REACH = 2


class PatchSurprisal:
    """The patches of real sprites, by which others are judged.

    The real sprites are in folds, those of a group in one. A sprite is judged by all folds but one: a real one by those
    that it is not in, new ones in turn. So real and new sprites are judged alike.
    """

    def __init__(self, real: Rgba, groups: Indices, training: Rgba) -> None:
        """Count the patches of sprites uint8 [N, S, S, 4] of these groups, int64 [N]; at least four sprites. Of very
        large or very many ones some are taken.

        training: sprites uint8 [M, S, S, 4] whose main colours all pixels take. Those of the real ones would suit them
        better than new ones.
        """
        self._palette = dominant_colours(training, _MOST_COLOURS)
        most = max(_FOLDS, _MOST_PIXELS // real[0, ..., 0].size)
        real, groups = stride_subsample(real, most), stride_subsample(groups, most)
        folds = np.empty(len(real), np.int64)
        folds[shuffle_by_group(groups, seed=0)] = np.arange(len(real)) * _FOLDS // len(real)
        patches = self._patches(real)
        fold_of = folds[patches.sprite]
        self._counts = [(_Counts(patch, fold_of), _Counts(context, fold_of)) for patch, context in patches.by_order]
        self.of_real = self._bits(patches, folds)

    def of(self, sprites: Rgba, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Bits a pixel, float64 [M], of sprites uint8 [M, S, S, 4]; 0 of a sprite in which nothing is to be seen.

        where: bool [M, S, S], the pixels that count, all for None.
        """
        step = max(1, _MOST_PIXELS // sprites[0, ..., 0].size)
        found = []
        for start in range(0, len(sprites), step):
            part = slice(start, start + step)
            patches, places = self._patches(sprites[part]), np.arange(len(sprites))[part]
            found.append(self._bits(patches, places % _FOLDS, None if where is None else where[part]))
        return np.concatenate(found)

    def distance(self, sprites: Rgba) -> float:
        """Between the surprisals of sprites uint8 [M, S, S, 4] and those of the real ones, in bits a pixel."""
        return wasserstein(self.of_real, self.of(sprites))

    def _patches(self, sprites: Rgba) -> _Patches:
        """Each pixel being the nearest colour of the palette, from 1 on; 0 where there is none."""
        values, places = np.unique(as_uint32(sprites), return_inverse=True)
        colours = as_rgba(values)
        codes = np.where(colours[:, 3] < 128, 0, 1)
        if len(self._palette):
            codes *= 1 + nearest_colours(to_oklab(colours[:, :3]), to_oklab(self._palette[:, :3]))
        return _Patches(codes[places].reshape(sprites.shape[:3]), len(self._palette) + 1)

    def _bits(
        self, patches: _Patches, left_out: Indices, where: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """By all folds but one, int64 [N]. The more neighbours, the rarer the patch: those that were seen seldom leave
        more to the prediction from fewer (Dirichlet smoothing, MacKay & Peto 1995).
        """
        fold_of = left_out[patches.sprite]
        probability = np.full(len(fold_of), 1 / (len(self._palette) + 1))
        for (patch, context), (of_patch, of_context) in zip(patches.by_order, self._counts, strict=True):
            expected = of_patch.outside(fold_of, patch) + _WEIGHT * probability
            probability = expected / (of_context.outside(fold_of, context) + _WEIGHT)
        count = len(left_out)
        counts = np.ones(len(fold_of)) if where is None else where.ravel()[patches.place].astype(np.float64)
        total = np.bincount(patches.sprite, -np.log2(probability) * counts, count)
        return np.asarray(total / np.bincount(patches.sprite, counts, count).clip(min=1))


class _Patches:
    """Patches in which anything is to be seen: P of all sprites together.

    sprite: int64 [P], which one it is of. place: int64 [P], of its pixel among those of all sprites. by_order: for each
    of _ORDERS the patch and its context, the same without the pixel that is predicted, each as one number, int64 [P].
    """

    def __init__(self, codes: Codes, colours: int) -> None:
        size = codes.shape[1]
        padded = np.pad(codes, ((0, 0), (_REACH, 0), (_REACH, 0)))

        def neighbour(up: int, left: int) -> Codes:
            y, x = _REACH - up, _REACH - left
            return np.asarray(padded[:, y : y + size, x : x + size])

        seen = (codes > 0) | np.any([neighbour(*place) > 0 for place in _NEIGHBOURS], axis=0)
        self.sprite, self.place = np.nonzero(seen)[0], np.flatnonzero(seen)
        pixel, context = codes[seen], np.zeros(len(self.sprite), np.int64)
        self.by_order: list[tuple[Codes, Codes]] = []
        for order, place in enumerate((None, *_NEIGHBOURS)):
            if place is not None:
                context = context * colours + neighbour(*place)[seen]
            if order in _ORDERS:
                self.by_order.append((context * colours + pixel, context))


class _Counts:
    """How often each number came, fold by fold."""

    def __init__(self, numbers: Codes, fold_of: Indices) -> None:
        self._numbers, places = np.unique(numbers, return_inverse=True)
        in_fold = np.bincount(places * _FOLDS + fold_of, minlength=len(self._numbers) * _FOLDS).reshape(-1, _FOLDS)
        self._outside = in_fold.sum(1, keepdims=True) - in_fold

    def outside(self, fold_of: Indices, numbers: Codes) -> NDArray[np.int64]:
        """How often each of `numbers` came outside its fold: int64, of the same shape."""
        if not len(self._numbers):
            return np.zeros_like(numbers)
        places = np.searchsorted(self._numbers, numbers).clip(max=len(self._numbers) - 1)
        return np.where(self._numbers[places] == numbers, self._outside[places, fold_of], 0)


def wasserstein(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """How far the values float64 [N] of one sample must be moved to be those of another, [M]: Wasserstein-1."""
    values = np.sort(np.concatenate([first, second]))
    shares = [np.searchsorted(np.sort(one), values[:-1], side="right") / len(one) for one in (first, second)]
    return float(np.abs(shares[0] - shares[1]) @ np.diff(values))
