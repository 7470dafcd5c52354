"""Sprites in one file: whole, or refused."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.data.packed import load, load_with_extra, save
from studio.data.sprites import Sprites
from tests.data.making import sprite


@pytest.fixture
def sprites() -> Sprites:
    rgba = np.stack([sprite(number) for number in range(5)])
    names = ("a.png", "ü/剣 🗡.png", "caf\udce9.png", '"quoted"\n.png', "")
    return Sprites(rgba, np.array([0, 1, 2, 0, 1]), ("x", "item/potion", "empty"), names, "the set")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.safetensors"


def test_there_and_back(sprites: Sprites, path: Path) -> None:
    save(sprites, path, {"notes": [["ü", 1]]})
    again, extra = load_with_extra(path)
    assert (again.rgba == sprites.rgba).all() and (again.labels == sprites.labels).all()
    assert (again.names, again.class_names, again.title) == (sprites.names, sprites.class_names, sprites.title)
    assert again.fingerprint == sprites.fingerprint and extra == {"notes": [["ü", 1]]}
    assert again.rgba.flags.writeable and again.labels.flags.writeable
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_numbers_there_and_back(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    assert b'"format":"sprites 1"' in path.read_bytes()[:2000].replace(b'": "', b'":"')  # earlier versions read it
    assert load(path).targets.shape == (5, 0) and load(path).target_names == ()
    targets = np.array([[1, np.nan], [2, -5e20], [0.1, 0], [np.nan, np.nan], [7, 8]], np.float32)
    told = dataclasses.replace(sprites, targets=targets, target_names=("price", "größe"))
    save(told, path)
    again = load(path)
    assert np.array_equal(again.targets, targets, equal_nan=True) and again.target_names == ("price", "größe")
    assert again.fingerprint == told.fingerprint != sprites.fingerprint and again.targets.flags.writeable
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    about, texts = header["targets"], header["__metadata__"]
    shorter = {key: text for key, text in texts.items() if key != "target_names"}
    for lie in (
        {**header, "targets": {**about, "shape": [5, 3]}},
        {**header, "targets": {**about, "shape": [10, 1]}},
        {**header, "targets": {**about, "dtype": "I64"}},
        {**header, "targets": None},
        {**header, "__metadata__": {**texts, "target_names": '["price"]'}},
        {**header, "__metadata__": {**texts, "target_names": '["price", 7]'}},
        {**header, "__metadata__": {**texts, "target_names": '["price", "size"]'}},
        {**header, "__metadata__": shorter},
        {**header, "__metadata__": {**texts, "format": "sprites 1"}},
        {**header, "__metadata__": {**texts, "format": "sprites 3"}},
    ):
        packed = json.dumps(lie).encode()
        path.write_bytes(len(packed).to_bytes(8, "little") + packed + data[8 + length :])
        with pytest.raises(BadInputError, match="damaged"):
            load(path)


def test_views_and_nothing_at_all(sprites: Sprites, path: Path) -> None:
    view = Sprites(sprites.rgba[:, ::-1, ::-1], sprites.labels[::-1], sprites.class_names, sprites.names, "t")
    save(view, path)
    assert (load(path).rgba == view.rgba).all() and (load(path).labels == view.labels).all()
    save(sprites.take([]), path)
    assert len(load(path)) == 0 and load(path).size == 8


def test_missing_and_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(BadInputError, match="can't be read"):
            load(path)


def test_a_failed_save_leaves_the_old_file(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(sprites, path)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(OSError, match="No space"):
        save(sprites, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_cut_off_anywhere(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    data = path.read_bytes()
    for length in [*range(0, len(data), 13), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(BadInputError):
            load(path)


def test_every_flipped_bit_is_noticed(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*range(64), *rng.integers(64, 8 * len(data), 400)]:
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << int(position % 8)
        path.write_bytes(flipped)
        try:
            again = load(path)
        except BadInputError:
            continue
        assert (again.fingerprint, again.names) == (sprites.fingerprint, sprites.names)  # a blank that fills up a line


def test_headers_that_lie(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    lies: list[Any] = [
        [],
        None,
        {"__metadata__": 7},
        {"__metadata__": {"format": "sprites 1"}},
        {**header, "rgba": {**header["rgba"], "shape": [5, 8, 8, 400]}},
        {**header, "rgba": {**header["rgba"], "data_offsets": [0, 10**15]}},
        {**header, "rgba": {**header["rgba"], "dtype": "F64"}},
        {**header, "rgba": {**header["rgba"], "shape": [5, 4, 16, 4]}},
        {**header, "labels": {**header["labels"], "dtype": "F64"}},
        {**header, "__metadata__": {**header["__metadata__"], "names": '["a"]'}},
        {**header, "__metadata__": {**header["__metadata__"], "names": "[1, 2, 3, 4, 5]"}},
        {**header, "__metadata__": {**header["__metadata__"], "class_names": '["x"]'}},
        {**header, "__metadata__": {**header["__metadata__"], "title": "7"}},
        {**header, "__metadata__": {**header["__metadata__"], "title": "[" * 100_000}},
        {**header, "__metadata__": {**header["__metadata__"], "format": "sprites 2"}},
        {**header, "__metadata__": {**header["__metadata__"], "sha256": "0" * 64}},
    ]
    for lie in lies:
        packed = json.dumps(lie).encode()
        path.write_bytes(len(packed).to_bytes(8, "little") + packed + data[8 + length :])
        with pytest.raises(BadInputError, match="damaged"):
            load(path)
    for start in (0, 2**62, 10**8 + 1, length + 1):
        path.write_bytes(start.to_bytes(8, "little") + data[8:])
        with pytest.raises(BadInputError):
            load(path)


def test_labels_out_of_range(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    metadata = json.loads(path.read_bytes()[8:].partition(b"\0")[0].decode("latin-1").split("}}")[0] + "}}")
    for wrong in (-1, 3):
        arrays: dict[str, NDArray[Any]] = {"rgba": sprites.rgba, "labels": np.full(5, wrong, np.int64)}
        safetensors.numpy.save_file(arrays, path, metadata["__metadata__"])
        with pytest.raises(BadInputError, match="don't match each other"):
            load(path)


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
        with pytest.raises(BadInputError):
            load(path)
    assert not canary.exists()
