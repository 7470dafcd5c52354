"""One sprite to begin with, from a file, the clipboard or a drop: read, and put on a model's canvas by whole pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.core.events import Rgba
from studio.data.images.canvas import clear_hidden, fit_into, native_scale, shrunk, visible_box
from studio.data.importing import all_sources
from studio.data.reading.finding import find_file, no_access, roots_of
from studio.data.source_files import Picture, Refused, SourceFile


@dataclass(frozen=True, eq=False)
class Fitted:
    """A picture on a canvas: uint8 [S, S, 4]. how: in words, what was done to it; empty where it fitted."""

    rgba: Rgba
    how: str


def read_picture(path: Path) -> Rgba:
    """The first picture in a file of any kind that the studio reads: uint8 [H, W, 4]. Raises BadInputError."""
    roots = roots_of([path])
    file = find_file(roots, path.name)
    if file is None:
        raise BadInputError(f"There is no picture {str(path)!r}.", "Name a file with a sprite in it.")
    pictures = pictures_of(file)
    if not pictures:
        raise BadInputError(f"There is no picture in {path.name!r}.", "Name a file with a sprite in it.")
    clear_hidden(pictures[0].rgba)
    return pictures[0].rgba


def pictures_of(file: SourceFile) -> list[Picture]:
    """The pictures in a file of any kind that the studio reads. Raises BadInputError."""
    source = next(source for source in all_sources() if source.claims(file))
    try:
        return [item for item in source.read(file) if isinstance(item, Picture)]
    except Refused as refused:
        raise BadInputError(f"{file.name!r} can't be read: {refused.reason}.", "Save it anew as PNG.") from None
    except OSError as error:
        raise BadInputError(f"{file.name!r}: {no_access(error, 'file')}.", "Check the file and its drive.") from None


def fit(rgba: Rgba, size: int) -> Fitted:
    """A picture uint8 [H, W, 4] on a canvas of `size` pixels a side: no pixel is mixed with another.

    One that was enlarged is brought back to its true size, one that is too large is cut to what can be seen, and where
    that is still too large, only every second, third or so on of its rows and columns is left. Then it is centred.
    """
    height, width = rgba.shape[:2]
    if (height, width) == (size, size):
        return Fitted(rgba, "")
    done = []
    if max(height, width) > size and native_scale(rgba) > 1:
        done.append(f"brought back from {native_scale(rgba)} times its size")
        rgba = shrunk(rgba, 0)
    box = visible_box(rgba)
    if max(rgba.shape[:2]) > size and box is not None:
        left, top, right, bottom = box
        rgba = rgba[top:bottom, left:right]
        done.append("cut to what can be seen")
    step = -(-max(rgba.shape[:2]) // size)
    if step > 1:
        rgba = rgba[step // 2 :: step, step // 2 :: step]
        done.append(f"made smaller, every {_ordinal(step)} pixel of it")
    canvas = np.zeros((size, size, 4), np.uint8)
    fit_into(rgba, canvas)
    words = ", ".join([*done, f"centred on {size} x {size}"])
    return Fitted(canvas, f"{width} x {height} pixels: {words}")


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def read_mask(path: Path) -> NDArray[np.bool_]:
    """Which pixels stay, from a picture in which they are white: bool [H, W]. Raises BadInputError."""
    rgba = read_picture(path)
    return _is_white(rgba)


def read_silhouette(path: Path) -> NDArray[np.uint8]:
    """The alpha of a picture or, where it can be seen through nowhere, 255 where it is white: uint8 [H, W].

    Raises BadInputError.
    """
    rgba = read_picture(path)
    alpha = rgba[..., 3]
    return np.where(_is_white(rgba), np.uint8(255), np.uint8(0)) if (alpha == 255).all() else alpha


def _is_white(rgba: Rgba) -> NDArray[np.bool_]:
    return np.asarray((rgba[..., :3].mean(-1) >= 128) & (rgba[..., 3] >= 128))
