"""The lesson on timing admits what the roofline does not explain."""

from __future__ import annotations

from studio.lab.lessons.timing import Timing


def test_small_parts_and_near_limits_are_admitted() -> None:
    figures: dict[str, float | str] = {
        "first_s": 0.02, "median_s": 0.01, "unsynchronized_s": 0.01, "low_s": 0.009, "high_s": 0.012,
        "device_kind": "cpu", "limit": "memory", "compute_s": 0.09, "memory_s": 0.1, "python_s": 0.01, "step_s": 1.0,
        "advice": "Use 16 bits.", "close": "compute", "unexplained": "yes",
    }  # fmt: skip
    said = " ".join(Timing().explain(figures, "compute"))
    assert "only 20 % of the step" in said and "16 bits" not in said and "Compute is close behind" in said
    clear: dict[str, float | str] = {"compute_s": 0.02, "step_s": 0.12, "close": "", "unexplained": "no"}
    said = " ".join(Timing().explain({**figures, **clear}, "compute"))
    assert (
        "of the step." not in said
        and "Use 16 bits." in said
        and "of the time of memory" in said
        and "close behind" not in said
    )
