"""Results of experiments as data."""

from __future__ import annotations

from studio.lab.outcome import Axis, Line, Mark, Plot


def test_a_plot_in_words_has_all_values_of_a_short_line_and_the_extremes_of_a_long_one() -> None:
    steps = tuple(map(float, range(100)))
    loss = Line("loss", steps, tuple(0.5 + (step - 60) ** 2 for step in steps))
    plot = Plot("Loss", Axis("step"), Axis("loss"), (Line("few", (1.0, 2.0), (3.0, 0.25)), loss), (Mark(60.0, "low"),))
    assert plot.describe() == (
        "loss by step. few: 3 at 1, 0.25 at 2. "
        "loss: from 3,600 at 0 to 1,522 at 99; lowest 0.5 at 60, highest 3,600 at 0. low at 60."
    )
    assert Line("none", (), ()).describe() == "none: no points."
