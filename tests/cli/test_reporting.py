"""Events as bars, as lines and as JSON."""

from __future__ import annotations

import io
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from studio.cli.json_lines import to_json_line
from studio.cli.reporting import RETRY_S, BarReporter, PlainReporter, Reporter, run_job
from studio.core import events
from studio.core.events import Event, Events
from studio.core.metrics import Quality
from tests.conftest import make_sprites

STARTED = events.RunStarted(Path("/runs/a b"), "generator", "cpu", "bf16", 4_412_345, 3800, 200, 0, 0.0)
VALIDATED = events.Validated(400, {"loss": 0.25, "accuracy": 0.82}, np.eye(2, dtype=np.int64))


def _chunk(step: int, eta_s: float = 200.0) -> events.LossChunk:
    losses = np.array([0.5, 0.25], np.float32)
    return events.LossChunk(step, losses, losses, 1e-3, 182.3, 10.0, eta_s, 1.5, 1 << 30)


QUALITY = Quality(kid=0.0534, kid_error=0.01, kid_real=0.002, copies=0.25, copies_real=0.06)


def _job() -> Events:
    yield events.Progress(3, 10, "sprites read")
    yield STARTED
    yield events.Progress(1, 12, "live samples")
    yield _chunk(0)
    yield VALIDATED
    yield events.QualityMeasured(400, QUALITY)
    yield events.Advised(400, "copying", "25 % of the new sprites are copies of yours.", 200)
    yield events.Notice("warning", "The card is hot.", "Open a window.")
    yield _chunk(1200, math.inf)
    yield events.RunFinished("finished", 1202, 20.0, STARTED.path)


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.cli.reporting.PLAIN_EVERY_S", 0.0)
    assert run_job(_job(), PlainReporter(), events.RunFinished).step == 1202
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "3 of 10 sprites read",
        "Training the generator on cpu in bf16: 4.4 M parameters, 3,800 sprites, 200 for validation",
        f"The run is in {Path('/runs/a b')}",
        "step 2 · loss 0.375 · 182 sprites/s · 3 min 20 s left",
        "step 400 · new sprites against validation sprites: KID 0.053 ± 0.010 (real sprites 0.002), copies 25 % (6 %)",
        "step 400 · Starting to copy: 25 % of the new sprites are copies of yours. Best checkpoint so far: step 200.",
        "Warning: The card is hot. Open a window.",
        "step 1,202 · loss 0.375 · validation loss 0.25, accuracy 82 % · 182 sprites/s",
        "step 400 · validation: loss 0.25, accuracy 82 %",
    ]


def test_lines_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = PlainReporter()
    reporter.show(STARTED)
    for step in range(100):
        reporter.show(_chunk(step))
        reporter.show(VALIDATED)
    assert len(capsys.readouterr().err.splitlines()) == 3  # two of the start, and the first step at once


def test_bars_on_a_terminal() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, markup=False, highlight=False)
    run_job(_job(), BarReporter(console), events.RunFinished)
    text = screen.getvalue()
    for expected in (
        "3 of 10 sprites read",
        "4.4 M parameters",
        "loss 0.375",
        "accuracy 82 %",
        "KID 0.053 ± 0.010 (real sprites 0.002), copies 25 % (6 %)",
        "Starting to copy: 25 % of the new sprites",
        "The card is hot.",
    ):
        assert expected in text
    assert "live samples" not in text and "━" in text
    assert text.rstrip().endswith("\x1b[2K") or "\x1b[?25h" in text  # the bar is gone and the cursor is back


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (_chunk(3, math.inf), {"type": "LossChunk", "first_step": 3, "losses": [0.5, 0.25], "eta_s": None}),
        (VALIDATED, {"type": "Validated", "metrics": {"loss": 0.25, "accuracy": 0.82}, "confusion": [[1, 0], [0, 1]]}),
        (
            events.SamplesReady(8, np.zeros((16, 8, 8, 4), np.uint8)),
            {"type": "SamplesReady", "sprites": {"shape": [16, 8, 8, 4]}, "captions": []},
        ),
        (
            events.Exported((Path("a"),), 0.0, {"Python": "x"}, 9),
            {"type": "Exported", "paths": ["a"], "difference": 0.0, "snippets": {"Python": "x"}},
        ),
        (
            events.Classified(np.array([[0.1, np.nan]], np.float32), ("a", "b")),
            {"type": "Classified", "probabilities": [[0.1, None]], "class_names": ["a", "b"]},
        ),
    ],
)
def test_events_as_json(event: Event, expected: dict[str, object]) -> None:
    text = to_json_line(event)
    found = json.loads(text)
    assert "\n" not in text and "NaN" not in text
    assert {key: found[key] for key in expected} == expected


def test_sprites_as_json_are_summed_up() -> None:
    found = json.loads(to_json_line({"type": "x", "sprites": make_sprites(), "sizes": {(8, 16): 2}}))
    assert found["sprites"]["count"] == 24 and found["sprites"]["classes"] == {"class0": 12, "class1": 12}
    assert found["sizes"] == {"8x16": 2} and len(json.dumps(found)) < 400


def test_a_job_is_closed_when_showing_fails() -> None:
    closed = []

    def job() -> Events:
        try:
            yield events.Progress(0, 1, "things")
        finally:
            closed.append(True)

    class Broken(Reporter):
        def show(self, event: Event) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_job(job(), Broken(), events.Progress)
    assert closed == [True]


def test_a_blocked_job_is_reported_once_and_retried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    full = events.Blocked("error", "Can't write to /runs/a.", "No space left on device.")

    def job() -> Events:
        yield from (full, full, events.Notice("info", "Going on."), full, STARTED)

    run_job(job(), PlainReporter(), events.RunStarted)
    said = capsys.readouterr().err.splitlines()
    error = f"Error: {full.title} {full.hint} Retrying until it works; press Ctrl+C twice to give up."
    assert said[:3] == [error, "Going on.", error]
    assert waits == [RETRY_S] * 3
