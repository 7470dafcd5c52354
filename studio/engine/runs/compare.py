"""What runs are compared by: the curves that the Runs page and `studio plot` draw. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from studio.core.curves import SMOOTHING_STEPS
from studio.core.wording import figure_title
from studio.engine.runs.history import Curve, History


@dataclass(frozen=True)
class ComparedFigure:
    """A curve of a run: what it is called on the command line and in the window, and where its history has it."""

    name: str
    title: str
    kind: Literal["series", "validation", "quality"]
    key: str
    smoothing_steps: float = 0.0  # how much it is smoothed unless the user says otherwise

    def curve(self, history: History) -> Curve | None:
        """The curve of one run; None where it has none."""
        curves: dict[str, Curve] = getattr(history, self.kind)
        found = curves.get(self.key)
        return found if found is not None and len(found.steps) else None


LOSS = ComparedFigure("loss", "Loss", "series", "loss", SMOOTHING_STEPS)
HELDOUT_LOSS = ComparedFigure("held-out-loss", "Held-out loss", "validation", "loss")
FIGURES = (
    LOSS,
    HELDOUT_LOSS,
    *(ComparedFigure(name, f"Held-out {figure_title(name)}", "validation", name) for name in ("accuracy", "r2")),
    ComparedFigure("kid", "Quality (KID)", "quality", "kid"),
    ComparedFigure("copies", "Copies", "quality", "copies"),
)


def curves(history: History) -> dict[str, Curve]:
    """The curves that a run has, by title."""
    found = {figure.title: figure.curve(history) for figure in FIGURES}
    return {title: curve for title, curve in found.items() if curve is not None}
