"""Looking into runs: what is shown of a model is what it does, told by another way to the same numbers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core import records
from studio.core.errors import UsageError
from studio.core.events import SpritesGenerated
from studio.core.generators import run_to_end
from studio.engine.models.loading import load_model
from studio.engine.runs.history import MetricCurve
from studio.engine.sampling.generate import generate
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_device, to_input
from studio.lab.catalog import experiments
from studio.lab.experiments import feature_maps, from_noise, hardest, layers
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.experiments.sweep import TimedTraining
from studio.lab.outcome import Outcome
from studio.lab.results import Result
from studio.lab.running import result_of
from studio.recipes.sets import Sets
from tests.conftest import make_sprites, with_numbers, with_sets
from tests.engine.tools import CPU, of_kind, train_classifier, train_generator, train_regression
from tests.lab.fake_experiments import FakeExperiment
from tests.lab.tools import context_of_run, small_context


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator and classifiers of a few steps."""
    made, sprites = tmp_path_factory.mktemp("inside"), make_sprites(size=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        run_to_end(train_generator(made / "generator", sprites, steps=3, log_layer_stats=True))
        run_to_end(train_classifier(made / "classifier", sprites, steps=2))
        run_to_end(train_classifier(made / "perceptron", sprites, steps=3, network="perceptron"))
        run_to_end(train_classifier(made / "all learnt", sprites, steps=3, holdout=0.0))
    return made


def _outcome(experiment: Experiment, context: ExperimentContext) -> Outcome:
    *_, outcome = experiment.run(context)
    assert isinstance(outcome, Outcome)
    return outcome


def test_the_parameters_are_listed_as_the_tutorials_print_them(folder: Path) -> None:
    outcome = _outcome(layers.Layers(), context_of_run(folder / "perceptron"))
    network = load_model(folder / "perceptron", "best", CPU).network
    (table,) = outcome.tables
    assert table.rows[0][:5] == ("hidden.0.weight", "128 x 256", "float32", "cpu", "32,768")
    assert [row[0] for row in table.rows] == [name for name, _ in network.named_parameters()]
    sizes = [f"{weight.square().mean().sqrt().item():.3g}" for weight in network.parameters()]
    assert [f"{float(row[5]):.3g}" for row in table.rows] == sizes
    assert not outcome.plots and "'Log layer statistics'" in outcome.sentences[-1]
    recorded = _outcome(layers.Layers(), context_of_run(folder / "generator"))
    assert len(recorded.plots) >= 2 and recorded.tables[0].rows[0][0] == "time.1"
    weights = sum(int(row[4].replace(",", "")) for row in recorded.tables[1].rows)
    assert weights == sum(w.numel() for w in load_model(folder / "generator", "best", CPU).network.parameters())


def test_statistics_of_a_checkpoint_are_the_last_before_it() -> None:
    steps = np.array([1, 5, 9])
    curves = {"a": MetricCurve(steps, np.array([1.0, 2.0, 3.0])), "b": MetricCurve(steps[1:], np.array([4.0, 0.0]))}
    assert layers._at(curves, 8) == (5, {"a": 2.0, "b": 4.0})
    assert layers._at(curves, 0) == (1, {"a": 1.0})
    assert layers._ends({"a": 3.0, "b": 0.0, "c": 1.0}) == ("a", "c")
    many = {str(place): float(place) for place in range(20)}
    assert layers._plotted(many)[0] == "0" and layers._plotted(many)[-1] == "19" and len(layers._plotted(many)) == 6


def test_loss_of_a_sprite_equals_its_loss_in_a_batch(folder: Path) -> None:
    context = context_of_run(folder / "classifier")
    assert context.is_heldout and len(context.sprites) == 4
    model = load_model(folder / "classifier", "best", CPU)
    order, losses = run_to_end(hardest._losses(model, context.sprites, 60.0))
    with torch.no_grad():
        logits = model.network(to_input(to_device(context.sprites.rgba, model.device)))
    known = F.cross_entropy(logits, torch.from_numpy(context.sprites.labels), reduction="none").numpy()
    assert np.allclose(losses, known[order], rtol=1e-4) and (np.diff(losses) <= 0).all()
    outcome = _outcome(hardest.Hardest(), context)
    pairs = list(zip(context.sprites.labels.tolist(), logits.argmax(1).tolist(), strict=True))
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    assert any(f"{len(wrong)} of 4 predictions are wrong" in sentence for sentence in outcome.sentences)
    assert outcome.pictures[1].title.startswith("Decisive pixels")
    assert len(outcome.pictures) == 2 + len({*wrong})


def test_training_sprites_replace_missing_held_out_sprites(folder: Path) -> None:
    context = context_of_run(folder / "all learnt")
    assert not context.is_heldout and len(context.sprites) == 24
    assert "24 training sprites (without validation sprites)" in _outcome(hardest.Hardest(), context).sentences[0]


class _OnePixel(nn.Module):
    """Says the second class the more, the more there is at one place of the sprite."""

    def forward(self, x: Tensor) -> Tensor:
        seen = 4 * x[:, 3, 5, 9]
        return torch.stack([-seen, seen], 1)


def test_decisive_pixels_glow(folder: Path) -> None:
    model = dataclasses.replace(load_model(folder / "classifier", "best", CPU), network=_OnePixel())
    drops, most = hardest._probability_drops(model, torch.ones(4, 16, 16), predicted=1)
    assert drops[5, 9] == drops.max() > 0 and most == pytest.approx(1.0, abs=1e-2)
    assert not drops[:3].any() and not drops[:, :7].any() and not drops[8:].any() and not drops[:, 12:].any()
    glowing = hardest._glowing(np.zeros((16, 16, 4), np.uint8), drops)
    assert glowing[5, 9].tolist() == [255, 96, 0, 255] and glowing[0, 0].tolist() == [24, 24, 24, 255]


def test_last_step_equals_the_generated_sprites(folder: Path) -> None:
    model = load_model(folder / "generator", "best", CPU)
    outcome = _outcome(from_noise.FromNoise(), context_of_run(folder / "generator"))
    settings = GenerateSettings(count=4, seed=7, true_pixels=False)
    (drawn,) = of_kind(list(generate(model, settings)), SpritesGenerated)
    guided = outcome.pictures[1].pixels().reshape(4, 16, -1, 16, 4).swapaxes(1, 2)
    assert np.array_equal(guided[:, -1], drawn.sprites)  # both classes in turn, as there are as many of each
    assert "takes 10 network evaluations with guidance off and 15 " in outcome.sentences[0]


def test_silhouette_settles_when_it_stays_close_to_the_last() -> None:
    way = from_noise._Drawing(1.0)
    for alpha in (-1.0, 1.0, -1.0, 1.0, 1.0):  # it is there, gone and back
        way.add(torch.full((1, 4, 4, 4), alpha))
    assert way.settled_at() == 4 and way.unsettled() == [1, 0, 1, 0, 0]


def test_stages_are_blocks_in_order_of_execution(folder: Path) -> None:
    outcome = _outcome(feature_maps.FeatureMaps(), context_of_run(folder / "classifier"))
    names = ["enter", *(f"blocks.{place}" for place in range(5))]
    assert [row[0] for row in outcome.tables[0].rows] == names
    assert [picture.title.partition(":")[0] for picture in outcome.pictures[1:]] == names
    drawn = _outcome(feature_maps.FeatureMaps(), context_of_run(folder / "generator"))
    stages = [row[0] for row in drawn.tables[0].rows]
    assert len(stages) == 12 and (stages[0], stages[-1]) == ("enter", "leave")
    with pytest.raises(UsageError, match="no feature maps"):
        _outcome(feature_maps.FeatureMaps(), context_of_run(folder / "perceptron"))


def test_strongest_channels_come_first_in_full_contrast() -> None:
    maps = torch.zeros(10, 4, 4)
    for channel in range(10):
        maps[channel, 0, 0] = channel
    strongest = feature_maps._strongest(maps)
    assert strongest[:, 0, 0].tolist() == [9, 8, 7, 6, 5, 4, 3, 2]
    grey = feature_maps._as_grey(strongest)
    assert grey[:, 0, 0, 0].tolist() == [255] * 8 and not grey[:, 1:, :, :3].any() and (grey[..., 3] == 255).all()


def test_chosen_checkpoint_is_reported(folder: Path) -> None:
    context = context_of_run(folder / "generator", "last")
    result = result_of(layers.Layers(), context, _outcome(layers.Layers(), context), 1.0)
    assert (result.run, result.checkpoint, result.examined()) == ("generator", "last", "generator, last (step 3)")
    with pytest.raises(UsageError, match="no checkpoint at step 999"):
        _outcome(layers.Layers(), context_of_run(folder / "generator", "999"))


def test_results_from_before_runs_can_be_read() -> None:
    result = result_of(FakeExperiment(), small_context(), Outcome(sentences=("Sound.",)), 1.0)
    values = dataclasses.asdict(result)
    del values["run"], values["checkpoint"], values["outcome"]["step"]
    read = records.parse(json.dumps(values), Result)
    assert read == result and not read.examined()


def test_predicted_numbers_are_shown_next_to_true_ones(tmp_path: Path) -> None:
    run_to_end(train_regression(tmp_path / "run", with_numbers(make_sprites()), steps=2))
    outcome = _outcome(hardest.Hardest(), context_of_run(tmp_path / "run"))
    assert outcome.tables[0].columns == ("sprite", "class", ">loss", ">visible", ">red")
    assert all(", true " in row[3] for row in outcome.tables[0].rows)


def test_experiments_refuse_or_measure_models_of_sets() -> None:
    reasons = {name: experiment.unsupported_reason(Sets()) for name, experiment in experiments().items()}
    allowed = {name for name, reason in reasons.items() if not reason}
    assert allowed == {
        "batch-size", "layers", "learning-rate", "mistakes", "moving-data", "precision", "roofline", "threads",
    }  # fmt: skip
    assert reasons["feature-maps"].endswith(" Choose another run.")
    assert reasons["cuda-graph"].endswith(" Choose another recipe.")
    assert all(" Choose a" in reason for name, reason in reasons.items() if name not in allowed)
    training = TimedTraining(ExperimentContext.of(Sets(), Sets.small, with_sets(make_sprites()), CPU, 1.0).training())
    training.step()
    assert training.speed.endswith(" characters/s")
