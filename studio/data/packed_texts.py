"""The texts of a packed file: lines of JSON, each so short that reading one holds nobody up, a million names or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studio.data.sprites import Sprites

_A_LINE = 4096  # entries of a list
_PARTS = ("title", "class_names", "names")
_EXTRA = "extra."


class Damaged(Exception):  # noqa: N818
    """Why the bytes of a packed file are not what was written."""


@dataclass(frozen=True, eq=False)
class Texts:
    """What a packed file holds beside its arrays; `extra` is whatever was saved with the sprites."""

    title: str
    class_names: list[str]
    names: list[str]
    target_names: list[str]
    extra: dict[str, Any]


def lines_of(sprites: Sprites, extra: Mapping[str, Any]) -> Iterator[bytes]:
    """Every text as lines [key, value] of JSON; a list goes over as many lines as it needs."""
    texts: dict[str, Any] = {"title": sprites.title, "class_names": sprites.class_names, "names": sprites.names}
    texts["target_names"] = sprites.target_names
    for key, value in {**texts, **{_EXTRA + name: value for name, value in extra.items()}}.items():
        for piece in _pieces(value) if isinstance(value, list | tuple) else (value,):
            yield json.dumps([key, piece]).encode() + b"\n"


def texts_in(lines: bytes) -> Texts:
    """What `lines_of` gave. Raises Damaged."""
    found: dict[str, Any] = {}
    try:
        for line in lines.split(b"\n")[:-1]:
            key, value = json.loads(line)
            if isinstance(value, list) and isinstance(found.setdefault(key, []), list):
                found[key] += value
            else:
                found[key] = value
    except (ValueError, TypeError, RecursionError):
        raise Damaged("its names can't be read") from None
    extra = {key.removeprefix(_EXTRA): value for key, value in found.items() if key.startswith(_EXTRA)}
    return _checked([*(found.get(key) for key in (*_PARTS, "target_names")), extra])


def first_texts(about: Mapping[str, str]) -> tuple[Texts, bytes]:
    """The texts of a file of the first format, which are in its header, and what is hashed of them. Raises Damaged."""
    known = {key: about.get(key, "") for key in ("format", *_PARTS, "extra")}
    try:
        values = [json.loads(known[key]) for key in (*_PARTS, "extra")]
    except (ValueError, RecursionError):
        raise Damaged("its names can't be read") from None
    return _checked([*values[:-1], [], values[-1]]), json.dumps(sorted(known.items())).encode()


def _checked(values: list[Any]) -> Texts:
    title, class_names, names, target_names, extra = values
    all_texts = all(map(_all_texts, (class_names, names, target_names)))
    if not (isinstance(title, str) and all_texts and isinstance(extra, dict)):
        raise Damaged("its names are not texts")
    return Texts(title, class_names, names, target_names, extra)


def _pieces(values: list[Any] | tuple[Any, ...]) -> Iterator[list[Any] | tuple[Any, ...]]:
    """Parts that are short enough for a line; one that is empty where there is nothing."""
    return (values[start : start + _A_LINE] for start in range(0, max(1, len(values)), _A_LINE))


def _all_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
