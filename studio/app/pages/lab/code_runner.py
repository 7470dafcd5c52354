"""An editable program with buttons to run it in a child process, to stop it and to restore it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QScrollArea, QWidget

from studio.app import keys
from studio.app.state.code_run import CodeRun
from studio.app.state.late import learning
from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.tab_order import TAB_REASONS
from studio.core.formatting import duration

_INDENT = 4 * " "
_LEAST_LINES, _MOST_LINES, _OUTPUT_LINES = 4, 80, 12
_NO_CODE = "There is no code."


class CodeEditor(QPlainTextEdit):
    """A field for Python code. Enter keeps the indentation, Backspace removes a level, Tab leaves the field."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setFont(factory.code_font())
        self.setTabChangesFocus(True)
        factory.set_name_and_tip(self, name, tip)
        # A timer, because a new height within a resize event would leave the text's area at its old height.
        self._refit = QTimer(self, singleShot=True, interval=0)
        self._refit.timeout.connect(self.fit)
        self.textChanged.connect(self.fit)
        self.cursorPositionChanged.connect(self._follow_cursor)

    @Slot()
    def _follow_cursor(self) -> None:
        """Scroll the page to the cursor: the field shows all lines and does not scroll by itself."""
        if self.hasFocus():
            scroll_page(self, self.cursorRect().top(), self.cursorRect().bottom())

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the whole field when Tab moves the focus here."""
        super().focusInEvent(event)
        if event.reason() in TAB_REASONS:
            scroll_page(self, 0, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._refit.start()

    @Slot()
    def fit(self) -> None:
        """Give the field the height of its lines, wrapped lines included."""
        layout, block, height = self.document().documentLayout(), self.document().begin(), 0.0
        while block.isValid():
            height += layout.blockBoundingRect(block).height()
            block = block.next()
        line = self.fontMetrics().lineSpacing()
        self.setFixedHeight(round(min(max(height, _LEAST_LINES * line), _MOST_LINES * line)) + 3 * factory.GRID)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Indent a new line as the line before, deeper after a colon; Backspace removes a level of indentation."""
        cursor = self.textCursor()
        text, at = cursor.block().text(), cursor.positionInBlock()
        before, after = text[:at], text[at:]
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers():
            indent = before[: len(before) - len(before.lstrip())]
            if not cursor.hasSelection():
                blanks = len(after) - len(after.lstrip())
                cursor.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor, blanks)
            cursor.insertText("\n" + indent + (_INDENT if before.rstrip().endswith(":") else ""))
            self.setTextCursor(cursor)
        elif event.key() == Qt.Key.Key_Backspace and before.endswith(_INDENT) and before.isspace():
            if not cursor.hasSelection():
                cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, len(_INDENT))
            cursor.removeSelectedText()
        else:
            super().keyPressEvent(event)


def scroll_page(part: QWidget, top: int, bottom: int) -> None:
    """Scroll the page to the rows of pixels from `top` to `bottom` of a part; the top wins if the page is too low."""
    area = part.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    content = area.widget() if area is not None else None
    if area is not None and content is not None:
        for y in (bottom, top):
            place = part.mapTo(content, QPoint(0, y))
            area.ensureVisible(place.x(), place.y(), 0, factory.GRID)


class CodeRunner(QWidget):
    """An editable program with its output. A page connects `start_requested` to a run."""

    start_requested = Signal(str)  # the code to run

    def __init__(self, run: CodeRun, name: str, verb: str, tip: str) -> None:
        super().__init__()
        self.run = run
        self._original, self._obstacle = "", ""
        self.editor = CodeEditor(name, f"{name}; Ctrl+Enter runs the code, Tab leaves the field.")
        self.start = factory.button(verb, tip, "play", slot=self._on_start_clicked)
        self.stop = factory.button("Stop", "Stop the program.", "stop", slot=self._on_stop_clicked)
        NoSecondPress(self.stop)
        self.reset = factory.button("Reset", "Restore the original code.", "undo", slot=self._on_reset_clicked)
        self.state = factory.text()
        self.output = factory.code_view("Output", "Text that the program has printed.")
        self.output.setTabChangesFocus(True)
        self.output.hide()
        self._scroll = QTimer(self, singleShot=True, interval=0)  # once the page has its new height
        self._scroll.timeout.connect(self._show_output)
        buttons = factory.row(self.start, self.stop, self.reset, self.state, grows=3)
        self.setLayout(factory.column(self.editor, buttons, self.output))
        keys.fixed_shortcut("Ctrl+Return", self.editor, self._on_start_clicked)
        self.editor.textChanged.connect(self._on_edited)
        run.changed.connect(self._on_run_changed)
        self._refresh()

    def show_code(self, original: str) -> None:
        """Stop the shown program and show another program. original: the code that Reset restores."""
        self.run.clear()
        self.show_run(self.run, original)

    def show_run(self, run: CodeRun, original: str, code: str = "") -> None:
        """Show a run's program and output; the formerly shown run goes on.

        original: code that Reset restores. code: the program of a run without edits; '' for `original`.
        """
        self.run.changed.disconnect(self._on_run_changed)
        self.run, self._original = run, original
        run.changed.connect(self._on_run_changed)
        with QSignalBlocker(self.editor):  # not an edit of the user
            self.editor.setPlainText(code or original if run.code is None else run.code)
        self.editor.fit()
        self._refresh()

    def set_obstacle(self, reason: str) -> None:
        """Disable the start button and show the reason, a sentence; '' enables the button."""
        self._obstacle = reason
        self._refresh()

    def original(self) -> str:
        """Return the code that Reset restores."""
        return self._original

    def replace_code(self, code: str) -> None:
        """Replace the code in the editor, as an edit that Ctrl+Z undoes."""
        cursor = self.editor.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(code)

    def _fit_output(self) -> None:
        lines = min(_OUTPUT_LINES, self.run.output.count("\n") + 1)
        bar = self.output.horizontalScrollBar().sizeHint().height()
        self.output.setFixedHeight(lines * self.output.fontMetrics().lineSpacing() + 3 * factory.GRID + bar)

    @Slot()
    def _on_start_clicked(self) -> None:
        if self.start.isEnabled():
            self.start_requested.emit(self.editor.toPlainText())

    @Slot()
    def _on_stop_clicked(self) -> None:
        self.run.stop()

    @Slot()
    def _on_edited(self) -> None:
        self.run.code = self.editor.toPlainText()
        self._refresh()

    @Slot()
    def _on_reset_clicked(self) -> None:
        self.replace_code(self._original)

    @Slot()
    def _refresh(self) -> None:
        run, code = self.run, self.editor.toPlainText()
        reason = "The program is running." if run.is_running() else self._obstacle or ("" if code.strip() else _NO_CODE)
        start, stop = (self.start, reason), (self.stop, "" if run.is_running() else "No program is running.")
        pressed, following = (start, stop) if run.is_running() else (stop, start)
        factory.set_enabled(*following)
        if pressed[0].hasFocus():  # before the pressed button is disabled: the focus might go to Reset
            following[0].setFocus()
        factory.set_enabled(*pressed)
        factory.set_enabled(self.reset, "" if code != self._original else "The code is unchanged.")
        self.state.setText(self._state())
        if run.output != self.output.toPlainText():
            self.output.setPlainText(run.output)
            self._fit_output()
            self.output.verticalScrollBar().setValue(self.output.verticalScrollBar().maximum())
        self.output.setVisible(bool(run.output))

    @Slot()
    def _on_run_changed(self) -> None:
        self._refresh()
        self._scroll.start()

    @Slot()
    def _show_output(self) -> None:
        """Scroll the page to the output, unless the user edits a running program or works elsewhere on the page."""
        focused = self.window().focusWidget()
        is_edited = self.editor.hasFocus() and self.run.is_running()
        if focused is not None and self.isAncestorOf(focused) and not is_edited:
            scroll_page(self, self.start.y(), self.height())

    def _state(self) -> str:
        run, done = self.run, self.run.done
        if run.is_running():
            return "Loading PyTorch…" if run.is_loading else f"Running, for at most {duration(learning.CODE_LIMIT_S)}…"
        if run.is_cancelled:
            return "Stopped."
        if done is None:
            return ""
        if done.error or done.problem:
            return done.error or f"Not solved yet. {done.problem}"
        return "Solved." if done.is_checked else f"Finished in {duration(done.took_s)}."
