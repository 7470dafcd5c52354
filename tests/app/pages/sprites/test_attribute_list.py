"""Attributes on the Sprites page: offered, filtered, set, renamed, removed and undone."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtWidgets import QApplication, QDialog
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.attribute_dialogs import RenameDialog, ValueDialog
from studio.app.pages.sprites.attribute_list import AttributeList
from studio.app.pages.sprites.page import SpritesPage
from tests.app.conftest import LONG_MS, click, open_sprites, sprites_of
from tests.data.making import sprite, write

_EXACT = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
Kind = TypeVar("Kind", bound=QDialog)


@pytest.fixture
def shown(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> SpritesPage:
    """The Sprites page with two sprites of each kind and element."""
    for seed, (kind, element, number) in enumerate(product(("axes", "bows"), ("fire", "ice"), range(2))):
        write(tmp_path / f"items/{kind}/{element}/{number}.png", sprite(seed))
    open_sprites(qtbot, page.session, tmp_path / "items")
    return page


def accept(qtbot: QtBot, page: SpritesPage, names: str = "") -> None:
    """Accept the offer to read folders as attributes."""
    page.attribute_offer.names.setText(names or page.attribute_offer.names.text())
    with qtbot.waitSignal(page.session.open_sprites.imported, timeout=LONG_MS):
        click(page.attribute_offer.accept)


def dialog(kind: type[Kind]) -> Kind:
    (found,) = (each for each in QApplication.topLevelWidgets() if isinstance(each, kind) and each.isVisible())
    return found


def listed(attributes: AttributeList) -> list[str]:
    return [f"{item.text(0)} {item.text(1)}" for item in attributes.items]


def choose(attributes: AttributeList, *texts: str) -> None:
    """Select the items with these texts."""
    attributes.tree.clearSelection()
    for text in texts:
        (item,) = attributes.tree.findItems(text, _EXACT)
        attributes.tree.setCurrentItem(item, 0, QItemSelectionModel.SelectionFlag.Select)


def test_the_offer_reads_folders_with_edited_names(qtbot: QtBot, shown: SpritesPage) -> None:
    offer, attributes = shown.attribute_offer, shown.summary.attributes
    assert offer.isVisible() and attributes.isHidden()
    assert offer.text.text() == "Folders look like attributes: kind (axes, bows) and element (fire, ice)."
    offer.names.setText("kind,kind")
    click(offer.accept)
    assert offer.names.property("invalid") and "twice" in offer.names.toolTip()
    accept(qtbot, shown, "kind, magic")
    assert offer.isHidden() and attributes.isVisible()
    assert listed(attributes) == ["All values 8", "kind 8", "axes 4", "bows 4", "magic 8", "fire 4", "ice 4"]
    assert len(sprites_of(shown.session).class_names) == 4
    with qtbot.waitSignal(shown.session.open_sprites.imported, timeout=LONG_MS):
        shown.history.undo()
    assert attributes.isHidden() and offer.isVisible()
    click(offer.close_line)
    assert offer.isHidden()


def test_values_filter_the_sprites(qtbot: QtBot, shown: SpritesPage) -> None:
    accept(qtbot, shown)
    attributes, grid = shown.summary.attributes, shown.browser.grid
    choose(attributes, "fire")
    assert grid.visible_count() == 4
    choose(attributes, "fire", "bows")
    assert attributes.indices is not None and attributes.indices.tolist() == [4, 5]
    choose(attributes, "fire", "ice")
    assert grid.visible_count() == 8
    shown.summary.show_all()
    assert grid.visible_count() == 8 and attributes.tree.selectedItems() == attributes.items[:1]
    assert not attributes.rename.isEnabled()


def test_a_value_for_the_selection_a_new_name_and_undo(qtbot: QtBot, shown: SpritesPage) -> None:
    accept(qtbot, shown)
    imported, attributes = shown.session.open_sprites.imported, shown.summary.attributes
    setter = shown.selection.attribute_setter
    assert not setter.action.isEnabled() and "Select some" in setter.action.toolTip()
    shown.browser.grid.select([0, 7])
    setter.action.trigger()
    asked = dialog(ValueDialog)
    field = asked.value.lineEdit()
    assert field is not None and field.placeholderText() == "No value"  # Set is enabled, and removes the value
    asked.name.setEditText("a=b")
    click(asked.set_button)
    assert asked.name.property("invalid") and asked.isVisible()
    asked.name.setEditText("rarity")
    asked.value.setEditText(" rare ")
    with qtbot.waitSignal(imported, timeout=LONG_MS):
        click(asked.set_button)
    assert listed(attributes)[-3:] == ["rarity 2", "rare 2", "No rarity 6"]
    choose(attributes, "rarity")
    click(attributes.rename)
    named = dialog(RenameDialog)
    named.field.setText("kind")
    click(named.rename)
    assert "exists already" in named.field.toolTip()
    named.field.setText("rank")
    with qtbot.waitSignal(imported, timeout=LONG_MS):
        click(named.rename)
    assert sprites_of(shown.session).attributes.of(7) == {"kind": "bows", "element": "ice", "rank": "rare"}
    choose(attributes, "ice")
    click(attributes.rename)
    named = dialog(RenameDialog)
    named.field.setText(" ")
    click(named.rename)
    assert "Type a name for the value" in named.field.toolTip()
    named.field.setText("frost")
    with qtbot.waitSignal(imported, timeout=LONG_MS):
        click(named.rename)
    assert sprites_of(shown.session).attributes.values[1] == ("fire", "frost")
    choose(attributes, "element")
    with qtbot.waitSignal(imported, timeout=LONG_MS):
        click(attributes.remove)
    assert sprites_of(shown.session).attributes.names == ("kind", "rank")
    for _ in range(4):
        with qtbot.waitSignal(imported, timeout=LONG_MS):
            shown.history.undo()
    assert sprites_of(shown.session).attributes.names == ("kind", "element")
