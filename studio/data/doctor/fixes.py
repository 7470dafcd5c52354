"""Apply import options to sprites after reading: change pixels, exclude sprites, merge classes. No file changes."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Generator, Iterable, Set
from fnmatch import translate
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.core.names import nfc
from studio.core.pictures import pixel_digest
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.colour.palette import MOST_COLOURS, Palette, dominant_colours, extract_palette, sampling_step
from studio.data.colour.quantizing import map_to_palette, merge_near_colours
from studio.data.doctor.class_spelling import merge_spellings, preferred_spellings, spelling_key
from studio.data.doctor.duplicates import EXCLUDED_BY_NAME, clear_excluded_cells, swap_excluded, swap_small_classes
from studio.data.files.scratch import ScratchBuffer
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32, clear_hidden, sprite_slices
from studio.data.import_result import ImportResult, small_class_reason
from studio.data.options import ImportOptions
from studio.data.palettes.files import load_palette
from studio.data.sets.layout import GAP
from studio.data.similarity.near_duplicates import find_similar
from studio.data.sprites import Sprites

_BATCH_PIXELS = 1 << 18  # pixels
_OWN_PALETTE = 0.98  # the most used colours form a palette if this share of pixels has them
_SEPARATOR = ";"
_WILDCARDS = set("*?[")
_EVERY_COLOUR = 1 << 20  # no limit in practice

# Options that change pixels after reading, in the order of application.
PIXEL_OPTIONS = ("alpha_threshold", "merge_colours", "colours_all", "palette", "colours_each")

PixelChange = Callable[[Rgba], Rgba]  # uint8 [N, S, S, 4] -> the same shape


def apply_fixes(
    imported: ImportResult, options: ImportOptions, folder: Path | None
) -> Generator[Event, None, ImportResult]:
    """Apply `options` to an import; return the changed import, with a reason for each excluded sprite.

    Yields Progress. Returns `imported` itself without changes. Large sets go to a scratch file in `folder`. Raises
    BadInputError for an unusable palette, and OSError if the disk is full.
    """
    is_excluded = exclusion_filter(options.leave_out)
    if options.merge_classes:
        imported = _with_merged_classes(imported)
    if options.leave_out:
        imported = swap_excluded(clear_excluded_cells(imported, is_excluded), is_excluded)
    if options.class_minimum > 1:
        imported = swap_small_classes(imported, options.class_minimum, is_excluded)
    sprites = yield from _change_pixels(imported.sprites, options, folder)
    changed = _count_changed(imported.sprites.rgba, sprites.rgba)
    selection = _Selection(sprites)
    selection.exclude_named(options.leave_out)
    if changed.any():
        selection.exclude_empty_and_equal(keep_equal=options.duplicates == "keep")
    if options.similar == "leave out":
        yield from selection.exclude_similar()
    selection.exclude_small_classes(options.class_minimum)
    if not changed.any() and not selection.left_out:
        return imported
    kept, rows = selection.sprites(), selection.rows()
    names, gone = set(kept.names), {item.name for item in selection.left_out}
    # After thresholding, notes about semi-transparent pixels are outdated.
    outdated = "soft alpha" if options.alpha_threshold else ""
    notes = [item for item in imported.notes if item.name not in gone and item.group != outdated]
    for index in np.flatnonzero(changed).tolist():
        if sprites.names[index] in names:
            words = formatting.count(int(changed[index]), "pixel")
            notes.append(ImportIssue(sprites.names[index], f"{words} changed", "mended"))
    quarantine = sorted([*imported.quarantine, *selection.left_out], key=lambda item: item.name)
    return dataclasses.replace(imported, sprites=kept, quarantine=tuple(quarantine), notes=tuple(notes), rows=rows)


def _with_merged_classes(imported: ImportResult) -> ImportResult:
    """Merge classes whose names differ only in case or spaces, in the sprites and duplicates of an import."""
    spellings = preferred_spellings(imported.sprites)
    if not spellings:
        return imported
    duplicates = tuple(
        dataclasses.replace(each, class_name=spellings.get(spelling_key(each.class_name), each.class_name))
        for each in imported.duplicates
    )
    return dataclasses.replace(imported, sprites=merge_spellings(imported.sprites, spellings), duplicates=duplicates)


def exclusion_filter(names: str) -> Callable[[str], bool]:
    """Return whether a sprite's name matches, as a function. names: patterns like 'item/old_*', separated by ';'."""
    patterns = _patterns(names)
    plain = {pattern for pattern in patterns if not set(pattern) & _WILDCARDS}
    others = "|".join(translate(pattern) for pattern in patterns if pattern not in plain)
    matches = re.compile(others).fullmatch if others else (lambda name: None)
    return lambda name: name in plain or matches(name) is not None


def unmatched_patterns(names: str, sprites: Iterable[str]) -> list[str]:
    """Return the patterns that match no sprite. names: patterns separated by ';'. sprites: names of all sprites."""
    known = list(sprites)
    plain = set(known)
    typed = [pattern for pattern in _patterns(names) if re.sub(r"\[(.)\]", r"\1", pattern) not in plain]
    return [pattern for pattern in typed if not any(map(exclusion_filter(pattern), known))]


def patterns_without(names: str, sprites: Set[str]) -> str:
    """Return the patterns without a match among these sprites. names and result: patterns separated by ';'."""
    others = [pattern for pattern in _patterns(names) if pattern not in sprites]
    wild = {pattern for pattern in others if set(pattern) & _WILDCARDS and any(map(exclusion_filter(pattern), sprites))}
    return _SEPARATOR.join(pattern for pattern in others if pattern not in wild)


def _patterns(names: str) -> list[str]:
    return [pattern.strip() for pattern in nfc(names).split(_SEPARATOR) if pattern.strip()]


def as_patterns(names: list[str]) -> str:
    """Join sprite names to a text of patterns separated by ';', with wildcard characters in brackets."""
    bracketed = (re.sub(r"[*?\[]", r"[\g<0>]", name) for name in names)
    return _SEPARATOR.join(name.replace(_SEPARATOR, "?") for name in bracketed)


def threshold_alpha(rgba: Rgba, threshold: int) -> Rgba:
    """Make pixels with alpha >= `threshold`, 1 to 255, opaque and others transparent: uint8 [..., 4]."""
    result = rgba.copy()
    result[..., 3] = np.where(rgba[..., 3] >= threshold, 255, 0)
    clear_hidden(result)
    return result


def pixel_changes(rgba: Rgba, options: ImportOptions) -> Generator[Event, None, list[PixelChange]]:
    """Return the functions that apply `options` to pixels, in order. Yields Progress.

    rgba: all sprites, uint8 [N, S, S, 4], to determine common colours.
    """
    changes: list[PixelChange] = []
    for name in _active(options):
        if changes:
            rgba = yield from change_sprites(rgba, changes[-1], None)
        changes.append((yield from _change_for(name, rgba, options)))
    return changes


def _change_pixels(sprites: Sprites, options: ImportOptions, folder: Path | None) -> Generator[Event, None, Sprites]:
    """Return the sprites with their pixels changed by `options`."""
    rgba = sprites.rgba
    for name in _active(options):
        change = yield from _change_for(name, rgba, options)
        rgba = yield from change_sprites(rgba, change, folder)
    return sprites if rgba is sprites.rgba else dataclasses.replace(sprites, rgba=rgba, stored=None)


def _active(options: ImportOptions) -> list[str]:
    return [name for name in PIXEL_OPTIONS if getattr(options, name)]


def _change_for(name: str, rgba: Rgba, options: ImportOptions) -> Generator[Event, None, PixelChange]:
    """Return the function that applies the option `name` to pixels. rgba: all sprites after the earlier functions."""
    if name == "merge_colours":
        return (yield from near_colour_merger(rgba, options.merge_colours))
    if name == "alpha_threshold":
        return partial(threshold_alpha, threshold=options.alpha_threshold)
    if name == "palette":
        return partial(map_to_palette, palette=load_palette(Path(options.palette)))
    return _reducer_of_all(rgba, options.colours_all) if name == "colours_all" else _reducer_of_each(options)


def change_sprites(rgba: Rgba, change: PixelChange, folder: Path | None) -> Generator[Event, None, Rgba]:
    """Apply `change` to every sprite."""
    with contextlib.closing(ScratchBuffer(folder)) as result:
        for part in sprite_slices(rgba, pixels=_BATCH_PIXELS):
            result.add(change(rgba[part]))
            yield Progress(part.stop, len(rgba), "sprites changed")
        return result.array().reshape(rgba.shape)


def near_colour_merger(rgba: Rgba, distance: float) -> Generator[Event, None, PixelChange]:
    """Return a function that merges similar colours of sprites. Yields Progress.

    distance: largest distance of merged colours, in OKLab with toe. In very large sets, rare colours stay unmerged.
    """
    colours, counts = extract_palette(_some_opaque(rgba), _EVERY_COLOUR)
    becomes = yield from merge_near_colours(colours[:, :3], counts, distance)
    before = as_uint32(colours)
    order = before.argsort()
    known, merged = before[order], before[becomes][order]

    def change(part: Rgba) -> Rgba:
        pixels = as_uint32(part)
        indices = np.searchsorted(known, pixels | OPAQUE).clip(max=len(known) - 1)
        found = (known[indices] == (pixels | OPAQUE)) & (part[..., 3] > 0)
        result = np.where(found, (merged[indices] & ~OPAQUE) | (pixels & OPAQUE), pixels)
        return as_rgba(result)

    return change if len(known) else lambda part: part


def _reducer_of_all(rgba: Rgba, count: int) -> PixelChange:
    """Return a function that maps all sprites to the `count` dominant colours of the set."""
    some = _some_opaque(rgba)
    colours, pixels = extract_palette(some, MOST_COLOURS)
    own = colours[:count]
    if pixels[: len(own)].sum() < _OWN_PALETTE * pixels.sum():
        own = dominant_colours(some, count)
    return _mapper(own) if len(colours) else lambda part: part


def _reducer_of_each(options: ImportOptions) -> PixelChange:
    """Return a function that limits each sprite to its own dominant colours."""
    count = options.colours_each

    def change(part: Rgba) -> Rgba:
        result = part.copy()
        for index in np.flatnonzero(colours_per_sprite(part) > count):
            one = part[index : index + 1]
            result[index] = _mapper(dominant_colours(threshold_alpha(one, 1), count))(one)[0]
        return result

    return change


def _some_opaque(rgba: Rgba) -> Rgba:
    """Return an even sample of the sprites with visible pixels made opaque, small enough for `extract_palette`."""
    return threshold_alpha(rgba[:: sampling_step(rgba)], 1)


def _mapper(colours: Rgba) -> PixelChange:
    return partial(map_to_palette, palette=Palette(colours))


def _count_changed(before: Rgba, after: Rgba) -> NDArray[np.int64]:
    """Count the changed pixels in each sprite: int64 [N]."""
    if before is after:
        return np.zeros(len(before), np.int64)
    changed = np.empty(len(before), np.int64)
    for part in sprite_slices(before):
        changed[part] = np.count_nonzero(as_uint32(before[part]) != as_uint32(after[part]), axis=(1, 2))
    return changed


class _Selection:
    """Selects sprites to keep, and collects the reason for each excluded sprite in `left_out`."""

    def __init__(self, sprites: Sprites) -> None:
        self._all = sprites
        self._kept = np.ones(len(sprites), np.bool_)
        self._equal = np.arange(len(sprites))  # an earlier sprite with the same pixels, or the sprite itself
        self.left_out: list[ImportIssue] = []

    def exclude_named(self, names: str) -> None:
        if names:
            named = exclusion_filter(names)
            for index, name in enumerate(self._all.names):
                if named(name):
                    self._drop(index, "chosen", EXCLUDED_BY_NAME)

    def exclude_empty_and_equal(self, *, keep_equal: bool) -> None:
        """Exclude empty sprites and, unless `keep_equal`, sprites with the same pixels as an earlier sprite."""
        first: dict[bytes, int] = {}
        for index in np.flatnonzero(self._kept).tolist():
            pixels = self._all.rgba[index]
            if not pixels[..., 3].any():
                self._drop(index, "empty", "fully transparent after the alpha threshold")
                continue
            earlier = first.setdefault(pixel_digest(pixels), index)
            if earlier != index and not keep_equal:
                self._equal[index] = earlier
                self._drop(index, "duplicate", f"the same pixels as {self._all.names[earlier]} after the changes")

    def exclude_similar(self) -> Generator[Event, None, None]:
        """Exclude sprites similar to an earlier kept sprite, except cells of chosen sets. Yields Progress."""
        indices = np.flatnonzero(self._kept)
        sets = self._all.sets
        of_sets = set(sets.table.ravel().tolist()) if sets.chosen else set()
        similar = yield from find_similar(self._all.rgba[indices])
        pairs = zip(indices[similar.first].tolist(), indices[similar.second].tolist(), strict=True)
        for number, (first, second) in enumerate(pairs):
            if self._kept[first] and self._kept[second] and second not in of_sets:
                self._drop(second, "similar", similar.describe(number, self._all.names[first]))

    def exclude_small_classes(self, minimum: int) -> None:
        counts = np.bincount(self._all.labels[self._kept], minlength=len(self._all.class_names))
        for index in np.flatnonzero(self._kept & (counts[self._all.labels] < minimum)).tolist():
            label = self._all.labels[index]
            self._drop(index, "small class", small_class_reason(self._all.class_names[label], int(counts[label])))

    def rows(self) -> NDArray[np.int64]:
        """Return the kept sprites' indices."""
        return np.flatnonzero(self._kept)

    def sprites(self) -> Sprites:
        """Return the kept sprites, with empty classes removed."""
        every = dataclasses.replace(self._all, sets=self._all.sets.renumbered(np.append(self._equal, GAP)))
        kept = every.take(self.rows())
        used, labels = np.unique(kept.labels, return_inverse=True)
        names = tuple(kept.class_names[label] for label in used)
        return dataclasses.replace(kept, labels=labels.astype(np.int64), class_names=names)

    def _drop(self, index: int, group: str, reason: str) -> None:
        self._kept[index] = False
        self.left_out.append(ImportIssue(self._all.names[index], reason, group))
