"""Curves of runs as a picture."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from studio.core.curves import CURVE_COLOURS, Values
from studio.core.errors import ExportError
from studio.exports.plot import PlotLine, save_plot

NOTHING = np.zeros(0)


def _line(count: int, label: str = "a run", heldout: int = 0) -> PlotLine:
    steps = np.arange(count, dtype=np.float64)
    noise = np.random.default_rng(0).normal(0, 0.02, count)
    values = 0.2 + np.exp(-steps / max(1, count / 8)) + noise
    places = np.linspace(0, count - 1, heldout).astype(int)
    return PlotLine(label, steps, values, steps[places], values[places])


def _save(path: Path, *lines: PlotLine, log: bool = False, smoothing_steps: float = 50) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return save_plot(path, lines, "A run, $5 and 剣", "Loss", smoothing_steps=smoothing_steps, log=log)


def _colours(path: Path) -> set[str]:
    with Image.open(path) as picture:
        assert picture.size == (1600, 900)
        found = picture.convert("RGB").getcolors(1 << 22)
    return {"#{:02x}{:02x}{:02x}".format(*colour) for _, colour in found}  # type: ignore[misc, union-attr]


@pytest.mark.parametrize(("count", "log"), [(0, False), (1, True), (2, False), (30, True), (300_000, False)])
def test_every_length_of_run_gives_a_picture(tmp_path: Path, count: int, log: bool) -> None:
    heldout = 5 if count >= 30 else 0
    colours = _colours(_save(tmp_path / "loss.png", _line(count, heldout=heldout), log=log))
    assert (set(CURVE_COLOURS[:2]) <= colours) == (count >= 30)


def test_large_values_have_thousands_separators(tmp_path: Path) -> None:
    steps = np.arange(5.0)
    saved = _save(tmp_path / "speed.svg", PlotLine("a run", steps, 5_000 * (steps + 1), NOTHING, NOTHING))
    assert "<!-- 20,000 -->" in saved.read_text()


def test_runs_have_their_colours_in_order_and_odd_names(tmp_path: Path) -> None:
    lines = [_line(40, "_hidden"), _line(50, "$5 {", heldout=3), _line(60, "long " * 40)]
    assert set(CURVE_COLOURS[:3]) <= _colours(_save(tmp_path / "runs.png", *lines))


def test_nan_values_are_not_plotted(tmp_path: Path) -> None:
    line = _line(100)
    line.values[40:50] = np.nan
    line.values[60] = np.inf
    line.values[70] = 0.0
    assert CURVE_COLOURS[0] in _colours(_save(tmp_path / "loss.png", line, log=True, smoothing_steps=0))
    nowhere = PlotLine("a run", line.steps, np.full(100, np.nan), NOTHING, NOTHING)
    assert _save(tmp_path / "none.png", nowhere).is_file()


@pytest.mark.parametrize("smoothing_steps", [0, 50])
@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_vectors(tmp_path: Path, suffix: str, start: bytes, smoothing_steps: float) -> None:
    data = _save(tmp_path / f"loss{suffix}", _line(300_000), smoothing_steps=smoothing_steps).read_bytes()
    assert data.startswith(start) and len(data) < 500_000  # thinned: not a point for every step


def test_nothing_is_overwritten_and_pyplot_is_left_alone(tmp_path: Path) -> None:
    paths = [_save(tmp_path / "loss.png", _line(30)) for _ in range(2)]
    assert [path.name for path in paths] == ["loss.png", "loss-2.png"]
    assert "matplotlib.pyplot" not in sys.modules


def test_a_place_that_refuses_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="Can't write"):
        _save(tmp_path / "file" / "loss.png", _line(30))


def test_the_peaks_of_a_long_run_are_drawn(tmp_path: Path) -> None:
    steps: Values = np.arange(200_000.0)
    values = np.where(steps % 20_000 == 19_000, 3.0, 1.0)
    path = _save(tmp_path / "loss.png", PlotLine("a run", steps, values, NOTHING, NOTHING), smoothing_steps=0)
    with Image.open(path) as picture:
        drawn = np.all(np.asarray(picture.convert("RGB")) == ImageColor.getrgb(CURVE_COLOURS[0]), axis=2)
    assert (drawn[300:500].sum(0) > 100).sum() >= 10  # columns of the picture that a peak crosses


def test_smoothed_curves_of_several_runs_are_drawn_from_their_first_value(tmp_path: Path) -> None:
    lines = [PlotLine(name, line.steps, line.values, NOTHING, NOTHING) for name in "ab" for line in [_line(2000)]]
    with Image.open(_save(tmp_path / "runs.png", *lines)) as picture:
        drawn = np.all(np.asarray(picture.convert("RGB")) == ImageColor.getrgb(CURVE_COLOURS[1]), axis=2)
    columns = np.flatnonzero(drawn[200:].any(0))  # below the legend
    assert columns[0] < 150  # the axes begin at about 100
