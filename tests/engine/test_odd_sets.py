"""Sets of sprites that are odd: they train, or it is said why not; and what becomes of their files changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import TrainingError
from studio.core.events import LossChunk, RunFinished
from studio.data.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.control import Control
from studio.engine.train import train_resumed
from tests.conftest import make_sprites
from tests.data.making import sprite, write
from tests.engine.tools import CPU, of_kind, train_classifier, train_generator, train_regression


def opened(folder: Path) -> Sprites:
    *_, found = import_sprites([folder], ImportOptions())
    assert isinstance(found, SpritesImported)
    return found.sprites


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in range(12):
        write(tmp_path / "set" / "abc"[seed % 2] / f"{seed}.png", sprite(seed))
    (tmp_path / "set" / "empty").mkdir()
    return tmp_path / "set"


def test_files_that_are_gone_are_not_needed_any_more(run_path: Path, folder: Path) -> None:
    sprites = opened(folder)
    before = sprites.fingerprint
    events = train_generator(run_path, sprites, steps=6)
    for event in events:
        if isinstance(event, LossChunk) and folder.exists():
            (folder / "a" / "0.png").write_bytes(b"changed")
            shutil.rmtree(folder)
    list(train_resumed(run_path, CPU, Control(stop=True)))
    assert not folder.exists() and packed.load(run_path / "data.safetensors").fingerprint == before


def test_an_empty_folder_is_no_class(folder: Path) -> None:
    assert opened(folder).class_names == ("a", "b")


def test_one_class_makes_sprites_but_nothing_to_tell_apart(run_path: Path, tmp_path: Path) -> None:
    one = make_sprites(per_class=6, classes=1)
    assert of_kind(list(train_generator(run_path, one)), RunFinished)[0].step == 8
    with pytest.raises(TrainingError, match="at least two classes") as caught:
        list(train_classifier(tmp_path / "other", one))
    assert "sub-folders are the classes" in caught.value.hint


def test_no_numbers_are_nothing_to_learn(run_path: Path) -> None:
    with pytest.raises(TrainingError) as caught:
        list(train_regression(run_path, make_sprites()))
    assert "labels.csv" in caught.value.hint


def test_a_thousand_to_one(run_path: Path, tmp_path: Path) -> None:
    rgba = np.random.default_rng(0).integers(0, 256, (1001, 8, 8, 4), dtype=np.uint8)
    rgba[rgba[..., 3] == 0] = 0
    labels = np.array([0] * 1000 + [1], np.int64)
    lopsided = Sprites(rgba, labels, ("many", "one"), tuple(f"{number}.png" for number in range(1001)), "lopsided")
    events = list(train_generator(run_path, lopsided))
    assert of_kind(events, RunFinished)[0].step == 8
    with pytest.raises(TrainingError, match="at least two classes with enough sprites"):
        list(train_classifier(tmp_path / "other", lopsided))
