"""Sprites as they were read -> sprites to learn from: pixels and choices as the import's options ask for.

Files stay as they are, and so does the kept import: taking a choice back gives the old sprites again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
from collections.abc import Callable, Generator, Iterable
from fnmatch import translate
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.core.names import nfc
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.colour.palette import MOST_COLOURS, Palette, dominant_colours, extract_palette, sampling_step
from studio.data.colour.quantizing import map_to_palette, merge_near_colours
from studio.data.doctor.class_spelling import merge_spellings, preferred_spellings, spelling_key
from studio.data.doctor.duplicates import (
    EXCLUDED_BY_NAME,
    swap_excluded,
    swap_small_classes,
)
from studio.data.files.scratch import ScratchBuffer
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32, clear_hidden, sprite_slices
from studio.data.import_result import ImportResult, too_few
from studio.data.options import ImportOptions
from studio.data.palettes.files import load_palette
from studio.data.similarity.near_duplicates import find_similar
from studio.data.sprites import Sprites

_AT_ONCE = 1 << 18  # pixels
_OWN_PALETTE = 0.98  # share of the pixels that as many colours as asked for hold, where a set has a palette of so many
_SEPARATOR = ";"
_EVERY_COLOUR = 1 << 20

_Change = Callable[[Rgba], Rgba]  # uint8 [N, S, S, 4] -> the same shape


def apply_fixes(
    arranged: ImportResult, options: ImportOptions, folder: Path | None
) -> Generator[Event, None, ImportResult]:
    """Yields Progress and returns what is left, with the reasons for what is not.

    It is `arranged` itself where nothing changes. Very many sprites go to a scratch file in `folder`. Raises
    BadInputError for a palette that can't be used, OSError when there is no room.
    """
    is_out = exclusion_filter(options.leave_out)
    if options.merge_classes:
        arranged = _with_merged_classes(arranged)
    if options.leave_out:
        arranged = swap_excluded(arranged, is_out)
    if options.class_minimum > 1:
        arranged = swap_small_classes(arranged, options.class_minimum, is_out)
    sprites = yield from _repainted(arranged.sprites, options, folder)
    changed = _different(arranged.sprites.rgba, sprites.rgba)
    chosen = _Selection(sprites)
    chosen.leave_out_named(options.leave_out)
    if changed.any():
        chosen.leave_out_empty_and_equal(keep_equal=options.duplicates == "keep")
    if options.similar == "leave out":
        yield from chosen.leave_out_similar()
    chosen.leave_out_small_classes(options.class_minimum)
    if not changed.any() and not chosen.left_out:
        return arranged
    kept = chosen.sprites()
    names, gone = set(kept.names), {item.name for item in chosen.left_out}
    # What was said of half-transparent pixels when the files were read holds no longer.
    outdated = "soft alpha" if options.alpha_threshold else ""
    notes = [item for item in arranged.notes if item.name not in gone and item.group != outdated]
    for index in np.flatnonzero(changed).tolist():
        if sprites.names[index] in names:
            words = formatting.count(int(changed[index]), "pixel")
            notes.append(ImportIssue(sprites.names[index], f"{words} changed, as asked for", "mended"))
    quarantine = sorted([*arranged.quarantine, *chosen.left_out], key=lambda item: item.name)
    return dataclasses.replace(arranged, sprites=kept, quarantine=tuple(quarantine), notes=tuple(notes))


def _with_merged_classes(arranged: ImportResult) -> ImportResult:
    """Return the import with like-named classes merged, in its sprites and its duplicates."""
    chosen = preferred_spellings(arranged.sprites)
    if not chosen:
        return arranged
    duplicates = tuple(
        dataclasses.replace(each, class_name=chosen.get(spelling_key(each.class_name), each.class_name))
        for each in arranged.duplicates
    )
    return dataclasses.replace(arranged, sprites=merge_spellings(arranged.sprites, chosen), duplicates=duplicates)


def exclusion_filter(names: str) -> Callable[[str], bool]:
    """Return a predicate for sprite names listed in `names`, a text like ImportOptions.leave_out."""
    patterns = _patterns(names)
    plain = {pattern for pattern in patterns if not set(pattern) & set("*?[")}
    others = "|".join(translate(pattern) for pattern in patterns if pattern not in plain)
    matches = re.compile(others).fullmatch if others else (lambda name: None)
    return lambda name: name in plain or matches(name) is not None


def unmatched_patterns(names: str, sprites: Iterable[str]) -> list[str]:
    """Return the entries of `names`, a text like ImportOptions.leave_out, without a match in `sprites`."""
    known = list(sprites)
    plain = set(known)
    typed = [pattern for pattern in _patterns(names) if re.sub(r"\[(.)\]", r"\1", pattern) not in plain]
    return [pattern for pattern in typed if not any(map(exclusion_filter(pattern), known))]


def _patterns(names: str) -> list[str]:
    return [pattern.strip() for pattern in nfc(names).split(_SEPARATOR) if pattern.strip()]


def as_patterns(chosen: list[str]) -> str:
    """Names as ImportOptions.leave_out lists them: letters that would stand for others are put into brackets."""
    return _SEPARATOR.join(re.sub(r"[*?\[;]", _bracketed, name) for name in chosen)


def _bracketed(letter: re.Match[str]) -> str:
    return "?" if letter[0] == _SEPARATOR else f"[{letter[0]}]"


def threshold_alpha(rgba: Rgba, threshold: int) -> Rgba:
    """Pixels of uint8 [..., 4] with at least this alpha, 1 to 255, made solid, all others clear: the same shape."""
    result = rgba.copy()
    result[..., 3] = np.where(rgba[..., 3] >= threshold, 255, 0)
    clear_hidden(result)
    return result


def _repainted(sprites: Sprites, options: ImportOptions, folder: Path | None) -> Generator[Event, None, Sprites]:
    rgba = sprites.rgba
    if options.alpha_threshold:
        rgba = yield from _changed(rgba, partial(threshold_alpha, threshold=options.alpha_threshold), folder)
    if options.merge_colours:
        change = yield from near_colour_merger(rgba, options.merge_colours)
        rgba = yield from _changed(rgba, change, folder)
    for change_for in (_in_main_colours, _in_palette, _each_in_few_colours):
        rgba = yield from _changed(rgba, change_for(rgba, options), folder)
    return sprites if rgba is sprites.rgba else dataclasses.replace(sprites, rgba=rgba, stored=None)


def _changed(rgba: Rgba, change: _Change | None, folder: Path | None) -> Generator[Event, None, Rgba]:
    """All sprites as `change` makes them, or as they are without one."""
    if change is None:
        return rgba
    with contextlib.closing(ScratchBuffer(folder)) as result:
        for part in sprite_slices(rgba, pixels=_AT_ONCE):
            result.add(change(rgba[part]))
            yield Progress(part.stop, len(rgba), "sprites mended")
        return result.array().reshape(rgba.shape)


def near_colour_merger(rgba: Rgba, distance: float) -> Generator[Event, None, _Change]:
    """Returns what makes one of the near colours of these sprites; of very large sets rare colours stay.

    distance: as in `merge_near_colours`.
    """
    colours, counts = extract_palette(_some_opaque(rgba), _EVERY_COLOUR)
    becomes = yield from merge_near_colours(colours[:, :3], counts, distance)
    before = as_uint32(colours)
    order = before.argsort()
    known, instead = before[order], before[becomes][order]

    def change(part: Rgba) -> Rgba:
        pixels = as_uint32(part)
        places = np.searchsorted(known, pixels | OPAQUE).clip(max=len(known) - 1)
        found = (known[places] == (pixels | OPAQUE)) & (part[..., 3] > 0)
        result = np.where(found, (instead[places] & ~OPAQUE) | (pixels & OPAQUE), pixels)
        return as_rgba(result)

    return change if len(known) else lambda part: part


def _in_main_colours(rgba: Rgba, options: ImportOptions) -> _Change | None:
    count = options.colours_all
    if not count:
        return None
    some = _some_opaque(rgba)
    colours, pixels = extract_palette(some, MOST_COLOURS)
    own = pixels[:count].sum() >= _OWN_PALETTE * pixels.sum()
    return _snapping(colours[:count] if own else dominant_colours(some, count)) if len(colours) else None


def _in_palette(rgba: Rgba, options: ImportOptions) -> _Change | None:
    if not options.palette:
        return None
    palette = load_palette(Path(options.palette))
    return lambda part: map_to_palette(part, palette)


def _each_in_few_colours(rgba: Rgba, options: ImportOptions) -> _Change | None:
    count = options.colours_each
    if not count:
        return None

    def change(part: Rgba) -> Rgba:
        result = part.copy()
        for index in np.flatnonzero(colours_per_sprite(part) > count):
            one = part[index : index + 1]
            result[index] = _snapping(dominant_colours(_opaque(one), count))(one)[0]
        return result

    return change


def _some_opaque(rgba: Rgba) -> Rgba:
    """What can be seen made solid, of so many sprites as `extract_palette` looks at: a copy of all might not fit."""
    return _opaque(rgba[:: sampling_step(rgba)])


def _opaque(rgba: Rgba) -> Rgba:
    """What can be seen made solid."""
    result = rgba.copy()
    result[..., 3] = np.where(rgba[..., 3] > 0, 255, 0)
    return result


def _snapping(colours: Rgba) -> _Change:
    palette = Palette(colours)
    return lambda part: map_to_palette(part, palette)


def _different(before: Rgba, after: Rgba) -> NDArray[np.int64]:
    """How many pixels of each sprite are other ones: int64 [N]."""
    if before is after:
        return np.zeros(len(before), np.int64)
    changed = np.empty(len(before), np.int64)
    for part in sprite_slices(before):
        changed[part] = np.count_nonzero(as_uint32(before[part]) != as_uint32(after[part]), axis=(1, 2))
    return changed


class _Selection:
    """Which sprites are kept, and why the others are not."""

    def __init__(self, sprites: Sprites) -> None:
        self._all = sprites
        self._kept = np.ones(len(sprites), np.bool_)
        self.left_out: list[ImportIssue] = []

    def leave_out_named(self, names: str) -> None:
        if names:
            named = exclusion_filter(names)
            for index, name in enumerate(self._all.names):
                if named(name):
                    self._drop(index, "chosen", EXCLUDED_BY_NAME)

    def leave_out_empty_and_equal(self, *, keep_equal: bool) -> None:
        """Leave out sprites made empty by mending and, unless `keep_equal`, sprites made equal to an earlier sprite."""
        first: dict[bytes, int] = {}
        for index in np.flatnonzero(self._kept).tolist():
            pixels = self._all.rgba[index]
            if not pixels[..., 3].any():
                self._drop(index, "empty", "nothing to see once its faint pixels are clear")
                continue
            earlier = first.setdefault(hashlib.blake2b(pixels, digest_size=16).digest(), index)
            if earlier != index and not keep_equal:
                self._drop(index, "duplicate", f"the same pixels as {self._all.names[earlier]} once both are mended")

    def leave_out_similar(self) -> Generator[Event, None, None]:
        """Those that are like an earlier one which stays: of a chain, the next but one may be unlike the first."""
        indices = np.flatnonzero(self._kept)
        similar = yield from find_similar(self._all.rgba[indices])
        pairs = zip(indices[similar.first].tolist(), indices[similar.second].tolist(), strict=True)
        for number, (first, second) in enumerate(pairs):
            if self._kept[first] and self._kept[second]:
                self._drop(second, "similar", similar.words(number, self._all.names[first]))

    def leave_out_small_classes(self, minimum: int) -> None:
        counts = np.bincount(self._all.labels[self._kept], minlength=len(self._all.class_names))
        for index in np.flatnonzero(self._kept & (counts[self._all.labels] < minimum)).tolist():
            label = self._all.labels[index]
            self._drop(index, "small class", too_few(self._all.class_names[label], int(counts[label])))

    def sprites(self) -> Sprites:
        """Those that are kept, in classes that none of them is without."""
        kept = self._all.take(np.flatnonzero(self._kept))
        used, labels = np.unique(kept.labels, return_inverse=True)
        names = tuple(kept.class_names[label] for label in used)
        return dataclasses.replace(kept, labels=labels.astype(np.int64), class_names=names)

    def _drop(self, index: int, group: str, reason: str) -> None:
        self._kept[index] = False
        self.left_out.append(ImportIssue(self._all.names[index], reason, group))
