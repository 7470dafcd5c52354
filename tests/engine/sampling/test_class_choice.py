"""Parse typed class names, mixtures and attributes."""

from __future__ import annotations

import unicodedata

import pytest

from studio.core.errors import UsageError
from studio.engine.sampling import class_choice
from studio.engine.sampling.class_choice import attributes_text, find_class, mixture_text, read_attributes, read_mixture


def test_a_last_folder_names_its_only_class() -> None:
    assert find_class(("items/sword", "items/potion"), "potion") == 1


def test_a_full_name_comes_before_a_last_folder() -> None:
    assert find_class(("items/sword", "sword"), "sword") == 1
    assert find_class(("items/sword", "sword"), "items/sword") == 0


def test_a_last_folder_of_several_classes_is_an_error_that_lists_them() -> None:
    with pytest.raises(UsageError, match="2 classes of the model are named 'sword'") as caught:
        find_class(("items/sword", "heroes/sword", "items/potion"), "sword")
    assert caught.value.hint == "Give the full name: items/sword, heroes/sword."


def test_an_unknown_class_is_an_error_that_lists_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_choice, "_MAX_LISTED", 1)
    with pytest.raises(UsageError, match="unicorn") as caught:
        find_class(("sword", "potion"), "unicorn")
    assert caught.value.hint == "Its classes: sword and 1 more."


def test_both_spellings_of_an_accent_name_one_class() -> None:
    typed_on_macos = unicodedata.normalize("NFD", "épées")
    assert find_class(("potions", "épées"), typed_on_macos) == 1
    assert find_class(("potions", typed_on_macos), "épées") == 1  # run.json of an older version


@pytest.mark.parametrize("name", ["sword", "a, b", "axe:2", 'the "old" one', '"', " blank ", "a,b:0.5,c"])
def test_any_class_name_can_be_mixed(name: str) -> None:
    shares = {name: 70.0, "potion": 30.0}
    assert read_mixture(mixture_text(shares)) == list(shares.items())


def test_mixtures_may_have_quotes_and_spaces() -> None:
    assert read_mixture('"swords, long": 0.6, potion:0.4 ') == [("swords, long", 0.6), ("potion", 0.4)]


@pytest.mark.parametrize("text", ["sword", "sword:", ":1", "sword:1,", "sword:-1", "sword:nan", "sword:inf", "a\nb:1"])
def test_malformed_mixtures_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"[Mm]ixture"):
        read_mixture(text)


_KNOWN = {"element": ("fire", "ice, cold"), "kind": ("shield", "sword")}


@pytest.mark.parametrize("chosen", [{}, {"element": "ice, cold"}, {"element": "fire", "kind": "sword"}])
def test_attributes_survive_their_text(chosen: dict[str, str]) -> None:
    assert read_attributes(attributes_text(chosen), _KNOWN) == chosen if chosen else not attributes_text(chosen)


def test_any_leaves_an_attribute_open() -> None:
    assert read_attributes("element=any,kind = shield", _KNOWN) == {"kind": "shield"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fire", "'fire' is not an attribute with a value"),
        ("colour=red", "no attribute 'colour'"),
        ("element=stone", "'element' has no value 'stone'"),
        ("kind=sword,kind=shield", "can't be both kind=sword and kind=shield"),
    ],
)
def test_attributes_that_a_sprite_can_not_have(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_attributes(text, _KNOWN)
