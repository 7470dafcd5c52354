"""Write events as JSON lines: an object per line, with the event's class name as 'type'.

msgspec's encoder with enc_hook can't replace this module: msgspec writes UTF-8 instead of ASCII, and raises
UnicodeEncodeError for lone surrogates, which occur in file names outside UTF-8.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from studio.core.events import Event
from studio.data.attributes.attributes import Attributes
from studio.data.sprites import Sprites


def to_json_line(item: Event | Mapping[str, Any]) -> str:
    """Return an event or a mapping as a line of JSON. Images become shapes; NaN and infinity become null."""
    values = _to_plain(item)
    if isinstance(item, Event):
        values = {"type": item.json_type or type(item).__name__, **values}
    return json.dumps(values, ensure_ascii=True, allow_nan=False)


def _to_plain(value: Any) -> Any:
    """Convert a value to dicts, lists, strings and finite numbers."""
    if isinstance(value, Sprites):
        return _summary(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in dataclasses.fields(value) if field.metadata.get("json", True)]
        return {name: _to_plain(getattr(value, name)) for name in shown}
    if isinstance(value, msgspec.Struct):
        return _to_plain(msgspec.to_builtins(value))
    if isinstance(value, Mapping):
        return {_key(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_plain(item) for item in value]
    return _array(value) if isinstance(value, np.ndarray) else _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int | str):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def _array(values: np.ndarray[Any, Any]) -> Any:
    """Convert an array to nested lists (float32 with 7 digits), and uint8 pixels to the shape."""
    if values.dtype == np.uint8:
        return {"shape": list(values.shape)}
    if values.dtype == np.float32 and values.ndim == 1:
        return _to_plain([float(f"{value:.7g}") for value in values])
    return _to_plain(list(values) if values.dtype == np.float32 else values.tolist())


def _summary(sprites: Sprites) -> dict[str, Any]:
    """Return title, sizes and counts of sprites, without pixels."""
    counts = sprites.class_counts().tolist()
    numbers = (~np.isnan(sprites.targets)).sum(0).tolist()
    about = {"title": sprites.title, "count": len(sprites), "size": sprites.size}
    classes = dict(zip(sprites.class_names, counts, strict=True))
    named = dict(zip(sprites.target_names, numbers, strict=True))
    sets = {"sets": sprites.sets.summary()} if sprites.sets else {}
    attributes = {"attributes": _attribute_counts(sprites.attributes)} if sprites.attributes else {}
    return {**about, "classes": classes, "numbers": named, **attributes, **sets, "fingerprint": sprites.fingerprint}


def _attribute_counts(attributes: Attributes) -> dict[str, dict[str, int]]:
    """Return the number of sprites by attribute and value."""
    rows = zip(attributes.names, attributes.values, attributes.counts(), strict=True)
    return {name: dict(zip(values, counts.tolist(), strict=True)) for name, values, counts in rows}


def _key(key: Any) -> str:
    return "x".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
