"""Constraints on generated sprites: symmetry, seamless tiling, outlines, silhouettes. Apply and check them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.data.colour.palette import to_oklab
from studio.data.tiles.layout import TileSetSpec

NONE, BOTH = "none", "both"
MIRRORS = (NONE, "left-right", "top-bottom", BOTH)
SEAMLESS = (NONE, "across", "down", BOTH)
DARK = "dark"
_BLACK = np.array([0, 0, 0], np.uint8)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints on generated sprites."""

    mirror: str = NONE  # a value from MIRRORS
    seamless: str = NONE  # a value from SEAMLESS
    outline: str = NONE  # 'none', 'dark' or a colour like '#1a1c2c'
    silhouette: NDArray[np.uint8] | None = None  # [S, S], required alpha per pixel
    tiles: TileSetSpec | None = None  # the sprites are this tile set, whose tiles must fit together

    def __post_init__(self) -> None:
        if self.outline not in (NONE, DARK):
            self._outline_colour()

    @property
    def mirror_axes(self) -> tuple[bool, bool]:
        """Whether sprites are mirrored left-right, and whether top-bottom."""
        return self.mirror in (MIRRORS[1], BOTH), self.mirror in (MIRRORS[2], BOTH)

    @property
    def seamless_axes(self) -> tuple[bool, bool]:
        """Whether sprites tile seamlessly horizontally, and whether vertically."""
        return self.seamless in (SEAMLESS[1], BOTH), self.seamless in (SEAMLESS[2], BOTH)

    @property
    def alpha(self) -> NDArray[np.uint8] | None:
        """The silhouette, mirrored like the sprites: uint8 [S, S] or None."""
        return None if self.silhouette is None else self._mirrored(self.silhouette[None])[0]

    def apply(self, sprites: Rgba, keep: NDArray[np.bool_] | None = None) -> Rgba:
        """Return a copy of sprites, uint8 [N, S, S, 4], that meets all constraints except seamless tiling.

        keep: bool [N, S, S], pixels that stay unchanged. Only the model can draw sprites that tile seamlessly.
        """
        made, alpha = self._mirrored(sprites), self.alpha
        if alpha is not None:
            made = np.concatenate([made[..., :3], np.broadcast_to(alpha[..., None], (*made.shape[:3], 1))], -1)
            made[:, alpha == 0] = 0
        if self.outline != NONE:
            made = made.copy()
            for sprite, border in zip(made, outline_mask(made), strict=True):
                sprite[border, :3] = self._outline_of(sprite)
                sprite[border, 3] = 255
        if self.tiles is not None:
            return self.tiles.layout(made.shape[1]).apply_ties(made, keep)
        return made if keep is None else np.where(keep[..., None], sprites, made)

    def _mirrored(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return sprites [N, S, S, ...] with the left or upper half mirrored onto the other half."""
        for mirror, axis in zip(self.mirror_axes, (2, 1), strict=True):
            if mirror:
                first, half = np.split(pixels, [-(-pixels.shape[axis] // 2)], axis)[0], pixels.shape[axis] // 2
                pixels = np.concatenate([first, np.flip(first.take(range(half), axis), axis)], axis)
        return pixels

    def _outline_of(self, sprite: Rgba) -> NDArray[np.uint8]:
        """Return the outline colour for a sprite: uint8 [3]."""
        if self.outline != DARK:
            return self._outline_colour()
        colours = np.unique(sprite[sprite[..., 3] > 0][:, :3], axis=0)
        return colours[to_oklab(colours)[:, 0].argmin()] if len(colours) else _BLACK

    def _outline_colour(self) -> NDArray[np.uint8]:
        try:
            colour = np.frombuffer(bytes.fromhex(self.outline.removeprefix("#")), np.uint8)
        except ValueError:
            colour = _BLACK[:0]
        if len(colour) != len(_BLACK):
            title = f"Outline: {self.outline!r} is not a colour."
            raise UsageError(title, "Use 'none', 'dark' or a colour like '#1a1c2c'.")
        return colour


UNCONSTRAINED = Constraints()


def outline_mask(sprites: Rgba) -> NDArray[np.bool_]:
    """Return the visible pixels with a transparent pixel to the left, right, above or below: bool [N, S, S]."""
    seen = sprites[..., 3] > 0
    around = np.pad(seen, ((0, 0), (1, 1), (1, 1)), constant_values=True)
    inside = around[:, :-2, 1:-1] & around[:, 2:, 1:-1] & around[:, 1:-1, :-2] & around[:, 1:-1, 2:]
    return np.asarray(seen & ~inside)


@dataclass(frozen=True)
class ConstraintCheck:
    """Result of a check: `holds` out of `count` sprites meet a constraint."""

    title: str
    holds: int
    count: int
    but_kept: int = 0  # number of sprites that fail only because of kept pixels


def evaluate_constraints(
    sprites: Rgba, constraints: Constraints, palette: NDArray[np.uint8] | None, keep: NDArray[np.bool_] | None = None,
    alphas: NDArray[np.bool_] | None = None,
) -> Iterator[ConstraintCheck]:  # fmt: skip
    """Check sprites, uint8 [N, S, S, 4], against the constraints, a palette and alpha levels.

    palette: uint8 [K, 3], the allowed opaque colours; None: any. keep: bool [N, S, S], pixels kept
    unchanged. alphas: bool [N, 256], allowed alpha values of each sprite, used without a silhouette; None: any. The
    check ignores given tiles of a tile set; drawn tiles may use the colours of given tiles.
    """
    given = keep if keep is not None and constraints.tiles is not None else np.zeros(sprites.shape[:3], np.bool_)
    if palette is not None:
        numbers = _numbers(sprites)
        known = np.union1d(_numbers(palette), numbers[given])
        off = (sprites[..., 3] > 0) & ~np.isin(numbers, known)
        own = keep
        if keep is not None:
            each = zip(numbers, keep, strict=True)
            own = np.stack([np.isin(colours, colours[stays]) for colours, stays in each])
        yield _check("Palette OK", off, own)  # colours of kept pixels are allowed everywhere
    alpha = constraints.alpha
    if alpha is not None:
        yield _check("Silhouette OK", sprites[..., 3] != alpha, keep)
    elif alphas is not None:
        is_known = np.take_along_axis(alphas, sprites[..., 3].reshape(len(sprites), -1).astype(np.intp), 1)
        title = "Transparency OK" if alphas[:, 1:255].any() else "No semi-transparency"
        yield _check(title, ~is_known.reshape(sprites.shape[:3]) & ~given, keep)
    titles = ("Mirrored left-right", "Mirrored top-bottom")
    for holds, axis, title in zip(constraints.mirror_axes, (2, 1), titles, strict=True):
        if holds:
            differs = (sprites != np.flip(sprites, axis)).any(-1)
            yield _check(title, differs, None if keep is None else keep | np.flip(keep, axis))
    titles = ("Seamless horizontally", "Seamless vertically")
    for holds, axis, title in zip(constraints.seamless_axes, (2, 1), titles, strict=True):
        if holds:
            jumps = seam_differences(sprites, axis)
            yield ConstraintCheck(title, int((jumps[:, 0] <= jumps[:, 1:].max(1)).sum()), len(sprites))
    if constraints.tiles is not None:
        fits = constraints.tiles.layout(sprites.shape[1]).fits(sprites, keep)
        yield ConstraintCheck("Tiles fit together", len(sprites) if fits else 0, len(sprites))
    if constraints.outline != NONE:
        border = outline_mask(sprites)
        colours = [np.unique(sprite[on], axis=0).shape[0] for sprite, on in zip(sprites, border, strict=True)]
        yield ConstraintCheck("One-colour outline", sum(count <= 1 for count in colours), len(sprites))


def seam_differences(sprites: Rgba, axis: int) -> NDArray[np.float64]:
    """Return the mean difference of neighbouring columns (axis 2) or rows (axis 1), in levels: float64 [N, S].

    The first value compares the last line with the first, across the seam.
    """
    values = sprites.astype(np.float64)
    values[..., :3] *= values[..., 3:] / 255
    differences = np.abs(values - np.roll(values, 1, axis))
    return np.asarray(differences.mean((1, 3) if axis == 2 else (2, 3)))


def _check(title: str, fails: NDArray[np.bool_], kept: NDArray[np.bool_] | None) -> ConstraintCheck:
    """Return the number of sprites that meet a constraint, and of sprites that fail only in kept pixels.

    fails: bool [N, S, S], pixels that violate the constraint. kept: bool [N, S, S], pixels kept unchanged.
    """
    failed = np.asarray(fails.any((1, 2)))
    but_kept = failed & ~(fails & ~kept).any((1, 2)) if kept is not None else np.zeros_like(failed)
    return ConstraintCheck(title, int((~failed).sum()), failed.size, int(but_kept.sum()))


def _numbers(colours: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Pack the RGB channels of each colour [..., 3 or 4] into one number."""
    return np.asarray(colours[..., :3].astype(np.int64) @ np.array([1, 256, 65536]))
