"""Hand-in pages and the table of a class: nothing in them is trusted, and no page of a learner is lost."""

from __future__ import annotations

import dataclasses
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from studio.core.errors import BadInputError, UsageError
from studio.lab.learn.collect import collect, save_table, summary_of, table_of
from studio.lab.learn.hand_in import read_page, save_page
from studio.lab.learn.records import LessonRecord, learner_folder, load_record, save_record
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table
from studio.lab.results import Result

_EVIL = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_HOME", str(tmp_path / "home"))


def _record(name: str = "devices", *, plot: bool = False) -> LessonRecord:
    line = Line("loss", (0.0, 1.0), (2.0, 1.0))
    outcome = Outcome(
        (Plot("Loss", Axis("step"), Axis("loss"), (line,)),) if plot else (),
        (Table(("device", ">speed"), ((_EVIL, "4 steps/s"),)),),
        (f"A sentence with {_EVIL}.",),
    )
    result = Result(
        name, "Devices", "How fast?", outcome, "pass", ("", ""), "generator", {}, _EVIL, 8, 16, "cpu", "A CPU", 1.0,
        "2026-11-28T10:00:00+00:00", {"torch": "2"},
    )  # fmt: skip
    return LessonRecord(name, result, 5.0, 4.0, True, ("It was fast.",), 1, True, 2, f"print('{_EVIL}')")


def test_a_page_is_self_contained_and_escaped(tmp_path: Path) -> None:
    learner = f"Ada {_EVIL}"
    save_record(learner, _record(plot=True))
    path = save_page(tmp_path / "pages", learner)
    text = path.read_text(encoding="utf-8")
    assert path.parent == tmp_path / "pages" and _EVIL not in text and text.count("<script") == 1
    assert all(source.startswith("data:") for source in re.findall(r'(?:src|href)="([^"]*)"', text))
    assert "How many training steps" in text and "4 steps/s" in text and "It was fast." in text and "solved" in text
    assert "loss: 2 at 0, 1 at 1." in text and "on A CPU (cpu), with" in text
    (handed,) = read_page(path).lessons
    assert (handed.lesson, handed.answer, handed.measured, handed.passed, handed.tries) == (
        "devices",
        5.0,
        4.0,
        True,
        2,
    )
    assert read_page(path).learner == learner


def test_a_page_replaces_the_learners_own_and_no_other(tmp_path: Path) -> None:
    save_record("Ada", _record())
    first = save_page(tmp_path, "Ada")
    assert save_page(tmp_path, "Ada") == first
    (learner_folder("Ada") / "id.txt").write_text("another computer")
    assert save_page(tmp_path, "Ada") == tmp_path / "Ada-2.html"
    (tmp_path / "Bob.html").write_text("mine")
    save_record("Bob", _record())
    assert save_page(tmp_path, "Bob").name == "Bob-2.html" and (tmp_path / "Bob.html").read_text() == "mine"
    with pytest.raises(UsageError, match="not done a lesson"):
        save_page(tmp_path, "Cleo")


def test_thirty_learners_on_one_folder_lose_nothing(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for name in ("devices", "moving"):
            save_record(f"learner {number}", _record(name))
            save_page(tmp_path / "pages", f"learner {number}")

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(work, range(30)))
    pages, problems = collect(tmp_path / "pages")
    assert len(pages) == 30 and not problems and all(len(page.hand_in.lessons) == 2 for page in pages)


def test_bad_pages_are_told_and_the_others_collected(tmp_path: Path) -> None:
    save_record("Ada", _record())
    good = save_page(tmp_path, "Ada").read_text(encoding="utf-8")
    data = json.loads(re.findall(r'id="studio-lessons">(.*?)</script>', good)[0])
    lesson = data["lessons"][0]
    bad = {
        "none": None, "cut": "{", "deep": "[" * 100_000, "type": {**data, "learner": 5},
        "long": {**data, "learner": "x" * 3000}, "many": {**data, "lessons": [lesson] * 101},
        "number": {**data, "lessons": [{**lesson, "measured": 1e300}]},
        "nan": {**data, "lessons": [{**lesson, "measured": float("nan")}]}, "big": {**data, "more": "x" * (1 << 20)},
    }  # fmt: skip
    for name, values in bad.items():
        text = values if isinstance(values, str) else json.dumps(values)
        page = "<p>a page</p>" if values is None else good.replace(json.dumps(data), text)
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
    (tmp_path / "bytes.htm").write_bytes(bytes(range(256)))
    pages, problems = collect(tmp_path)
    assert [page.hand_in.learner for page in pages] == ["Ada"]
    assert len(problems) == len(bad) + 1 and all(problem.endswith(".") for problem in problems), problems


def test_the_table_is_safe_in_a_browser_and_a_spreadsheet(tmp_path: Path) -> None:
    for learner in ("=cmd()", _EVIL):
        save_record(learner, _record())
        save_page(tmp_path / "pages", learner)
    pages, problems = collect(tmp_path / "pages")
    assert table_of(pages).columns[:2] == ("learner", "devices")
    assert table_of(pages).rows[0][1] == "5 / 4 steps/s (good), solved"
    assert summary_of(pages).rows[1] == ("=cmd()", "1", "1", "1", "A CPU (cpu)")
    assert "'=cmd()" in save_table(tmp_path / "class.csv", pages, problems).read_text(encoding="utf-8")
    assert _EVIL not in save_table(tmp_path / "class.html", pages, problems).read_text(encoding="utf-8")
    with pytest.raises(BadInputError, match="no HTML files"):
        collect(tmp_path / "home" / "lessons")
    with pytest.raises(BadInputError, match="not a folder"):
        collect(tmp_path / "nowhere")


def test_a_damaged_record_counts_as_none() -> None:
    path = save_record("Ada", _record())
    assert load_record("Ada", "devices").tries == 2
    path.write_text(json.dumps({**dataclasses.asdict(_record()), "tries": "many"}))
    assert load_record("Ada", "devices") == LessonRecord("devices")
