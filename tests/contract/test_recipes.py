"""What every recipe must do, whatever it is: learn, be the same after saving, and depend on its seed alone."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig, settings_of
from studio.core.events import Classified, LossChunk, NumbersPredicted, SamplesReady, SetsDrawn, SpritesGenerated
from studio.data.sprites import Sprites, unstack
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.complete import complete
from studio.engine.sampling.generate import generate, predict
from studio.engine.sampling.settings import CompleteSettings, GenerateSettings, GivenSets
from studio.engine.steps.batches import DeviceSprites
from studio.engine.training.loop import train_new
from studio.engine.training.parents import load_parent
from studio.recipes.base import BatchRng, Recipe, Spec, TrainingBudget
from studio.recipes.capabilities import (
    BlendsSprites,
    Capability,
    CompletesSets,
    Decodes,
    Distils,
    DrawsFromNoise,
    DrawsMaps,
    EditCondition,
    EditsSprites,
    Encodes,
)
from tests.conftest import make_sprites, with_numbers, with_sets
from tests.engine.tools import CPU, agreeing, of_kind

RECIPES = list(catalog.recipes().values())
SIZE = 13  # which no layer divides
Trained = Callable[[Recipe, int], tuple[Path, Sprites, np.ndarray]]

PROTOCOLS: dict[Capability, type] = {
    "vary": EditsSprites, "blend": BlendsSprites, "map": DrawsMaps, "from_noise": DrawsFromNoise, "encode": Encodes,
    "decode": Decodes, "distil": Distils,
}  # fmt: skip

pytestmark = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def _config(recipe: Recipe, **changes: int | float | str) -> TrainingConfig:
    defaults = {"batch_size": 8, "holdout": 0.0, "lr_warmup_steps": 5, "precision": "fp32", "shift_px": 0}
    config: TrainingConfig = recipe.small.replace(**{**defaults, **changes})
    return config


def test_it_introduces_itself(recipe: Recipe) -> None:
    assert recipe.name.isidentifier() and recipe.title and recipe.summary.endswith(".")
    assert recipe.capabilities <= set(get_args(Capability))
    assert recipe.makes == "sprites" or recipe.capabilities <= {"encode", "attributes"}
    assert (recipe.makes == "sets") == isinstance(recipe, CompletesSets)
    for capability, protocol in PROTOCOLS.items():
        assert (capability in recipe.capabilities) == isinstance(recipe, protocol)
    titles = [preset.title for preset in recipe.presets(TrainingBudget())]
    assert len(set(titles)) == len(titles)
    for budget in (TrainingBudget(), TrainingBudget(60, 100.0), TrainingBudget(100_000, 50_000.0)):
        for preset in recipe.presets(budget):
            recipe.Config(**preset.changes)
            assert preset.help.endswith(".")
    for item in settings_of(recipe.Config):
        assert item.help.endswith(".") and item.label
        assert item.legacy_default is None or item.check(item.legacy_default) == item.legacy_default


def _sprites_for(recipe: Recipe, per_class: int = 12, size: int = 8) -> Sprites:
    """Sprites that every recipe can learn from, as it selects them."""
    return recipe.select(with_sets(with_numbers(make_sprites(per_class, size))), recipe.small)[0]


def _data(recipe: Recipe, sprites: Sprites) -> DeviceSprites:
    examples, indices = recipe.examples(sprites, np.arange(len(sprites)))
    return DeviceSprites(examples, torch.device("cpu"), indices=indices)


def _output(model: TrainedModel, sprites: Sprites) -> np.ndarray:
    """What it draws, or says of these sprites."""
    if model.recipe.makes == "sprites":
        *_, made = generate(model, GenerateSettings(count=5, steps=3, seed=2))
        assert isinstance(made, SpritesGenerated) and made.sprites.shape == (5, sprites.size, sprites.size, 4)
        return made.sprites
    if model.recipe.makes == "sets":
        cells = unstack(sprites.stacked_sets(np.arange(5)).rgba)
        *_, sets = complete(
            model, CompleteSettings(seed=2, rounds=3), GivenSets(("",) * len(cells), cells, _first(cells))
        )
        assert isinstance(sets, SetsDrawn) and sets.cells.shape == cells.shape
        return sets.cells.reshape(-1, *cells.shape[2:])
    *_, found = predict(model, sprites.rgba)
    assert isinstance(found, Classified | NumbersPredicted)
    return found.probabilities if isinstance(found, Classified) else found.numbers


def _first(cells: np.ndarray) -> np.ndarray:
    """The first cell of each set is given."""
    given = np.zeros(cells.shape[:2], np.bool_)
    given[:, 0] = True
    return given


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A recipe's run of four steps on sprites of a size, the sprites, and what the model gave at the end: made once."""

    @functools.cache
    def once(recipe: Recipe, size: int) -> tuple[Path, Sprites, np.ndarray]:
        run, sprites = tmp_path_factory.mktemp("runs") / recipe.name, _sprites_for(recipe, size=size)
        control, live = Control(), list[np.ndarray]()
        for event in train_new(run, sprites, recipe, _config(recipe, steps=4), CPU, control):
            if isinstance(event, SamplesReady) and event.step == 4 and control.live:
                live.append(_output(control.live, sprites))
        return run, sprites, live[0]

    return once


def test_it_overfits_eight_sprites(recipe: Recipe, run_path: Path) -> None:
    sprites = _sprites_for(recipe, per_class=8 if recipe.makes == "sets" else 4)
    config = _config(recipe, sample_every_s=1e3, steps=30, learning_rate=6e-3)
    events = list(train_new(run_path, sprites, recipe, config, CPU, Control()))
    losses = np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)])
    assert losses[-20:].mean() < 0.6 * losses[:5].mean()
    said = _output(load_model(run_path, "last", CPU), sprites)
    if recipe.makes == "labels":
        assert np.array_equal(said.argmax(1), sprites.labels)
    elif recipe.makes == "numbers":
        assert (np.abs(said - sprites.targets) < sprites.targets.std(0)).all()


@pytest.mark.parametrize("size", [SIZE, *(pytest.param(size, marks=pytest.mark.slow) for size in (8, 16))])
def test_it_is_the_same_after_saving_and_loading(recipe: Recipe, size: int, trained: Trained) -> None:
    run, sprites, live = trained(recipe, size)
    loaded = _output(load_model(run, "last", CPU), sprites)
    if recipe.makes in ("sprites", "sets"):
        assert agreeing(live, loaded) > 0.97
    else:
        np.testing.assert_allclose(live, loaded, rtol=1e-4, atol=1e-5)


def test_the_seed_decides_everything(recipe: Recipe) -> None:
    sprites, config = _sprites_for(recipe), _config(recipe)
    spec = Spec.of(sprites)
    data = _data(recipe, sprites)

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        network = recipe.build(config, spec)
        torch.rand(7)  # other uses of the global generator must not matter
        rng = torch.Generator().manual_seed(seed)
        batch = data.batch(0, 8, flip=True, shift_px=1, rng=rng)
        return recipe.loss(network, batch, config, BatchRng(rng, batch)).item()

    assert loss(1) == loss(1)
    assert loss(1) != loss(2)


def test_loss_ignores_progress_within_a_stage(recipe: Recipe) -> None:
    """A step that is recorded stands for all others of its stage."""
    sprites, config = _sprites_for(recipe), _config(recipe)
    network = recipe.build(config, Spec.of(sprites))
    batch = next(_data(recipe, sprites).plain_batches(8, 8))
    for start, stop in itertools.pairwise([0.0, *recipe.stages, 1.0]):
        losses = set()
        for progress in (start, (start + stop) / 2, stop - 1e-6):
            then, rng = dataclasses.replace(batch, progress=progress), torch.Generator().manual_seed(1)
            losses.add(recipe.loss(network, then, config, BatchRng(rng, then)).item())
        assert len(losses) == 1


@pytest.mark.parametrize("count", [2, 4])
def test_micro_batches_use_the_same_random_numbers(recipe: Recipe, count: int) -> None:
    sprites, config = _sprites_for(recipe), _config(recipe)
    network = recipe.build(config, Spec.of(sprites))
    batch = next(_data(recipe, sprites).plain_batches(9, 9))

    def loss(count: int) -> float:
        parts = batch.micro_batches(count, torch.Generator().manual_seed(3))
        losses = [recipe.loss(network, part, config, rng).detach() * recipe.weight(part) for part, rng in parts]
        return float(sum(losses) / recipe.weight(batch))

    assert loss(count) == pytest.approx(loss(1), rel=1e-5)


def test_evaluation_is_deterministic_and_keeps_the_global_generator(recipe: Recipe) -> None:
    sprites, config = _sprites_for(recipe), _config(recipe)
    spec = Spec.of(sprites)
    network = recipe.build(config, spec).eval()
    data = _data(recipe, sprites)
    before = torch.random.get_rng_state()
    with torch.no_grad():
        first, again, smaller = (
            dict(recipe.evaluate(network, data.plain_batches(count, len(data)), config, spec).metrics)
            for count in (10, 10, 7)
        )
    assert smaller == pytest.approx(first, rel=1e-4)
    assert first == again and {"loss", recipe.headline.name} <= first.keys()
    assert torch.equal(before, torch.random.get_rng_state())


def test_training_can_start_from_its_weights(recipe: Recipe, trained: Trained) -> None:
    run, sprites, _ = trained(recipe, SIZE)
    parent, spec = load_parent(run, recipe), Spec.of(sprites)
    network = recipe.build(parent.adapt(_config(recipe)), spec)
    assert parent.copy_weights(network, recipe, spec) == 0
    assert all(torch.equal(value, parent.weights[name]) for name, value in network.state_dict().items())
    for name, names in recipe.rows(spec).items():
        assert len(network.get_parameter(name)) - len(names) in (0, 1)
    recipe.Config().replace(**recipe.fine_tuning)


def test_its_weights_of_cells_belong_to_cells(recipe: Recipe) -> None:
    few, many = (Spec(8, ("a",), ("price",), tuple(map(str, range(cells)))) for cells in (3, 5))
    own, larger = (dict(recipe.build(_config(recipe), spec).named_parameters()) for spec in (few, many))
    slices = recipe.cell_slices(few)
    assert slices.keys() == {name for name, weight in own.items() if weight.shape != larger[name].shape}
    assert all(own[name].shape[dim] == len(names) for name, dims in slices.items() for dim, names in dims)


def test_its_arguments_rebuild_the_network(recipe: Recipe) -> None:
    config, spec = _config(recipe), Spec(8, ("a", "b", "c"), ("price", "weight"))
    network, arguments = recipe.build(config, spec), recipe.arguments(config, spec)
    recipe.network_class(config)(**json.loads(json.dumps(arguments))).load_state_dict(network.state_dict())
    for name, values in recipe.statistics(_sprites_for(recipe), config).items():
        assert network.get_buffer(name).shape == values.shape and torch.isfinite(values).all()
    assert all(isinstance(value, int | float | str | bool) for value in arguments.values())


def test_student_draws_from_noise_to_sprites(recipe: Recipe) -> None:
    if not isinstance(recipe, Distils):
        return
    spec, labels = Spec(8, ("a", "b")), torch.tensor([0, 1, -1])
    network = recipe.build(_config(recipe), spec).eval()
    student = recipe.student(network)
    with torch.no_grad():
        states = list(recipe.trajectory(network, labels, 1.5, 7, 2))
        assert len(states) == student.steps + 1
        torch.testing.assert_close(states[0], recipe.noise(network, 3, 7, 2))
        *_, later = recipe.trajectory(network, labels[1:], 1.5, 7, 3)  # a sprite's noise follows from seed and place
        torch.testing.assert_close(later, states[-1][1:], rtol=1e-4, atol=1e-4)
        for weight in network.parameters():  # the student has weights of its own
            weight.fill_(torch.nan)
        x = states[0]
        for number in range(student.steps):
            x = student(x, number, labels)
            assert x.shape == states[0].shape and torch.isfinite(x).all()


def _redrawn(recipe: EditsSprites, network: nn.Module, given: EditCondition, seed: int = 7) -> list[Tensor]:
    labels = torch.tensor([0, 1, -1])
    with torch.no_grad():
        states = list(recipe.redraw(network, given, labels, 1.5, 4, seed, 2))
        *_, later = recipe.redraw(network, _from(given, 1), labels[1:], 1.5, 4, seed, 3)
    torch.testing.assert_close(later, states[-1][1:], rtol=1e-3, atol=1e-3)  # it depends on the seed and its place
    return states


def _from(given: EditCondition, first: int) -> EditCondition:
    keep, alpha = (None if of_all is None else of_all[first:] for of_all in (given.keep, given.alpha))
    return dataclasses.replace(given, sprites=given.sprites[first:], keep=keep, alpha=alpha)


def _sprites(count: int) -> Tensor:
    return torch.rand(count, 4, 8, 8, generator=torch.Generator().manual_seed(1)) * 2 - 1


def test_redraw_starts_from_sprites_and_keeps_pixels(recipe: Recipe) -> None:
    if not isinstance(recipe, EditsSprites):
        return
    network, sprites = recipe.build(_config(recipe), Spec(8, ("a", "b"))).eval(), _sprites(3)
    little, much = (_redrawn(recipe, network, EditCondition(sprites, strength))[0] for strength in (0.2, 1.0))
    assert (little - sprites).abs().mean() < (much - sprites).abs().mean()
    assert not torch.equal(_redrawn(recipe, network, EditCondition(sprites, 1.0), seed=8)[0], much)
    if "fill" in recipe.capabilities:
        assert not recipe.knows_inpainting(network)  # it has learnt nothing yet
        keep = (torch.arange(64).view(1, 1, 8, 8) % 3 > 0).float().expand(3, -1, -1, -1)
        filled = _redrawn(recipe, network, EditCondition(sprites, 1.0, keep))[-1]
        torch.testing.assert_close(filled * keep, sprites * keep, rtol=1e-4, atol=1e-4)


def test_it_keeps_to_a_silhouette(recipe: Recipe) -> None:
    if "silhouette" not in recipe.capabilities or not isinstance(recipe, EditsSprites):
        return
    network, sprites = recipe.build(_config(recipe), Spec(8, ("a", "b"))).eval(), _sprites(3)
    alpha = sprites[:, 3:]
    drawn = _redrawn(recipe, network, EditCondition(sprites, 1.0, alpha=alpha))[-1]
    torch.testing.assert_close(drawn[:, 3:], alpha, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(drawn[:, :3], sprites[:, :3], atol=0.1)


def test_blend_draws_between_sprites(recipe: Recipe) -> None:
    if not isinstance(recipe, BlendsSprites):
        return
    network, sprites = recipe.build(_config(recipe), Spec(8, ("a", "b"))).eval(), _sprites(2)
    shares = torch.tensor([[1.0, 0.0], [0.7, 0.3], [0.2, 0.8]])
    with torch.no_grad():
        *_, x = recipe.blend(network, sprites, torch.tensor([0, -1]), shares, 4)
        *_, again = recipe.blend(network, sprites, torch.tensor([0, -1]), shares[1:], 4)
    assert x.shape == (3, 4, 8, 8) and torch.isfinite(x).all()
    torch.testing.assert_close(again, x[1:], rtol=1e-3, atol=1e-3)


def test_map_has_no_borders_and_equal_tied_pixels(recipe: Recipe) -> None:
    if not isinstance(recipe, DrawsMaps):
        return
    network = recipe.build(_config(recipe), Spec(8, ("a", "b"))).eval()
    share = torch.linspace(0, 1, 24).expand(16, 24)
    ties = torch.arange(16 * 24).view(16, 24)
    ties[3, 4:9] = ties[10, 4:9]
    ties = ties.unique(return_inverse=True)[1]
    with torch.no_grad():
        states = list(recipe.draw_map(network, {0: 1 - share, 1: share}, ties, 1.5, 3, 7))
        *_, other = recipe.draw_map(network, {0: 1 - share, 1: share}, ties, 1.5, 3, 8)
    x = states[-1]
    assert x.shape == (1, 4, 16, 24) and torch.isfinite(x).all() and not torch.equal(x, other)
    assert all(torch.equal(state[..., 3, 4:9], state[..., 10, 4:9]) for state in states)


def test_it_draws_from_given_noise(recipe: Recipe) -> None:
    if not isinstance(recipe, DrawsFromNoise):
        return
    network, labels = recipe.build(_config(recipe), Spec(8, ("a", "b"))).eval(), torch.tensor([1, -1])
    with torch.no_grad():
        *_, own = recipe.draw(network, labels, 1.5, 4, 7, 2)
        noise = recipe.noise(network, 2, 7, 2)
        *_, given = recipe.draw_from(network, noise, labels, 1.5, 4)
        *_, traceable = recipe.draw_from(network, noise, labels, torch.tensor([1.5]), 4)
        *_, plain = recipe.draw_from(network, noise, labels, 1.0, 4)
        *_, by_both = recipe.draw_from(network, noise, labels, torch.tensor([1.0]), 4)
    assert torch.equal(given, own)
    torch.testing.assert_close(traceable, own)
    torch.testing.assert_close(by_both, plain, rtol=1e-4, atol=1e-4)


def test_its_codes_follow_from_the_sprite_alone(recipe: Recipe) -> None:
    if not isinstance(recipe, Encodes):
        return
    network, sprites = recipe.build(_config(recipe), Spec(8, ("a", "b"), ("price",))).eval(), _sprites(3)
    with torch.no_grad():
        codes, later = recipe.encode(network, sprites), recipe.encode(network, sprites[1:])
        assert codes.ndim == 2 and len(codes) == 3 and codes.std() > 0
        torch.testing.assert_close(later, codes[1:], rtol=1e-4, atol=1e-5)
        if isinstance(recipe, Decodes):
            decoded = recipe.decode(network, codes)
            assert decoded.shape == sprites.shape and torch.isfinite(decoded).all()


def test_a_mixture_of_one_class_is_that_class(recipe: Recipe) -> None:
    if "mix" not in recipe.capabilities:
        return
    network = recipe.build(_config(recipe), Spec(8, ("a", "b"))).eval()
    with torch.no_grad():
        *_, by_name = recipe.draw(network, torch.tensor([1, 0]), 1.5, 4, 7)
        *_, by_share = recipe.draw(network, torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 1.5, 4, 7)
    torch.testing.assert_close(by_share, by_name, rtol=1e-3, atol=1e-3)
