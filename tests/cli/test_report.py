"""`studio report`: everything of a run in one page, without anything from elsewhere."""

from __future__ import annotations

import base64
import io
import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

from PIL import Image

from studio.cli.messages import FAILED, WRONG_USAGE
from tests.cli.tools import Studio


class _Page(HTMLParser):
    """What a browser would see of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = tag
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self._within in ("td", "th"):
            self.rows[-1].append(data)
        elif self._within in ("h1", "h2"):
            self.headings.append(data)
        self._within = ""

    def row(self, name: str) -> list[str]:
        """The cells beside this one."""
        return next(row[1:] for row in self.rows if row and row[0] == name)

    def pictures(self) -> list[Image.Image]:
        """The PNG files inside."""
        head = "data:image/png;base64,"
        parts = [source.removeprefix(head) for source in self.sources if source.startswith(head)]
        return [Image.open(io.BytesIO(base64.b64decode(part))) for part in parts]


def _read(path: Path) -> _Page:
    page = _Page(path.read_text(encoding="utf-8"))
    assert all(source.startswith("data:image/") for source in page.sources)  # it needs nothing else
    return page


def test_report_writes_one_html_page(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    said = studio("report", generator_run, "--out", tmp_path / "run.html", "--json").objects()
    assert said[-1] == {"type": "ReportSaved", "path": str(tmp_path / "run.html")}
    page, record = _read(tmp_path / "run.html"), json.loads((generator_run / "run.json").read_text())
    state = json.loads((generator_run / "state.json").read_text())
    assert page.headings[0] == generator_run.name
    assert page.row("Steps") == [f"{state['step']:,}"] and page.row("State") == ["finished"]
    assert page.row("Seed") == [str(record["config"]["seed"])]
    assert page.row("Sprites (fingerprint)") == [record["data_fingerprint"]]
    assert any(source.startswith("data:image/svg+xml") for source in page.sources)  # its loss
    size = record["size"]
    assert page.pictures() and all(picture.width % size == 0 for picture in page.pictures())


def test_runs_are_compared(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    other = shutil.copytree(generator_run, tmp_path / "other")
    record = json.loads((other / "run.json").read_text())
    record["config"]["batch_size"] += 7
    (other / "run.json").write_text(json.dumps(record))
    broken = shutil.copytree(generator_run, tmp_path / "broken")
    (broken / "run.json").write_text("{")
    said = studio("report", generator_run, other, broken, "--out", tmp_path)
    assert "broken was skipped" in said.err + said.out
    page = _read(tmp_path / "3-runs.html")
    assert page.headings[0] == "2 runs compared" and len(page.row("State")) == 2
    differing = page.rows[next(place for place, row in enumerate(page.rows) if row and row[0] == "Batch size")]
    assert [int(text.removesuffix(" sprites")) for text in differing[1:]] == [4, 11]
    assert [row[0] for row in page.rows if row].count("Width") == 2  # the same in both: told of each alone
    assert "Samples at the same step" in page.headings and "Nearest to step 4" in (tmp_path / "3-runs.html").read_text()
    assert "classes" not in (tmp_path / "3-runs.html").read_text().partition("<h2>")[0]


def test_report_contains_the_confusion_matrix(tmp_path: Path, generator_run: Path, studio: Studio) -> None:
    run = shutil.copytree(generator_run, tmp_path / "run")
    names = json.loads((run / "run.json").read_text())["class_names"]
    step = json.loads((run / "state.json").read_text())["step"]
    counts = [[0] * len(names) for _ in names]
    counts[0][1], counts[0][0] = 3, 5
    (run / "confusion.json").write_text(json.dumps({"step": step, "counts": counts}))
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "metrics": {"loss": 0.5, "accuracy": 0.75}}) + "\n")
    studio("report", run, "--out", tmp_path / "run.html")
    page = _read(tmp_path / "run.html")
    assert page.row(names[0]) == [names[1], "3 of 8"]
    assert page.row("Validation accuracy") == ["75 %", "higher is better"]


def test_report_errors(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    broken = shutil.copytree(generator_run, tmp_path / "broken")
    (broken / "run.json").write_text("{")
    (tmp_path / "file").write_text("")
    for words, code, said in (
        ([generator_run, "nowhere"], WRONG_USAGE, "no run 'nowhere'"),
        ([generator_run, "--out", tmp_path / "a.pdf"], WRONG_USAGE, "Use a name that ends in .html."),
        ([broken, "--out", tmp_path / "a.html"], FAILED, "broken can't be read"),
        ([generator_run, "--out", tmp_path / "file" / "a.html"], FAILED, "Can't write"),
    ):
        assert said in studio("report", *words, code=code).err
    assert not list(tmp_path.glob("*.html"))
