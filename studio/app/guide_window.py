"""The window that shows the user guide, with a search field."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from PySide6.QtCore import QEvent, QSignalBlocker, QSize, Qt, QUrl, Slot
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QImage,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)
from PySide6.QtWidgets import (
    QLineEdit,
    QSplitter,
    QTextBrowser,
    QTextEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QTreeWidgetItemIterator,
    QWidget,
)

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.core import guide

_LINK = Qt.ItemDataRole.UserRole  # of an item in the tree: 'topic.md#anchor'
_CSS = """
h1, h2, h3 {{ font-weight: 600; margin-top: 16px; }}
p, li {{ line-height: 130%; }}
li {{ margin-bottom: 4px; }}
a {{ color: {accent}; text-decoration: none; }}
code, pre {{ font-family: monospace; background: {window}; }}
pre {{ white-space: pre-wrap; }}
table {{ border-collapse: collapse; margin-bottom: 12px; }}
th {{ text-align: left; color: {muted}; }}
th, td {{ padding: 4px 14px 4px 0; vertical-align: top; border-bottom: 1px solid {border}; }}
"""
_HTML = QTextDocument.ResourceType.HtmlResource
_MARGIN_PX = 24  # around the text
_SCROLL_BAR_PX = 16  # room for the scroll bar, so that a picture does not make it appear


class GuideView(QTextBrowser):
    """A topic of the guide in the theme's colours. Web links open in the web browser."""

    def __init__(self) -> None:
        super().__init__()
        self._markdown = MarkdownIt("commonmark").enable("table")
        self._pictures: dict[Path, QImage] = {}  # in full size
        self._words: Sequence[str] = ()
        self.setOpenLinks(False)
        self.setWordWrapMode(QTextOption.WrapMode.WordWrap)  # never inside a word: wide tables scroll sideways
        factory.set_name_and_tip(self, "Topic of the guide", "Links open other topics.")
        self.document().setDocumentMargin(_MARGIN_PX)
        self._apply_theme()
        self.anchorClicked.connect(self._on_link_clicked)
        self.sourceChanged.connect(self._mark_words)

    def mark(self, words: Sequence[str]) -> None:
        """Mark each occurrence of the words in this topic and in topics shown later."""
        self._words = words
        self._mark_words()

    def open(self, link: str) -> None:
        """Show a topic and scroll to a section: 'train.md' or 'train.md#pause'."""
        self.setSource(self.source().resolved(QUrl(link)), _HTML)

    def loadResource(self, type: int, name: QUrl | str) -> Any:  # noqa: A002
        """Return a topic as HTML, or a picture of a topic. Called by Qt."""
        path = QUrl(name).path()
        return self._html(guide.topic_text(Path(path).stem)) if path.endswith(".md") else self._picture(path)

    def _picture(self, name: str) -> QImage:
        """Return a picture, at most as wide as the view. The dark theme prefers 'x-dark.png' to 'x-light.png'."""
        path = (guide.folder() / name).resolve()
        dark = path.with_name(path.name.replace("-light.", "-dark."))
        if theme.colours().dark and dark.is_file():
            path = dark
        if path not in self._pictures:
            self._pictures[path] = QImage(str(path))
        picture, ratio = self._pictures[path], self.devicePixelRatioF()
        width_px = min(picture.width(), self.viewport().width() - 2 * _MARGIN_PX - _SCROLL_BAR_PX)
        shown = picture.scaledToWidth(round(width_px * ratio), Qt.TransformationMode.SmoothTransformation)
        shown.setDevicePixelRatio(ratio)
        return shown

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_again()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._show_again()

    def _show_again(self) -> None:
        """Show the topic in new colours or another width, at the same position."""
        if not self.source().isEmpty():
            bar = self.verticalScrollBar()
            share = bar.value() / max(1, bar.maximum())
            self._apply_theme()
            self.reload()
            bar.setValue(round(share * bar.maximum()))

    def _apply_theme(self) -> None:
        self.document().setDefaultStyleSheet(_CSS.format_map(asdict(theme.colours())))

    def _html(self, text: str) -> str:
        """Convert Markdown to HTML with an anchor at each heading."""
        tokens = self._markdown.parse(text)
        for token, following in itertools.pairwise(tokens):
            if token.type == "heading_open":
                token.attrSet("id", guide.anchor_of(following.content))
            elif token.type == "paragraph_open" and following.children and following.children[0].type == "image":
                token.attrSet("style", "line-height: 100%")  # else a third of the picture's height stays empty
            elif token.type == "fence":
                token.content = token.content.rstrip("\n")  # Qt would show an empty line
        return str(self._markdown.renderer.render(tokens, self._markdown.options, {}))

    @Slot()
    def _mark_words(self) -> None:
        marks = []
        for word in self._words:
            cursor = self.document().find(word)
            while not cursor.isNull():
                marks.append(_mark(cursor))
                cursor = self.document().find(word, cursor)
        self.setExtraSelections(marks)

    @Slot(QUrl)
    def _on_link_clicked(self, link: QUrl) -> None:
        if link.scheme():
            QDesktopServices.openUrl(link)
        else:
            self.open(link.toString())


def _mark(cursor: QTextCursor) -> QTextEdit.ExtraSelection:
    """Return a highlight of the cursor's selection."""
    mark, colours = QTextEdit.ExtraSelection(), theme.colours()
    form = QTextCharFormat()
    form.setBackground(QColor(colours.accent))
    form.setForeground(QColor(colours.on_accent))
    mark.cursor, mark.format = cursor, form
    return mark


class GuideWindow(Dialog):
    """The guide: its topics and their sections on the left, the shown topic on the right."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Guide", parent)
        self._topics = guide.topics()
        self.search = QLineEdit(placeholderText="Search the guide", clearButtonEnabled=True)
        self.tree = QTreeWidget()
        self.view = GuideView()
        self.none = factory.caption("No section has these words.")
        self.back = factory.tool_button("chevron-left", "Back", "Previous topic. (Alt+Left)", self.view.backward)
        self.forward = factory.tool_button("chevron-right", "Forward", "Next topic. (Alt+Right)", self.view.forward)
        factory.set_name_and_tip(self.search, "Search the guide", "Show only sections with all these words.")
        factory.set_name_and_tip(self.tree, "Topics", "Topics of the guide and their sections.")
        self.tree.setHeaderHidden(True)
        for button in (self.back, self.forward):
            button.setEnabled(False)
        left = factory.column(factory.row(self.search, self.back, self.forward, grows=0), self.tree, self.none)
        sides = QSplitter(childrenCollapsible=False)
        sides.addWidget(factory.panel(left))
        sides.addWidget(self.view)
        sides.setStretchFactor(1, 1)
        self.setLayout(factory.column(sides, margin=factory.GRID))
        self.resize(QSize(980, 680).boundedTo(parent.size()))
        self._fill("")
        self.tree.ensurePolished()  # sets the font, which the width depends on
        bar, frame = self.tree.verticalScrollBar().sizeHint().width(), 2 * self.tree.frameWidth()
        sides.setSizes([self.tree.sizeHintForColumn(0) + bar + frame, 700])
        self.view.backwardAvailable.connect(self.back.setEnabled)
        self.view.forwardAvailable.connect(self.forward.setEnabled)
        self.view.sourceChanged.connect(self._on_source_changed)
        self.search.textChanged.connect(self._fill)
        self.search.returnPressed.connect(self._on_search_entered)
        self.tree.currentItemChanged.connect(self._on_item_chosen)

    def show_topic(self, link: str) -> None:
        """Show a topic, such as 'train' or 'train#pause'; '' shows the index."""
        name, sign, anchor = (link or guide.INDEX).partition("#")
        self.view.open(f"{name}.md{sign}{anchor}")

    @Slot(str)
    def _fill(self, text: str) -> None:
        """List all topics, or only the sections with all words of `text`."""
        words = text.casefold().split()
        with QSignalBlocker(self.tree):
            self.tree.clear()
            for topic in self._topics:
                sections = topic.matching(words)
                if sections:
                    top = _item(self.tree, topic.title, f"{topic.name}.md")
                    for section in sections:
                        if section.level > 1:
                            _item(top, section.title, f"{topic.name}.md#{section.anchor}")
                    top.setExpanded(bool(words))
        self.none.setVisible(not self.tree.topLevelItemCount())
        self.view.mark(words)

    @Slot()
    def _on_search_entered(self) -> None:
        """Open the first section found."""
        top = self.tree.topLevelItem(0)
        if top is not None:
            self.tree.setCurrentItem(top.child(0) or top)

    @Slot(QTreeWidgetItem)
    def _on_item_chosen(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.view.open(item.data(0, _LINK))

    @Slot(QUrl)
    def _on_source_changed(self, source: QUrl) -> None:
        """Select the shown section in the tree."""
        with QSignalBlocker(self.tree):
            found = QTreeWidgetItemIterator(self.tree)
            while (item := found.value()) is not None and QUrl(item.data(0, _LINK)) != source:
                found += 1
            self.tree.setCurrentItem(item)


def _item(parent: QTreeWidget | QTreeWidgetItem, title: str, link: str) -> QTreeWidgetItem:
    item = QTreeWidgetItem(parent, [title])
    item.setData(0, _LINK, link)
    return item
