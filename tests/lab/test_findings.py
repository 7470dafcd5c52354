"""What experiments conclude from their measurements, where the right answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from studio.core.errors import DeviceError, DeviceFullError
from studio.engine.steps import StepTimes
from studio.engine.types import Device
from studio.lab.experiments import batch_size, devices, learning_rate, mistakes, precision, threads
from studio.lab.experiments.batch_size import _Measured
from studio.lab.outcome import Outcome
from tests.engine.tools import CPU
from tests.lab.tools import small_bench


def _sizes(speeds: list[float]) -> list[_Measured]:
    return [_Measured(2**place, 2**place / speed, 1 << 20) for place, speed in enumerate(speeds)]


@pytest.mark.parametrize(
    ("speeds", "knee"),
    [
        ([10, 20, 40, 80, 160, 165, 170, 172], 16),  # rises in proportion, then hardly at all
        ([100, 101, 102, 101], 1),  # nothing to gain: told below
        ([10, 20, 40, 80], 8),  # pays up to the last
        ([50], 1),
    ],
)
def test_the_knee_is_where_the_speed_stops_rising(speeds: list[float], knee: int) -> None:
    found = _sizes(speeds)
    rising = found[: speeds.index(max(speeds)) + 1]
    if knee == 1 and len(speeds) > 1:
        assert batch_size._knee(rising).speed >= 0.98 * max(speeds)
    else:
        assert batch_size._knee(rising).size == knee


def test_a_batch_that_does_not_fit_is_told() -> None:
    outcome = batch_size._outcome(_sizes([10, 20, 22]), "8 sprites don't fit into the memory of a card.", small_bench())
    assert outcome.suggests == {"batch_size": 2}
    assert "8 sprites don't fit into the memory of a card." in outcome.sentences


def test_a_device_without_room_for_a_single_sprite_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise DeviceFullError("The card has no memory left.")

    monkeypatch.setattr(batch_size, "_measure", full)
    with pytest.raises(DeviceFullError, match="no memory left"):
        list(batch_size.BatchSize().run(small_bench()))


def _ranged(losses: list[float], steps: int = 100) -> Outcome:
    rates = np.geomspace(1e-6, 1.0, steps)
    return learning_rate._outcome(rates, losses, small_bench())


def test_a_tenth_of_the_rate_with_the_lowest_loss_is_suggested() -> None:
    rates = np.geomspace(1e-6, 1.0, 100)
    bowl = (1 + (np.log10(rates) + 1) ** 2).tolist()  # lowest at 0.1
    outcome = _ranged(bowl)
    assert outcome.suggests["learning_rate"] == pytest.approx(0.01, rel=0.6)  # smoothing lags a little
    assert "rose after it" in outcome.sentences[0]


def test_a_loss_that_never_falls_suggests_nothing() -> None:
    outcome = _ranged([1.0 + place / 10 for place in range(100)])
    assert not outcome.suggests and "never fell" in outcome.sentences[0]


def test_what_is_no_number_ends_the_curve() -> None:
    falling = [2.0 - place / 50 for place in range(50)]
    assert learning_rate._has_fallen_apart([*falling, float("nan")], 100)
    assert not learning_rate._has_fallen_apart(falling, 100)
    assert learning_rate._has_fallen_apart([*falling, *[9.0] * 10], 100)
    outcome = _ranged([*falling, float("nan")])
    assert "fallen apart" in outcome.sentences[0]
    assert len(outcome.plots[0].lines[0].x) == 50


def test_the_fewest_threads_that_are_as_fast_are_taken() -> None:
    bench = small_bench()  # of two cores, which takes `THREADS`
    outcome = threads._outcome({1: [0.2, 0.2, 9.0], 2: [0.1, 0.1, 0.1], 4: [0.1, 0.099, 0.2]}, bench)
    assert outcome.sentences[0].startswith("2 threads train fastest: 40 sprites/s")
    assert "2 times as fast as one" in outcome.sentences[1]
    assert "are no slower" in outcome.sentences[2]
    same = threads._outcome({1: [0.1], 2: [0.0985], 4: [0.3]}, bench)
    assert same.sentences[0].startswith("1 thread trains fastest")
    assert "take 3 times as long" in same.sentences[1]
    assert outcome.suggests != same.suggests  # one of the two is what the settings take


def _precisions(**found: tuple[float, list[float]]) -> dict[str, precision._Run]:
    """Runs whose steps took so many seconds, with these losses."""
    runs = {}
    for name, (step_s, losses) in found.items():
        runs[name] = run = precision._Run(small_bench().training())
        run.training.precision, run.durations_s = name, [step_s] * len(losses)
        run._losses = [torch.tensor(loss) for loss in losses]
    return runs


def test_a_faster_precision_that_learns_the_same_is_suggested() -> None:
    bench = small_bench(precision="fp32")
    faster = precision._outcome(_precisions(fp32=(0.2, [1.0, 1.0]), bf16=(0.1, [1.01, 1.01])), bench)
    assert faster.suggests == {"precision": "bf16"}
    assert "bf16 is 2 times as fast as fp32 here: 40 sprites/s against 20 sprites/s." in faster.sentences[0]
    assert "1 % apart: both learn the same." in faster.sentences[1]
    worse = precision._outcome(_precisions(fp32=(0.2, [1.0, 1.0]), bf16=(0.1, [1.5, 1.5])), bench)
    assert not worse.suggests and "learn the same" not in worse.sentences[1]
    broken = precision._outcome(_precisions(fp32=(0.2, [1.0, 1.0]), fp16=(0.1, [math.nan])), bench)
    assert not broken.suggests and broken.sentences[1] == "In fp16 the loss stopped being a number."


def test_what_is_kept_for_the_backward_pass_is_counted_once() -> None:
    """Beside what the network's width says: four times the width keeps about four times as much."""
    activations = []
    for width in (16, 64):
        run = precision._Run(small_bench(width=width, batch_size=64).training())
        run.warm_up()
        weights = sum(weight.nbytes for weight in run.training.network.parameters())
        activations.append(run.kept_bytes - weights)
    assert 3 <= activations[1] / activations[0] <= 5


def test_devices_are_ranked_and_what_fails_is_said() -> None:
    card = Device("cuda:0", "cuda", "A card", 1, 1)
    slow = devices._Measured(CPU, "fp32", StepTimes(0.1, 0.3, 0.5, 0.1), 0.5, 9.0, None)
    fast = devices._Measured(card, "bf16", StepTimes(0.01, 0.03, 0.05, 0.01), 0.2, 99.0, None)
    found = [slow, fast]
    outcome = devices._outcome(found, ["A card in fp16: it is full."], small_bench())
    assert outcome.sentences[0] == "A card in bf16 trains fastest: 40 sprites/s."
    assert outcome.sentences[1] == "That is 10 times as fast as test CPU in fp32."
    assert "100.0 ms goes: batch 10 %, forward 30 %, backward 50 %, optimizer 10 %" in outcome.sentences[2]
    assert "would cost 0.20 ms more" in outcome.sentences[3]
    assert outcome.sentences[-1] == "A card in fp16: it is full."
    assert [table.rows[1][0] for table in outcome.tables] == ["cuda:0, bf16", "cuda:0, bf16"]
    assert "Nothing must be moved" in devices._outcome([slow], [], small_bench()).sentences[3]
    with pytest.raises(DeviceError, match="No device could do it"):
        devices._outcome([], ["A card in fp16: it is full."], small_bench())


@pytest.mark.parametrize("mistake", mistakes._MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_told_by_both_devices_and_mended(mistake: mistakes._Mistake) -> None:
    if mistake.without_cuda and torch.cuda.is_available():
        assert not mistakes._said_of(mistake.wrong, small_bench())
        return
    said = mistakes._said_of(mistake.wrong, small_bench())
    assert said and (mistake.without_cuda or ("cpu" in said and "meta" in said))
    assert not mistakes._said_of(mistake.mended, small_bench())
    assert torch.get_default_device().type == "cpu"


def test_a_mistake_that_raises_nothing_is_not_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = mistakes._Mistake("Harmless", "x + x", "It is none.", "x + x")
    monkeypatch.setattr(mistakes, "_MISTAKES", (harmless, mistakes._MISTAKES[0]))
    *_, outcome = mistakes.Mistakes().run(small_bench())
    assert isinstance(outcome, Outcome) and outcome.sentences[0].startswith("1 of 2 mistakes raised an error")
    assert ("PyTorch says", "Nothing: this version goes on.") in outcome.tables[0].rows
