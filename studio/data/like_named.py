"""Find classes whose names differ only in case or in blanks, and merge them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from studio.data.sprites import Sprites


def like_named(class_names: Sequence[str]) -> list[list[int]]:
    """Return the indices of classes whose names differ only in case or in blanks around their parts, by group."""
    groups: dict[str, list[int]] = {}
    for index, name in enumerate(class_names):
        groups.setdefault(key_of(name), []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def key_of(class_name: str) -> str:
    """Return a text that like-named classes share."""
    return _without_blanks(class_name.casefold())


def spellings(sprites: Sprites) -> Mapping[str, str]:
    """Return for the key of each group of like-named classes the spelling of its largest class, without blanks."""
    counts, names = sprites.class_counts(), sprites.class_names
    largest = [max(group, key=lambda index: counts[index]) for group in like_named(names)]
    return {key_of(names[index]): _without_blanks(names[index]) or names[index] for index in largest}


def merged(sprites: Sprites, chosen: Mapping[str, str]) -> Sprites:
    """Return the same sprites with like-named classes merged. chosen: as `spellings` gives them."""
    renamed = [chosen.get(key_of(name), name) for name in sprites.class_names]
    class_names = tuple(sorted(set(renamed)))
    new: NDArray[np.int64] = np.array([class_names.index(name) for name in renamed], np.int64)
    return dataclasses.replace(sprites, labels=new[sprites.labels], class_names=class_names)


def _without_blanks(class_name: str) -> str:
    return "/".join(part.strip() for part in class_name.split("/"))
