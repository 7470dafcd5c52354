"""`studio map`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from studio.cli.messages import WRONG_USAGE
from tests.cli.tools import Studio


def test_a_map_is_a_picture_and_names_the_odd_ones(classifier_run: Path, tmp_path: Path, studio: Studio) -> None:
    said = studio("map", classifier_run, "--out", tmp_path / "map.png", "--size", "64", "--device", "cpu")
    with Image.open(tmp_path / "map.png") as picture:
        assert max(picture.size) == 64 and np.asarray(picture)[..., 3].any()
        assert picture.info["model"] == "my classifier, step 4"
    assert said.out.startswith("24 sprites by my classifier, step 4: the two axes explain ")
    assert "Outliers" in said.out and said.out.count(".png") == 5 + 1


def test_json_tells_places_neighbours_and_odd_ones(classifier_run: Path, tmp_path: Path, studio: Studio) -> None:
    found = studio("map", classifier_run, "--out", tmp_path, "--json").objects()
    sprites = [each for each in found if each["type"] == "MapSprite"]
    assert len(sprites) == 24 and {each["class"] for each in sprites} == {"class0", "class1"}
    names = {each["name"] for each in sprites}
    for each in sprites:
        assert len(each["position"]) == 2 and all(0 <= value <= 1 for value in each["position"])
        assert len(each["neighbours"]) == 10 and set(each["neighbours"]) <= names - {each["name"]}
    made, saved = found[-2:]
    assert made["type"] == "MapReady" and made["sprites"] == made["total"] == 24 and 0 < made["explained"] <= 1
    assert made["odd"][0] == max(sprites, key=lambda each: each["apart"])["name"]
    assert saved == {"type": "FilesSaved", "paths": [str(tmp_path / "my-classifier-map.png")]}
    again = studio("map", classifier_run, "--out", tmp_path, "--json").objects()[-1]
    assert again["paths"] == [str(tmp_path / "my-classifier-map-2.png")]  # nothing is overwritten


def test_what_can_not_be_is_said(classifier_run: Path, tmp_path: Path, studio: Studio) -> None:
    said = studio("map", classifier_run, "--out", tmp_path / "map.gif", code=WRONG_USAGE)
    assert "A map can't be saved as '.gif'." in said.err
    said = studio("map", classifier_run, "--out", tmp_path, "--size", "9", code=WRONG_USAGE)
    assert "--size must be from 16 to 16384 pixels, not 9." in said.err
    assert list(tmp_path.iterdir()) == []
