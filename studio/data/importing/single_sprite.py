"""Load one image from a file, and fit an image to a model's canvas without mixing pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.names import escape_unprintable
from studio.data.files.source_files import SourceFile, SourceImage, UnreadableFile, os_error_reason
from studio.data.images.canvas import clear_hidden, crop_transparent, paste_centred, undo_upscaling, upscaling_factor
from studio.data.reading.finding import find_file, resolve_roots
from studio.data.reading.read import all_sources


@dataclass(frozen=True, eq=False)
class FittedSprite:
    """An image fitted to a model's canvas of S x S pixels."""

    rgba: Rgba  # uint8 [S, S, 4]
    width: int  # original size in pixels
    height: int
    changes: tuple[str, ...]  # descriptions of changes; () for an image with the canvas size

    @property
    def description(self) -> str:
        """The original size and all changes in words; '' without changes."""
        side = len(self.rgba)
        changes = f"{', '.join(self.changes)} on {side} x {side}"
        return f"{self.width} x {self.height} pixels: {changes}" if self.changes else ""


def load_image(path: Path, *, whole: bool = False) -> Rgba:
    """Load the first image from a file in any supported format: uint8 [H, W, 4]. Raises BadInputError.

    whole: don't slice a sheet by the description beside the sheet.
    """
    return load_frames(path, whole=whole)[0].rgba


def load_frames(path: Path, *, whole: bool = False) -> list[SourceImage]:
    """Load a file's images, such as an animation's frames, without hidden colours. Raises BadInputError.

    whole: don't slice a sheet by the description beside the sheet.
    """
    file = find_file(resolve_roots([path]), escape_unprintable(path.name))
    images = [] if file is None else load_images(file, whole=whole)
    if not images:
        raise BadInputError(f"No image found in {str(path)!r}.", "Choose a file with a sprite.")
    for image in images:
        clear_hidden(image.rgba)
    return images


def load_images(file: SourceFile, *, whole: bool = False) -> list[SourceImage]:
    """Load a file's images in any supported format. Raises BadInputError.

    whole: don't slice a sheet by the description beside the sheet.
    """
    claiming = (source for source in all_sources() if source.claims(file))
    try:
        source = next(source for source in claiming if not (whole and source.descriptions(file)))
        return [item for item in source.read(file) if isinstance(item, SourceImage)]
    except UnreadableFile as error:
        raise BadInputError(f"{file.name!r} can't be read: {error.reason}.", "Save the image again as PNG.") from None
    except OSError as error:
        title = f"{file.name!r}: {os_error_reason(error, 'file')}."
        raise BadInputError(title, "Check the file and its drive.") from None


def fit_to_canvas(rgba: Rgba, size: int) -> FittedSprite:
    """Fit an image uint8 [H, W, 4] to a canvas of `size` x `size` pixels, centred, without mixing pixels.

    An image larger than the canvas gets its upscaling undone and its transparent borders cropped; if it still is too
    large, only every second (third, ...) row and column is kept.
    """
    height, width = rgba.shape[:2]
    if (height, width) == (size, size):
        return FittedSprite(rgba, width, height, ())
    changes = []
    if max(height, width) > size and upscaling_factor(rgba) > 1:
        changes.append(f"scaled down from {upscaling_factor(rgba)}x")
        rgba = undo_upscaling(rgba, 0)
    if max(rgba.shape[:2]) > size:
        cropped = crop_transparent(rgba)
        if cropped.shape != rgba.shape:
            changes.append("transparent borders cropped")
        rgba = cropped
    step = -(-max(rgba.shape[:2]) // size)
    if step > 1:
        rgba = rgba[step // 2 :: step, step // 2 :: step]
        changes.append(f"shrunk to one pixel of every {step} x {step}")
    canvas = np.zeros((size, size, 4), np.uint8)
    paste_centred(rgba, canvas)
    return FittedSprite(canvas, width, height, (*changes, "centred"))


def load_mask(path: Path) -> NDArray[np.bool_]:
    """Load an inpainting mask: bool [H, W], True (keep the pixel) where the image is white. Raises BadInputError."""
    return _is_white(load_image(path))


def load_silhouette(path: Path) -> NDArray[np.uint8]:
    """Load a silhouette: uint8 [H, W], an image's alpha; 255 where an opaque image is white. Raises BadInputError."""
    rgba = load_image(path)
    alpha = rgba[..., 3]
    return np.where(_is_white(rgba), np.uint8(255), np.uint8(0)) if (alpha == 255).all() else alpha


def _is_white(rgba: Rgba) -> NDArray[np.bool_]:
    return np.asarray((rgba[..., :3].mean(-1) >= 128) & (rgba[..., 3] >= 128))
