"""The dialog with the past messages of the session."""

from collections.abc import Iterable
from datetime import datetime
from html import escape

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QTextEdit, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.core.events import Notice

_LEVELS = {"error": "Error", "warning": "Warning"}
_MESSAGE = '<p style="margin-bottom: 12px"><span style="color: {muted}">{heading}</span><br><b>{title}</b> {hint}</p>'


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
