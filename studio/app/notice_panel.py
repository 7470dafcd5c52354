"""The widgets that show messages: a card, the list of all cards, a one-line label, and the dialog of past messages."""

from collections.abc import Callable, Iterable
from datetime import datetime
from html import escape

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QGuiApplication, QHideEvent, QPainter, QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QSizePolicy, QTextEdit, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.layout import SteadyWidth
from studio.core.events import Notice

_EXPIRY_MS = {"info": 4_000, "warning": 10_000}  # errors and messages with a button stay
_CUT_MS = 60_000  # more time for a message that the line does not show in full
_READING_MS = 75  # per character, for slow readers
_LEVELS = {"error": "Error", "warning": "Warning"}
_MESSAGE = '<p style="margin-bottom: 12px"><span style="color: {muted}">{heading}</span><br><b>{title}</b> {hint}</p>'


class NoticeCard(QFrame):
    """A card that shows a message in full: title, hint, details and buttons."""

    clicked = Signal()  # the first button
    other_clicked = Signal()  # the second button
    closed = Signal()  # remove the card

    def __init__(self, notice: Notice, details: str, button: str, other: str, *, expires: bool) -> None:
        super().__init__()
        title, hint = notice.title, notice.hint
        self.notice, self.level, self.texts = notice, notice.level, (title, hint)
        self.details, self.button, self.other = details, button, other
        self.is_cut = False  # the line has no room for the whole text
        self.was_read = False  # the list of all messages was opened
        self.holds: Callable[[], bool] = lambda: True  # False once the message is outdated
        self.expires = self.level in _EXPIRY_MS and expires  # after enough time to read it; errors never expire
        self._time_ms = _EXPIRY_MS.get(self.level, 0) + _READING_MS * len(title + hint)
        self.timer = QTimer(self, singleShot=True, interval=self._time_ms)
        self.timer.timeout.connect(self.closed)
        theme.set_role(self, "card")
        self.setAccessibleName(f"{title} {hint}")
        self._text = QPlainTextEdit(details, readOnly=True)
        factory.set_name_and_tip(self._text, "Details of the error", "Technical details for developers.")
        self._text.setFixedHeight(160)
        self._text.hide()
        tip = "Show technical details for developers."
        self._more = factory.button("Details", tip, slot=self._on_details_clicked)
        SteadyWidth(self._more, "Details", "Hide details")
        tip = "Copy the message and its details to the clipboard."
        self._copy = factory.button("Copy", tip, slot=self._on_copy_clicked)
        self._act = factory.button(button, f"{button}.", slot=self.click)
        self._other = factory.button(other, f"{other}.", slot=self.click_other)
        self._lay_out(title, hint)
        self._more.setVisible(bool(details))
        self._copy.setVisible(False)
        self._act.setVisible(bool(button))
        self._other.setVisible(bool(other))

    def _lay_out(self, title: str, hint: str) -> None:
        icon = QLabel()
        icon.setPixmap(self.icon_pixmap())
        headline, advice = factory.text(title, "heading"), factory.text(hint, "muted")
        for label in (headline, advice):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        close = factory.tool_button("close", "Close message", "Close this message.", self.closed)
        texts = factory.column(headline, advice, spacing=2)
        line = factory.row(icon, texts, self._act, self._other, self._more, self._copy, close, grows=1)
        for widget in (icon, self._act, self._other, self._more, self._copy, close):
            line.setAlignment(widget, Qt.AlignmentFlag.AlignTop)
        self.setLayout(factory.column(line, self._text, margin=(16, 8, 8, 8)))
        advice.setVisible(bool(hint))  # needs a parent first, else it flashes up as a window

    def icon_pixmap(self) -> QPixmap:
        return theme.icon(self.level, theme.level_colours(theme.colours())[self.level]).pixmap(20, 20)

    def count_down(self, counts: bool) -> None:
        """Restart the expiry timer if the message expires and `counts` is True; otherwise stop the timer."""
        if self.expires and counts:
            self.timer.start(self._time_ms + (_CUT_MS if self.is_cut and not self.was_read else 0))
        else:
            self.timer.stop()

    @Slot()
    def click(self) -> None:
        self.clicked.emit()
        self.closed.emit()

    @Slot()
    def click_other(self) -> None:
        self.other_clicked.emit()
        self.closed.emit()

    @Slot()
    def _on_details_clicked(self) -> None:
        shown = self._text.isHidden()
        self._text.setVisible(shown)
        self._copy.setVisible(shown)
        self._more.setText("Hide details" if shown else "Details")

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText("\n".join([*self.texts, self.details]))


class NoticePanel(QFrame):
    """A popup with all messages in full, newest first."""

    closed = Signal()  # the popup was hidden

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_NoMouseReplay)  # else the click that closes it opens it again
        self._box = factory.column(margin=factory.GRID)
        self.setLayout(self._box)

    def add(self, card: NoticeCard) -> None:
        """Add a message at the top."""
        self._box.insertWidget(0, card)

    def remove(self, card: NoticeCard) -> None:
        self._box.removeWidget(card)
        card.hide()
        card.deleteLater()

    def open_below(self, bar: QWidget) -> None:
        """Show the popup below `bar`, with the same width."""
        self.setFixedWidth(bar.width())
        self.resize(bar.width(), self._box.totalHeightForWidth(bar.width()))
        self.move(bar.mapToGlobal(bar.rect().bottomLeft()))
        self.show()

    def event(self, event: QEvent) -> bool:
        """Adjust the popup's height when the layout of the messages changes."""
        handled = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self.resize(self.width(), self._box.totalHeightForWidth(self.width()))
        return handled

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.closed.emit()


class NoticeLabel(QWidget):
    """A label that shows a message in one line: the title, then the hint, elided to the available width."""

    resized = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._title, self._hint = "", ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_message(self, title: str, hint: str) -> None:
        self._title, self._hint = title, hint
        self.update()

    def message_width(self) -> int:
        """Return the width of the full message in pixels."""
        return sum(self._widths())

    def title_px(self) -> int:
        """Return the title's width in pixels. A long title leaves up to half of the line to the hint."""
        (title, hint), room = self._widths(), self.width()
        return min(title, max(room // 2, room - hint))

    def sizeHint(self) -> QSize:
        return QSize(0, QFontMetrics(self._bold()).height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the title, then the hint, elided where the text does not fit."""
        painter, colours, left = QPainter(self), theme.colours(), 0
        title, hint = (self._title, self._bold(), colours.text), (self._hint, self.font(), colours.muted)
        for words, font, colour in (title, hint):
            metrics, room = QFontMetrics(font), self.width() - left
            painter.setFont(font)
            painter.setPen(colour)
            shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, room if left else self.title_px())
            painter.drawText(left, 0, room, self.height(), Qt.AlignmentFlag.AlignVCenter, shown)
            left += metrics.horizontalAdvance(shown) + 2 * factory.GRID

    def _widths(self) -> tuple[int, int]:
        """Return the widths in pixels of the full title, and of the full hint with the gap before it."""
        # One pixel more than horizontalAdvance, which rounds: elidedText would shorten the text.
        title = QFontMetrics(self._bold()).horizontalAdvance(self._title) + 1
        hint = 2 * factory.GRID + QFontMetrics(self.font()).horizontalAdvance(self._hint)
        return title, hint if self._hint else 0

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font


class MessageHistory(Dialog):
    """A list of messages with their times, newest first."""

    def __init__(self, messages: Iterable[tuple[datetime, Notice]], parent: QWidget) -> None:
        """Create the dialog. messages: oldest first."""
        super().__init__("Messages", parent)
        self.text = QTextEdit(readOnly=True)
        self.text.document().setDocumentMargin(2 * factory.GRID)
        self.text.setPlaceholderText("No messages yet.")
        factory.set_name_and_tip(self.text, "Messages", "The messages of this session, newest first.")
        self.text.setHtml("".join(map(_as_html, reversed(list(messages)))))
        close = factory.button("Close", "Close this list.", slot=self.reject)
        close.setDefault(True)
        self.setLayout(factory.column(self.text, factory.row(1, close), margin=2 * factory.GRID, grows=0))
        close.setFocus()

    def sizeHint(self) -> QSize:
        return QSize(640, 480)


def _as_html(message: tuple[datetime, Notice]) -> str:
    time, notice = message
    heading = " · ".join(filter(None, (f"{time:%H:%M:%S}", _LEVELS.get(notice.level))))
    title, hint = escape(notice.title), escape(notice.hint)
    return _MESSAGE.format(muted=theme.colours().muted, heading=heading, title=title, hint=hint)
