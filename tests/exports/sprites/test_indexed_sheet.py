"""Sheets with a palette: its order, soft alpha, and too many colours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core.errors import ExportError
from studio.exports.sprites.base import SpriteSet
from tests.exports.sprites.making import BLUE, GREEN, RED, many_coloured, notes, of_colours, written

SOFT = (10, 220, 30, 99)


def palette(*colours: tuple[int, ...]) -> np.ndarray:
    return np.array(colours, np.uint8)


def table_of(path: Path) -> list[tuple[int, ...]]:
    with Image.open(path) as image:
        assert image.mode == "P"
        colours = np.array(image.getpalette(), np.uint8).reshape(-1, 3)
        clear = image.info["transparency"]  # index of the transparent colour, or an alpha for each index
        alphas = [255 * (number != clear) for number in range(len(colours))] if isinstance(clear, int) else clear
        return [(*colour, alpha) for colour, alpha in zip(colours.tolist(), alphas, strict=True)]


def test_the_palette_keeps_its_order_after_the_transparent_colour(tmp_path: Path) -> None:
    given = SpriteSet(of_colours(RED, GREEN, RED), palette=palette(BLUE, RED, (0, 0, 0), GREEN), columns=2)
    path = written("indexed_sheet", given, tmp_path)
    assert table_of(path) == [(0, 0, 0, 0), (*BLUE, 255), (*RED, 255), (0, 0, 0, 255), (*GREEN, 255)]
    with Image.open(path) as image:
        numbers = np.asarray(image)
    assert numbers.shape == (12, 12) and numbers[2::6, 2].tolist() == [2, 2] and numbers[2, 8] == 4
    assert set(numbers[0]) == set(numbers[6:, 6:].ravel()) == {0}
    assert notes("indexed_sheet", given) == ""


def test_extra_colours_follow_the_palette(tmp_path: Path) -> None:
    sprites = of_colours(SOFT, GREEN, RED, RED)
    given = SpriteSet(sprites, palette=palette(BLUE))
    path = written("indexed_sheet", given, tmp_path)
    assert table_of(path)[1:] == [(*BLUE, 255), (*RED, 255), (*GREEN, 255), SOFT]
    with Image.open(path) as image:
        assert np.array_equal(np.asarray(image.convert("RGBA")), np.concatenate(list(sprites), axis=1))
    said = notes("indexed_sheet", given)
    assert "3 colours outside the palette" in said and "1 semi-transparent colour with a separate index" in said


def test_a_long_palette_keeps_its_used_colours(tmp_path: Path) -> None:
    many = [(number, number, 255 - number) for number in range(256)]
    given = SpriteSet(of_colours(many[200], many[7], RED), palette=palette(*many))
    assert table_of(written("indexed_sheet", given, tmp_path))[1:] == [(*many[7], 255), (*many[200], 255), (*RED, 255)]


def test_too_many_colours_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="1,024 colours") as refused:
        written("indexed_sheet", SpriteSet(many_coloured(1, 32)), tmp_path)
    assert "Reduce the colours" in refused.value.hint and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("form", "pixels"), [("sheet", "RGBA8888"), ("indexed_sheet", "I8")])
def test_the_sheet_json_lists_positions(form: str, pixels: str, tmp_path: Path) -> None:
    given = SpriteSet(
        of_colours(RED, GREEN, BLUE), classes=["item/cup", "../x", "item/cup"], columns=2, about={"seed": 7},
        duration_ms=50, hold_ms=25,
    )  # fmt: skip
    path = written(form, given, tmp_path)
    about = json.loads(path.with_suffix(".json").read_text())
    meta = about["meta"]
    assert (meta["image"], meta["format"], meta["size"], meta["seed"]) == ("art.png", pixels, {"w": 12, "h": 12}, 7)
    assert [frame["filename"] for frame in about["frames"]] == ["item/cup/cup 001", "x/x 001", "item/cup/cup 002"]
    assert [frame["duration"] for frame in about["frames"]] == [50, 50, 75]
    assert about["frames"][2]["frame"] == {"x": 0, "y": 6, "w": 6, "h": 6}
    with Image.open(path) as image:
        assert image.text["seed"] == "7"  # type: ignore[attr-defined]
