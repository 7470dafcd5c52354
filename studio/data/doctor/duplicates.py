"""Replace excluded sprites by their duplicates: sprites with the same pixels under another name or class."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from studio.data.files.source_files import ImportIssue
from studio.data.import_result import Duplicate, ImportResult, duplicate_reason, small_class_reason
from studio.data.sprites import Sprites

EXCLUDED_BY_NAME = "excluded by name"
_OF_PIXELS = ("soft alpha", "upscaled", "smooth", "odd shape")  # notes about pixels: valid for every duplicate


def swap_excluded(imported: ImportResult, is_excluded: Callable[[str], bool]) -> ImportResult:
    """Replace every sprite with an excluded name by its first duplicate whose name is not excluded."""

    def why_not(name: str, class_name: str) -> ImportIssue | None:
        return ImportIssue(name, EXCLUDED_BY_NAME, "chosen") if is_excluded(name) else None

    return _with_duplicates(imported, why_not)


def clear_excluded_cells(imported: ImportResult, is_excluded: Callable[[str], bool]) -> ImportResult:
    """Empty the cells of sets whose sprite, or left-out duplicate, has an excluded name."""
    sprites = imported.sprites
    if not sprites.sets:
        return imported
    of_duplicates = {each.place: each.item.name for each in imported.duplicates if each.place is not None}
    table = sprites.sets.table
    names = {(row, column): sprites.names[table[row, column]] for row, column in np.argwhere(table >= 0).tolist()}
    excluded = [at for at, name in (names | of_duplicates).items() if is_excluded(name)]
    return dataclasses.replace(imported, sprites=dataclasses.replace(sprites, sets=sprites.sets.without(excluded)))


def swap_small_classes(imported: ImportResult, minimum: int, is_excluded: Callable[[str], bool]) -> ImportResult:
    """Replace sprites in classes below `minimum` sprites with their first duplicate in a larger class."""
    classes, labels = imported.sprites.class_names, imported.sprites.labels.tolist()
    pairs = zip(imported.sprites.names, labels, strict=True)
    counts = Counter(classes[label] for name, label in pairs if not is_excluded(name))

    def why_not(name: str, class_name: str) -> ImportIssue | None:
        if is_excluded(name) or counts[class_name] < minimum:
            return ImportIssue(name, small_class_reason(class_name, counts[class_name]), "small class")
        return None

    return _with_duplicates(imported, why_not)


def _with_duplicates(imported: ImportResult, why_not: Callable[[str, str], ImportIssue | None]) -> ImportResult:
    """Replace unwanted sprites with their first wanted duplicate. why_not(name, class): a reason, or None."""
    names, classes = imported.sprites.names, imported.sprites.class_names
    labels = imported.sprites.labels.tolist()
    substitutes: dict[int, Duplicate] = {}
    excluded: list[ImportIssue] = []
    for duplicate in imported.duplicates:
        reason = why_not(names[duplicate.first], classes[labels[duplicate.first]])
        if reason and duplicate.first not in substitutes and not why_not(duplicate.item.name, duplicate.class_name):
            substitutes[duplicate.first] = duplicate
            excluded.append(reason)
    if not substitutes:
        return imported
    quarantine = [*_quarantine(imported, substitutes), *excluded]
    notes = _notes(imported, {names[index]: duplicate for index, duplicate in substitutes.items()})
    return dataclasses.replace(
        imported,
        sprites=_with_substitutes(imported.sprites, substitutes),
        quarantine=tuple(sorted(quarantine, key=lambda item: item.name)),
        notes=tuple(sorted(notes, key=lambda item: item.name)),
    )


def _with_substitutes(sprites: Sprites, substitutes: Mapping[int, Duplicate]) -> Sprites:
    """Give sprites the names, classes and numbers of their duplicates, by index; remove empty classes."""
    names, labels, targets = list(sprites.names), sprites.labels.copy(), sprites.targets.copy()
    label_of = {name: label for label, name in enumerate(sprites.class_names)}
    for index, duplicate in substitutes.items():
        names[index], targets[index] = duplicate.item.name, duplicate.numbers
        labels[index] = label_of.setdefault(duplicate.class_name, len(label_of))
    known = list(label_of)
    used = sorted(np.unique(labels).tolist(), key=known.__getitem__)
    rank = np.zeros(len(known), np.int64)
    rank[used] = np.arange(len(used))
    class_names = tuple(known[label] for label in used)
    new_labels, new_names = rank[labels], tuple(names)
    return dataclasses.replace(sprites, labels=new_labels, class_names=class_names, names=new_names, targets=targets)


def _quarantine(imported: ImportResult, substitutes: Mapping[int, Duplicate]) -> Iterator[ImportIssue]:
    """Yield the import's issues about excluded sprites, updated for replaced sprites.

    substitutes: duplicate that replaces a sprite, by the sprite's index. Other duplicates of the sprite become
    duplicates of the substitute; the substitute's own issue is dropped.
    """
    replaced = [one for one in imported.duplicates if one.first in substitutes]
    duplicates = {(one.item.name, one.item.group): one for one in replaced}
    for item in imported.quarantine:
        duplicate = duplicates.get((item.name, item.group))
        if duplicate is None:
            yield item
            continue
        kept = substitutes[duplicate.first]
        if duplicate is not kept:
            differ = not np.array_equal(kept.numbers, duplicate.numbers, equal_nan=True)
            reason = duplicate_reason(kept.item.name, (kept.class_name, duplicate.class_name), numbers_differ=differ)
            yield dataclasses.replace(item, reason=reason)


def _notes(imported: ImportResult, substitutes: Mapping[str, Duplicate]) -> Iterator[ImportIssue]:
    """Yield the import's notes. substitutes: duplicates by the name of the replaced sprite; they keep pixel notes."""
    for note in imported.notes:
        duplicate = substitutes.get(note.name)
        if duplicate is None:
            yield note
        elif note.group in _OF_PIXELS:
            yield dataclasses.replace(note, name=duplicate.item.name, path=duplicate.item.path)
