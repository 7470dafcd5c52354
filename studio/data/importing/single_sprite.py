"""One sprite to begin with, from a file, the clipboard or a drop: read, and put on a model's canvas by whole pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.files.source_files import SourceFile, SourceImage, UnreadableFile, os_error_reason
from studio.data.images.canvas import clear_hidden, paste_centred, undo_upscaling, upscaling_factor, visible_bounds
from studio.data.reading.finding import find_file, resolve_roots
from studio.data.reading.read import all_sources


@dataclass(frozen=True, eq=False)
class Fitted:
    """A picture on a canvas: uint8 [S, S, 4]. steps: in words, what was done to it; none where it fitted."""

    rgba: Rgba
    width: int  # of the picture, in pixels
    height: int
    steps: tuple[str, ...]

    @property
    def how(self) -> str:
        """All of it in words; empty where it fitted."""
        side = len(self.rgba)
        done = f"{', '.join(self.steps)} on {side} x {side}"
        return f"{self.width} x {self.height} pixels: {done}" if self.steps else ""


def read_picture(path: Path) -> Rgba:
    """The first picture in a file of any kind that the studio reads: uint8 [H, W, 4]. Raises BadInputError."""
    roots = resolve_roots([path])
    file = find_file(roots, path.name)
    if file is None:
        raise BadInputError(f"There is no picture {str(path)!r}.", "Name a file with a sprite in it.")
    pictures = pictures_of(file)
    if not pictures:
        raise BadInputError(f"There is no picture in {path.name!r}.", "Name a file with a sprite in it.")
    clear_hidden(pictures[0].rgba)
    return pictures[0].rgba


def pictures_of(file: SourceFile) -> list[SourceImage]:
    """The pictures in a file of any kind that the studio reads. Raises BadInputError."""
    source = next(source for source in all_sources() if source.claims(file))
    try:
        return [item for item in source.read(file) if isinstance(item, SourceImage)]
    except UnreadableFile as refused:
        raise BadInputError(f"{file.name!r} can't be read: {refused.reason}.", "Save it anew as PNG.") from None
    except OSError as error:
        raise BadInputError(
            f"{file.name!r}: {os_error_reason(error, 'file')}.", "Check the file and its drive."
        ) from None


def fit(rgba: Rgba, size: int) -> Fitted:
    """A picture uint8 [H, W, 4] on a canvas of `size` pixels a side: no pixel is mixed with another.

    One that was enlarged is brought back to its true size, one that is too large is cut to what can be seen, and where
    that is still too large, only every second, third or so on of its rows and columns is left. Then it is centred.
    """
    height, width = rgba.shape[:2]
    if (height, width) == (size, size):
        return Fitted(rgba, width, height, ())
    done = []
    if max(height, width) > size and upscaling_factor(rgba) > 1:
        done.append(f"brought back from {upscaling_factor(rgba)} times its size")
        rgba = undo_upscaling(rgba, 0)
    box = visible_bounds(rgba)
    if max(rgba.shape[:2]) > size and box is not None:
        left, top, right, bottom = box
        if (bottom - top, right - left) != rgba.shape[:2]:
            done.append("empty borders cut off")
        rgba = rgba[top:bottom, left:right]
    step = -(-max(rgba.shape[:2]) // size)
    if step > 1:
        rgba = rgba[step // 2 :: step, step // 2 :: step]
        done.append(f"shrunk to one pixel of every {step} x {step}")
    canvas = np.zeros((size, size, 4), np.uint8)
    paste_centred(rgba, canvas)
    return Fitted(canvas, width, height, (*done, "centred"))


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
