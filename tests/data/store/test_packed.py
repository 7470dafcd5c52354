"""Sprites in one file: whole, or refused."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.core.generators import run_to_end
from studio.data.attributes.attributes import Attributes
from studio.data.files import scratch
from studio.data.sets.layout import NO_SETS, SetLayout
from studio.data.sprites import Sprites
from studio.data.store import packed as packed_module
from studio.data.store.packed import link_or_save, load, load_in_slices, map_saved, save, save_in_slices
from tests.data.making import sprite


@pytest.fixture
def sprites() -> Sprites:
    rgba = np.stack([sprite(number) for number in range(5)])
    names = ("a.png", "ü/剣 🗡.png", "caf\udce9.png", '"quoted"\n.png', "")
    targets = np.array([[1, np.nan], [2, -5e20], [0.1, 0], [np.nan, np.nan], [7, 8]], np.float32)
    labels, groups = np.array([0, 1, 2, 0, 1]), np.array([0, 0, 2, 3, 2])
    classes = ("x", "item/potion", "empty")
    return Sprites(rgba, labels, classes, names, "the set", targets, ("price", "größe"), groups=groups)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.safetensors"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as too large for memory."""
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", 1000)


def assert_refused(path: Path, words: str = "damaged") -> None:
    with pytest.raises(BadInputError, match=words):
        load(path)


def test_sprites_survive_saving(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_module, "_A_LINE", 2)
    extra = {"notes": [["ü", 1]], "empty": [], "nothing": None, "many": [1, 2, 3]}
    plain = dataclasses.replace(sprites, targets=np.zeros((5, 0), np.float32), target_names=())
    view = dataclasses.replace(plain, rgba=sprites.rgba[:, ::-1, ::-1], labels=sprites.labels[::-1])
    marked = dataclasses.replace(sprites, is_test=np.array([0, 1, 0, 0, 1], np.bool_))
    for kept in (sprites, plain, view, marked, sprites.take([])):
        save(kept, path, extra)
        again, found = run_to_end(load_in_slices(path))
        assert found == extra and (again.fingerprint, again.size) == (kept.fingerprint, 8)
        for name in ("names", "class_names", "title", "target_names"):
            assert getattr(again, name) == getattr(kept, name)
        for array in ("rgba", "labels", "groups", "is_test"):
            assert np.array_equal(getattr(again, array), getattr(kept, array)) and getattr(again, array).flags.writeable
        assert np.array_equal(again.targets, kept.targets, equal_nan=True) and again.targets.flags.writeable
        assert list(path.parent.iterdir()) == [path]


def test_other_programs_can_read_it(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_module, "_A_LINE", 2)
    save(sprites, path)
    arrays = safetensors.numpy.load_file(path)
    assert (arrays["rgba"] == sprites.rgba).all() and (arrays["labels"] == sprites.labels).all()
    lines = [json.loads(line) for line in arrays["texts"].tobytes().splitlines()]
    assert [name for key, part in lines if key == "names" for name in part] == list(sprites.names)
    assert max(len(part) for key, part in lines if key == "names") == 2


@pytest.mark.usefixtures("large")
def test_large_files_are_mapped(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    again = load(path)
    assert (again.fingerprint, again.names) == (sprites.fingerprint, sprites.names)
    assert not again.rgba.flags.writeable and again.stored is not None
    raw = path.read_bytes()[again.stored.start :][: sprites.rgba.nbytes]
    assert again.stored.path == path and raw == sprites.rgba.tobytes()
    path.unlink()
    assert (again.rgba == sprites.rgba).all()  # stays until released
    assert again.take([1]).stored is None and again.take([1]).rgba.flags.writeable


@pytest.mark.usefixtures("large")
def test_large_files_are_hard_linked(sprites: Sprites, path: Path) -> None:
    save(sprites, path, {"some": "thing"})
    mapped, other = load(path), path.with_name("other.safetensors")
    list(link_or_save(mapped, other))
    assert other.samefile(path) and load(other).fingerprint == sprites.fingerprint
    moved = map_saved(mapped, other)
    assert moved.stored is not None and moved.stored.path == other and (moved.rgba == sprites.rgba).all()


@pytest.mark.usefixtures("large")
def test_copied_without_hard_links(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(sprites, path, {"some": "thing"})
    mapped, other = load(path), path.with_name("other.safetensors")
    save(sprites.take([0, 1]), path)  # a new file under this name: the mapped file is gone
    list(link_or_save(mapped, other))
    assert load(other).fingerprint == sprites.fingerprint
    moved = map_saved(mapped, other)
    other.unlink()
    save(mapped, path)

    def refused(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    list(link_or_save(load(path), other))
    assert not other.samefile(path) and load(other).fingerprint == moved.fingerprint == sprites.fingerprint


def test_saving_and_loading_can_be_cancelled(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.data.sprites._HASHED_BYTES", 1)
    monkeypatch.setattr("studio.data.store.packed._SLICE", 1)
    for slices in (1, 5, 7, 10, 11):
        work = save_in_slices(sprites.take(range(5)), path)
        for _ in zip(range(slices), work, strict=False):
            pass
        work.close()
        assert not list(path.parent.iterdir())
    assert list(save_in_slices(sprites.take(range(5)), path)) == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 5]
    assert list(load_in_slices(path)) == [1, 2, 3, 4, 5]


def test_missing_and_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        assert_refused(path, "Can't read")


def test_a_failed_save_leaves_the_old_file(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(sprites, path)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("studio.core.files.flush", full)
    with pytest.raises(OSError, match="No space"):
        save(sprites, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("in_memory", [1000, 1 << 20], ids=["mapped", "in memory"])
def test_cut_off_anywhere_and_every_flipped_bit_is_noticed(
    sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", in_memory)
    save(sprites, path)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for length in [*range(0, len(data), 13), len(data) - 1]:
        path.write_bytes(data[:length])
        assert_refused(path)
    for position in [*range(64), *rng.integers(64, 8 * len(data), 400)]:
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << int(position % 8)
        path.write_bytes(flipped)
        try:
            again = load(path)
        except BadInputError:
            continue
        assert (again.fingerprint, again.names) == (sprites.fingerprint, sprites.names)  # a blank that fills up a line


def test_inconsistent_headers(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    about: dict[str, list[dict[str, Any]]] = {
        "rgba": [{"shape": [5, 8, 8, 400]}, {"shape": [5, 4, 16, 4]}, {"data_offsets": [0, 10**15]}, {"dtype": "F64"}],
        "labels": [{"dtype": "F64"}],
        "groups": [{"shape": [0], "data_offsets": [0, 0]}, {"shape": [4], "data_offsets": [40, 72]}],
        "targets": [{"shape": [5, 3]}, {"shape": [10, 1]}, {"dtype": "I64"}],
        "texts": [{"shape": [3]}],
        "__metadata__": [{"sha256": "0" * 64}, {"format": "sprites 2"}, {"format": "sprites 4"}],
    }
    lies: list[Any] = [[], None, {"__metadata__": 7}, {"__metadata__": {"format": "sprites 3"}}]
    lies += [{**header, name: None} for name in about]
    lies += [{**header, name: {**header[name], **change}} for name, changes in about.items() for change in changes]
    for lie in lies:
        packed = json.dumps(lie).encode()
        path.write_bytes(len(packed).to_bytes(8, "little") + packed + body)
        assert_refused(path)
    for start in (0, 2**62, 10**8 + 1, length + 1):
        path.write_bytes(start.to_bytes(8, "little") + data[8:])
        assert_refused(path)


def test_inconsistent_texts_and_labels(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    arrays = safetensors.numpy.load_file(path)
    lines = arrays["texts"].tobytes().splitlines(keepends=True)
    with safetensors.safe_open(path, "numpy") as file:
        about = file.metadata()
    lies: list[tuple[dict[str, NDArray[Any]], str]] = [
        ({"labels": np.full(5, wrong, np.int64)}, "don't match") for wrong in (-1, 3)
    ]
    told = [b'["names", 7]', b'["title", 7]', b'["names", ["more"]]', b'["target_names", ["more"]]', b"7", b"[" * 10**5]
    for line in (b"[", *(text + b"\n" for text in told)):
        for texts in (b"".join([*lines, line]), b"".join([line, *lines[1:]])):
            lies.append(({"texts": np.frombuffer(texts, np.uint8)}, "damaged"))
    lies.append(({"texts": np.frombuffer(b"".join(lines).replace(b"price", b"prize"), np.uint8)}, "checksum"))
    for lie, said in lies:
        safetensors.numpy.save_file({**arrays, **lie}, path, about)
        assert_refused(path, said)


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for name in ("x.pkl", "x.npy", "x.safetensors"):
        path = tmp_path / name
        if name.endswith(".npy"):
            np.save(path, np.array([Canary(canary)], dtype=object), allow_pickle=True)
        else:
            path.write_bytes(pickle.dumps(Canary(canary)))
        assert_refused(path)
    assert not canary.exists()


def test_sets_are_saved_and_not_linked_to_others(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[0, -1], [4, 0]], np.int32)
    with_sets = dataclasses.replace(sprites, sets=SetLayout(("down", "up"), ("orc", "elf"), table, "csv", chosen=True))
    save(with_sets, path)
    assert load(path).sets.digest == with_sets.sets.digest and load(path).fingerprint == sprites.fingerprint
    monkeypatch.setattr(scratch, "MEMORY_LIMIT", 0)
    mapped = load(path)
    for sets, links in ((mapped.sets, 2), (NO_SETS, 1)):
        other = path.with_name(f"{links}.safetensors")
        run_to_end(link_or_save(dataclasses.replace(mapped, sets=sets), other))
        assert other.stat().st_nlink == links and load(other).sets.digest == sets.digest
    wrong = dataclasses.replace(with_sets.sets, kind="")
    monkeypatch.setattr(SetLayout, "to_json", lambda layout: {"cells": 1})
    save(dataclasses.replace(sprites, sets=wrong), path)
    with pytest.raises(BadInputError, match="damaged"):
        load(path)


def test_attributes_are_saved(sprites: Sprites, path: Path) -> None:
    table = np.array([[0, 1], [1, -1], [-1, 0], [0, 0], [1, 1]], np.int16)
    attributes = Attributes(("element", "größe"), (("fire", "ice"), ("big", "small")), table)
    with_attributes = dataclasses.replace(sprites, attributes=attributes)
    assert with_attributes.fingerprint != sprites.fingerprint
    save(with_attributes, path)
    found = load(path)
    assert found.attributes.to_json() == attributes.to_json() and (found.attributes.table == table).all()
    assert found.fingerprint == with_attributes.fingerprint
    path.write_bytes(path.read_bytes().replace(b'"attributes.element", ["fire"', b'"attributes.element", ["FIRE"'))
    assert_refused(path, "wrong checksum")
