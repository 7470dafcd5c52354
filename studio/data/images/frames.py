"""The bytes of one file -> its picture, or the frames of an animation as a viewer shows them, near repeats left out."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from PIL import Image

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.data.files.source_files import SourceImage, SourceIssue, UnreadableFile
from studio.data.images import gif, png, webp
from studio.data.images.animation import Disposal, EncodedFrame
from studio.data.images.canvas import as_uint32, clear_hidden
from studio.data.images.decoding import Decoded, check_size, decode
from studio.data.images.png import MAGIC

_GIF = b"GIF8"
MOST_FRAMES = 256  # of an animation that are looked at
MOST_PIXELS = 32 << 20  # of an animation that are decoded: twice as many frames of 256 x 256, or two of 4096 x 4096
SAME_SHARE = 0.02  # of the visible pixels: frames that differ in fewer are the same to a person


@dataclass(eq=False, slots=True)
class _FrameCounts:
    """Frames of an animation: found in the file, decoded, and kept. stopped: what the rest is, if not all was read."""

    found: int = 0
    read: int = 0
    kept: int = 0
    stopped: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Animation:
    """The frames of a picture file.

    rgba: uint8 [N, H, W, 4]. durations_ms: display time of each frame; () for a still picture.
    """

    rgba: Rgba
    durations_ms: tuple[int, ...]


def read_animation(data: bytes, suffix: str) -> Animation:
    """Read all frames of a picture file, repeated frames included; a still picture has one frame.

    suffix: as for `decode`. Raises Refused for unreadable files, damaged animations and more than MOST_FRAMES frames.
    """
    tally = _FrameCounts()
    frames = list(islice(_encoded_frames(data, tally), MOST_FRAMES + 1))
    if len(frames) > MOST_FRAMES:
        raise UnreadableFile("refused", f"an animation with more than {MOST_FRAMES} frames")
    if len(frames) < 2 and not tally.stopped:
        still = _still(data, suffix, frames, tally)
        if any(remark.group == "animation" for remark in still.remarks):
            raise UnreadableFile("unsupported", "holds several frames, but only the first can be read")
        return Animation(still.rgba[None], ())
    drawn = [decoded.rgba for decoded in _rendered(iter(frames), suffix, tally)]
    if tally.stopped:
        raise UnreadableFile("refused", f"an animation that can't be read whole: the rest is {tally.stopped}")
    return Animation(np.stack(drawn), tuple(frame.duration_ms for frame in frames))


def read_pictures(data: bytes, suffix: str) -> Iterator[SourceImage | SourceIssue]:
    """The picture in `data`, or the frames of an animation that differ, as 'frame 1', 'frame 5', with remarks.

    At least one picture; raises Refused before it, whatever the bytes are, and never after. `suffix`: as for `decode`.
    """
    tally = _FrameCounts()
    frames = _encoded_frames(data, tally)
    first = list(islice(frames, 2))
    if not first or (len(first) == 1 and not tally.stopped):
        decoded = _still(data, suffix, first, tally)
        yield SourceImage(decoded.rgba)
        yield from decoded.remarks
    else:
        yield from _distinct(_rendered(chain(first, frames), suffix, tally), tally)
        deque(frames, maxlen=0)  # counts those that were not looked at
        yield SourceIssue("animation", _in_words(tally))


def _still(data: bytes, suffix: str, frames: Sequence[EncodedFrame], tally: _FrameCounts) -> Decoded:
    """Decode a picture with at most one frame, `frames`. Raises Refused."""
    # Pillow fills the screen around a smaller GIF frame with a colour; viewers leave the area transparent.
    inset = data.startswith(_GIF) and frames and not _fills(frames[0])
    return next(_rendered(iter(frames), suffix, tally)) if inset else decode(data, suffix)


def _encoded_frames(data: bytes, tally: _FrameCounts) -> Iterator[EncodedFrame]:
    """The frames up to the first damage, counted on the way. None where there is no animation."""
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
            tally.found += 1
            yield frame
    except UnreadableFile as refused:
        tally.stopped = tally.stopped or refused.reason


def _rendered(frames: Iterator[EncodedFrame], suffix: str, tally: _FrameCounts) -> Iterator[Decoded]:
    """The screen after each frame, colour zeroed under alpha 0, until there are too many or one is damaged.

    Raises Refused when it is the first one. The remarks are those of the frame's own picture.
    """
    screen = np.zeros((0, 0, 4), np.uint8)
    left = MOST_PIXELS
    for frame in frames:
        width, height = frame.screen
        left -= max(width * height, frame.width * frame.height)
        if tally.read == MOST_FRAMES or (left < 0 and tally.read):
            tally.stopped = "not looked at"
            return
        try:
            check_size(width, height)
            decoded = decode(frame.data, suffix)
        except UnreadableFile as refused:
            if not tally.read:
                raise
            tally.stopped = refused.reason
            return
        tally.read += 1
        if not screen.size:
            screen = np.zeros((height, width, 4), np.uint8)
        yield Decoded(_drawn(screen, frame, decoded.rgba), decoded.remarks)


def _fills(frame: EncodedFrame) -> bool:
    return (frame.left, frame.top, frame.width, frame.height) == (0, 0, *frame.screen)


def _drawn(screen: Rgba, frame: EncodedFrame, rgba: Rgba) -> Rgba:
    """Draw a frame on the screen, in place, and dispose of it; a copy of what there was to see in between."""
    area = screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
    rgba = rgba[: area.shape[0], : area.shape[1]]  # what lies outside the screen is not seen
    after = area.copy() if frame.disposal is Disposal.RESTORE else 0
    area[:] = _blended(area, rgba) if frame.over and rgba.size else rgba
    rendered = screen.copy()
    if frame.disposal is not Disposal.KEEP:
        area[:] = after
    clear_hidden(rendered)
    return rendered


def _blended(below: Rgba, above: Rgba) -> Rgba:
    return np.asarray(Image.alpha_composite(Image.fromarray(below), Image.fromarray(above)))


def _distinct(rendered: Iterator[Decoded], tally: _FrameCounts) -> Iterator[SourceImage | SourceIssue]:
    """The frames that differ enough from the last one kept and equal none before, with the remarks of the first one."""
    last: Rgba | None = None
    seen: set[bytes] = set()
    for number, decoded in enumerate(rendered, 1):
        rgba = decoded.rgba
        digest = hashlib.blake2b(rgba.data, digest_size=16).digest()
        if digest in seen or (last is not None and _hardly_differ(rgba, last)):
            continue
        if last is None:
            yield from decoded.remarks
        seen.add(digest)
        last = rgba.copy()
        tally.kept += 1
        yield SourceImage(rgba, f"frame {number}")


def _hardly_differ(one: Rgba, other: Rgba) -> bool:
    """Whether fewer than SAME_SHARE of the pixels that are visible in either differ; both with hidden colour zeroed."""
    first, second = as_uint32(one), as_uint32(other)
    return bool(np.count_nonzero(first != second) < SAME_SHARE * np.count_nonzero(first | second))


def _in_words(tally: _FrameCounts) -> str:
    kept = "1 was taken" if tally.kept == 1 else f"{tally.kept} that differ were taken"
    if tally.kept == tally.found > 1 and not tally.stopped:
        kept = "all were taken"
    rest = f" from the first {tally.read}, the rest is {tally.stopped}" if tally.stopped else ""
    return f"an animation of {formatting.count(tally.found, 'frame')}: {kept}{rest}"
