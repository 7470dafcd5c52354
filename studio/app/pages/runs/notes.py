"""Tags and note of the selected run, in a row that grows with the note."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QSizePolicy, QWidget

from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core.errors import UsageError
from studio.engine.runs.listing import RunSummary
from studio.engine.runs.notes import MAX_NOTE_LENGTH, RunNotes, check_notes, split_tags

_TAGS = "Tags, such as boss or too-wide. Filter by 'tag:boss'."
_NOTE = "Your note, stored in the run's folder."
_TAGS_PX = 220
_MOST_LINES = 3  # more lines scroll
_STORE_MS = 500  # delay after typing
_AROUND_PX = 14  # margin, padding and border: a single line gets the height of the tags field


class NoteField(QPlainTextEdit):
    """A text field as high as its text, up to three lines."""

    left = Signal()  # the field lost the focus

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(1)
        self.document().documentLayout().documentSizeChanged.connect(self._fit_height)
        self._fit_height()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()

    @Slot()
    def _fit_height(self) -> None:
        lines, policy = int(self.document().size().height()), Qt.ScrollBarPolicy
        scrolls = lines > _MOST_LINES
        self.setVerticalScrollBarPolicy(policy.ScrollBarAsNeeded if scrolls else policy.ScrollBarAlwaysOff)
        self.setFixedHeight(min(_MOST_LINES, max(1, lines)) * self.fontMetrics().lineSpacing() + _AROUND_PX)


class RunNotesRow(QWidget):
    """A run's tags and note. They are stored soon after typing, on losing the focus, and before closing."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._editor = session.run_notes
        self._shown: RunSummary | None = None
        self.tags = QLineEdit(placeholderText="Tags")
        self.note = NoteField()
        self.tags.setFixedWidth(_TAGS_PX)
        self.note.setPlaceholderText("Note")
        factory.set_name_and_tip(self.tags, "Tags", _TAGS)
        factory.set_name_and_tip(self.note, "Note", _NOTE)
        row = factory.row(self.tags, self.note)
        for field in (self.tags, self.note):
            row.setAlignment(field, Qt.AlignmentFlag.AlignTop)
        self._tags_error, self._note_error = factory.FieldError(self.tags, _TAGS), factory.FieldError(self.note, _NOTE)
        self.setLayout(factory.column(row, self._tags_error, self._note_error, spacing=4))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._store_timer = QTimer(self, singleShot=True, interval=_STORE_MS)
        self._store_timer.timeout.connect(self._store_valid)
        self.tags.textEdited.connect(self._store_later)
        self.note.textChanged.connect(self._store_later)
        self.tags.editingFinished.connect(self.store)
        self.note.left.connect(self.store)
        self.show_runs(())

    def show_runs(self, runs: Sequence[RunSummary]) -> None:
        """Show the selected run's tags and note; keep half-typed text of the same run."""
        run = runs[0] if len(runs) == 1 else None
        before = self._shown
        same = run is not None and before is not None and run.path == before.path
        if not same:
            self.store()
        tags, note = self._typed() if same else (None, None)
        self._shown = run
        known_tags, known_note = (run.notes.tags, run.notes.note) if run is not None else ((), "")
        # A trailing comma or blank is not stored, but stays visible while the user types.
        if tags is None and not (same and split_tags(self.tags.text()) == known_tags):
            self.tags.setText(", ".join(known_tags))
        if note is None and not (same and self._note() == known_note) and known_note != self.note.toPlainText():
            self.note.setPlainText(known_note)
        self._mark()

    @Slot()
    def _store_later(self) -> None:
        if not self._store_timer.isActive():
            self._store_timer.start()

    @Slot()
    def _store_valid(self) -> None:
        """Store valid fields; show the error at an invalid field."""
        self._mark()
        if not self._tags_error.text():
            self.store()

    @Slot()
    def store(self, *, now: bool = False) -> None:
        """Store the typed text in the background. now: store before returning, since the window is closing."""
        tags, note = self._typed()
        if self._shown is not None and (tags is not None or note is not None):
            change = self._editor.change_notes_now if now else self._editor.change_notes
            change(self._shown.path, note=note, tags=tags)

    def _mark(self) -> None:
        """Show an error under each invalid field. Without a run, disable the fields."""
        self._tags_error.show_reason(_problem_of(split_tags(self.tags.text())))
        is_long = len(self.note.toPlainText().strip()) > MAX_NOTE_LENGTH
        self._note_error.show_reason(f"Only the first {MAX_NOTE_LENGTH:,} characters are stored." if is_long else "")
        for field in (self.tags, self.note):
            field.setEnabled(self._shown is not None)
            if self._shown is None:
                field.setToolTip("Select one run.")

    def _typed(self) -> tuple[tuple[str, ...] | None, str | None]:
        """Return the fields' tags and note; None for unchanged values."""
        if self._shown is None:
            return None, None
        tags, note = split_tags(self.tags.text()), self._note()
        notes = self._shown.notes
        return None if tags == notes.tags else tags, None if note == notes.note else note

    def _note(self) -> str:
        """Return the note's text, stripped and cut to `MAX_NOTE_LENGTH` characters."""
        return self.note.toPlainText().strip()[:MAX_NOTE_LENGTH]


def _problem_of(tags: tuple[str, ...]) -> str:
    """Return why these tags can't be stored; '' for valid tags."""
    try:
        check_notes(RunNotes(tags=tags))
    except UsageError as error:
        return error.title
    return ""
