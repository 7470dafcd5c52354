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
from studio.core.generators import returned
from studio.data import scratch
from studio.data.sprites import Sprites
from studio.data.store import packed as packed_module
from studio.data.store.packed import keeping, load, loading, reopened, save, saving
from tests.data.making import sprite


@pytest.fixture
def sprites() -> Sprites:
    rgba = np.stack([sprite(number) for number in range(5)])
    names = ("a.png", "ü/剣 🗡.png", "caf\udce9.png", '"quoted"\n.png', "")
    return Sprites(rgba, np.array([0, 1, 2, 0, 1]), ("x", "item/potion", "empty"), names, "the set")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.safetensors"


def test_other_programs_can_read_it(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_module, "_A_LINE", 2)
    save(sprites, path, {"empty": [], "nothing": None, "many": [1, 2, 3]})
    arrays = safetensors.numpy.load_file(path)
    assert (arrays["rgba"] == sprites.rgba).all() and (arrays["labels"] == sprites.labels).all()
    lines = [json.loads(line) for line in arrays["texts"].tobytes().splitlines()]
    assert [name for key, part in lines if key == "names" for name in part] == list(sprites.names)
    assert max(len(part) for key, part in lines if key == "names") == 2
    again, extra = returned(loading(path))
    assert again.names == sprites.names and extra == {"empty": [], "nothing": None, "many": [1, 2, 3]}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as one that is too large for the memory."""
    monkeypatch.setattr(scratch, "IN_MEMORY", 1000)


@pytest.mark.usefixtures("large")
def test_large_files_are_mapped(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    again = load(path)
    assert (again.fingerprint, again.names) == (sprites.fingerprint, sprites.names)
    assert not again.rgba.flags.writeable and again.stored is not None
    raw = path.read_bytes()[again.stored.start :][: sprites.rgba.nbytes]
    assert again.stored.path == path and raw == sprites.rgba.tobytes()
    path.unlink()
    assert (again.rgba == sprites.rgba).all()  # it stays until it is let go
    assert again.take([1]).stored is None and again.take([1]).rgba.flags.writeable


@pytest.mark.usefixtures("large")
def test_damage_to_a_large_file_is_found(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    start = load(path).stored
    assert start is not None
    for position in (start.start, start.start + sprites.rgba.nbytes - 1, path.stat().st_size - 3):
        save(sprites, path)
        with path.open("r+b") as stream:
            stream.seek(position)
            byte = stream.read(1)
            stream.seek(position)
            stream.write(bytes([byte[0] ^ 1]))
        with pytest.raises(BadInputError, match="damaged"):
            load(path)
    os.truncate(path, start.start + 10)
    with pytest.raises(BadInputError, match="damaged"):
        load(path)


@pytest.mark.usefixtures("large")
def test_a_large_file_is_kept_twice_without_being_copied(sprites: Sprites, path: Path) -> None:
    save(sprites, path, {"some": "thing"})
    mapped, other = load(path), path.with_name("other.safetensors")
    list(keeping(mapped, other))
    assert other.samefile(path) and load(other).fingerprint == sprites.fingerprint
    moved = reopened(mapped, other)
    assert moved.stored is not None and moved.stored.path == other and (moved.rgba == sprites.rgba).all()


@pytest.mark.usefixtures("large")
def test_what_can_not_be_linked_is_copied(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(sprites, path, {"some": "thing"})
    mapped, other = load(path), path.with_name("other.safetensors")
    save(sprites.take([0, 1]), path)  # another file by that name: what is mapped is no longer there
    list(keeping(mapped, other))
    assert load(other).fingerprint == sprites.fingerprint
    moved = reopened(mapped, other)
    other.unlink()
    save(mapped, path)

    def refused(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    list(keeping(load(path), other))
    assert not other.samefile(path) and load(other).fingerprint == moved.fingerprint == sprites.fingerprint


def test_saving_and_loading_can_be_given_up(sprites: Sprites, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.data.sprites._SLICE", 1)
    monkeypatch.setattr("studio.data.store.packed._SLICE", 1)
    for slices in (1, 5, 7, 10, 11):
        work = saving(sprites.take(range(5)), path)
        for _ in zip(range(slices), work, strict=False):
            pass
        work.close()
        assert not list(path.parent.iterdir())
    assert list(saving(sprites.take(range(5)), path)) == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 5]
    assert list(loading(path)) == [1, 2, 3, 4, 5]


def test_there_and_back(sprites: Sprites, path: Path) -> None:
    save(sprites, path, {"notes": [["ü", 1]]})
    again, extra = returned(loading(path))
    assert (again.rgba == sprites.rgba).all() and (again.labels == sprites.labels).all()
    assert (again.names, again.class_names, again.title) == (sprites.names, sprites.class_names, sprites.title)
    assert again.fingerprint == sprites.fingerprint and extra == {"notes": [["ü", 1]]}
    assert again.rgba.flags.writeable and again.labels.flags.writeable
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_numbers_there_and_back(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    assert load(path).targets.shape == (5, 0) and load(path).target_names == ()
    targets = np.array([[1, np.nan], [2, -5e20], [0.1, 0], [np.nan, np.nan], [7, 8]], np.float32)
    told = dataclasses.replace(sprites, targets=targets, target_names=("price", "größe"))
    save(told, path)
    again = load(path)
    assert np.array_equal(again.targets, targets, equal_nan=True) and again.target_names == ("price", "größe")
    assert again.fingerprint == told.fingerprint != sprites.fingerprint and again.targets.flags.writeable
    data, header = path.read_bytes(), header_of(path)
    about, texts = header["targets"], header["__metadata__"]
    lies: list[dict[str, Any]] = [
        *({"targets": {**about, **change}} for change in ({"shape": [5, 3]}, {"shape": [10, 1]}, {"dtype": "I64"})),
        *({"__metadata__": {**texts, "format": f"sprites {number}"}} for number in (2, 4)),
        {"targets": None},
    ]
    for lie in lies:
        with_header(path, {**header, **lie})
        with pytest.raises(BadInputError, match="damaged"):
            load(path)
    for before, after in ((b'"price", ', b""), (b'"price"', b"7"), (b'"price"', b'"prize"')):
        path.write_bytes(data.replace(before, after))
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

    monkeypatch.setattr("studio.core.files.flush", full)
    with pytest.raises(OSError, match="No space"):
        save(sprites, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_cut_off_anywhere_and_every_flipped_bit_is_noticed(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for length in [*range(0, len(data), 13), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(BadInputError):
            load(path)
    for position in [*range(64), *rng.integers(64, 8 * len(data), 400)]:
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << int(position % 8)
        path.write_bytes(flipped)
        try:
            again = load(path)
        except BadInputError:
            continue
        assert (again.fingerprint, again.names) == (sprites.fingerprint, sprites.names)  # a blank that fills up a line


def with_header(path: Path, header: Any) -> None:
    """The same file with another header."""
    data, packed = path.read_bytes(), json.dumps(header).encode()
    rest = data[8 + int.from_bytes(data[:8], "little") :]
    path.write_bytes(len(packed).to_bytes(8, "little") + packed + rest)


def header_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    header: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return header


def test_headers_that_lie(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    header, data = header_of(path), path.read_bytes()
    lies: list[Any] = [
        [], None, {"__metadata__": 7}, {"__metadata__": {"format": "sprites 3"}}, {**header, "texts": None},
        {**header, "groups": None},
        {**header, "groups": {**header["groups"], "shape": [0], "data_offsets": [0, 0]}},
        *({**header, "rgba": {**header["rgba"], **change}} for change in (
            {"shape": [5, 8, 8, 400]}, {"shape": [5, 4, 16, 4]}, {"data_offsets": [0, 10**15]}, {"dtype": "F64"},
        )),
        {**header, "labels": {**header["labels"], "dtype": "F64"}},
        {**header, "texts": {**header["texts"], "shape": [3]}},
        {**header, "__metadata__": {**header["__metadata__"], "sha256": "0" * 64}},
    ]  # fmt: skip
    for lie in lies:
        with_header(path, lie)
        with pytest.raises(BadInputError, match="damaged"):
            load(path)
        path.write_bytes(data)
    for start in (0, 2**62, 10**8 + 1, int.from_bytes(data[:8], "little") + 1):
        path.write_bytes(start.to_bytes(8, "little") + data[8:])
        with pytest.raises(BadInputError):
            load(path)


def test_texts_and_labels_that_lie(sprites: Sprites, path: Path) -> None:
    save(sprites, path)
    arrays = safetensors.numpy.load_file(path)
    lines = arrays["texts"].tobytes().splitlines(keepends=True)
    with safetensors.safe_open(path, "numpy") as file:
        about = file.metadata()
    lies: list[tuple[dict[str, NDArray[Any]], str]] = [
        ({"labels": np.full(5, wrong, np.int64)}, "don't match each other") for wrong in (-1, 3)
    ]
    for line in (b"[", b"7\n", b'["names", 7]\n', b'["title", 7]\n', b'["names", ["more"]]\n', b"[" * 100_000 + b"\n"):
        for texts in (b"".join([*lines, line]), b"".join([line, *lines[1:]])):
            lies.append(({"texts": np.frombuffer(texts, np.uint8)}, "damaged"))
    for lie, said in lies:
        safetensors.numpy.save_file({**arrays, **lie}, path, about)
        with pytest.raises(BadInputError, match=said):
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
