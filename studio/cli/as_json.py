"""Events as JSON: one object a line, with the event's class under 'type' and its fields beside it."""

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
from studio.data.sprites import Sprites


def line(item: Event | Mapping[str, Any]) -> str:
    """One line of JSON. Pixels are summarised, paths are texts, and what is not a finite number is null."""
    values = plain(item)
    if isinstance(item, Event):
        values = {"type": item.json_type or type(item).__name__, **values}
    return json.dumps(values, ensure_ascii=True, allow_nan=False)


def plain(value: Any) -> Any:
    """`value` as what JSON knows."""
    if isinstance(value, Sprites):
        return _described(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.to_builtins(value))
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
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
    """Numbers as lists, float32 as short as it is; pixels by their shape alone."""
    if values.dtype == np.uint8:
        return {"shape": list(values.shape)}
    if values.dtype == np.float32:
        return plain([float(f"{value:.7g}") for value in values.ravel()]) if values.ndim == 1 else plain(list(values))
    return plain(values.tolist())


def _described(sprites: Sprites) -> dict[str, Any]:
    counts = sprites.class_counts().tolist()
    numbers = (~np.isnan(sprites.targets)).sum(0).tolist()
    return {
        "title": sprites.title,
        "count": len(sprites),
        "size": sprites.size,
        "classes": dict(zip(sprites.class_names, counts, strict=True)),
        "numbers": dict(zip(sprites.target_names, numbers, strict=True)),
        "fingerprint": sprites.fingerprint,
    }


def _key(key: Any) -> str:
    return "x".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
