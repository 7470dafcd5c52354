"""Tests of folders named train, val and test: recognised as splits, with classes and test set adapted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from studio.core.events import Notice
from studio.data.doctor.findings import list_findings
from studio.data.importing.importing import ImportOptions, SpritesImported
from tests.data.making import events_of, imported, png_of, sprite, write, zipped

SPLITS = ("train/cat/0.png", "train/dog/1.png", "val/cat/2.png", "test/cat/3.png", "test/dog/4.png")


def written(folder: Path, names: Sequence[str]) -> Path:
    for number, name in enumerate(names):
        write(folder / name, sprite(number))
    return folder


def in_test_set(event: SpritesImported) -> set[str]:
    return {name for name, is_test in zip(event.sprites.names, event.sprites.is_test, strict=True) if is_test}


def test_train_val_and_test_are_splits(tmp_path: Path) -> None:
    folder = written(tmp_path / "set", SPLITS)
    (folder / "annotations").mkdir()
    (folder / "annotations" / "notes.txt").write_text("no picture")
    *events, last = events_of(folder)
    assert isinstance(last, SpritesImported) and last.sprites.class_names == ("cat", "dog")
    assert last.sprites.names == tuple(sorted(SPLITS)) and in_test_set(last) == {"test/cat/3.png", "test/dog/4.png"}
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.title == "'train', 'val' and 'test' are splits of a data set, not classes; 'test' is the test set."
    assert "--no-split-folders" in notice.hint


def test_the_fix_that_makes_splits_classes(tmp_path: Path) -> None:
    folder = written(tmp_path / "set", SPLITS)
    found = imported(folder)
    (finding,) = [each for each in list_findings(found, ImportOptions()) if each.group == "split folders"]
    (fix,) = finding.fixes
    assert fix.changes == {"split_folders": False}
    undone = imported(folder, split_folders=False)
    assert "test/cat" in undone.sprites.class_names and not undone.sprites.is_test.any() and not undone.notes


def test_a_cached_import_gives_the_same_notices(tmp_path: Path) -> None:
    folder = written(tmp_path / "set", SPLITS)
    (first, again) = (events_of(folder, cache=tmp_path / "cache") for _ in range(2))
    assert isinstance(again[-1], SpritesImported) and again[-1].from_cache
    assert in_test_set(again[-1]) and [e for e in first if isinstance(e, Notice)] == [
        e for e in again if isinstance(e, Notice)
    ]


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (("Training/0.png", "Testing/1.png"), {"set"}),
        (("cat/train/0.png", "cat/test/1.png", "dog/train/2.png", "dog/test/3.png"), {"cat", "dog"}),
        (("images/train/cat/0.png", "images/validation/cat/1.png"), {"images/cat"}),
        (("train/0.png", "bus/1.png", "test/2.png"), {"train", "bus", "test"}),  # vehicles
        (("train/0.png",), {"train"}),
        (("val/0.png", "test/1.png"), {"val", "test"}),
        (("train/a/0.png", "test.txt/1.png"), {"train/a", "test.txt"}),
    ],
)
def test_which_folders_are_splits(tmp_path: Path, names: Sequence[str], classes: set[str]) -> None:
    assert set(imported(written(tmp_path / "set", names)).sprites.class_names) == classes


def test_splits_named_on_the_command_line_and_in_archives(tmp_path: Path) -> None:
    folder = written(tmp_path / "set", SPLITS)
    expected: Any = {"test/cat/3.png", "test/dog/4.png"}
    event = imported(folder / "train", folder / "test")
    assert event.sprites.class_names == ("cat", "dog") and in_test_set(event) == expected
    members = {name: png_of(sprite(number)) for number, name in enumerate(SPLITS)}
    event = imported(zipped(tmp_path / "set.zip", members))
    assert event.sprites.class_names == ("cat", "dog") and in_test_set(event) == expected
    for split in ("train", "test"):
        inside = {name.partition("/")[2]: data for name, data in members.items() if name.startswith(split)}
        zipped(tmp_path / "zips" / f"{split}.zip", inside)
    event = imported(tmp_path / "zips")
    assert event.sprites.class_names == ("cat", "dog") and in_test_set(event) == {
        "test.zip/cat/3.png",
        "test.zip/dog/4.png",
    }
