"""The lesson on mixed precision explains each outcome of the measurement."""

from __future__ import annotations

import pytest

from studio.lab.lessons.mixed_precision import MixedPrecision


@pytest.mark.parametrize(
    ("bf16_s", "loss", "measured", "said"),
    [
        (0.5, 0.201, "faster", "3 digits are enough"),
        (1.0, 0.3, "about as fast", "differ by more than rounding"),
        (2.0, "not finite", "slower", "not finite in bfloat16"),
    ],
)
def test_explanation_follows_the_measurement(bf16_s: float, loss: float | str, measured: str, said: str) -> None:
    figures = {
        "fp32_step_s": 1.0, "bf16_step_s": bf16_s, "fp32_kept_bytes": 4e6, "bf16_kept_bytes": 2.4e6,
        "fp32_loss": 0.2, "bf16_loss": loss, "bf16_learns": "equally" if loss == 0.201 else "otherwise",
    }  # fmt: skip
    lesson = MixedPrecision()
    assert lesson.measured(figures) == measured
    assert said in lesson.explain(figures, None)[-1]
