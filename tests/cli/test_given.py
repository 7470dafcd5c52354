"""Reading the given cells of characters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.given import parse_given, read_given
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError, StudioError, UsageError
from studio.engine.sampling.settings import GivenSets

CELLS = ("down/stand", "down/step", "up/stand")
SIZE = 4


def _given(*words: object) -> GivenSets:
    return read_given(parse_given([str(word) for word in words], CELLS), CELLS, SIZE)


def _save(path: Path, height: int = SIZE, width: int = SIZE, seed: int = 0) -> Rgba:
    """Save and return random pixels of a few colours, some half transparent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = np.array([[20, 20, 30, 255], [200, 60, 40, 255], [60, 90, 200, 90]], np.uint8)
    pixels: Rgba = colours[np.random.default_rng(seed).integers(0, 3, (height, width))]
    Image.fromarray(pixels).save(path)
    return pixels


def test_pictures_of_cells_are_read_with_their_alpha(tmp_path: Path) -> None:
    front, back = _save(tmp_path / "a=b" / "front.png"), _save(tmp_path / "back.png", seed=1)
    sets = _given(f"down={tmp_path / 'a=b' / 'front.png'}", f"up/stand={tmp_path / 'back.png'}")
    assert sets.names == ("front",) and sets.given.tolist() == [[True, False, True]]
    assert (sets.cells[0, 0] == front).all() and (sets.cells[0, 2] == back).all()


def test_a_sheet_gives_the_cells_that_are_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "a=b.png"
    sheet = _save(path, 2 * SIZE, 2 * SIZE)
    sheet[:SIZE, SIZE:] = 0
    Image.fromarray(sheet).save(path)
    sets = _given(path)
    assert sets.given.tolist() == [[True, False, True]]
    assert (sets.cells[0, 2] == sheet[SIZE:, :SIZE]).all()


def test_folders_give_many_characters_by_file_name(tmp_path: Path) -> None:
    for name in ("fronts/knight.png", "fronts/more/witch.png", "backs/knight.gif"):
        _save(tmp_path / name)
    (tmp_path / "fronts/notes.txt").write_text("not a picture")
    sets = _given(f"down={tmp_path / 'fronts'}", f"up={tmp_path / 'backs'}")
    assert sets.names == ("knight", "more/witch")
    assert sets.given.tolist() == [[True, False, True], [True, False, False]]


def test_wrong_pictures_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _save(tmp_path / "front.png")
    large = _save(tmp_path / "sheet.png", 2 * SIZE, 2 * SIZE).repeat(3, 0).repeat(3, 1)
    Image.fromarray(large).save(tmp_path / "large.png")
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "empty").mkdir()
    for words, kind, said in (
        ((), UsageError, "No cell is given. Add --given CELL=FILE"),
        (("side=front.png",), UsageError, "no cell 'side'. Cells of this model: down/stand, down/step, up/stand."),
        (("up=large.png",), UsageError, "large.png has 24 x 24 pixels; the model's cells have 4 x 4."),
        (("large.png",), UsageError, "a sheet of this model has 8 x 8. A row for each of down, up"),
        (("large.png",), UsageError, "It looks enlarged 3x"),
        (("up=sheet.png",), UsageError, "sheet.png is a sheet of all cells."),
        (("front.png",), UsageError, "Say which: --given down/stand=front.png"),
        (("down=front.png", "down/stand=front.png"), UsageError, "down/stand is given twice: front.png, front.png"),
        (("down=front.png", "up=empty"), UsageError, "a folder and a single picture"),
        (("down=empty",), BadInputError, "There are no pictures in"),
        (("down=text.png",), BadInputError, "'text.png' can't be read"),
        (("down=none.png",), BadInputError, "none.png"),
    ):
        with pytest.raises(StudioError) as caught:
            _given(*words)
        assert isinstance(caught.value, kind) and said in str(caught.value)
