"""The page that a learner hands in: one HTML file with predictions, measurements, exercises and plots.

The page holds the same data as JSON, for `collect`. The page has no script, and every text is escaped.
"""

import dataclasses
import datetime
import html
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from studio.core import files, records
from studio.core.errors import UsageError
from studio.core.formatting import count, duration, local_time
from studio.exports.html_page import MEDIA_STYLE, html_page, key_value_table, numeric_table, plot_image
from studio.lab.learn.catalog import lessons, number_of
from studio.lab.learn.records import LessonRecord, learner_folder, load_record
from studio.lab.lessons.base import Lesson
from studio.lab.report import draw_plot
from studio.lab.results import Result

LARGEST_PAGE_BYTES = 32 << 20
_LARGEST_DATA = 1 << 20  # characters of JSON
_DATA = re.compile(r'<script type="application/json" id="studio-lessons">(.*?)</script>', re.DOTALL)
_Text = Annotated[str, msgspec.Meta(max_length=2000)]
_Value = _Text | Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)] | None


@dataclass(frozen=True)
class HandedLesson:
    """A lesson in a hand-in page. answer: the prediction, None if skipped; measured: None before a measurement."""

    lesson: _Text
    answer: _Value
    measured: _Value
    is_right: bool
    measurements: records.Count
    device: _Text
    created: _Text  # time of the measurement, ISO 8601; '' without a measurement
    passed: bool  # whether the exercise was solved
    tries: records.Count


@dataclass(frozen=True)
class HandIn:
    """The data of a hand-in page."""

    learner: _Text
    learner_id: _Text  # distinguishes learners with equal names
    created: _Text
    lessons: Annotated[tuple[HandedLesson, ...], msgspec.Meta(max_length=100)]
    format: records.Positive = 1


def save_page(out: Path, learner: str) -> Path:
    """Write a learner's page to a file, or to a folder under the learner's name; return its path.

    Replaces an earlier page of the same learner; beside another file, takes the next free name. Raises UsageError
    before the first lesson, and ExportError.
    """
    done = [(lesson, load_record(learner, lesson.name)) for lesson in lessons().values()]
    done = [(lesson, record) for lesson, record in done if record.result or record.tries]
    if not done:
        raise UsageError(f"{learner} has not done a lesson yet.", "Begin with 'studio learn 1'.")
    with files.wrap_export_errors(out):
        hand_in = HandIn(learner, _learner_id(learner), _now(), tuple(_handed(record) for _, record in done))
        is_file = out.suffix.lower() in (".html", ".htm") and not out.is_dir()
        path = out if is_file else out / f"{files.safe_name(learner, 'learner')}.html"
        path = path if _is_own(path, hand_in) else files.free_path(path)
        files.write_atomic(path, _page(hand_in, done).encode("utf-8", "replace"))
    return path


def read_page(path: Path) -> HandIn:
    """Return the data of a hand-in page. Raises ValueError for another file, and OSError."""
    with path.open("rb") as file:
        text = file.read(LARGEST_PAGE_BYTES + 1)
    if len(text) > LARGEST_PAGE_BYTES:
        raise ValueError("the file is too large")
    found = _DATA.search(text.decode("utf-8", "replace"))
    if not found:
        raise ValueError("the file is not a page of lessons")
    if len(found[1]) > _LARGEST_DATA:
        raise ValueError("its data are too large")
    return records.parse(found[1], HandIn)


def _learner_id(learner: str) -> str:
    """Return the random id in the learner's folder, created on first use. Raises OSError."""
    path = learner_folder(learner) / "id.txt"
    try:
        return path.read_text(encoding="ascii").strip()[:64]
    except (FileNotFoundError, UnicodeDecodeError):
        files.write_atomic(path, uuid.uuid4().hex.encode())
        return path.read_text(encoding="ascii")


def _is_own(path: Path, hand_in: HandIn) -> bool:
    """Return whether a path is free, or holds an earlier page of the learner."""
    try:
        return read_page(path).learner_id == hand_in.learner_id
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def _handed(record: LessonRecord) -> HandedLesson:
    result = record.result
    device, created = (f"{result.device_name} ({result.device})", result.created) if result else ("", "")
    return HandedLesson(
        record.lesson, record.answer, record.measured, record.is_right, record.measurements, device[:2000], created,
        record.passed, record.tries,
    )  # fmt: skip


def _page(hand_in: HandIn, done: Sequence[tuple[Lesson, LessonRecord]]) -> str:
    solved, measured = sum(each.passed for each in hand_in.lessons), sum(bool(record.result) for _, record in done)
    summary = f"{count(measured, 'lesson')} measured, {count(solved, 'exercise')} solved, {local_time(hand_in.created)}"
    data = json.dumps(dataclasses.asdict(hand_in)).replace("<", "\\u003c")
    body = [
        f"<h1>{html.escape(hand_in.learner)}</h1>",
        f"<p>{html.escape(summary)}</p>",
        *(_section(lesson, record) for lesson, record in done),
        f'<script type="application/json" id="studio-lessons">{data}</script>',
    ]
    return html_page(f"Lessons: {hand_in.learner} - Sprite Training Studio", "\n".join(body), _STYLE, width_rem=52)


def _section(lesson: Lesson, record: LessonRecord) -> str:
    parts = [
        f"<h2>{number_of(lesson)}. {html.escape(lesson.title)}</h2>",
        f'<p class="question">{html.escape(lesson.question)}</p>',
    ]
    show = lesson.prediction.show
    if record.result and record.measured is not None:
        outcome = record.result.outcome
        predicted = "skipped" if record.answer is None else show(record.answer)
        parts.append(key_value_table([("Predicted", predicted), ("Measured", show(record.measured))]))
        parts += [f"<p>{html.escape(sentence)}</p>" for sentence in (*outcome.sentences, *record.explanation)]
        parts += [plot_image(plot.title, draw_plot(plot), plot.describe()) for plot in outcome.plots]
        parts += [numeric_table(table.columns, table.rows) for table in outcome.tables]
        parts.append(f'<p class="about">{html.escape(_circumstances(record.result))}</p>')
    state = "solved" if record.passed else "not solved yet" if record.tries else "not tried"
    checked = f", checked {count(record.tries, 'time')}" if record.tries else ""
    parts.append(f"<h3>Exercise: {state}{checked}</h3><p>{html.escape(lesson.exercise.task)}</p>")
    if record.code:
        parts.append(f"<pre><code>{html.escape(record.code)}</code></pre>")
    return f"<section>\n{chr(10).join(parts)}\n</section>"


def _circumstances(result: Result) -> str:
    """Describe a measurement's date, device, sprites and versions."""
    sprites = f"{result.data_title} ({count(result.data_count, 'sprite')} of {result.size} x {result.size} pixels)"
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    when = f"{local_time(result.created)} in {duration(result.took_s)}"
    return f"Measured on {when}, on {result.device_name} ({result.device}), with {sprites}; {versions}."


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


_STYLE = f"""\
{MEDIA_STYLE}section + section {{ margin-top: 3rem; }}
.question {{ font-size: 1.1rem; opacity: .75; }}
th:not([class]) {{ width: 7rem; }}
.about {{ font-size: .85rem; opacity: .75; }}
h3 {{ font-size: 1rem; }}
pre {{ padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; font-size: .85rem; }}
"""
