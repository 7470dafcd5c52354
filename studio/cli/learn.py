"""`studio learn`: lessons, their exercises, hand-in pages, and the table of a class."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli.inputs import find_device, read_sprites, run_import
from studio.cli.messages import DONE, FAILED, notice
from studio.cli.report import SUFFIXES
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core import files, paths
from studio.core.errors import BadInputError, UsageError, os_error_reason
from studio.core.events import Events, Notice
from studio.core.formatting import count
from studio.core.shell import command_line
from studio.data.options import ImportOptions
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from studio.lab.learn.class_settings import ClassSettings
    from studio.lab.learn.records import LessonRecord
    from studio.lab.lessons.base import Answer, Lesson

_TRIES_BEFORE_ANSWER = 3  # then the solution is shown
_MOST_COLUMNS = 100  # longer lines are hard to read


def learn(args: argparse.Namespace) -> int:
    """Give a lesson, check an exercise, write a page or collect pages; without a lesson, list the lessons."""
    reporter = reporter_for(args)
    _check_out(args)
    if args.collect is not None:
        return _collect(args.collect, args.out, reporter)
    from studio.lab.learn.class_settings import read_class
    from studio.lab.learn.records import default_learner

    settings, learner = read_class(args.class_file), args.name or default_learner()
    code = DONE
    if args.lesson is not None:
        chosen = settings.lesson(args.lesson)
        give = _lesson if args.exercise is None else _exercise
        code = give(chosen, args, settings, learner, reporter)
    elif args.out is None:
        return _list(args, settings, learner, reporter)
    for out in filter(None, (args.out, settings.hand_in)):
        _save_page(out, learner, reporter)
    return code


def _check_out(args: argparse.Namespace) -> None:
    """Raise UsageError if --out is neither a folder nor a file of a suitable type."""
    suffixes = (*SUFFIXES, *([".csv"] if args.collect is not None else []))
    out: Path | None = args.out
    if out is not None and out.suffix and not out.is_dir() and out.suffix.lower() not in suffixes:
        raise UsageError(f"A page can't be saved as {out.suffix!r}.", f"Use {' or '.join(suffixes)}, or a folder.")


def _list(args: argparse.Namespace, settings: ClassSettings, learner: str, reporter: Reporter) -> int:
    """Print the lessons with the learner's progress."""
    from studio.lab.learn.records import load_record

    if settings.title:
        reporter.print(f"{settings.title}\n")
    rows = []
    for number, item in settings.lessons():
        record = load_record(learner, item.name)
        state = {"measured": record.measurements, "right": record.is_right, "exercise": record.passed}
        about = {"number": number, "title": item.title, "question": item.question, "minutes": item.minutes}
        reporter.write_json({"type": "Lesson", "lesson": item.name, **about, **state})
        done = "measured" if record.measurements else ""
        rows.append((str(number), item.name, item.question, done, "solved" if record.passed else ""))
    reporter.print_table((">", "lesson", "question", "done", "exercise"), rows)
    minutes = sum(item.minutes for _, item in settings.lessons())
    begin = _command(args, settings, "1")
    reporter.print(f"\n{count(len(rows), 'lesson')}, about {minutes} minutes. Begin:  {begin}")
    reporter.print(f"Answers are kept for {learner}; --name chooses another name.")
    return DONE


def _lesson(chosen: Lesson, args: argparse.Namespace, settings: ClassSettings, learner: str, reporter: Reporter) -> int:
    """Introduce a lesson, ask for the prediction, measure, and explain the difference."""
    from studio.lab.learn.cards import card_sentences
    from studio.lab.learn.running import LessonDone, lesson_context, run_lesson

    _introduce(chosen, settings, reporter)
    answer = _prediction(chosen, args)
    sprites = _sprites(args, settings, reporter)
    device = find_device(args, probe=True)
    context = lesson_context(sprites, device, settings.seconds or chosen.seconds)
    done = run_job(run_lesson(chosen, context, answer, learner), reporter, LessonDone)
    _print_record(done.record, reporter)
    _print_text(f"\nWhat a GPU would show: {' '.join([chosen.gpu, *card_sentences(chosen)])}", reporter)
    reporter.print(f"\nIn plain PyTorch:\n\n{chosen.code(context)}")
    name, address = chosen.read_on
    reporter.print(f"PyTorch's own page: {name}, {address}")
    _print_text(f"\nExercise. {chosen.exercise.task}", reporter)
    reporter.print(f"Begin:  {_command(args, settings, chosen.name, '--exercise', f'{chosen.name}.py')}")
    _print_next(chosen, args, settings, reporter)
    return DONE


def _introduce(chosen: Lesson, settings: ClassSettings, reporter: Reporter) -> None:
    numbers = {item.name: number for number, item in settings.lessons()}
    reporter.print(f"Lesson {numbers[chosen.name]}: {chosen.title}\n")
    for paragraph in chosen.intro:
        _print_text(f"{paragraph}\n", reporter)
    _print_text(chosen.question, reporter)
    for letter, choice in chosen.prediction.lettered():
        reporter.print(f"  {letter}  {choice}")


def _prediction(chosen: Lesson, args: argparse.Namespace) -> Answer | None:
    """Return the prediction of --answer, or ask on the terminal; None if skipped. Raises UsageError."""
    prediction = chosen.prediction
    if args.answer is not None:
        return None if args.answer == "skip" else prediction.read(args.answer)
    if args.json or not sys.stdin.isatty():
        raise UsageError("Predict before the measurement.", "Add --answer TEXT, or --answer skip.")
    what = "a letter" if prediction.choices else f"a number of {prediction.unit}"
    while True:
        try:
            typed = input(f"\nYour prediction ({what}, or skip): ").strip()
        except EOFError:
            typed = "skip"
        try:
            return None if typed == "skip" else prediction.read(typed)
        except UsageError as error:
            print(notice(Notice("warning", error.title, error.hint)))  # noqa: T201


def _sprites(args: argparse.Namespace, settings: ClassSettings, reporter: Reporter) -> Sprites:
    """Import the named sprites, the sprites of the class, or the demo sprites."""
    if args.paths:
        return read_sprites(args, args.paths, reporter).sprites
    return run_import([settings.sprites or paths.demo_sprites()], ImportOptions(), reporter).sprites


def _print_record(record: LessonRecord, reporter: Reporter) -> None:
    outcome = record.result.outcome if record.result else None
    if outcome is None:
        return
    for table in outcome.tables:
        reporter.print()
        reporter.print_table(table.columns, table.rows)
    reporter.print()
    for sentence in outcome.sentences:
        _print_text(sentence, reporter)
    for paragraph in record.explanation:
        _print_text(f"\n{paragraph}", reporter)


def _print_text(text: str, reporter: Reporter) -> None:
    """Print a text; on a terminal, with line breaks between words."""
    width = min(_MOST_COLUMNS, shutil.get_terminal_size().columns)
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    for line in text.split("\n"):
        reporter.print(wrapper.fill(line) if sys.stdout.isatty() else line)


def _command(args: argparse.Namespace, settings: ClassSettings, *words: str) -> str:
    """Return a command line of `studio learn` for the class and the name that the user gave."""
    in_class = ["--class", str(settings.path)] if settings.path else []
    named = ["--name", args.name] if args.name else []
    return command_line("studio", "learn", *words, *in_class, *named)


def _print_next(chosen: Lesson, args: argparse.Namespace, settings: ClassSettings, reporter: Reporter) -> None:
    """Print the command of the next lesson; after the last lesson, the commands for the page and a model."""
    names = [item.name for _, item in settings.lessons()]
    for name in names[names.index(chosen.name) + 1 :][:1]:
        reporter.print(f"Next lesson:  {_command(args, settings, name)}")
    if chosen.name == names[-1]:
        if args.out is None and settings.hand_in is None:
            page = f"{files.safe_name(args.name or 'my-lessons', 'learner')}.html"
            reporter.print(f"Save the page to hand in:  {_command(args, settings, '--out', page)}")
        reporter.print(f"Train and export a model of your own:  {command_line('studio', 'help', 'first-model')}")


def _exercise(
    chosen: Lesson, args: argparse.Namespace, settings: ClassSettings, learner: str, reporter: Reporter
) -> int:
    """Write the exercise to a new file, or check the file of a learner."""
    from studio.lab.learn.code_child import CodeDone
    from studio.lab.learn.records import load_record
    from studio.lab.learn.running import check_exercise

    path: Path = args.exercise
    exercise = chosen.exercise
    if not path.exists():
        with files.wrap_export_errors(path):
            files.write_atomic(path, exercise.starter.encode())
        reporter.write_json({"type": "FilesSaved", "paths": [path]})
        _print_text(
            f"{exercise.task}\n\nThe program is in {path}. Edit it, then give the same command to check it.", reporter
        )
        return DONE
    done = run_job(_printed(check_exercise(chosen, _read_code(path), learner), reporter), reporter, CodeDone)
    if done.passed:
        reporter.print("\nSolved.")
        _print_next(chosen, args, settings, reporter)
        return DONE
    reporter.print(f"\nNot solved yet. {done.error or done.problem}")
    if load_record(learner, chosen.name).tries >= _TRIES_BEFORE_ANSWER:
        reporter.print(f"\nA solution:\n\n{exercise.answer}")
    return FAILED


def _printed(events: Events, reporter: Reporter) -> Events:
    """Print the output of a learner's code by lines while it runs, and pass on the other events."""
    from studio.lab.learn.code_child import CodeDone, CodePrinted, CodeStarted
    from studio.lab.learn.running import ExerciseChecked

    line = ""
    with closing(events):
        for event in events:
            if isinstance(event, CodePrinted):
                *lines, line = (line + event.text).split("\n")
                for each in lines:
                    reporter.print(each)
            if isinstance(event, CodeDone) and line:
                reporter.print(line)
            if not isinstance(event, CodeStarted | ExerciseChecked):
                yield event


def _read_code(path: Path) -> str:
    """Return a learner's program. Raises BadInputError if it can't be read."""
    from studio.lab.learn.records import LARGEST_CODE_BYTES

    try:
        if path.stat().st_size > LARGEST_CODE_BYTES:
            raise BadInputError(f"{path} is too large for a program.", "Programs may have 1 MB.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{path} can't be read.", f"{os_error_reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not a text file in UTF-8.", "Save the program as text.") from error


def _save_page(out: Path, learner: str, reporter: Reporter) -> None:
    """Write the learner's hand-in page to a file, or to a folder under the learner's name."""
    from studio.lab.learn.hand_in import save_page

    path = save_page(out, learner)
    reporter.write_json({"type": "FilesSaved", "paths": [path]})
    reporter.print(f"\nThe page to hand in is {path}")


def _collect(folder: Path, out: Path | None, reporter: Reporter) -> int:
    """Print the learners' progress from a folder of pages, and write a table of the answers to --out."""
    from studio.lab.learn.collect import collect, save_table, summary_of

    pages, problems = collect(folder)
    for page in pages:
        reporter.write_json({"type": "HandIn", **vars(page.hand_in), "file": page.path})
    for problem in problems:
        reporter.show(Notice("warning", problem))
    table = summary_of(pages)
    reporter.print_table(table.columns, table.rows)
    reporter.print(f"\n{count(len(pages), 'page')} collected.")
    if out is not None:
        path = save_table(out, pages, problems)
        reporter.write_json({"type": "FilesSaved", "paths": [path]})
        reporter.print(f"The table of all answers is in {path}")
    else:
        reporter.print("Add --out class.html for a table of all answers.")
    return DONE
