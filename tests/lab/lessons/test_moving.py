"""The lesson on moving to the device: its table says what happened, in words."""

from __future__ import annotations

from studio.lab.lessons.moving import Moving
from studio.lab.outcome import Outcome
from tests.lab.tools import small_context


def test_the_table_names_the_weights_that_the_optimizer_holds() -> None:
    *_, outcome = Moving().run(small_context())
    assert isinstance(outcome, Outcome)
    said = [row[1] for row in outcome.tables[0].rows if row[0].strip() == "PyTorch says"]
    assert said[4] == "no error; the optimizer holds old weights"  # on 'meta', a move makes new weights
    assert "the optimizer holds the old weights" in " ".join(Moving().explain(outcome.figures, None))
