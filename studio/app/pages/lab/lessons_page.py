"""The lessons of the Lab page: the path with the learner's progress, and the chosen lesson."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QSplitter, QWidget

from studio.app import dialogs, keys, theme
from studio.app.pages.lab.lesson_view import SAVE_PAGE, LessonView
from studio.app.state.late import class_settings, lesson_records
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.tab_order import focus_part
from studio.core import files, formatting

_ABOUT = "Learn training by doing: predict, measure on your device, and solve an exercise."
_NAME = "Your name on the page to hand in. Each name has separate answers."
_OPEN = "Open a teacher's class file, with lessons, sprites and times for the class."
_LEAVE = "Leave the class and show all lessons."
_LIST = "Lessons in the order of the path. Enter goes to the chosen lesson."
_LOADING = "Loading PyTorch…"
_LESSON = "lesson"  # name in the settings
_LINES = 2  # per lesson in the list: title and progress


class LessonsPage(QWidget):
    """A tab of the Lab page: the list of lessons at the left, the chosen lesson at the right."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.title, self.about = factory.elided_title("Lessons"), factory.caption(_ABOUT)
        self.list = QListWidget()
        self.progress = factory.caption("")
        self.name = QLineEdit()
        self.save = factory.button(*SAVE_PAGE, slot=self._on_save_clicked)
        self.open_class = factory.button("Open class…", _OPEN, slot=self._on_open_class_clicked)
        self.leave_class = factory.button("Leave class", _LEAVE, slot=session.class_file.leave)
        self.view = LessonView(session)
        self._scroll = factory.scroll_area(self.view)
        loading = factory.panel(factory.column(factory.caption(_LOADING), 1, margin=2 * factory.GRID))
        self._right = factory.stack(loading, self._scroll)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        session.catalog.ready.connect(self._refresh)
        session.lessons.listed.connect(self._on_listed)
        session.lessons.changed.connect(self._refresh)
        session.lessons.switched.connect(self._on_switched)
        self.list.currentRowChanged.connect(self._show_lesson)
        for key in ("Return", "Enter"):
            keys.fixed_shortcut(key, self.list, self._focus_lesson)
        self.name.editingFinished.connect(self._on_name_edited)
        self.view.next_requested.connect(self._on_next_requested)
        self.view.save_requested.connect(self._on_save_clicked)
        self._on_listed()

    def before_show(self) -> None:
        """Load the answers again, since the command line may have added some."""
        self.view.before_show()
        if self.session.lessons.known():
            self.session.lessons.load_records()

    def save_state(self) -> None:
        """Store the layout and the edited code of exercises. Raises OSError."""
        self.session.lessons.save_drafts()
        self.session.settings.set_layout("lessons", self._splitter.saveState())

    def _lay_out(self) -> None:
        factory.set_name_and_tip(self.list, "Lessons", _LIST)
        self.list.setObjectName("lessons")
        self.list.setWordWrap(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSpacing(2)
        factory.set_name_and_tip(self.name, "Your name", _NAME)
        name = factory.labelled("Your name", self.name)
        buttons = factory.row(self.save, self.open_class, self.leave_class, spacing=4)
        left = factory.column(
            self.title, self.about, self.list, self.progress, name, buttons, margin=2 * factory.GRID, grows=2
        )
        parts = factory.panel(left), self._right
        factory.fill_splitter(self._splitter, parts, (300, 900), self.session.settings.layout("lessons"), stretch=1)
        self.setLayout(factory.column(self._splitter))

    @Slot()
    def _on_listed(self) -> None:
        """List the lessons of the class, or all lessons, and show the lesson that was shown last."""
        self.list.clear()
        for _ in self.session.lessons.known():
            item = QListWidgetItem(self.list)
            item.setTextAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
            item.setSizeHint(QSize(0, 2 * factory.GRID + _LINES * self.fontMetrics().lineSpacing()))
        self._right.setCurrentIndex(1 if self.list.count() else 0)
        self._refresh()
        names, last = [lesson.name for lesson in self.session.lessons.known()], self.session.settings.text(_LESSON)
        self.list.setCurrentRow(names.index(last) if last in names else 0)

    def _refresh_class(self) -> None:
        """Show the title and the settings of the class, and the button to open or to leave a class."""
        class_file, content = self.session.class_file, self.session.class_file.content
        self.title.show_text((content.title if content is not None else "") or "Lessons")
        self.about.setText(class_file.problem or _about(content))
        for button in (self.open_class, self.leave_class):
            factory.set_enabled(button, "" if self.session.catalog.lessons else _LOADING)
        buttons = self.open_class, self.leave_class
        factory.show_instead(*(reversed(buttons) if class_file.path() else buttons))
        needs_name = content is None or content.hand_in is not None
        self.name.setPlaceholderText("" if needs_name else self.session.lessons.learner())

    @Slot()
    def _refresh(self) -> None:
        self._refresh_class()
        lessons = self.session.lessons
        records = [lessons.record(lesson) for lesson in lessons.known()]
        for row, (lesson, record) in enumerate(zip(lessons.known(), records, strict=True)):
            self.list.item(row).setText(f"{row + 1}. {lesson.title}\n{_progress(record)}")
            is_solved = record is not None and record.passed
            icon = theme.icon("check", "accent") if is_solved else theme.icon("circle", "muted")
            self.list.item(row).setIcon(icon)
        measured = sum(record is not None and record.result is not None for record in records)
        solved = sum(record is not None and record.passed for record in records)
        total = formatting.count(len(records), "lesson")
        self.progress.setText(f"Of {total}, {measured} measured and {solved} solved" if records else _LOADING)
        if not self.name.hasFocus():
            self.name.setText(lessons.typed_name())
        done = any(record is not None and (record.result is not None or record.tries) for record in records)
        for button in (self.save, self.view.save):
            factory.set_enabled(button, "" if done else "Do a lesson first.")

    @Slot()
    def _show_lesson(self) -> None:
        known, row = self.session.lessons.known(), self.list.currentRow()
        if 0 <= row < len(known):
            self.session.settings.set_text(_LESSON, known[row].name)
            self.view.show_lesson(known[row], row + 1, len(known))
            self._scroll.verticalScrollBar().setValue(0)

    @Slot()
    def _on_switched(self) -> None:
        self.view.forget_predictions()
        self._show_lesson()

    @Slot()
    def _on_next_requested(self) -> None:
        self.list.setCurrentRow(self.list.currentRow() + 1)
        self._focus_lesson()

    @Slot()
    def _focus_lesson(self) -> None:
        """Move the focus to the prediction; to the lesson's first control while a measurement runs."""
        focus_part(self.view.prediction if self.view.prediction.isEnabled() else self.view)

    @Slot()
    def _on_name_edited(self) -> None:
        self.session.lessons.set_learner(self.name.text().strip())

    @Slot()
    def _on_open_class_clicked(self) -> None:
        path = dialogs.choose_class_file(self, self.session.settings)
        if path is not None:
            self.session.class_file.open(path)

    @Slot()
    def _on_save_clicked(self) -> None:
        name = f"{files.safe_name(self.session.lessons.learner(), 'learner')}.html"
        settings = self.session.settings
        path = dialogs.choose_save_file(self, settings, "Save page to hand in", name, "HTML page (*.html)")
        if path is not None:
            self.session.lessons.save_page(path)


def _progress(record: lesson_records.LessonRecord | None) -> str:
    """Describe a learner's progress in a lesson in a few words."""
    if record is None or (record.result is None and not record.tries):
        return "Not started"
    exercise = "exercise solved" if record.passed else "exercise open"
    return f"{'Measured' if record.result is not None else 'Not measured'}, {exercise}"


def _about(content: class_settings.ClassSettings | None) -> str:
    """Describe the settings of a class in sentences; without a class, describe lessons."""
    if content is None or content.path is None:
        return _ABOUT
    parts = [f"Class file {content.path.name}."]
    if content.sprites is not None:
        parts.append(f"Sprites: {content.sprites.name}.")
    if content.seconds is not None:
        parts.append(f"Each measurement takes about {formatting.duration(content.seconds)}.")
    if content.hand_in is not None:
        parts.append(f"Your page goes to {content.hand_in}.")
    return " ".join(parts)
