"""When steps become a CUDA graph, tested with a simulated GPU whose graphs run the recorded step."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from studio.core.events import Event, Notice, RunFinished
from studio.data.sprites import Sprites
from studio.engine.devices import cuda_graph, detection
from studio.engine.devices.cuda_graph import CapturedStep
from studio.engine.runs.history import read_history
from studio.engine.steps import graphed_step
from studio.engine.steps.batches import RawBatch
from studio.engine.training import step
from tests.conftest import make_sprites
from tests.engine.tools import TOY, learnt, of_kind, train_classifier, train_toy

WARM_UP = graphed_step._WARM_UP_STEPS
MIB = 1 << 20


@dataclass
class Card:
    """What a card that is made believe has room for, and what was asked of it. refuses: why it records nothing."""

    free: int = 3 * MIB
    refuses: str = ""
    recorded: int = 0
    replayed: list[int] = field(default_factory=list)  # by which of the graphs
    generators: list[torch.Generator] = field(default_factory=list)  # that graphs were to draw from


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    card = Card()

    class Graph:
        def __init__(
            self, step: Callable[[RawBatch], Tensor], chosen: RawBatch, generators: tuple[torch.Generator, ...]
        ) -> None:
            card.generators += generators
            if card.refuses:
                raise RuntimeError(f"{card.refuses}\nand much more")
            card.recorded += 1
            self._step, self._number = step, card.recorded

        def replay(self, chosen: RawBatch) -> Tensor:
            card.replayed.append(self._number)
            return self._step(chosen)

    monkeypatch.setattr(graphed_step, "CapturedStep", Graph)
    monkeypatch.setattr(graphed_step, "supports_cuda_graphs", lambda device: True)
    monkeypatch.setattr(detection, "memory_free", lambda device: card.free)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: MIB)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 2 * MIB)
    return card


def test_cpu_records_no_graph(run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphed_step, "CapturedStep", None)
    assert of_kind(list(train_toy(run_path, sprites)), RunFinished)[0].step == 8


def test_live_graphs_use_different_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that matrix products of a stream use goes with the first graph of that stream that goes."""
    streams = itertools.cycle([SimpleNamespace(cuda_stream=number) for number in range(cuda_graph._STREAM_POOL_SIZE)])
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: next(streams))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, **more: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())

    def recorded() -> CapturedStep[RawBatch]:
        nothing = torch.zeros(1)
        return CapturedStep(lambda inputs: inputs[0], (nothing, nothing, nothing))

    living = recorded()
    for _ in range(2 * cuda_graph._STREAM_POOL_SIZE):
        assert recorded().stream is not living.stream
    all_others = [recorded() for _ in range(cuda_graph._STREAM_POOL_SIZE - 1)]
    assert len({id(graph.stream) for graph in [living, *all_others]}) == cuda_graph._STREAM_POOL_SIZE
    with pytest.raises(RuntimeError, match="Too many"):
        recorded()
    left = living.stream
    del living
    assert recorded().stream is left


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of the toy model changes in the last fifth of a training."""
    monkeypatch.setattr(type(TOY), "stages", (0.8,))


@pytest.mark.usefixtures("stages")
def test_each_stage_records_a_graph_after_warm_up(run_path: Path, sprites: Sprites, card: Card) -> None:
    list(train_toy(run_path, sprites, steps=20))  # the second stage begins with the sixteenth step
    assert card.replayed == [1] * (16 - WARM_UP) + [2] * (4 - WARM_UP)


@pytest.mark.usefixtures("stages")
def test_graph_training_equals_eager_training(
    run_path: Path, sprites: Sprites, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(train_toy(run_path, sprites, steps=20))
    assert card.replayed
    monkeypatch.setattr(graphed_step, "supports_cuda_graphs", lambda device: False)
    plain = run_path.with_name("plain")
    list(train_toy(plain, sprites, steps=20))
    recorded, unrecorded = learnt(run_path), learnt(plain)
    assert all(torch.equal(recorded[name], unrecorded[name]) for name in unrecorded)


def test_probed_step_runs_eagerly(run_path: Path, card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.training.loop.TICK_S", 0.0)
    monkeypatch.setattr("studio.engine.training.layer_stats._EVERY_S", 0.0)
    monkeypatch.setattr("studio.engine.training.layer_stats._SHARE", 1.0)
    list(train_classifier(run_path, make_sprites(), steps=20, log_layer_stats=True))
    looks = len(read_history(run_path).layers["update"]["enter"].steps)
    assert looks > 2 and len(card.replayed) <= 20 - looks


def test_too_little_memory_records_no_graph(run_path: Path, sprites: Sprites, card: Card) -> None:
    card.free = 2 * MIB - 1
    assert of_kind(list(train_classifier(run_path, sprites)), RunFinished)[0].step == 8
    assert not card.recorded


def test_failed_recording_is_reported_once(
    run_path: Path, sprites: Sprites, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What drew random numbers while recording failed is of no more use: it still takes itself to be recorded."""
    card.refuses, plain = "operation not permitted when stream is capturing", step.StepRunner._forward_backward

    def checked(runner: step.StepRunner, raw: RawBatch) -> Tensor:
        assert runner._graphed_step.rng not in card.generators
        return plain(runner, raw)

    monkeypatch.setattr(step.StepRunner, "_forward_backward", checked)
    events = list(train_classifier(run_path, sprites))
    assert of_kind(events, RunFinished)[0].step == 8
    assert len(card.generators) == 1
    (said,) = [event for event in of_kind(events, Notice) if "CUDA graph" in event.title]
    assert (said.level, said.hint) == ("info", card.refuses)


def test_full_device_releases_the_graph_before_splitting(
    run_path: Path, sprites: Sprites, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, failed = step.StepRunner._forward_backward, list[Event]()

    def full_once(runner: step.StepRunner, raw: RawBatch) -> Tensor:
        if len(card.replayed) == 2 and not failed:
            failed.append(Notice("info", "full"))
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return plain(runner, raw)

    monkeypatch.setattr(step.StepRunner, "_forward_backward", full_once)
    events = list(train_classifier(run_path, sprites))
    assert failed and of_kind(events, RunFinished)[0].step == 8
    assert card.replayed == [1, 1] and not [event for event in of_kind(events, Notice) if "Batches" in event.hint]
