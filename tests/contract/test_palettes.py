"""What every kind of palette file must do, whoever wrote it: give back what it was given, and survive any bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import UsageError
from studio.data.colour.palette import MOST_COLOURS, Palette
from studio.data.palettes.base import PaletteFormat, Unreadable
from studio.data.palettes.files import load_palette, palette_formats, save_palette

RNG = np.random.default_rng(0)
OPAQUE = np.array([[190, 74, 47, 255], [0, 0, 0, 255], [255, 255, 255, 255], [9, 10, 13, 255]], np.uint8)
SEE_THROUGH = np.array([[190, 74, 47, 255], [1, 2, 3, 128], [200, 100, 50, 1]], np.uint8)
ONE_CLEAR = np.array([[190, 74, 47, 255], [1, 2, 3, 0]], np.uint8)


@pytest.fixture(params=[form.name for form in palette_formats()])
def form(request: pytest.FixtureRequest) -> PaletteFormat:
    return next(form for form in palette_formats() if form.name == request.param)


def refusal(form: PaletteFormat, palette: Palette) -> UsageError | None:
    try:
        form.write(palette)
    except UsageError as error:
        return error
    return None


def test_the_formats_that_are_due() -> None:
    names = [form.name for form in palette_formats()]
    assert {"gpl", "jasc", "riff", "hex", "lospec", "strip", "act", "paint.net"} <= set(names)
    for form in palette_formats():
        assert form.title and form.suffixes and all(suffix == suffix.lower() for suffix in form.suffixes)


def test_gives_back_what_it_was_given(form: PaletteFormat) -> None:
    names = ("Rust", "", "Bone: 2 # not a comment", "1 2 3")
    given = Palette(OPAQUE, "Warm & cosy – ünïcode", names)
    data = form.write(given)
    found = form.read(data)
    assert form.recognises(data)
    with pytest.raises(Unreadable):
        form.read(b"")
    assert found.colours.dtype == np.uint8 and np.array_equal(found.colours, OPAQUE)
    assert found.name in ("", given.name) and found.colour_names in ((), given.colour_names)


def test_the_most_colours_or_a_refusal(form: PaletteFormat) -> None:
    many = RNG.permutation(np.arange(0x010101, 0x010101 + MOST_COLOURS, dtype="<u4") | 0xFF000000)
    for colours in (many, many[:256], many[:1]):
        palette = Palette(colours.view(np.uint8).reshape(-1, 4))
        refused = refusal(form, palette)
        if refused is not None:
            assert len(palette) > 256 and "256" in refused.title and refused.hint
        else:
            assert np.array_equal(form.read(form.write(palette)).colours, palette.colours)


@pytest.mark.parametrize("colours", [SEE_THROUGH, ONE_CLEAR], ids=["see-through", "one clear"])
def test_alpha_is_kept_or_refused_but_never_lost(form: PaletteFormat, colours: np.ndarray) -> None:
    refused = refusal(form, Palette(colours))
    if refused is not None:
        assert "transparent" in refused.title and refused.hint
    else:
        found = form.read(form.write(Palette(colours))).colours
        assert np.array_equal(found[found[:, 3] > 0], colours[colours[:, 3] > 0])


def test_a_file_of_it_is_told_by_its_content_whatever_its_name(form: PaletteFormat, tmp_path: Path) -> None:
    data = form.write(Palette(OPAQUE))
    for name in (f"a{form.suffixes[0]}", "a.act", "a.gpl", "a.png", "a.hex", "a.txt", "a"):
        (tmp_path / name).write_bytes(data)
        found = load_palette(tmp_path / name)
        assert np.array_equal(found.colours, OPAQUE) and found.name == "a"


def test_a_saved_file_never_takes_the_place_of_another(form: PaletteFormat, tmp_path: Path) -> None:
    wanted = tmp_path / f"warm{form.suffixes[0].upper()}"
    first, second = (save_palette(wanted, Palette(OPAQUE)) for _ in range(2))
    assert (first, second.name) == (wanted, f"warm-2{wanted.suffix}")
    assert first.read_bytes() == second.read_bytes() and sorted(tmp_path.iterdir()) == sorted((first, second))
