"""Read still pictures, and animations as viewers show them; imports skip nearly repeated frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from PIL import Image

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.pictures import pixel_digest
from studio.data.files.source_files import SourceImage, SourceIssue, UnreadableFile
from studio.data.images import gif, png, webp
from studio.data.images.animation import Disposal, EncodedFrame
from studio.data.images.canvas import as_uint32, clear_hidden
from studio.data.images.decoding import Decoded, check_size, decode
from studio.data.images.png import MAGIC

_GIF = b"GIF8"
MOST_FRAMES = 256  # frames read of an animation
MOST_PIXELS = 32 << 20  # pixels decoded of an animation: 512 frames of 256 x 256, or two of 4096 x 4096
SAME_SHARE = 0.02  # share of visible pixels; frames that differ in fewer look the same


@dataclass(eq=False, slots=True)
class _FrameCounts:
    """Number of an animation's frames found in the file, decoded, and kept. stopped: why reading ended early, or ''."""

    found: int = 0
    read: int = 0
    kept: int = 0
    stopped: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Animation:
    """The frames of a picture file."""

    rgba: Rgba  # uint8 [N, H, W, 4]
    durations_ms: tuple[int, ...]  # display time of each frame; () for a still picture


def read_animation(data: bytes, suffix: str) -> Animation:
    """Read all frames of a picture file, repeated frames included; a still picture has one frame.

    suffix: the file's suffix, in lower case with its dot. Raises UnreadableFile for unreadable files, damaged
    animations and more than MOST_FRAMES frames.
    """
    counts = _FrameCounts()
    frames = list(islice(_encoded_frames(data, counts), MOST_FRAMES + 1))
    if len(frames) > MOST_FRAMES:
        raise UnreadableFile("refused", f"an animation with more than {MOST_FRAMES} frames")
    if len(frames) < 2 and not counts.stopped:
        still = _still(data, suffix, frames, counts)
        if any(remark.group == "animation" for remark in still.remarks):
            raise UnreadableFile("unsupported", "has several frames, but only the first is readable")
        return Animation(still.rgba[None], ())
    drawn = [decoded.rgba for decoded in _rendered(iter(frames), suffix, counts)]
    if counts.stopped:
        raise UnreadableFile("refused", f"an animation that is only partly readable: the rest is {counts.stopped}")
    return Animation(np.stack(drawn), tuple(frame.duration_ms for frame in frames))


def read_pictures(data: bytes, suffix: str) -> Iterator[SourceImage | SourceIssue]:
    """Yield the picture in `data`, or the differing frames of an animation ('frame 1', 'frame 5'), and issues.

    Yields at least one picture. Raises UnreadableFile before the first picture, for any invalid data, and never
    afterwards. suffix: the file's suffix, in lower case with its dot.
    """
    counts = _FrameCounts()
    frames = _encoded_frames(data, counts)
    first = list(islice(frames, 2))
    if not first or (len(first) == 1 and not counts.stopped):
        decoded = _still(data, suffix, first, counts)
        yield SourceImage(decoded.rgba)
        yield from decoded.remarks
    else:
        yield from _distinct(_rendered(chain(first, frames), suffix, counts), counts)
        deque(frames, maxlen=0)  # count the remaining frames
        yield SourceIssue("animation", _summary(counts))


def _still(data: bytes, suffix: str, frames: Sequence[EncodedFrame], counts: _FrameCounts) -> Decoded:
    """Decode a still picture, without `frames`, or an animation with a single frame. Raises UnreadableFile."""
    # Pillow fills the screen around a smaller GIF frame with a colour; viewers leave the area transparent.
    inset = data.startswith(_GIF) and frames and not _fills(frames[0])
    return next(_rendered(iter(frames), suffix, counts)) if inset else decode(data, suffix)


def _encoded_frames(data: bytes, counts: _FrameCounts) -> Iterator[EncodedFrame]:
    """Yield an animation's frames before the first damaged frame, and count them; ends at once for still pictures."""
    if data.startswith(_GIF):
        frames = gif.split_frames(data)
    elif data.startswith(b"RIFF"):
        frames = webp.split_frames(data)
    elif data.startswith(MAGIC) and b"acTL" in data:
        frames = png.split_frames(data)
    else:
        return
    try:
        for frame in frames:
            counts.found += 1
            yield frame
    except UnreadableFile as refused:
        counts.stopped = counts.stopped or refused.reason


def _rendered(frames: Iterator[EncodedFrame], suffix: str, counts: _FrameCounts) -> Iterator[Decoded]:
    """Compose an animation: yield the screen after each frame, up to a limit or a damaged frame, and its issues.

    Colour is zeroed under alpha 0. Raises UnreadableFile for a damaged first frame.
    """
    screen = np.zeros((0, 0, 4), np.uint8)
    left = MOST_PIXELS
    for frame in frames:
        width, height = frame.screen
        left -= max(width * height, frame.width * frame.height)
        if counts.read == MOST_FRAMES or (left < 0 and counts.read):
            counts.stopped = "skipped"
            return
        try:
            check_size(width, height)
            decoded = decode(frame.data, suffix)
        except UnreadableFile as refused:
            if not counts.read:
                raise
            counts.stopped = refused.reason
            return
        counts.read += 1
        if not screen.size:
            screen = np.zeros((height, width, 4), np.uint8)
        yield Decoded(_drawn(screen, frame, decoded.rgba), decoded.remarks)


def _fills(frame: EncodedFrame) -> bool:
    return (frame.left, frame.top, frame.width, frame.height) == (0, 0, *frame.screen)


def _drawn(screen: Rgba, frame: EncodedFrame, rgba: Rgba) -> Rgba:
    """Draw a frame on `screen`, return a copy as displayed, then apply the frame's disposal to `screen`, in place."""
    area = screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
    rgba = rgba[: area.shape[0], : area.shape[1]]  # crop to the screen
    after = area.copy() if frame.disposal is Disposal.RESTORE else 0
    if frame.over and rgba.size:
        rgba = np.asarray(Image.alpha_composite(Image.fromarray(area), Image.fromarray(rgba)))
    area[:] = rgba
    rendered = screen.copy()
    if frame.disposal is not Disposal.KEEP:
        area[:] = after
    clear_hidden(rendered)
    return rendered


def _distinct(rendered: Iterator[Decoded], counts: _FrameCounts) -> Iterator[SourceImage | SourceIssue]:
    """Yield frames that differ clearly from the last kept and from all kept frames, and the first frame's issues."""
    last: Rgba | None = None
    seen: set[bytes] = set()
    for number, decoded in enumerate(rendered, 1):
        rgba = decoded.rgba
        digest = pixel_digest(rgba)
        if digest in seen or (last is not None and _hardly_differ(rgba, last)):
            continue
        if last is None:
            yield from decoded.remarks
        seen.add(digest)
        last = rgba.copy()
        counts.kept += 1
        yield SourceImage(rgba, f"frame {number}")


def _hardly_differ(one: Rgba, other: Rgba) -> bool:
    """Return whether fewer than SAME_SHARE of the pixels visible in a picture differ. Zero hidden colours before."""
    first, second = as_uint32(one), as_uint32(other)
    return bool(np.count_nonzero(first != second) < SAME_SHARE * np.count_nonzero(first | second))


def _summary(counts: _FrameCounts) -> str:
    kept = "1 was read" if counts.kept == 1 else f"{counts.kept} different frames were read"
    if counts.kept == counts.found > 1 and not counts.stopped:
        kept = "all were read"
    rest = f" from the first {counts.read}, the rest is {counts.stopped}" if counts.stopped else ""
    return f"an animation of {formatting.count(counts.found, 'frame')}: {kept}{rest}"
