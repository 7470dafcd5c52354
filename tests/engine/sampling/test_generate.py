"""Draw and predict with a run's model: indices, classes, attributes, checkpoints and style."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from studio.core.errors import RunError, UsageError
from studio.core.events import Classified, Progress, SpritesGenerated
from studio.data.colour.pixel_art import PixelStyle
from studio.data.sprites import Sprites
from studio.engine.models.loading import checkpoint_names, load_model
from studio.engine.models.model import TrainedModel, load_style
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import split_by_group
from studio.engine.sampling import generate as module
from studio.engine.sampling.generate import generate, predict
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.sampling.tile_sets import draw_tile_set
from studio.recipes.capabilities import Distils
from tests.conftest import make_sprites, with_tones
from tests.engine.tools import CPU, SavingAlways, agreeing, kept_run, of_kind, train_classifier, train_toy


@pytest.fixture(scope="module")
def model(generator_run: Path) -> TrainedModel:
    return load_model(generator_run, "last", CPU)


@pytest.fixture
def run(generator_run: Path, tmp_path: Path) -> RunDir:
    return RunDir(shutil.copytree(generator_run, tmp_path / "run"))


def _made(model: TrainedModel, **settings: int | str) -> SpritesGenerated:
    return of_kind(list(generate(model, GenerateSettings(**{"steps": 4, **settings}))), SpritesGenerated)[0]  # type: ignore[arg-type]


def test_a_sprite_depends_only_on_seed_and_index(model: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other batch sizes may use other kernels, which change only the last digits."""
    many = _made(model, count=10, seed=3)
    assert agreeing(_made(model, count=4, seed=3).sprites, many.sprites[:4]) > 0.97
    monkeypatch.setattr(module, "_DRAW_BATCH", 3)
    assert agreeing(_made(model, count=10, seed=3).sprites, many.sprites) > 0.97

    def drawn(first: int, count: int, seed: int = 3) -> torch.Tensor:
        """Draw all steps but the last, after which the sprites of a hardly trained model look equal."""
        labels = torch.arange(first, first + count) % 2
        *_, x, _ = module.solver_states(model, labels, GenerateSettings(steps=4, seed=seed), first)
        return x

    torch.testing.assert_close(drawn(4, 3), drawn(0, 10)[4:7], rtol=1e-4, atol=1e-4)
    assert (drawn(0, 10, seed=4) - drawn(0, 10)).abs().mean((1, 2, 3)).min() > 0.01


@pytest.mark.parametrize("settings", [{}, {"in_proportion": True}, {"mirror": "left-right"}])
def test_later_sprites_of_a_request_can_be_drawn_alone(model: TrainedModel, settings: dict[str, Any]) -> None:
    style = dataclasses.replace(model.style, class_counts=(30, 10))
    whole = _made(dataclasses.replace(model, style=style), count=9, **settings)
    how = GenerateSettings(count=4, steps=4, **settings)
    part = of_kind(list(generate(dataclasses.replace(model, style=style), how, first=5)), SpritesGenerated)[0]
    assert part.labels.tolist() == whole.labels[5:].tolist() and agreeing(part.sprites, whole.sprites[5:]) > 0.97


def test_later_sprites_start_from_the_noise_of_their_index(
    model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Mock(wraps=module.solver_states)
    monkeypatch.setattr(module, "solver_states", begun)
    monkeypatch.setattr(module, "_DRAW_BATCH", 3)
    list(generate(model, GenerateSettings(count=5, steps=1), first=7))
    assert [call.args[3] for call in begun.call_args_list] == [7, 10]


def test_classes_take_turns_or_are_chosen(model: TrainedModel) -> None:
    assert _made(model, count=4).labels.tolist() == [0, 1, 0, 1]
    assert _made(model, count=3, class_name="class1").labels.tolist() == [1, 1, 1]
    with pytest.raises(UsageError, match="unicorn"):
        _made(model, class_name="unicorn")


@pytest.mark.parametrize(("wanted", "label"), [("sword", 1), ("items/sword", 0)])
def test_a_full_class_name_is_drawn_before_a_last_folder(model: TrainedModel, wanted: str, label: int) -> None:
    spec = dataclasses.replace(model.spec, class_names=("items/sword", "sword"))
    two_levels = dataclasses.replace(model, spec=spec)
    assert _made(two_levels, count=2, class_name=wanted).labels.tolist() == [label] * 2
    assert _made(two_levels, count=2, mix=f"{wanted}:1").labels.tolist() == [label] * 2


def test_classes_can_follow_the_proportions_of_the_data(model: TrainedModel) -> None:
    style = dataclasses.replace(model.style, class_counts=(30, 10))
    labels = _made(dataclasses.replace(model, style=style), count=40, in_proportion=True).labels
    for count in (4, 11, 40):  # the first few too
        assert abs((labels[:count] == 0).sum() - 0.75 * count) <= 1
    assert _made(model, count=3, class_name="class1", in_proportion=True).labels.tolist() == [1, 1, 1]


def test_progress_ends_at_the_count(model: TrainedModel) -> None:
    progress = of_kind(list(generate(model, GenerateSettings(count=70, steps=3))), Progress)
    done = [event.done for event in progress]
    assert done == sorted(done) and done[-1] == 70 and all(event.total == 70 for event in progress)


def test_checkpoints_are_found_by_name(run_path: Path, sprites: Sprites) -> None:
    list(train_toy(run_path, sprites, SavingAlways(), steps=6))
    names = checkpoint_names(run_path)
    assert names[:3] == ["best", "last", "6"]
    assert load_model(run_path, names[-1], CPU).step == int(names[-1])
    assert load_model(run_path, "best", CPU).step in [int(name) for name in names[2:]]
    with pytest.raises(UsageError, match="999"):
        load_model(run_path, "999", CPU)
    with pytest.raises(RunError, match="not a run"):
        load_model(run_path.parent, "best", CPU)


def test_generator_cannot_predict_and_classifier_cannot_draw(
    model: TrainedModel, tmp_path: Path, sprites: Sprites
) -> None:
    with pytest.raises(UsageError, match="can't predict"):
        list(predict(model, sprites.rgba))
    list(train_classifier(tmp_path / "classifier", sprites, steps=1))
    classifier = load_model(tmp_path / "classifier", "best", CPU)
    with pytest.raises(UsageError, match="can't draw sprites"):
        list(generate(classifier, GenerateSettings()))
    *_, found = predict(classifier, sprites.rgba)
    assert isinstance(found, Classified) and np.allclose(found.probabilities.sum(1), 1, atol=1e-5)
    with pytest.raises(UsageError, match="8 pixels"):
        list(predict(classifier, np.zeros((1, 16, 16, 4), np.uint8)))


def _alike(first: PixelStyle, second: PixelStyle) -> bool:
    return first.to_json() == second.to_json()


def test_a_run_keeps_the_style_of_its_sprites(run: RunDir) -> None:
    kept = load_style(run, run.record())
    (run.path / "style.json").unlink()
    assert _alike(load_style(run, run.record()), kept)


def test_colours_of_held_out_sprites_are_not_in_the_style(run_path: Path) -> None:
    art = make_sprites(20)
    art.rgba[split_by_group(art, 0.5, 0).validation, 4, 4] = (1, 2, 3, 255)  # each sprite is a group
    list(train_toy(run_path, art, steps=1, holdout=0.5))
    run = RunDir(run_path)
    style = load_style(run, run.record())
    assert [1, 2, 3] not in style.palette.tolist() and len(style.palette)
    (run_path / "style.json").unlink()
    assert _alike(load_style(run, run.record()), style)


def test_style_of_an_older_version_is_measured_again(run: RunDir) -> None:
    kept = load_style(run, run.record())
    (run.path / "style.json").write_text('{"colours": [2, 2], "palette": "09a826", "soft_alpha": false}')
    assert _alike(load_style(run, run.record()), kept)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"colours": [1], "palette": "xyz", "alpha_levels": [], "class_counts": [1]}', "[]"]
)
def test_damaged_style_file_is_an_error(run: RunDir, text: str) -> None:
    (run.path / "style.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"style\.json"):
        load_style(run, run.record())


@pytest.mark.parametrize("on", [True, False])
def test_new_sprites_have_the_palette_unless_it_is_switched_off(model: TrainedModel, on: bool) -> None:
    sprites = _made(model, count=8, true_pixels=on).sprites
    seen = {tuple(colour) for colour in sprites[sprites[..., 3] > 0][:, :3].tolist()}
    assert seen and (seen <= {tuple(colour) for colour in model.style.palette.tolist()}) is on


@pytest.fixture
def toned(model: TrainedModel) -> TrainedModel:
    """A model with two attributes."""
    attributes = {"hue": ("hue0", "hue1"), "tone": ("dark", "light")}
    spec = dataclasses.replace(model.spec, attributes=attributes)
    network = model.recipe.build(model.config, spec).eval()
    return dataclasses.replace(model, spec=spec, network=network)


@pytest.mark.parametrize(
    ("settings", "label", "shares"),
    [
        ({"attributes": "hue=hue1,tone=light"}, -1, [0, 0, 0, 1, 0, 1]),
        ({"attributes": "tone=dark", "in_proportion": True}, -1, [0, 0, 0, 0, 1, 0]),
        ({"attributes": "tone=dark,hue=any", "class_name": "class1"}, 1, [0, 1, 0, 0, 1, 0]),
        ({"attributes": "tone=dark", "mix": "class0:1,class1:3"}, 1, [0.25, 0.75, 0, 0, 1, 0]),
        ({"mix": "class0:1,class1:3"}, 1, [0.25, 0.75, 0, 0, 0, 0]),
    ],
)
def test_attributes_and_classes_are_added_up(
    toned: TrainedModel, settings: dict[str, Any], label: int, shares: list[float]
) -> None:
    found = module.chosen_classes(toned, GenerateSettings(count=3, **settings))
    assert found is not None and found.shares is not None
    assert found.labels.tolist() == [label] * 3 and found.shares.tolist() == shares
    assert _made(toned, count=2, steps=2, **settings).labels.tolist() == [label] * 2


def test_open_attributes_equal_no_attributes(toned: TrainedModel) -> None:
    assert (_made(toned, count=4, attributes="tone=any").sprites == _made(toned, count=4).sprites).all()


def test_fast_mode_draws_by_attributes(toned: TrainedModel) -> None:
    assert isinstance(toned.recipe, Distils)
    for weight in toned.network.requires_grad_(False).parameters():  # a new network ignores labels
        weight.add_(0.1 * torch.randn_like(weight))
    taught = dataclasses.replace(toned, distilled=toned.recipe.student(toned.network).eval())
    dark, light = (
        _made(taught, count=2, quick=True, attributes=f"tone={tone}", steps=10) for tone in ("dark", "light")
    )
    assert (dark.sprites != light.sprites).any()


def test_attributes_that_a_model_can_not_draw(model: TrainedModel, toned: TrainedModel) -> None:
    with pytest.raises(UsageError, match="has no attributes"):
        _made(model, attributes="tone=dark")
    settings = GenerateSettings(attributes="tone=dark", tiles="corner", mix="class0:1,class1:1")
    with pytest.raises(UsageError, match="tile set can't have attributes"):
        list(draw_tile_set(toned, settings))


@pytest.mark.slow
def test_attributes_shape_the_sprites(tmp_path_factory: pytest.TempPathFactory) -> None:
    seen = with_tones(make_sprites(24))
    seen = seen.take(np.flatnonzero(seen.attributes.table.any(1)))  # without dark sprites of the first hue
    trained = load_model(kept_run(tmp_path_factory, seen, steps=150, learning_rate=0.01), "last", CPU)
    assert trained.spec.attributes == {"hue": ("hue0", "hue1"), "tone": ("dark", "light")}

    def brightness(attributes: str) -> float:
        made = _made(trained, count=8, attributes=attributes).sprites
        return float(made[made[..., 3] > 0][:, :3].max(1).mean())

    for hue in ("hue0", "hue1"):
        assert 2 * brightness(f"hue={hue},tone=dark") < brightness(f"hue={hue},tone=light")
