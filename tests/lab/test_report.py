"""Reports of experiments: plots that any browser draws, and words that can't break the page."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from studio.core.errors import ExportError
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table
from studio.lab.report import draw_plot, page_of, save_report
from studio.lab.results import Result
from studio.lab.running import result_of
from tests.lab.fake_experiments import FakeExperiment
from tests.lab.tools import small_context

PLOT = Plot(
    "Speed <fast>", Axis("sprites a step", log=True), Axis("sprites/s"),
    (Line("a & b", (1.0, 2.0, 1024.0), (5.0, 9.0, 12.0)), Line("c", (1.0, 8.0), (2.0, 3.0), dots=False)),
    (Mark(2.0, "here"),),
)  # fmt: skip


@pytest.fixture
def result() -> Result:
    table = Table(("size", ">speed"), (("<1>", "5"), ("2", "9")))
    return result_of(FakeExperiment(), small_context(), Outcome((PLOT,), (table,), ("It is <so> & so.",)), 3.0)


class _Texts(HTMLParser):
    """What a reader sees, and which tags are open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_page_shows_all_parts_of_a_result(result: Result) -> None:
    reader = _Texts()
    reader.feed(page_of([result, dataclasses.replace(result, title="Another")]))
    assert not reader.open
    for text in (
        "Toy",
        "Another",
        "Does it work?",
        "It is <so> & so.",
        "<1>",
        "pass",
        "discs, 24 sprites of 8 x 8 pixels",
    ):
        assert text in reader.texts


@pytest.mark.parametrize("log", [False, True])
def test_large_values_have_thousands_separators(log: bool) -> None:
    lines = (Line("a", (0.0, 20_000.0), (1.0, 20_000.0)),)
    drawn = draw_plot(Plot("Speed", Axis("step"), Axis("sprites/s", log=log), lines)).decode()
    assert drawn.count("<!-- 10,000 -->") == 2


def test_whole_numbers_get_no_ticks_at_fractions_and_marks_get_room() -> None:
    line = Line("a", (0.0, 1.0, 2.0), (0.0, 0.0, 20.0))
    drawn = draw_plot(Plot("Speed", Axis("workers"), Axis("sprites/s"), (line,), (Mark(2.0, "here"),))).decode()
    assert "<!-- 0.5 -->" not in drawn and "<!-- 2 -->" in drawn
    paths = [re.findall(r"[ML] [\d.]+ ([\d.]+)", path) for path in re.findall(r' d="([^"]+)"', drawn)]
    curve = next(ys for ys in paths if len(ys) == 3)
    mark = paths[paths.index(curve) + 1]
    assert float(curve[2]) - float(mark[1]) > 15  # points, for the label


def test_plot_is_valid_svg() -> None:
    root = ElementTree.fromstring(draw_plot(PLOT))
    assert root.tag.endswith("svg")
    linear = dataclasses.replace(PLOT, x=Axis("x"), y=Axis("y", log=True), marks=())
    assert ElementTree.fromstring(draw_plot(linear)).tag.endswith("svg")


def test_report_keeps_existing_files(result: Result, tmp_path: Path) -> None:
    first, second = (save_report(tmp_path / "report.html", [result]) for _ in range(2))
    assert first != second and first.read_bytes() == second.read_bytes()
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"Can't write"):
        save_report(tmp_path / "file" / "report.html", [result])
