from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from studio.core import paths
from studio.core.errors import UsageError
from studio.core.events import Notice
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.types import STARTER
from studio.engine.runs.checkpoints import list_checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.training.loop import train_new
from studio.engine.training.parents import STARTER_LIMIT, load_parent, starter_info, suggest_parent
from studio.recipes.base import Spec
from studio.recipes.generator import Generator
from tests.conftest import make_sprites
from tests.engine.tools import CPU, TOY, kept_run, of_kind, small_generator, train_classifier, train_toy

SPRITES = make_sprites(per_class=6)  # of the classes class0, class1
GENERATOR = Generator()


@pytest.fixture(scope="module")
def parent_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory, SPRITES, steps=2)


def average(run: Path) -> dict[str, torch.Tensor]:
    return load_file(list_checkpoints(run / "checkpoints")[-1][0] / "average.safetensors")


def test_parent_weights_match_classes_by_name(parent_run: Path) -> None:
    parent = load_parent(parent_run, GENERATOR)
    spec = Spec(SPRITES.size, ("class1", "new", "class0"))
    network = GENERATOR.build(small_generator(width=16), spec)
    fresh = network.label.weight.clone()
    assert parent.copy_weights(network, GENERATOR, spec) == 0
    given, own = average(parent_run), network.state_dict()
    assert all(torch.equal(own[name], given[name]) for name in given if name != "label.weight")
    rows = own["label.weight"]
    assert torch.equal(rows[[0, 2, 3]], given["label.weight"][[1, 0, 2]])  # the last stands for any class
    assert torch.equal(rows[1], fresh[1])


def test_weights_of_other_shapes_are_not_copied(parent_run: Path) -> None:
    spec = Spec(96, ("class0",))  # from 96 pixels on, a network sees four times four pixels at once
    network = GENERATOR.build(small_generator(), spec)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert load_parent(parent_run, GENERATOR).copy_weights(network, GENERATOR, spec) == 6
    changed = {name for name, value in network.state_dict().items() if not torch.equal(value, before[name])}
    anew = {"enter.weight", "leave.weight", "leave.bias", "keep.weight", "head.leave.weight", "head.leave.bias"}
    assert changed and not changed & anew


def test_run_lists_its_ancestors(parent_run: Path, tmp_path: Path) -> None:
    child, grandchild = tmp_path / "child", tmp_path / "grandchild"
    for run, source in ((child, parent_run), (grandchild, child)):
        config = small_generator(width=32, steps=1)
        events = list(train_new(run, SPRITES, GENERATOR, config, CPU, Control(), load_parent(source, GENERATOR)))
        assert any("Width: 16, taken from the start model" in notice.title for notice in of_kind(events, Notice))
    record = RunDir(grandchild).record()
    assert record.config["width"] == 16 and RunDir(parent_run).record().ancestors == ()
    assert [(one.title, one.step, one.data_title) for one in record.ancestors] == [
        ("child", 1, SPRITES.title), ("trial", 2, SPRITES.title),
    ]  # fmt: skip
    weights = list_checkpoints(child / "checkpoints")[-1][0] / "average.safetensors"
    assert record.ancestors[0].sha256 == hashlib.sha256(weights.read_bytes()).hexdigest()


def test_training_starts_at_the_parents_loss(parent_run: Path, tmp_path: Path) -> None:
    """Before the first step, the loss is the parent's; from nothing it is that of a network that says nothing."""
    first = {}
    for name, parent in (("anew", None), ("on", load_parent(parent_run, GENERATOR))):
        config = small_generator(steps=1, learning_rate=1e-7)
        list(train_new(tmp_path / name, SPRITES, GENERATOR, config, CPU, Control(), parent))
        first[name] = average(tmp_path / name)
    given = average(parent_run)
    assert all(torch.allclose(first["on"][name], given[name], atol=1e-4) for name in given)
    assert not torch.allclose(first["anew"]["enter.weight"], given["enter.weight"], atol=1e-4)


def test_starter_belongs_to_the_generator() -> None:
    info, path = starter_info(), paths.assets() / "starter" / "starter.safetensors"
    assert path.stat().st_size <= 4_000_000
    parent = load_parent(STARTER, GENERATOR)
    assert parent.settings == info.settings == {"width": 32, "colours": 256}
    (itself,) = parent.ancestors
    assert (itself.title, itself.sha256) == (STARTER, hashlib.sha256(path.read_bytes()).hexdigest())
    spec = Spec(16, ("sword", "shield"))
    network = GENERATOR.build(small_generator(**info.settings), spec)
    fresh = network.label.weight.clone()
    assert parent.copy_weights(network, GENERATOR, spec) == 0
    assert torch.equal(network.label.weight, torch.cat([fresh[:2], parent.weights["label.weight"]]))
    with pytest.raises(UsageError, match="not a classifier"):
        load_parent(STARTER, catalog.recipe("classifier"))


def test_parent_determines_settings() -> None:
    from studio.recipes.base import TrainingBudget

    budget = TrainingBudget(60, 200.0, starter_info().settings)
    usual = GENERATOR.defaults(budget)
    assert usual.learning_rate < GENERATOR.defaults(TrainingBudget(60, 200.0)).learning_rate
    assert {usual.replace(**preset.changes).width for preset in GENERATOR.presets(budget)} == {32}


def test_parent_of_another_recipe_is_refused(run_path: Path, sprites: Sprites) -> None:
    list(train_classifier(run_path, sprites, steps=2))
    with pytest.raises(UsageError, match="is a classifier: no generator can start from it"):
        load_parent(run_path, GENERATOR)


def test_classifier_keeps_rows_of_known_classes(run_path: Path) -> None:
    list(train_classifier(run_path, SPRITES, steps=2))
    classifier = catalog.recipe("classifier")
    spec = Spec(SPRITES.size, ("other", "class1"))
    network = classifier.build(classifier.Config(width=16), spec)
    fresh = network.state_dict()["leave.weight"][0].clone()
    load_parent(run_path, classifier).copy_weights(network, classifier, spec)
    own, given = network.state_dict(), average(run_path)
    assert torch.equal(own["leave.weight"][1], given["leave.weight"][1])
    assert torch.equal(own["leave.weight"][0], fresh)  # there is no row for any class


def test_tampered_checkpoint_is_refused(run_path: Path, sprites: Sprites) -> None:
    from studio.core.errors import RunError

    list(train_toy(run_path, sprites, steps=1))
    weights = list_checkpoints(run_path / "checkpoints")[-1][0] / "average.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(RunError):
        load_parent(run_path, TOY)


def test_starter_manifest_lists_sources_and_licences() -> None:
    folder = Path(__file__).resolve().parents[3] / "assets" / "starter"
    sources = json.loads((folder / "sources.json").read_text())["sources"]
    assert {source["licence"] for source in sources} == {"CC0-1.0"}
    lines = (folder / "tiles.sha256").read_text().splitlines()
    assert all(len(line.split("  ", 1)[0]) == 64 for line in lines)
    assert len({line.split("  ", 1)[1] for line in lines}) == len(lines) > 4000


def test_starter_is_suggested_for_few_small_sprites() -> None:
    few = make_sprites()
    assert suggest_parent(GENERATOR, few) == STARTER
    assert suggest_parent(catalog.recipe("classifier"), few) is None
    many = few.take(np.arange(STARTER_LIMIT + 1) % len(few))
    assert (
        suggest_parent(GENERATOR, many.take(np.arange(STARTER_LIMIT))) == STARTER
        and suggest_parent(GENERATOR, many) is None
    )
    large = dataclasses.replace(few, rgba=few.rgba.repeat(9, axis=1).repeat(9, axis=2))  # of 72 pixels
    assert suggest_parent(GENERATOR, large) is None
