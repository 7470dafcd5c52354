"""Read Piskel files: JSON with the frames of each layer as base64 PNG images.

The format follows src/js/utils/serialization/Deserializer.js of github.com/piskelapp/piskel.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from studio.core import records
from studio.core.arrays import Rgba
from studio.data.aseprite.blend import draw
from studio.data.images.decoding import check_size, decode, read_bytes, read_header
from studio.data.sources.base import Source, SourceFile, SourceImage, SourceIssue, UnreadableFile

_MAX_BYTES = 16 << 20  # JSON parsing blocks other threads
_MAX_FRAMES, _MAX_LAYERS = 1_000, 1_000
MAX_PIXELS = 1 << 26  # limit for the file's images, and for all frames
_NORMAL = 0  # blend mode
_ONE_STRIP = 1  # modelVersion with all frames of a layer in one image


class _Chunk(msgspec.Struct, frozen=True):
    """An image with several frames in a grid. layout: frame numbers from 0, layout[column][row]."""

    layout: list[list[records.Count]]
    base64PNG: str  # noqa: N815 - as it is called in the file


class _Layer(msgspec.Struct, frozen=True):
    """A layer: `chunks`, or in older files a single image with `frameCount` frames side by side."""

    chunks: list[_Chunk] | None = None
    base64PNG: str = ""  # noqa: N815
    frameCount: records.Count = 0  # noqa: N815
    opacity: float | None = None


class _Sprite(msgspec.Struct, frozen=True):
    """The drawing in a Piskel file. layers: JSON texts, the bottom layer first. width, height: frame size in pixels."""

    width: records.Positive
    height: records.Positive
    layers: list[str]


class _File(msgspec.Struct, frozen=True):
    piskel: _Sprite
    modelVersion: int = 0  # noqa: N815


class PiskelSource(Source):
    """Reads each frame of a Piskel file as a sprite. Merges the layers."""

    name = "piskel"

    def claims(self, file: SourceFile) -> bool:
        return file.suffix == ".piskel"

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        if file.size > _MAX_BYTES:
            raise UnreadableFile("refused", f"too large: {file.size >> 20:,} MB, at most {_MAX_BYTES >> 20} are read")
        data = read_bytes(file)
        if not data:
            raise UnreadableFile("unreadable", "empty: the file has no bytes")
        try:
            frames = _frames(data)
        except ValueError:
            raise UnreadableFile("unreadable", "damaged: not the contents of a Piskel file") from None
        except MemoryError:
            raise UnreadableFile("refused", "too large for the free memory") from None
        for number, rgba in enumerate(frames, 1):
            yield SourceImage(rgba, f"frame {number}" if len(frames) > 1 else "")

    def example(self, folder: Path) -> Path:
        pixels = np.zeros((8, 16, 4), np.uint8)
        pixels[2:6, 1:7] = (200, 60, 40, 255)
        pixels[1:7, 10:14] = (40, 60, 200, 255)
        packed = io.BytesIO()
        Image.fromarray(pixels).save(packed, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(packed.getvalue()).decode()}"
        layer = json.dumps({"name": "Layer 1", "opacity": 1, "frameCount": 2, "chunks": [
            {"layout": [[0], [1]], "base64PNG": url},
        ]})  # fmt: skip
        content = {"modelVersion": 2, "piskel": {"name": "gems", "fps": 12, "width": 8, "height": 8, "layers": [layer]}}
        path = folder / "gems.piskel"
        path.write_text(json.dumps(content))
        return path


def _frames(data: bytes) -> list[Rgba]:
    """Decode the frames of a Piskel file: uint8 [H, W, 4]. Raises UnreadableFile, and ValueError for other JSON."""
    content = records.parse(data, _File)
    sprite = content.piskel
    if content.modelVersion < _ONE_STRIP:
        raise UnreadableFile("unsupported", "a file of an old Piskel version: save it again in Piskel")
    check_size(sprite.width, sprite.height)
    if len(sprite.layers) > _MAX_LAYERS:
        raise UnreadableFile("refused", f"too many layers: at most {_MAX_LAYERS:,} are read")
    frames: list[Rgba] = []
    left = MAX_PIXELS
    for text in sprite.layers:
        layer = records.parse(text, _Layer)
        opacity = round(255 * min(max(1.0 if layer.opacity is None else layer.opacity, 0.0), 1.0))
        for chunk in _chunks(layer):
            image = _png_in(chunk.base64PNG)
            header = read_header(image, ".png")
            if header.kind != "PNG":
                raise UnreadableFile("unreadable", "damaged: an image is not a PNG")
            left -= header.width * header.height
            if left < 0:
                raise UnreadableFile("refused", f"too large: more than {MAX_PIXELS:,} pixels")
            _draw(frames, decode(image, ".png").rgba, chunk.layout, (sprite.width, sprite.height), opacity)
    if not frames:
        raise UnreadableFile("unreadable", "damaged: it has no frames")
    return frames


def _chunks(layer: _Layer) -> list[_Chunk]:
    if layer.chunks is not None or not layer.base64PNG:
        return layer.chunks or []
    if layer.frameCount > _MAX_FRAMES:
        raise UnreadableFile("refused", f"too many frames: at most {_MAX_FRAMES:,} are read")
    return [_Chunk([[number] for number in range(layer.frameCount)], layer.base64PNG)]


def _png_in(url: str) -> bytes:
    try:
        return base64.b64decode(url.partition(",")[2])
    except (binascii.Error, ValueError):
        raise UnreadableFile("unreadable", "damaged: an image has invalid base64 text") from None


def _draw(frames: list[Rgba], image: Rgba, layout: list[list[int]], size: tuple[int, int], opacity: int) -> None:
    """Draw the frames of a layer's image over the lower layers in `frames`, in place; append missing frames.

    layout: frame numbers, layout[column][row]. size: frame width and height. opacity: 0 to 255. Raises UnreadableFile
    if `layout` and `size` don't fit the image.
    """
    width, height = size
    rows = max(map(len, layout), default=0)
    if image.shape[:2] != (rows * height, len(layout) * width):
        raise UnreadableFile("unreadable", "damaged: an image does not have the size of its frames")
    count = 1 + max((number for column in layout for number in column), default=-1)
    if count > _MAX_FRAMES or count * width * height > MAX_PIXELS:
        raise UnreadableFile("refused", "too many frames or pixels")
    while len(frames) < count:
        frames.append(np.zeros((height, width, 4), np.uint8))
    for x, column in enumerate(layout):
        for y, number in enumerate(column):
            part = image[y * height : (y + 1) * height, x * width : (x + 1) * width]
            draw(frames[number], part, opacity, _NORMAL)
