"""What experiments conclude from their measurements, where the right answer is known."""

from __future__ import annotations

import base64
import dataclasses
import functools
import math
from collections.abc import Generator as Events
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studio.core.errors import DeviceError, DeviceFullError, TrainingError
from studio.core.events import Event
from studio.data.sprites import Sprites
from studio.engine.devices.types import Device
from studio.engine.steps.benchmark import StepTimes
from studio.lab.experiments import (
    batch_size,
    break_it,
    compiled,
    cuda_graph,
    devices,
    learning_rate,
    mistakes,
    moving_data,
    precision,
    roofline,
    threads,
)
from studio.lab.experiments.base import ExperimentContext
from studio.lab.experiments.batch_size import BatchTiming
from studio.lab.experiments.program import Examples, Trained
from studio.lab.experiments.program_classifier import ProgramClassifier
from studio.lab.experiments.roofline import StepCost
from studio.lab.experiments.sweep import TimedTraining
from studio.lab.outcome import Outcome, Picture
from studio.recipes.generator import Generator
from tests.engine.tools import CPU, bomb_png
from tests.lab.tools import small_context


def _timings(speeds: list[float]) -> list[BatchTiming]:
    return [BatchTiming(2**power, 2**power / speed, 1 << 20) for power, speed in enumerate(speeds)]


@pytest.mark.parametrize(
    ("speeds", "knee"),
    [
        ([10, 20, 40, 80, 160, 165, 170, 172], 16),  # rises in proportion, then hardly at all
        ([100, 101, 102, 101], 1),  # nothing to gain: told below
        ([10, 20, 40, 80], 8),  # pays up to the last
        ([50], 1),
    ],
)
def test_knee_is_where_speed_stops_rising(speeds: list[float], knee: int) -> None:
    timings = _timings(speeds)
    rising = timings[: speeds.index(max(speeds)) + 1]
    if knee == 1 and len(speeds) > 1:
        assert batch_size._knee(rising).speed >= 0.98 * max(speeds)
    else:
        assert batch_size._knee(rising).size == knee


def test_batch_that_does_not_fit_is_reported() -> None:
    outcome = batch_size._conclusion(
        _timings([10, 20, 22]), "8 sprites don't fit into the memory of a card.", small_context()
    )
    assert outcome.suggests == {"batch_size": 2}
    assert "8 sprites don't fit into the memory of a card." in outcome.sentences


def test_device_without_memory_for_one_sprite_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise DeviceFullError("The card has no memory left.")

    monkeypatch.setattr(batch_size, "_measure", full)
    with pytest.raises(DeviceFullError, match="no memory left"):
        list(batch_size.BatchSize().run(small_context()))


def _ranged(losses: list[float], steps: int = 100) -> Outcome:
    rates = np.geomspace(1e-6, 1.0, steps)
    return learning_rate._conclusion(rates, losses, small_context())


def test_tenth_of_the_rate_with_the_lowest_loss_is_suggested() -> None:
    rates = np.geomspace(1e-6, 1.0, 100)
    bowl = (1 + (np.log10(rates) + 1) ** 2).tolist()  # lowest at 0.1
    outcome = _ranged(bowl)
    assert outcome.suggests["learning_rate"] == pytest.approx(0.01, rel=0.6)  # smoothing lags a little
    assert "rose after that" in outcome.sentences[0]


def test_loss_that_never_falls_suggests_nothing() -> None:
    outcome = _ranged([1.0 + place / 10 for place in range(100)])
    assert not outcome.suggests and "never fell" in outcome.sentences[0]


def test_nan_loss_ends_the_curve() -> None:
    falling = [2.0 - place / 50 for place in range(50)]
    assert learning_rate._has_diverged([*falling, float("nan")], 100)
    assert not learning_rate._has_diverged(falling, 100)
    assert learning_rate._has_diverged([*falling, *[9.0] * 10], 100)
    outcome = _ranged([*falling, float("nan")])
    assert "diverged" in outcome.sentences[0]
    assert len(outcome.plots[0].lines[0].x) == 50


@pytest.mark.parametrize(
    ("program_s", "said"),
    [(2.0, "The studio was 2 times"), (0.5, "The program was 2 times"), (1.03, "Both were equally fast.")],
)
def test_a_program_is_compared_with_the_studio(program_s: float, said: str) -> None:
    context = small_context()
    examples = Examples(context.sprites, context.sprites)
    planned = 5 * -(-len(context.sprites) // 64)
    theirs, own = Trained(planned, program_s, 0.5), Trained(planned, 1.0, 0.75)
    outcome = ProgramClassifier().compare(context, examples, theirs, own)
    assert outcome.sentences[0].startswith("Both trained 5 epochs on")
    assert outcome.sentences[1].startswith(said) and "50 %, the studio's is 75 %" in outcome.sentences[1]


def test_a_slow_computer_is_told_how_many_steps_were_taken() -> None:
    context = small_context(seconds=30)
    examples = Examples(context.sprites, context.sprites)
    outcome = ProgramClassifier().compare(context, examples, Trained(3, 6.0, 0.5), Trained(2, 2.0, 0.5))
    assert "stops after 12 s: the program took 3 steps, the studio 2 steps" in outcome.sentences[0]
    assert outcome.sentences[1].startswith("The studio was 2 times as fast.")  # by the time of a step


def test_fewest_of_equally_fast_thread_counts_is_suggested() -> None:
    context = small_context()  # two cores; the settings use THREADS
    outcome = threads._conclusion({1: [0.2, 0.2, 9.0], 2: [0.1, 0.1, 0.1], 4: [0.1, 0.099, 0.2]}, context)
    assert outcome.sentences[0].startswith("2 threads train fastest: 40 sprites/s")
    assert "2 times as fast as one" in outcome.sentences[1]
    assert "are no slower" in outcome.sentences[2]
    same = threads._conclusion({1: [0.1], 2: [0.0985], 4: [0.3]}, context)
    assert same.sentences[0].startswith("1 thread trains fastest")
    assert "take 3 times as long" in same.sentences[1]
    assert outcome.suggests != same.suggests  # one of them is the current setting


def _precisions(**found: tuple[float, list[float]]) -> dict[str, precision.PrecisionTraining]:
    """Return trainings by precision, with this step time in seconds and these losses."""
    trainings = {}
    for name, (step_s, losses) in found.items():
        trainings[name] = training = precision.PrecisionTraining(small_context().training())
        training.durations_s, training.losses = [step_s] * len(losses), [torch.tensor(loss) for loss in losses]
    return trainings


def test_faster_precision_that_learns_as_well_is_suggested() -> None:
    context = small_context(precision="fp32")
    faster = precision._conclusion(_precisions(fp32=(0.2, [1.0, 1.0]), bf16=(0.1, [1.01, 1.01])), context)
    assert faster.suggests == {"precision": "bf16"}
    assert "bf16 is 2 times as fast as fp32 here: 40 sprites/s against 20 sprites/s." in faster.sentences[0]
    assert "They differ by 1 %: both learn equally well, and the curves cover each other." in faster.sentences[1]
    worse = precision._conclusion(_precisions(fp32=(0.2, [1.0, 1.0]), bf16=(0.1, [1.5, 1.5])), context)
    assert not worse.suggests and "learn equally" not in worse.sentences[1]
    broken = precision._conclusion(_precisions(fp32=(0.2, [1.0, 1.0]), fp16=(0.1, [math.nan])), context)
    assert not broken.suggests and broken.sentences[1] == "In fp16 the loss became NaN or infinite."


def test_memory_kept_for_the_backward_pass_counts_once() -> None:
    """Four times the width keeps about four times as much memory, beside the weights."""
    activations = []
    for width in (16, 64):
        run = precision.PrecisionTraining(small_context(width=width, batch_size=64).training())
        run.warm_up(2)
        weights = sum(weight.nbytes for weight in run.training.network.parameters())
        activations.append(run.kept_bytes - weights)
    assert 3 <= activations[1] / activations[0] <= 5


def test_devices_are_ranked_and_failures_reported() -> None:
    card = Device("cuda:0", "cuda", "A card", 1, 1)
    slow = devices.DeviceTiming(CPU, "fp32", StepTimes(0.1, 0.3, 0.5, 0.1), 0.5, 9.0, None)
    fast = devices.DeviceTiming(card, "bf16", StepTimes(0.01, 0.03, 0.05, 0.01), 0.2, 99.0, None)
    found = [slow, fast]
    outcome = devices._conclusion(found, ["A card in fp16: it is full."], small_context())
    assert outcome.sentences[0] == "A card in bf16 trains fastest: 40 sprites/s."
    assert outcome.sentences[1] == "That is 10 times as fast as test CPU in fp32."
    assert "takes 100.0 ms: batch 10 %, forward 30 %, backward 50 %, optimizer 10 %" in outcome.sentences[2]
    assert "would add 0.20 ms to each step" in outcome.sentences[3]
    assert outcome.sentences[-1] == "A card in fp16: it is full."
    assert [table.rows[1][0] for table in outcome.tables] == ["cuda:0, bf16", "cuda:0, bf16"]
    assert "No transfer is needed" in devices._conclusion([slow], [], small_context()).sentences[3]
    with pytest.raises(DeviceError, match="failed on every device"):
        devices._conclusion([], ["A card in fp16: it is full."], small_context())


@pytest.mark.parametrize("mistake", mistakes._MISTAKES, ids=lambda mistake: mistake.title)
def test_mistake_raises_an_error_with_both_devices_and_its_fix_runs(mistake: mistakes._Mistake) -> None:
    if mistake.without_cuda and torch.cuda.is_available():
        assert not mistakes._error_of(mistake.wrong, small_context())
        return
    said = mistakes._error_of(mistake.wrong, small_context())
    assert said and (mistake.without_cuda or ("cpu" in said and "meta" in said))
    assert not mistakes._error_of(mistake.fixed, small_context())
    assert torch.get_default_device().type == "cpu"


def test_mistake_without_an_error_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = mistakes._Mistake("Harmless", "x + x", "It is none.", "x + x")
    monkeypatch.setattr(mistakes, "_MISTAKES", (harmless, mistakes._MISTAKES[0]))
    *_, outcome = mistakes.Mistakes().run(small_context())
    assert isinstance(outcome, Outcome) and outcome.sentences[0].startswith("1 of 2 mistakes raised an error")
    assert ("error", "None: this version of PyTorch accepts the code.") in outcome.tables[0].rows


def test_code_of_mistakes_is_not_broken_into_lines() -> None:
    *_, outcome = mistakes.Mistakes().run(small_context())
    assert isinstance(outcome, Outcome)
    shown = [text for table in outcome.tables for name, text in table.rows if name == "fixed"]
    assert shown == [mistake.fixed for mistake in mistakes._MISTAKES[: len(shown)]]


def _loops(**changed_s: float) -> dict[str, float]:
    """Return seconds per step, by loader."""
    ways = ("_PIXELS", "_FILES", "_DECODED", "_WHOLE", "_RESIDENT", "_UNREAD")
    usual_s = dict(zip(ways, (0.4, 0.04, 0.02, 0.011, 0.01, 0.01), strict=True)) | changed_s
    found = {getattr(moving_data, way): seconds for way, seconds in usual_s.items()}
    return found | {moving_data._with(workers): 0.08 / (1 + workers) for workers in moving_data._WORKERS}


def test_savings_of_each_loader_are_reported() -> None:
    card = dataclasses.replace(small_context(), device=Device("cuda:0", "cuda", "A card", 1, 1))
    found = _loops() | {moving_data._pinned(4): 0.008}
    said = list(moving_data._sentences(found, 0.3, card))
    assert said[0].startswith(
        "A step takes 40.0 ms with files opened in it, and 10.0 ms with all sprites on the device: 4 "
    )
    assert "20 ms for opening files, 9 ms for collating batches, 1 ms for moving batches" in said[1]
    assert said[1].endswith("almost nothing for reading the loss.")
    assert "10 times as long" in said[2]
    assert said[3] == "With 4 workers opening files in advance, a step is 2.5 times as fast."
    assert "takes 300 ms; opening files would make it 10 % longer" in said[4]
    assert said[5] == "Pinned memory makes loading 2 times as fast." and len(said) == 6


def test_cpu_reports_the_precision_of_its_measurements() -> None:
    said = list(moving_data._sentences(_loops(), 0.3, small_context()))
    assert "moving" not in said[1] and "loss" not in said[1]
    assert "not measured" in said[5] and "differ by 10 %" in said[6]


def test_loop_over_pixels_equals_torchvision() -> None:
    from torchvision.transforms import ToTensor  # imported late: it takes seconds

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 4, 4), dtype=np.uint8))
    assert torch.equal(moving_data._by_pixels(picture), ToTensor()(picture))


def test_without_zero_grad_gradients_add_up() -> None:
    context = small_context(weight_decay=0.0)
    added, alone = break_it._WithoutZeroGrad(context.training()), context.training()
    sums = {name: torch.zeros_like(weight) for name, weight in alone.network.named_parameters()}
    for name, weight in alone.network.named_parameters():
        weight.register_post_accumulate_grad_hook(functools.partial(_add_gradient, sums[name]))
    for training in (added, alone):
        training.set_learning_rate(0.0)  # the weights stay, so that both meet the same ones
        for _ in range(3):
            training.train_step()
    for name, weight in added.network.named_parameters():
        torch.testing.assert_close(added._kept[weight], sums[name], rtol=1e-4, atol=1e-6)


def _add_gradient(total: torch.Tensor, weight: torch.Tensor) -> None:
    assert weight.grad is not None
    total += weight.grad


def _broken(title: str, losses: list[float], heldout: float) -> break_it._Variant:
    run = break_it._Variant(title, small_context().training(), 0.1, [torch.tensor(loss) for loss in losses])
    run.validations[len(losses)] = {"loss": heldout, "accuracy": 0.5}
    return run


def test_faulty_trainings_are_compared_with_the_correct_one() -> None:
    runs = [
        _broken(break_it._CORRECT, [1.0] * 30, 2.0),
        _broken(break_it._RATE, [*[1.0] * 20, *[math.nan] * 10], math.nan),
        _broken(break_it._UNZEROED, [4.0] * 30, 3.0),
        _broken(break_it._FEW_SPRITES, [0.5] * 30, 2.02),
        _broken(break_it._UNAVERAGED, [1.0] * 30, 1.0),
    ]
    said = list(break_it._sentences(runs, (0.1, 0.2, 3 << 20)))
    assert said == [
        "The correct training ends with a loss of 1 after 30 steps, 2 on validation sprites.",
        "Learning rate x 100: the loss became NaN or infinite after 20 steps.",
        "No zero_grad: 3 on validation sprites, 50 % worse.",
        "20 sprites: 0.5 on these, 2.02 on validation sprites, no difference in a training this short.",
        "Weights not averaged: 1 on validation sprites, 50 % better: 30 steps are too few to show the damage.",
        "Without torch.no_grad(), an evaluation takes 2 times as long and wastes 3 MB per batch.",
    ]
    assert break_it._table(runs).columns[-1] == ">accuracy"
    assert len(break_it._plots(runs)[1].lines[1].x) == 20


def test_reduced_settings_are_named() -> None:
    config = small_context(batch_size=8, width=16).config
    assert not list(break_it._about_size(config, config))
    (said,) = break_it._about_size(config.replace(batch_size=64, width=64), config.replace(batch_size=32, width=32))
    assert said == "To fit several trainings into the time, these settings were reduced: batch size 32, width 32."


def test_break_it_needs_sprites_to_hold_out() -> None:
    context = small_context()
    alone = dataclasses.replace(context, sprites=context.sprites.take(np.arange(1)))
    with pytest.raises(TrainingError, match="too few sprites"):
        list(break_it.BreakIt().run(alone))


@pytest.mark.slow
def test_faulty_generators_draw_sprites_to_compare() -> None:
    *_, outcome = break_it.BreakIt().run(small_context(recipe=Generator()))
    assert isinstance(outcome, Outcome)
    names = [picture.title for picture in outcome.pictures]
    assert names == [break_it._CORRECT, break_it._RATE, break_it._UNZEROED, break_it._UNAVERAGED]
    assert {picture.pixels().shape for picture in outcome.pictures} == {(8, 8 * break_it._DRAWN, 4)}
    assert len({picture.png for picture in outcome.pictures}) == len(names)  # what went wrong can be seen


def test_invalid_picture_is_refused() -> None:
    whole = Picture.of("sprites", np.zeros((8, 8, 4), np.uint8))
    for png in ("no base64!", whole.png[:40], "aGVsbG8=", base64.b64encode(bomb_png()).decode()):
        with pytest.raises(ValueError, match="the picture 'sprites' is invalid"):
            Picture("sprites", png)


def _compared(eager_s: float, compiled_s: float, cost_s: float, loss: float) -> Outcome:
    """Return the conclusion for these step times and losses; cost_s: seconds of compiling."""
    losses = [[torch.tensor(1.0)] * 10, [torch.tensor(loss)] * 10]
    training = small_context().training()
    eager = TimedTraining(training, 3 * eager_s, [eager_s] * 7, losses[0])
    quick = TimedTraining(training, cost_s + 3 * compiled_s, [compiled_s] * 7, losses[1])
    return compiled._conclusion(eager, quick)


def test_step_where_compiling_pays_off() -> None:
    outcome = _compared(eager_s=0.25, compiled_s=0.125, cost_s=50.0, loss=1.0)
    assert outcome.sentences[:3] == (
        "A compiled step takes 125 ms instead of 250 ms: 2 times as fast. Compiling took 50 s.",
        "Compiling pays off from step 400 on, after 1 min 40 s of training.",
        "After 10 steps from the same seed both losses are exactly the same.",
    )
    (mark,), (eager, quick) = outcome.plots[0].marks, outcome.plots[0].lines
    crossing = [np.interp(mark.x, line.x, line.y) for line in (eager, quick)]
    assert mark.x == 400 and crossing[0] == pytest.approx(crossing[1])


def test_compiling_that_never_pays_off() -> None:
    outcome = _compared(eager_s=0.1, compiled_s=0.2, cost_s=50.0, loss=1.5)
    assert "2 times as long" in outcome.sentences[0] and "never pays off" in outcome.sentences[1]
    assert "50 % apart" in outcome.sentences[2] and not outcome.plots[0].marks
    assert "no faster" in _compared(0.1, 0.1, 50.0, 1.0).sentences[0]
    late = _compared(eager_s=0.1, compiled_s=0.09, cost_s=5000.0, loss=1.0)
    assert "longer than most trainings" in late.sentences[1]


def test_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: "there")
    assert "headers" in compiled.Compile().obstacle(CPU)
    (tmp_path / "Python.h").touch()
    assert not compiled.Compile().obstacle(CPU)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "C++ compiler" in compiled.Compile().obstacle(CPU)
    assert not compiled.Compile().obstacle(Device("cuda:0", "cuda", "A card", 1, 1))


@pytest.mark.parametrize(("side", "count"), [(8, 300), (256, 4)])
def test_large_sprites_are_moved_a_few_at_a_time(side: int, count: int) -> None:
    sprites = Sprites(np.zeros((300, side, side, 4), np.uint8), np.zeros(300, np.int64), ("one",), ("",) * 300, "blank")
    context = dataclasses.replace(small_context(batch_size=1024), sprites=sprites)
    assert moving_data._batch_size(context) == count


def test_gpu_wait_is_reported_for_the_usual_batch_size() -> None:
    context = small_context()
    context = dataclasses.replace(context, config=context.config.replace(batch_size=64))
    found = [cuda_graph.GraphTiming(16, 0.04, 0.005), cuda_graph.GraphTiming(64, 0.04, 0.008)]
    found.append(cuda_graph.GraphTiming(256, 0.04, 0.02))
    first, waits, largest, _ = cuda_graph._sentences(found, context)
    assert "64 sprites per step, an eager step takes 40.00 ms" in first and "8.00 ms" in first and "80 %" in waits
    assert "256 sprites per step a graph is 2 times as fast: larger" in largest
    (plot,) = cuda_graph._plots(found)
    assert [line.y for line in plot.lines] == [(400.0, 1600.0, 6400.0), (3200.0, 8000.0, 12800.0)]
    assert "hardly waits" in cuda_graph._sentences([cuda_graph.GraphTiming(64, 0.04, 0.04)], context)[1]


def test_only_nvidia_gpus_have_cuda_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Device("cuda:0", "cuda", "A card", 1, 1)
    monkeypatch.setattr(torch.version, "hip", None)
    assert not cuda_graph.CudaGraph().obstacle(card) and cuda_graph.CudaGraph().obstacle(CPU)
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert "NVIDIA" in cuda_graph.CudaGraph().obstacle(card)


def test_full_gpu_ends_with_the_batch_sizes_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(context: ExperimentContext, size: int) -> Events[Event, None, cuda_graph.GraphTiming]:
        if size > 16:
            raise DeviceFullError("full")
        yield from ()
        return cuda_graph.GraphTiming(size, 0.04, 0.01)

    monkeypatch.setattr(cuda_graph, "_measure", measure)
    *_, outcome = cuda_graph.CudaGraph().run(small_context())
    assert isinstance(outcome, Outcome) and len(outcome.tables[0].rows) == 1 and "75 %" in outcome.sentences[1]


def test_roofline_names_the_limit_of_the_step() -> None:
    limits = roofline.DeviceLimits(flops_per_s=1e12, bytes_per_s=1e10, call_s=1e-5)
    assert limits.roof(10) == 1e11 and limits.roof(1000) == 1e12
    small = StepCost(flops=10**9, moved_bytes=10**7, tensor_bytes=1 << 20, calls=500, step_s=0.006)
    large = StepCost(flops=10**11, moved_bytes=10**8, tensor_bytes=1 << 20, calls=500, step_s=0.3)
    wide = StepCost(flops=10**10, moved_bytes=10**9, tensor_bytes=1 << 20, calls=500, step_s=0.13)
    context = small_context()
    for cost, limit in ((small, "Python"), (large, "compute"), (wide, "memory")):
        sentences = list(roofline._sentences({16: cost, 1: small}, limits, context))
        assert f"So {limit} limits the step" in sentences[2]
    assert "explain 38.3 %" in " ".join(roofline._sentences({16: large}, limits, context))
    assert "calls are 83.3 %" in " ".join(roofline._sentences({16: large, 1: small}, limits, context))


def test_roofline_counts_operations_and_bytes() -> None:
    x = torch.rand(8, 8)
    with roofline._Counter() as counter:
        (x.T @ x).add_(1)
    assert counter.moved_bytes == [3 * x.nbytes, 2 * x.nbytes]
