"""Sprites with the same pixels, of which one is kept: where that one is not wanted, another takes its place."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from studio.data.arranging import Arranged, Twin, same_as, too_few
from studio.data.options import Quarantined
from studio.data.sprites import Sprites

BY_NAME = "left out by name, as asked for"
_OF_PIXELS = ("soft alpha", "upscaled", "smooth", "odd shape")  # notes that hold for every twin


def in_place_of_named(arranged: Arranged, is_out: Callable[[str], bool]) -> Arranged:
    """The same with the first twin that is not out by its name in the place of each sprite that is."""

    def why_not(name: str, class_name: str) -> Quarantined | None:
        return Quarantined(name, BY_NAME, "chosen") if is_out(name) else None

    return _with_twins(arranged, why_not)


def in_place_of_few(arranged: Arranged, minimum: int, is_out: Callable[[str], bool]) -> Arranged:
    """The same with a twin of a larger class, not out by its name, for each sprite of a class of fewer than this."""
    classes, labels = arranged.sprites.class_names, arranged.sprites.labels.tolist()
    pairs = zip(arranged.sprites.names, labels, strict=True)
    counts = Counter(classes[label] for name, label in pairs if not is_out(name))

    def why_not(name: str, class_name: str) -> Quarantined | None:
        if is_out(name) or counts[class_name] < minimum:
            return Quarantined(name, too_few(class_name, counts[class_name]), "small class")
        return None

    return _with_twins(arranged, why_not)


def _with_twins(arranged: Arranged, why_not: Callable[[str, str], Quarantined | None]) -> Arranged:
    """The same with the first twin that is wanted in the place of each sprite that is not.

    why_not: of a sprite's name and class; None for one that is wanted.
    """
    names, classes = arranged.sprites.names, arranged.sprites.class_names
    labels = arranged.sprites.labels.tolist()
    instead: dict[int, Twin] = {}
    left_out: list[Quarantined] = []
    for twin in arranged.twins:
        reason = why_not(names[twin.first], classes[labels[twin.first]])
        if reason and twin.first not in instead and not why_not(twin.item.name, twin.class_name):
            instead[twin.first] = twin
            left_out.append(reason)
    if not instead:
        return arranged
    quarantine = [*_quarantine(arranged, instead), *left_out]
    notes = _notes(arranged, {names[index]: twin for index, twin in instead.items()})
    return dataclasses.replace(
        arranged,
        sprites=_exchanged(arranged.sprites, instead),
        quarantine=tuple(sorted(quarantine, key=lambda item: item.name)),
        notes=tuple(sorted(notes, key=lambda item: item.name)),
    )


def _exchanged(sprites: Sprites, instead: Mapping[int, Twin]) -> Sprites:
    """The same pixels under the twins' names, with their classes and numbers; no class is without a sprite."""
    names, labels, targets = list(sprites.names), sprites.labels.copy(), sprites.targets.copy()
    label_of = {name: label for label, name in enumerate(sprites.class_names)}
    for index, twin in instead.items():
        names[index], targets[index] = twin.item.name, twin.numbers
        labels[index] = label_of.setdefault(twin.class_name, len(label_of))
    known = list(label_of)
    used = sorted(np.unique(labels).tolist(), key=known.__getitem__)
    rank = np.zeros(len(known), np.int64)
    rank[used] = np.arange(len(used))
    class_names = tuple(known[label] for label in used)
    return dataclasses.replace(
        sprites, labels=rank[labels], class_names=class_names, names=tuple(names), targets=targets
    )


def _quarantine(arranged: Arranged, instead: Mapping[int, Twin]) -> Iterator[Quarantined]:
    """What stays left out: the twins of one that takes a place are now its own."""
    twins = {(twin.item.name, twin.item.group): twin for twin in arranged.twins if twin.first in instead}
    for item in arranged.quarantine:
        twin = twins.get((item.name, item.group))
        if twin is None:
            yield item
            continue
        kept = instead[twin.first]
        if twin is not kept:
            differ = not np.array_equal(kept.numbers, twin.numbers, equal_nan=True)
            reason = same_as(kept.item.name, (kept.class_name, twin.class_name), numbers_differ=differ)
            yield dataclasses.replace(item, reason=reason)


def _notes(arranged: Arranged, instead: Mapping[str, Twin]) -> Iterator[Quarantined]:
    """What is said of the pixels is said of the twin; what is said of a file that is left out is not said any more."""
    for note in arranged.notes:
        twin = instead.get(note.name)
        if twin is None:
            yield note
        elif note.group in _OF_PIXELS:
            yield dataclasses.replace(note, name=twin.item.name, path=twin.item.path)
