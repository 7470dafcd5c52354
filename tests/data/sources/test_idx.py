"""IDX files, as of MNIST: packed or not, with labels or without, and each lie that a header can tell."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from studio.data.files.source_files import SourceFile, SourceImage, SourceIssue, UnreadableFile
from studio.data.sources.idx import IdxSource
from tests.data.making import Pixels, found, imported, notes, reasons

GREY = np.random.default_rng(0).integers(0, 256, (12, 5, 7)).astype(np.uint8)
LABELS = np.array([3, 0, 9, 5, 1, 2, 4, 6, 7, 8, 0, 200], np.uint8)


def images(grey: Pixels = GREY, kind: int = 0x803, *sizes: int) -> bytes:
    return struct.pack(">IIII", kind, *(sizes or grey.shape)) + grey.tobytes()


def labels(values: Pixels = LABELS, kind: int = 0x801, count: int = -1) -> bytes:
    return struct.pack(">II", kind, len(values) if count < 0 else count) + values.tobytes()


def write(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(path: Path) -> tuple[list[SourceImage], list[SourceIssue]]:
    items = list(IdxSource().read(found(path)))
    pictures = [item for item in items if isinstance(item, SourceImage)]
    return pictures, [item for item in items if isinstance(item, SourceIssue)]


def refusal(path: Path) -> UnreadableFile:
    with pytest.raises(UnreadableFile) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"),
        ("Letters.IDX3-ubyte", "Letters.IDX1-ubyte.gz"),
    ],
)
def test_round_trip(tmp_path: Path, name: str, beside: str) -> None:
    path, other = write(tmp_path, name, images()), write(tmp_path, beside, labels())
    pictures, remarks = read(path)
    assert [remark.group for remark in remarks] == ["test set"] * name.startswith("t10k")
    assert len(pictures) == len(GREY)
    for number, picture in enumerate(pictures):
        assert (picture.rgba == np.dstack([GREY[number]] * 3 + [np.full((5, 7), 255)])).all()
        assert (picture.part, picture.label) == (f"{number:02d}", str(LABELS[number]))
    assert IdxSource().claims(found(other)) and read(other) == ([], [])


@pytest.mark.parametrize(
    "folder", ["FashionMNIST", "FashionMNIST/raw", "old-fashioned/digits", "old-fashioned/MNIST/raw"]
)
def test_fashion_has_names(tmp_path: Path, folder: str) -> None:
    path = write(tmp_path / folder, "train-images-idx3-ubyte", images())
    write(path.parent, "train-labels-idx1-ubyte", labels())
    given = [picture.label for picture in read(path)[0]]
    is_fashion = folder.startswith("Fashion")
    assert given[:4] == (["Dress", "T-shirt", "Ankle boot", "Sandal"] if is_fashion else ["3", "0", "9", "5"])
    assert given[-1] == "200"


def test_without_labels(tmp_path: Path) -> None:
    write(tmp_path / "digits", "t10k-labels-idx1-ubyte", labels())  # those of other pictures
    path = write(tmp_path / "digits", "train-images-idx3-ubyte", images())
    pictures, remarks = read(path)
    assert {picture.label for picture in pictures} == {""}
    assert [remark.group for remark in remarks] == ["no classes"] and "labels" in remarks[0].reason
    event = imported(path)
    assert event.sprites.class_names == ("digits",) and len(notes(event, "no classes")) == 1
    pictures[0].rgba[:] = 0
    assert (pictures[1].rgba[..., 0] == GREY[1]).all()  # they share no pixels


def test_a_whole_import(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    for name in ("train", "t10k"):
        grey = np.random.default_rng(len(name)).integers(0, 256, GREY.shape).astype(np.uint8)
        deep = folder / "MNIST" / name / "raw"  # which is no part of the class
        write(deep, f"{name}-images-idx3-ubyte.gz", images(grey))
        write(deep, f"{name}-labels-idx1-ubyte.gz", labels(LABELS % 10))
    (folder / "readme.txt").write_text("The digits.")
    event = imported(folder)
    assert len(event.sprites) == 24 and event.sprites.class_names == tuple("0123456789")
    assert event.sprites.names[0] == "MNIST/t10k/raw/t10k-images-idx3-ubyte.gz#00"
    assert not reasons(event) and not notes(event, "no classes")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("data", "group", "words"),
    [
        (b"", "unreadable", "empty"),
        (images()[:3], "unreadable", "cut off"),
        (images()[:16], "unreadable", "cut off"),
        (images()[:-1], "unreadable", "cut off"),
        (images() + b"\0", "unreadable", "longer than its header says"),
        (images(GREY, 0x801), "unreadable", "not an IDX file of images"),
        (images(GREY, 0x804), "unreadable", "not an IDX file of images"),
        (images(GREY, 0x10803), "unreadable", "not an IDX file of images"),
        (images(GREY, 0x103), "unreadable", "not an IDX file of images"),
        (images(GREY, 0xD03), "unsupported", "number type"),
        (images(GREY, 0x803, 0, 5, 7), "unreadable", "without data"),
        (images(GREY, 0x803, 12, 0, 7), "unreadable", "without data"),
        (images(GREY, 0x803, 13, 5, 7), "unreadable", "cut off"),
        (images(GREY, 0x803, 11, 5, 7), "unreadable", "longer than its header says"),
        (images(GREY, 0x803, 2**32 - 1, 5, 7), "refused", "too many: 4,294,967,295 pictures"),
        (images(GREY, 0x803, 1, 2**31, 7), "refused", "too large"),
        (images(GREY, 0x803, 250_000, 4096, 4096), "refused", "too large"),
    ],
)
def test_wrong_headers(tmp_path: Path, data: bytes, group: str, words: str, packed: bool) -> None:
    refused = refusal(write(tmp_path, "x.idx3-ubyte" + (".gz" if packed else ""), data))
    assert refused.group == group and words in (refused.reason if data or not packed else "empty")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (labels(LABELS[:-1]), "12 images, but 11 labels in x.idx1-ubyte"),
        (labels(LABELS, 0x803), "not an IDX file of labels"),
        (labels(LABELS, count=13), "cut off"),
        (labels(LABELS, count=11), "longer than its header says"),
        (labels(LABELS, count=2**32 - 1), "too many"),
        (b"", "empty"),
    ],
)
def test_wrong_labels(tmp_path: Path, data: bytes, words: str) -> None:
    path = write(tmp_path, "x.idx3-ubyte", images())
    write(tmp_path, "x.idx1-ubyte", data)
    refused = refusal(path)
    assert words in refused.reason and "x.idx1-ubyte" in refused.reason


def test_unpacking_stops_at_the_length_in_the_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    class Counting(gzip.GzipFile):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            taken.append(len(data))
            return data

    bomb = write(tmp_path, "x.idx3-ubyte.gz", images() + b"\0" * 50_000_000)
    monkeypatch.setattr(gzip, "GzipFile", Counting)
    assert "longer" in refusal(bomb).reason
    assert sum(taken) == 16 + GREY.size + 1


def test_damaged_gzip_files(tmp_path: Path) -> None:
    path = write(tmp_path, "x.idx3-ubyte.gz", images())
    whole = path.read_bytes()
    for position in range(10, len(whole), 7):  # the name and the time before are not checked by gzip
        path.write_bytes(whole[:position])
        assert refusal(path).group == "unreadable", position
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x11]) + whole[position + 1 :])
        assert refusal(path).group in ("unreadable", "unsupported", "refused"), position


def test_claims_by_name() -> None:
    for name, claimed in {
        "train-images-idx3-ubyte": True, "t10k-labels-idx1-ubyte.gz": True, "A.IDX3-UBYTE": True,
        "emnist-train-images-idx3-ubyte": True, "/set/train.png": False, "/x-idx3-ubyte/notes.txt": False,
        "/set/idx3": False,
    }.items():  # fmt: skip
        assert IdxSource().claims(SourceFile(f"/set/{name}", name, (), "set", frozenset(), 0, 0)) is claimed, name


def test_pictures_of_t10k_are_the_test_set(tmp_path: Path) -> None:
    for name, pictures in (("train", GREY), ("t10k", 255 - GREY[:4])):
        write(tmp_path, f"{name}-images-idx3-ubyte.gz", images(pictures))
        write(tmp_path, f"{name}-labels-idx1-ubyte.gz", labels(LABELS[: len(pictures)]))
    found = imported(tmp_path)
    assert found.sprites.is_test.tolist() == [name.startswith("t10k") for name in found.sprites.names]
    assert found.sprites.is_test.sum() == 4
    assert any("test set" in reason for reason in notes(found).values())
