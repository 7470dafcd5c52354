"""The window of the guide: topics, links, search and pictures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage, QTextDocument
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.guide_window import GuideWindow
from studio.core import guide


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[GuideWindow]:
    host = QWidget()
    qtbot.addWidget(host)
    made = GuideWindow(host)
    made.show()
    yield made
    made.close()


def _title(window: GuideWindow) -> str:
    return window.view.document().firstBlock().text()


def test_topics_have_room_for_their_titles(window: GuideWindow) -> None:
    assert window.tree.sizeHintForColumn(0) <= window.tree.viewport().width() < window.view.width()


def test_a_topic_opens_at_its_section_and_back_returns(window: GuideWindow) -> None:
    window.show_topic("")
    assert _title(window) == "Guide" and not window.back.isEnabled()
    window.show_topic("troubleshooting#out-of-memory")
    assert _title(window) == "Troubleshooting"
    assert [item.text(0) for item in window.tree.selectedItems()] == ["Out of memory"]
    window.back.click()
    assert _title(window) == "Guide"
    window.forward.click()
    assert _title(window) == "Troubleshooting"


def test_links_open_topics_of_the_guide(window: GuideWindow, qtbot: QtBot) -> None:
    window.show_topic("")
    name = guide.topic_names()[1]
    window.view.anchorClicked.emit(QUrl(f"{name}.md"))
    assert _title(window) == guide.sections_of(guide.topic_text(name))[0].title


def test_search_lists_sections_and_marks_the_words(window: GuideWindow, qtbot: QtBot) -> None:
    window.search.setText("out of memory")
    titles = [item.text(0) for item in window.tree.findItems("*", Qt.MatchFlag.MatchWildcard)]
    assert "Troubleshooting" in titles and len(titles) < len(guide.topic_names())
    qtbot.keyClick(window.search, Qt.Key.Key_Return)
    assert window.view.extraSelections()
    window.search.setText("no such words anywhere")
    assert window.tree.topLevelItemCount() == 0 and window.none.isVisible()
    window.search.clear()
    assert window.tree.topLevelItemCount() == len(guide.topic_names()) and not window.view.extraSelections()


def test_pictures_fit_the_view_and_follow_the_theme(window: GuideWindow, qapp: QApplication) -> None:
    window.show_topic("first-model")
    kind = QTextDocument.ResourceType.ImageResource.value
    schemes: tuple[theme.Scheme, ...] = ("dark", "light")
    shown = []
    for scheme in schemes:
        theme.apply(qapp, scheme)
        shown.append(window.view.loadResource(kind, QUrl("../screenshots/train-light.png")))
    assert all(isinstance(picture, QImage) and 0 < picture.width() < window.view.width() for picture in shown)
    dark, light = (picture.pixelColor(2, 2).lightness() for picture in shown)
    assert light > 128 > dark
