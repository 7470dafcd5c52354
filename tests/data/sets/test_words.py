"""Names of sprites, taken apart into set, row and column."""

from __future__ import annotations

import pytest

from studio.data.sets.layout import Place
from studio.data.sets.words import SpriteName, Words, natural, parse


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("knight_walk_left_2.png", ("knight", "left", "walk2")),
        ("mon/KnightLeft02.png", ("mon/Knight", "left", "2")),
        ("knight-2 (back).png", ("knight-2", "back", "")),
        ("knight_2_walk_1_left.png", ("knight_2", "left", "walk1")),
        ("up_left/Big Orc.png", ("Big Orc", "up-left", "")),
        ("orc/walk/left/3.png", ("orc", "left", "walk3")),
        ("orc/idle_2.png", ("orc", "idle", "2")),
        ("hero.aseprite#walk left 2", ("hero", "left", "walk2")),
        ("hero.aseprite#spin 2", ("hero", "spin", "2")),
        ("hero_left.ase#frame 3", ("hero", "left", "3")),
        ("hero_left.gif#frame 03", ("hero", "left", "3")),
        ("all.png#orc/left_2", ("all/orc", "left", "2")),
        ("all.png#2/down/step2", ("all/2", "down", "step2")),
        ("all.png#walk/left/2", ("all", "left", "walk2")),
        ("upper_back_alley/backpack.png", None),
        ("brick_brown_3.png", None),
        ("left.png", None),
        ("sheet.png#r1 c2", None),
    ],
)
def test_parse(name: str, place: tuple[str, str, str] | None) -> None:
    assert parse(SpriteName.of(name), Words()) == place


def test_a_number_alone_is_a_frame_or_the_set() -> None:
    name = SpriteName.of("chars/left/12.png")
    assert parse(name, Words()) == ("chars", "left", "12")
    assert parse(name, Words(), numbers_are_frames=False) == ("chars/12", "left", "")


def test_words_in_file_names_can_be_ignored() -> None:
    assert parse(SpriteName.of("left/up.png"), Words(), only_folders=True) == ("up", "left", "")
    assert parse(SpriteName.of("left/all.png#up"), Words(), only_folders=True) == ("all/up", "left", "")


def test_single_letters_are_views_if_all_four_occur() -> None:
    three = [SpriteName.of(f"orc_{letter}.png") for letter in "nes"]
    assert parse(three[0], Words.of((), (), three)) is None
    four = [*three, SpriteName.of("orc_W.png")]
    assert [parse(name, Words.of((), (), four)) for name in four][3] == ("orc", "w", "")


def test_the_poses_of_a_walk_take_turns() -> None:
    columns = ["walk1", "step3", "stand", "step2", "idle", "stand2", "step"]
    ordered = sorted((Place("o", "up", column) for column in columns), key=Words().order)
    assert [place.column for place in ordered] == ["stand", "step", "stand2", "step2", "step3", "idle", "walk1"]


def test_cells_are_sorted_by_direction_action_and_number() -> None:
    names = ["o_walk_up_2", "o_walk_up_10", "o_idle_up", "o_up_left", "o_left", "o_down", "o_left_1"]
    places = [place for name in names if (place := parse(SpriteName.of(name), Words())) is not None]
    ordered = sorted(places, key=Words().order)
    assert [place.cell for place in ordered] == [
        "down",
        "up/idle",
        "up/walk2",
        "up/walk10",
        "left",
        "left/1",
        "up-left",
    ]
    assert sorted(["b10", "b9", "a"], key=natural) == ["a", "b9", "b10"]


def test_odd_names() -> None:
    digits = "9" * 5000
    odd = ["²_left_²/³.png", "left/²", "\udce9_left_٣.png", "#", "//left//", ".png#", "a.png#"]
    for text in (f"{digits}_left_{digits}.png", *odd):
        place = parse(SpriteName.of(text), Words())
        assert place is None or Words().order(place)
    assert parse(SpriteName.of("left/²"), Words()) == ("²", "left", "")


def test_names_are_split() -> None:
    assert SpriteName.of("a/b#1.PNG#r2 c10") == (("a",), "b#1", ".png", "r2 c10")
    assert SpriteName.of("a/b#1.PNG#r2 c10").tile == (1, 9) and SpriteName.of("a.b/c").path == "a.b/c"
