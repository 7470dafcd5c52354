"""The bar for changed import settings previews, applies and discards them."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.page import SpritesPage
from studio.app.state.session import Session
from tests.app.conftest import LONG_MS, click, show_alone


@pytest.fixture
def page(qtbot: QtBot, session: Session, sprite_folder: Path) -> SpritesPage:
    made = show_alone(qtbot, session, SpritesPage)
    with qtbot.waitSignal(session.open_sprites.imported, timeout=LONG_MS):
        session.open_sprites.open_paths([sprite_folder])
    return made


def field(page: SpritesPage, name: str) -> QSpinBox:
    found = page.summary.form.findChild(QSpinBox, name)
    assert found is not None
    return found


def test_changed_colours_are_previewed_and_applied(qtbot: QtBot, page: SpritesPage) -> None:
    bar, opened = page.changed_settings, page.session.open_sprites
    assert not bar.isVisible()
    field(page, "colours_each").setValue(1)
    assert bar.isVisible()
    qtbot.waitUntil(lambda: bar.facts() == "24 of 24 sprites change.", timeout=LONG_MS)
    assert bar.pairs[0].isVisible() and "→ 1 colours" in bar.pairs[0].accessibleDescription()
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        click(bar.apply)
    assert opened.options.colours_each == 1 and not bar.isVisible()


def test_discard_shows_the_settings_of_the_open_sprites(page: SpritesPage) -> None:
    bar = page.changed_settings
    field(page, "class_levels").setValue(1)
    assert bar.isVisible() and not bar.pairs[0].isVisible()
    click(bar.discard)
    assert field(page, "class_levels").value() == 2 and not bar.isVisible() and not page.session.open_sprites.is_busy()
