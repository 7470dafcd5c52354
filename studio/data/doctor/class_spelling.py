"""Find and merge classes whose names differ only in case or in spaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from studio.data.sprites import Sprites


def spelling_groups(class_names: Sequence[str]) -> list[list[int]]:
    """Return groups of class indices whose class names differ only in case or spaces."""
    groups: dict[str, list[int]] = {}
    for index, name in enumerate(class_names):
        groups.setdefault(spelling_key(name), []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def spelling_key(class_name: str) -> str:
    """Return a key for comparing class names: equal keys for names that differ only in case or spaces."""
    return _strip_parts(class_name.casefold())


def preferred_spellings(sprites: Sprites) -> Mapping[str, str]:
    """Map every `spelling_key` to the name of the largest class among classes that differ only in case or spaces."""
    counts, names = sprites.class_counts(), sprites.class_names
    largest = [max(group, key=lambda index: counts[index]) for group in spelling_groups(names)]
    return {spelling_key(names[index]): _strip_parts(names[index]) or names[index] for index in largest}


def merge_spellings(sprites: Sprites, chosen: Mapping[str, str]) -> Sprites:
    """Merge classes whose names differ only in case or spaces. chosen: new names, from `preferred_spellings`."""
    renamed = [chosen.get(spelling_key(name), name) for name in sprites.class_names]
    class_names = tuple(sorted(set(renamed)))
    new: NDArray[np.int64] = np.array([class_names.index(name) for name in renamed], np.int64)
    return dataclasses.replace(sprites, labels=new[sprites.labels], class_names=class_names)


def _strip_parts(class_name: str) -> str:
    return "/".join(part.strip() for part in class_name.split("/"))
