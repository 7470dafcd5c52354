"""Ramps hold the colours of one material, and every colour is in one ramp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from studio.core.errors import BadInputError
from studio.data.colour.palette import to_oklab
from studio.data.colour.ramps import Ramps, find_ramps, move_colour, ramp_named, ramps_of_sprites

DB32 = (
    "000000 222034 45283c 663931 8f563b df7126 d9a066 eec39a fbf236 99e550 6abe30 37946e 4b692f 524b24 323c39 3f3f74 "
    "306082 5b6ee1 639bff 5fcde4 cbdbfc ffffff 9badb7 847e87 696a6a 595652 76428a ac3232 d95763 d77bba 8f974a 8a6f30"
)
KNIGHT = "000000 1c0000 3b0000 7f0100 bf0201 7b6a1b bd9c3c f1c14a fefe1f 010139 04037a 0a08bc 0e0bdd"
COLOURS = st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=24, unique=True)


def colours(text: str) -> NDArray[np.uint8]:
    return np.array([list(bytes.fromhex(code)) for code in text.split()], np.uint8)


def codes(ramps: Ramps) -> dict[str, str]:
    return {ramp.name: " ".join(colour.tobytes().hex() for colour in ramp.colours) for ramp in ramps}


def test_each_material_of_a_sprite_is_a_ramp() -> None:
    assert codes(find_ramps(colours(KNIGHT))) == {
        "black": "000000",
        "red": "1c0000 3b0000 7f0100 bf0201",
        "yellow": "7b6a1b bd9c3c f1c14a fefe1f",
        "blue": "010139 04037a 0a08bc 0e0bdd",
    }


def test_a_hue_shifted_ramp_stays_whole_and_equal_names_are_numbered() -> None:
    found = codes(find_ramps(colours(DB32)))
    assert found["black"] == "000000"
    assert found["grey"] == "323c39 595652 696a6a 847e87 9badb7 ffffff"
    assert found["blue"] == "222034 3f3f74 5b6ee1 639bff cbdbfc"  # the longer ramp keeps the plain name
    assert found["blue-2"] == "306082 5fcde4"
    assert "663931 8f563b df7126 d9a066 eec39a" in found.values()  # from red-brown to pale orange
    assert found["red"] == "ac3232 d95763"


@given(COLOURS)
@settings(max_examples=15, deadline=None)
def test_each_colour_is_in_one_ramp_from_dark_to_light(chosen: list[tuple[int, int, int]]) -> None:
    ramps = find_ramps(np.array(chosen, np.uint8))
    held = [tuple(colour) for ramp in ramps for colour in ramp.colours.tolist()]
    assert sorted(held) == sorted(chosen)
    assert len({ramp.name for ramp in ramps}) == len(ramps)
    assert all((np.diff(to_oklab(ramp.colours)[:, 0]) >= 0).all() for ramp in ramps)


def test_a_large_palette_has_each_colour_in_one_ramp() -> None:
    many = np.unique(np.random.default_rng(0).integers(0, 256, (4096, 3), np.uint8), axis=0)
    ramps = find_ramps(many)
    assert len(ramps) < 128 and np.array_equal(
        np.unique(np.concatenate([ramp.colours for ramp in ramps]), axis=0), many
    )


def test_a_colour_moves_to_another_ramp_or_to_a_new_one() -> None:
    ramps = find_ramps(colours(KNIGHT))
    moved = move_colour(ramps, colours("bf0201")[0], "yellow")
    assert codes(moved)["red"] == "1c0000 3b0000 7f0100"
    assert codes(moved)["yellow"] == "bf0201 7b6a1b bd9c3c f1c14a fefe1f"
    assert codes(move_colour(moved, colours("bf0201")[0], "red")) == codes(ramps)
    assert codes(move_colour(ramps, colours("000000")[0], "mine"))["mine"] == "000000"
    assert "black" not in codes(move_colour(ramps, colours("000000")[0], "mine"))  # empty


def test_ramps_of_sprites_ignore_transparent_pixels() -> None:
    rgba = np.zeros((1, 2, 2, 4), np.uint8)
    with pytest.raises(BadInputError, match="no opaque pixels"):
        ramps_of_sprites(rgba)
    rgba[0, 0] = 200, 20, 20, 255
    assert codes(ramps_of_sprites(rgba)) == {"red": "c81414"}


def test_an_unknown_name_is_answered_with_the_known_names() -> None:
    ramps = find_ramps(colours(KNIGHT))
    assert ramp_named(ramps, " Blue ", "knight").name == "blue"
    with pytest.raises(BadInputError, match="'knight' has no ramp 'pink'") as refused:
        ramp_named(ramps, "pink", "knight")
    assert refused.value.hint == "Its ramps: black, red, yellow, blue."
