"""The table of a class, from the hand-in pages in a folder. Pages are read as data, never run or shown."""

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.core import files
from studio.core.errors import BadInputError, os_error_reason
from studio.core.formatting import count, local_time
from studio.exports.html_page import MEDIA_STYLE, html_page, numeric_table
from studio.lab.learn.catalog import lessons
from studio.lab.learn.hand_in import HandedLesson, HandIn, read_page
from studio.lab.lessons.base import Answer
from studio.lab.outcome import Table

_SUFFIXES = (".html", ".htm")
_MOST_PAGES = 2000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets run cells with these first characters


@dataclass(frozen=True)
class Page:
    """A hand-in page and its data."""

    path: Path
    hand_in: HandIn


def collect(folder: Path) -> tuple[list[Page], list[str]]:
    """Read the hand-in pages of a folder and its subfolders, by learner; also a sentence for each other HTML file.

    Raises BadInputError if the folder can't be read or has no HTML files.
    """
    try:
        if not folder.is_dir():
            raise BadInputError(f"{folder} is not a folder.", "Name the folder of the pages.")
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    except OSError as error:
        raise BadInputError(f"{folder} can't be read.", f"{os_error_reason(error)}.") from error
    if not paths:
        hint = "Learners write their page with 'studio learn --out FOLDER'."
        raise BadInputError(f"{folder} has no HTML files.", hint)
    pages, problems = list[Page](), list[str]()
    for path in paths[:_MOST_PAGES]:
        try:
            pages.append(Page(path, read_page(path)))
        except OSError as error:
            problems.append(f"{path.name} can't be read: {os_error_reason(error)}.")
        except ValueError as error:
            problems.append(f"{path.name} is left out: {error}.")
    if len(paths) > _MOST_PAGES:
        problems.append(f"Only the first {_MOST_PAGES:,} files were read.")
    return sorted(pages, key=lambda page: (page.hand_in.learner.casefold(), page.path)), problems


def table_of(pages: Sequence[Page]) -> Table:
    """Return a table with a row per page: for each lesson the prediction, the measurement and the exercise."""
    done = {each.lesson for page in pages for each in page.hand_in.lessons}
    known = [*(name for name in lessons() if name in done), *sorted(done - {*lessons()})]
    rows = []
    for page in pages:
        given = {each.lesson: each for each in page.hand_in.lessons}
        cells = [_cell(given[name]) if name in given else "" for name in known]
        rows.append((page.hand_in.learner, *cells, _solved(page.hand_in), _devices(page.hand_in)))
    return Table(("learner", *known, ">exercises solved", "device"), tuple(rows))


def summary_of(pages: Sequence[Page]) -> Table:
    """Return a table with a row per page that fits a terminal: how much a learner has measured and solved."""
    rows = []
    for page in pages:
        given = page.hand_in.lessons
        counts = sum(each.measured is not None for each in given), sum(each.is_right for each in given)
        rows.append((page.hand_in.learner, *map(str, counts), _solved(page.hand_in), _devices(page.hand_in)))
    return Table(("learner", ">measured", ">good predictions", ">exercises solved", "device"), tuple(rows))


def _cell(handed: HandedLesson) -> str:
    """Return 'predicted / measured' of a lesson, and whether the exercise is solved: '300 / 100 steps/s, solved'."""
    parts = []
    if handed.measured is not None:
        measured = _text(handed.lesson, handed.measured)
        unit = measured.partition(" ")[2] if isinstance(handed.measured, float) else ""
        predicted = "skipped" if handed.answer is None else _text(handed.lesson, handed.answer)
        both = f"{predicted.removesuffix(f' {unit}')} / {measured}"
        parts.append(measured if handed.answer == handed.measured else both)
        parts[0] += " (good)" if handed.is_right else ""
    parts += ["solved"] if handed.passed else ["not solved"] if handed.tries else []
    return ", ".join(parts)


def _text(lesson: str, value: Answer) -> str:
    known = lessons().get(lesson)
    return known.prediction.show(value) if known else str(value)


def _solved(hand_in: HandIn) -> str:
    return str(sum(each.passed for each in hand_in.lessons))


def _devices(hand_in: HandIn) -> str:
    return ", ".join(dict.fromkeys(each.device for each in hand_in.lessons if each.device))


def save_table(out: Path, pages: Sequence[Page], problems: Sequence[str]) -> Path:
    """Write the table as an HTML page, or as CSV if the path ends in .csv; return the path. Raises ExportError."""
    table = table_of(pages)
    path = files.free_path(out / "class.html" if out.is_dir() else out)
    with files.wrap_export_errors(path):
        text = _csv(table) if path.suffix.lower() == ".csv" else _html(table, pages, problems)
        files.write_atomic(path, text.encode("utf-8", "replace"))
    return path


def _csv(table: Table) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    for row in ([column.removeprefix(">") for column in table.columns], *table.rows):
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row])
    return text.getvalue()


def _html(table: Table, pages: Sequence[Page], problems: Sequence[str]) -> str:
    newest = max((page.hand_in.created for page in pages), default="")
    said = f"{count(len(pages), 'page')}{f', the newest of {local_time(newest)}' if newest else ''}."
    body = [
        "<h1>Lessons of the class</h1>",
        f"<p>{html.escape(said)} Each cell: predicted / measured, and the exercise.</p>",
        numeric_table(table.columns, table.rows),
        *(f"<p>{html.escape(problem)}</p>" for problem in problems),
    ]
    return html_page("Lessons of the class - Sprite Training Studio", "\n".join(body), _STYLE, width_rem=80)


_STYLE = f"{MEDIA_STYLE}td {{ min-width: 5rem; }}\n"
