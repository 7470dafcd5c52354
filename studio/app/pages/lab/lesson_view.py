"""A lesson as a scroll of steps: question, prediction, measurement, explanation, code and exercise."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QLineEdit, QRadioButton, QWidget

from studio.app import keys
from studio.app.pages.lab.code_runner import CodeRunner, scroll_page
from studio.app.pages.lab.result_view import ResultView, read_more_label
from studio.app.state.late import lesson_base, lesson_cards
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from studio.core import formatting
from studio.core.errors import UsageError
from studio.core.events import Progress
from studio.lab.results import Result

_MEASURE = "Measure with your prediction, on the Train page's device."
_SKIP = "Measure without a prediction."
_PREDICT = "Predict first, or press Skip."
_PREDICTED = "The prediction is given; press Measure."
SAVE_PAGE = "Save page…", "Save your predictions, measurements and exercises as a single HTML page."  # text and tip
_HAND_IN = "Save the page to hand in, with your predictions, measurements and exercises."
_OWN_MODEL = "Then train a model on your own sprites: press Start on the Train page, and Export… to save the model."
_TRIES = 3  # checks before the solution is offered
_NUMBER = "Your prediction as a number."


class PredictionBox(QWidget):
    """Asks for a prediction: a click on a choice, or a typed number."""

    changed = Signal()
    entered = Signal()  # Enter was pressed at a prediction

    def __init__(self) -> None:
        super().__init__()
        self._prediction: lesson_base.Prediction | None = None
        self._group = QButtonGroup(self)
        self._choices = factory.column(spacing=4)
        self.number = QLineEdit()
        self.unit = factory.text(wrap=False)
        self.error = factory.FieldError(self.number, _NUMBER)
        self.number.setMaximumWidth(160)
        factory.set_name_and_tip(self.number, "Your prediction", _NUMBER)
        self._typed = factory.panel(factory.row(self.number, self.unit, 1))
        self.setLayout(factory.column(self._choices, self._typed, self.error))
        self._group.buttonToggled.connect(self.changed)
        self.number.textEdited.connect(self._on_number_edited)
        for key in ("Return", "Enter"):
            keys.fixed_shortcut(key, self, self._on_enter)

    def ask(self, prediction: lesson_base.Prediction, answer: lesson_base.Answer | None) -> None:
        """Show the choices or the field. answer: the learner's earlier prediction; None for none."""
        self._prediction = prediction
        for button in self._group.buttons():
            self._group.removeButton(button)
        factory.clear(self._choices)
        for choice in prediction.choices:
            radio = QRadioButton(choice.replace("&", "&&"))
            factory.set_name_and_tip(radio, choice, "Predict this answer.")
            radio.setProperty("choice", choice)
            self._group.addButton(radio)
            self._choices.addWidget(radio)
            radio.show()  # at once, so that it can take the focus
            radio.setChecked(choice == answer)
        self._typed.setVisible(not prediction.choices)
        self.unit.setText(prediction.unit)
        self.number.setAccessibleName(f"Your prediction in {prediction.unit}")
        self.number.setText(formatting.decimal(answer) if isinstance(answer, float) else "")
        self.error.show_reason("")

    def answer(self) -> lesson_base.Answer | None:
        """Return the prediction; None without a prediction, or if the typed text is no number within the bounds."""
        chosen = self._group.checkedButton()
        if chosen is not None:
            return str(chosen.property("choice"))
        if self._prediction is None or not self.number.text().strip() or self._prediction.choices:
            return None
        try:
            return self._prediction.read(self.number.text())
        except UsageError:
            return None

    @Slot()
    def _on_enter(self) -> None:
        """Choose the focused choice; with a prediction, announce that Enter was pressed."""
        choice = next((button for button in self._group.buttons() if button.hasFocus()), None)
        if choice is not None and not choice.isChecked():
            choice.click()
        else:
            self.entered.emit()

    @Slot()
    def _on_number_edited(self) -> None:
        reason = ""
        if self._prediction is not None and self.number.text().strip():
            try:
                self._prediction.read(self.number.text())
            except UsageError as error:
                reason = error.title
        self.error.show_reason(reason)
        self.changed.emit()


class LessonView(QWidget):
    """Panel with a lesson. The lesson's measurement and code run through `session.lessons`."""

    next_requested = Signal()
    save_requested = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._lessons = session, session.lessons
        self.lesson: lesson_base.Lesson | None = None
        self._answers: dict[str, lesson_base.Answer] = {}  # this session's predictions by lesson
        self._shown: Result | None = None  # the result in `findings`
        self.title, self.about = factory.text("", "title"), factory.caption("")
        self.intro, self.question = factory.text(), factory.text("", "heading")
        self.prediction = PredictionBox()
        self.measure = factory.button("Measure", _MEASURE, "play", "primary", self._on_measure_clicked)
        self.skip = factory.button("Skip", _SKIP, slot=self._on_skip_clicked)
        tip = "Stop the measurement and discard its results."
        self.cancel = factory.button("Cancel", tip, "close", slot=session.lab.cancel)
        NoSecondPress(self.cancel)
        self.state, self.progress = factory.caption(""), factory.ProgressBar()
        self.verdict, self.explanation = factory.text("", "heading"), factory.text()
        self.findings = ResultView()
        self.gpu = factory.text()
        self.program = self._runner("Code in plain PyTorch", "Run", "Run the code in a separate process.")
        self.task = factory.text()
        self.exercise = self._runner("Code of the exercise", "Check", "Run your code and check the result.")
        tip = "Show a solution in place of your code."
        self.solution = factory.button("Show solution", tip, "check", slot=self._on_solution_clicked)
        self.read_on = read_more_label()
        self.next = factory.button("Next lesson", "Show the next lesson.", "arrow-right", slot=self.next_requested)
        self.last, self.save = factory.text(), factory.button(*SAVE_PAGE, slot=self.save_requested)
        self._measured, self._exercise, self._end = self._measured_part(), self._exercise_part(), self._end_part()
        self._scroll = QTimer(self, singleShot=True, interval=0)  # once the page has its new height
        self._scroll.timeout.connect(self._show_result)
        self._lay_out()
        self.prediction.changed.connect(self._on_predicted)
        self.prediction.entered.connect(self.measure.click)
        self._lessons.changed.connect(self._show_record)
        session.lab.changed.connect(self._refresh)
        session.lab.progressed.connect(self._on_progressed)
        session.device_choice.changed.connect(self._refresh)
        session.catalog.plots_ready.connect(self.findings.make_plots)

    def before_show(self) -> None:
        """Give *Cancel* the height of *Measure*, so the page doesn't jump when the buttons replace each other."""
        self.measure.ensurePolished()
        self.cancel.setMinimumHeight(self.measure.sizeHint().height())

    def show_lesson(self, lesson: lesson_base.Lesson, number: int, total: int) -> None:
        """Show a lesson with the learner's earlier answers. number: number of the lesson on the path, from 1."""
        self.lesson, is_last = lesson, number == total
        self.title.setText(f"{number}. {lesson.title}")
        self.about.setText(f"Lesson {number} of {total}, about {lesson.minutes} minutes")
        self.intro.setText("\n\n".join(lesson.intro))
        self.question.setText(lesson.question)
        self.read_on.show_link(*lesson.read_on)
        content = self._session.class_file.content
        folder = content.hand_in if content is not None else None
        self.last.setText(f"{f'The studio saves your page in {folder}.' if folder else _HAND_IN} {_OWN_MODEL}")
        self._end.setVisible(is_last)
        self.next.setHidden(is_last)
        self.gpu.setText("\n\n".join(filter(None, (lesson.gpu, *lesson_cards.card_sentences(lesson)))))
        self.task.setText(lesson.exercise.task)
        record = self._lessons.record(lesson)
        self._ask(lesson)
        checked = record.code if record is not None else ""
        self.exercise.show_run(self._lessons.exercise(lesson), lesson.exercise.starter, checked)
        self._show_record()

    def forget_predictions(self) -> None:
        """Forget the predictions of another learner."""
        self._answers.clear()

    def _ask(self, lesson: lesson_base.Lesson) -> None:
        """Ask for the prediction; show the prediction of this session, or of the record."""
        record = self._lessons.record(lesson)
        answer = self._answers.get(lesson.name, record.answer if record is not None else None)
        self.prediction.ask(lesson.prediction, answer)

    def _runner(self, name: str, verb: str, tip: str) -> CodeRunner:
        made = CodeRunner(self._lessons.code_run(), name, verb, tip)
        made.start_requested.connect(self._on_check_requested if verb == "Check" else self._on_run_requested)
        return made

    def _measured_part(self) -> QWidget:
        parts = (
            factory.column(factory.heading("Measured"), self.verdict, self.findings),
            factory.column(factory.heading("Why"), self.explanation),
            factory.column(factory.heading("On a graphics card"), self.gpu),
            factory.column(factory.heading("The same in plain PyTorch"), self.program),
        )
        return factory.panel(factory.column(*parts, spacing=2 * factory.GRID))

    def _exercise_part(self) -> QWidget:
        solution = factory.row(self.solution, 1)
        return factory.panel(factory.column(factory.heading("Exercise"), self.task, self.exercise, solution))

    def _end_part(self) -> QWidget:
        """Return the part that ends the last lesson: what to do next."""
        save = factory.row(self.save, 1)
        return factory.panel(factory.column(factory.heading("After the last lesson"), self.last, save))

    def _lay_out(self) -> None:
        self.progress.setFixedHeight(factory.GRID)
        factory.retain_size_when_hidden(self.progress)
        for label in (self.intro, self.explanation, self.gpu, self.task, self.verdict, self.last):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = factory.row(self.measure, self.cancel, self.skip, self.state, grows=3)
        end = factory.row(self.read_on, self.next, grows=0)
        head = factory.column(self.title, self.about, spacing=factory.GRID // 2)
        ask = factory.column(self.question, self.prediction, buttons, self.progress)
        parts = (head, self.intro, ask, self._measured, self._exercise, end, self._end, 1)
        self.setLayout(factory.column(*parts, spacing=2 * factory.GRID, margin=2 * factory.GRID))

    @Slot()
    def _show_record(self) -> None:
        """Show the learner's measurement if any, and the program with the measurement's device and batch size."""
        record = self._lessons.record(self.lesson) if self.lesson is not None else None
        result = record.result if record is not None else None
        if self.lesson is not None and record is not None and result is not None:
            run = self._lessons.program(self.lesson)
            if run is not self.program.run or result.code != self.program.original():
                self.program.show_run(run, result.code)
            if result != self._shown:  # else the tables would lose focus and scroll position
                self._shown = result
                self.verdict.setText(record.explanation[0] if record.explanation else "")
                self.explanation.setText("\n\n".join(record.explanation[1:]))
                self.findings.show_outcome(result.outcome)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        lesson, lab = self.lesson, self._session.lab
        if lesson is None:
            return
        record, is_running = self._lessons.record(lesson), lab.running is lesson
        is_measured = record is not None and record.result is not None
        problem = "" if is_running else self._lessons.problem(lesson)
        self.progress.setVisible(is_running)
        factory.set_button_text(self.measure, "Measure again" if is_measured else "Measure")
        reason = problem or ("" if self.prediction.answer() is not None else _PREDICT)
        factory.set_enabled(self.measure, reason)
        if is_running and self.skip.hasFocus():  # before Skip is disabled: the page would follow the focus to the code
            self.cancel.show()
            self.cancel.setFocus()
        skipped = "" if self.prediction.answer() is None else _PREDICTED
        factory.set_enabled(self.skip, "The measurement is running." if is_running else problem or skipped)
        if is_measured and not is_running and self.cancel.isVisible():  # the measurement has just ended
            self._scroll.start()
        factory.show_instead(*((self.cancel, self.measure) if is_running else (self.measure, self.cancel)))
        self.prediction.setEnabled(not is_running)
        self._measured.setVisible(is_measured and not is_running)
        if not is_running:
            self.state.setText(reason)
        self.exercise.set_obstacle(self._lessons.name_problem())
        self._refresh_exercise()

    @Slot()
    def _show_result(self) -> None:
        """Scroll to the first sentences of the result, unless the learner has gone elsewhere on the page."""
        if self.measure.hasFocus() or self.skip.hasFocus():
            scroll_page(self._measured, 0, self.findings.y() + self.findings.sentences.geometry().bottom())

    def _refresh_exercise(self) -> None:
        record = self._lessons.record(self.lesson) if self.lesson is not None else None
        tries = record.tries if record is not None else 0
        has_passed = record is not None and record.passed
        reason = "" if has_passed or tries >= _TRIES else f"Try {formatting.count(_TRIES - tries, 'time')} first."
        factory.set_enabled(self.solution, reason)

    @Slot()
    def _on_predicted(self) -> None:
        answer = self.prediction.answer()
        if self.lesson is not None and answer is not None:
            self._answers[self.lesson.name] = answer
        elif self.lesson is not None:
            self._answers.pop(self.lesson.name, None)
        self._refresh()

    @Slot()
    def _on_measure_clicked(self) -> None:
        if self.lesson is not None:
            self._lessons.measure(self.lesson, self.prediction.answer())
            self.cancel.setFocus()

    @Slot()
    def _on_skip_clicked(self) -> None:
        if self.lesson is not None:
            self._ask(self.lesson)  # shows an earlier prediction again
            self._lessons.measure(self.lesson, None)
            self.cancel.setFocus()

    @Slot()
    def _on_progressed(self) -> None:
        lab = self._session.lab
        if self.lesson is not None and lab.running is self.lesson:
            progress = lab.progress or Progress(0, 0, "")
            self.progress.show_progress(progress)
            self.state.setText(progress.text() if progress.total else progress.what)

    @Slot(str)
    def _on_run_requested(self, code: str) -> None:
        self.program.run.run(code)

    @Slot(str)
    def _on_check_requested(self, code: str) -> None:
        if self.lesson is not None:
            self._lessons.check(self.lesson, code)

    @Slot()
    def _on_solution_clicked(self) -> None:
        if self.lesson is not None:
            self.exercise.replace_code(self.lesson.exercise.answer)
