"""The loss as a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core.errors import ExportError
from studio.exports.plot import save_loss_plot, smoothed

INK = (0x1F, 0x5F, 0xA8)
SIGN = (0xD9, 0x78, 0x2D)


def _curve(count: int) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(count, dtype=np.int64)
    noise = np.random.default_rng(0).normal(0, 0.02, count)
    return steps, 0.2 + np.exp(-steps / max(1, count / 8)) + noise


def _colours(path: Path) -> set[tuple[int, ...]]:
    with Image.open(path) as picture:
        assert picture.size == (1600, 900)
        return {tuple(colour) for _, colour in picture.convert("RGB").getcolors(1 << 22)}  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("count", [0, 1, 2, 30, 1500, 300_000])
def test_every_length_of_run_gives_a_picture(tmp_path: Path, count: int) -> None:
    steps, losses = _curve(count)
    checks = steps[:: max(1, count // 5)]
    path = save_loss_plot(tmp_path / "loss.png", steps, losses, checks, losses[checks], "A run, $5 and 剣")
    colours = _colours(path)
    if count >= 30:
        assert {INK, SIGN} <= colours


def test_values_that_are_not_numbers_are_left_out(tmp_path: Path) -> None:
    steps, losses = _curve(100)
    losses[40:50] = np.nan
    losses[60] = np.inf
    nothing = np.zeros(0, np.int64)
    path = save_loss_plot(tmp_path / "loss.png", steps, losses, nothing, np.zeros(0), "A run")
    assert INK in _colours(path) and SIGN not in _colours(path)


def test_nothing_is_overwritten_and_pyplot_is_left_alone(tmp_path: Path) -> None:
    steps, losses = _curve(30)
    paths = [save_loss_plot(tmp_path / "loss.png", steps, losses, steps, losses, "A run") for _ in range(2)]
    assert [path.name for path in paths] == ["loss.png", "loss 2.png"]
    assert "matplotlib.pyplot" not in sys.modules


def test_a_place_that_refuses_is_said(tmp_path: Path) -> None:
    steps, losses = _curve(30)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="Can't write"):
        save_loss_plot(tmp_path / "file" / "loss.png", steps, losses, steps, losses, "A run")


def test_the_mean_does_not_lag() -> None:
    ramp = np.arange(50, dtype=np.float64)
    assert np.allclose(smoothed(ramp, 9)[:46], ramp[:46])
    assert np.allclose(smoothed(np.array([1.0, 3.0, 2.0]), 3), [1, 2, 2.5])
    assert len(smoothed(np.zeros(0), 3)) == 0


def test_the_mean_ends_as_calmly_as_it_goes_on() -> None:
    noise = np.random.default_rng(0).normal(0, 1, 1000)
    means = smoothed(noise, 41)
    assert means[-1] == pytest.approx(noise[-21:].mean())
