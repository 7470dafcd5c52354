"""What goes to the processes that read, and comes back from them, is all there."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from studio.data.reading.found_files import Group, Row
from studio.data.reading.messages import (
    Groups,
    packed_group,
    packed_readings,
    receive,
    send,
    send_encoded,
    unpacked_readings,
)
from studio.data.reading.read import DecodedSprite, Reading
from studio.data.sheets.grids import Grid
from studio.data.sheets.recognising import Seen
from studio.data.sources.base import Entries, Entry, Remark


def values_of(one: Any) -> list[Any]:
    values = [getattr(one, field.name) for field in fields(one)]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


def test_no_field_is_lost_on_the_way() -> None:
    remarks = [Remark("mended", "made up", "one"), Remark("soft alpha", "lone \ud800 \udce9")]
    rgba = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    shape = DecodedSprite("one", ("in", "here"), "third", (3, 2), (2, 1), rgba, tuple(remarks), cut=True)
    unseen = DecodedSprite("", (), "", (900, 800), (700, 600), None, ())
    entries = Entries()
    entries.add("one.png", Entry(1, 2, 3, 4, 1 << 40))
    group = Group("/tmp/pack.zip", "pack.zip/in/", ("pack", "in"), "set", frozenset({"one.png"}), entries)
    row = Row(7, "one.png", 30, 1 << 60)
    groups, pipe = Groups(), io.BytesIO()
    for head in packed_group(7, group):
        send_encoded(pipe, head)
    seen = (Seen(Grid(12, 15, 1, 2, 3, 0.5), 21, 4.25, -1.5, strip=True), Seen(Grid(8, 8), 2, 0.0, 0.0))
    send(pipe, *packed_readings([Reading(group.made(row), [shape, unseen, shape], remarks, remarks[:1], seen)]))
    pipe.seek(0)
    groups.take(receive(pipe)[0])
    groups.take(receive(pipe)[0])
    (reading,) = unpacked_readings(*receive(pipe), [groups[7].made(row)])
    assert values_of(reading) == [group.made(row), reading.shapes, remarks, remarks[:1], seen]
    assert [values_of(came) for came in reading.shapes] == [values_of(one) for one in (shape, unseen, shape)]
    assert values_of(groups[7]) == values_of(group)
    with pytest.raises(EOFError):
        receive(pipe)
