from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from studio.core import paths
from studio.core.errors import UsageError
from studio.core.events import Notice
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.types import STARTER
from studio.engine.runs.checkpoints import list_checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.training import parents
from studio.engine.training.loop import train_new
from studio.engine.training.parents import (
    Parent,
    StarterInfo,
    load_parent,
    starter_info,
    suggest_parent,
)
from studio.recipes.base import Spec
from studio.recipes.generator import Generator
from studio.recipes.planning import FEW
from studio.recipes.sets import Sets
from tests.conftest import make_sprites, with_plain_colours, with_sets, with_tones
from tests.engine.tools import CPU, TOY, kept_run, of_kind, small_generator, train_classifier, train_toy

SPRITES = make_sprites(per_class=6)  # of the classes class0, class1
GENERATOR, SETS = Generator(), Sets()


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
    info, path = starter_info("generator"), paths.assets() / "starter" / "starter.safetensors"
    assert info is not None and all(one.stat().st_size <= 4_000_000 for one in path.parent.glob("*.safetensors"))
    parent = load_parent(STARTER, GENERATOR)
    assert parent.settings == info.settings == {"width": 32, "colours": 256, "levels": "3"}
    (itself,) = parent.ancestors
    assert (itself.title, itself.sha256) == (STARTER, hashlib.sha256(path.read_bytes()).hexdigest())
    spec = Spec(16, ("sword", "shield"))
    network = GENERATOR.build(small_generator(**info.settings), spec)
    fresh = network.label.weight.clone()
    assert parent.copy_weights(network, GENERATOR, spec) == 0
    assert torch.equal(network.label.weight, torch.cat([fresh[:2], parent.weights["label.weight"]]))
    with pytest.raises(UsageError, match="'classifier' has no starter model"):
        load_parent(STARTER, catalog.recipe("classifier"))


def test_parent_determines_settings() -> None:
    from studio.recipes.base import TrainingBudget

    budget = TrainingBudget(60, 200.0, load_parent(STARTER, GENERATOR).settings)
    usual = GENERATOR.defaults(budget)
    assert usual.learning_rate < GENERATOR.defaults(TrainingBudget(60, 200.0)).learning_rate
    assert {usual.replace(**preset.changes).width for preset in GENERATOR.presets(budget)} == {32}


def test_noise_focus_follows_the_new_sprites_not_the_parent(parent_run: Path, tmp_path: Path) -> None:
    parent = load_parent(parent_run, GENERATOR)
    list(
        train_new(tmp_path / "child", with_plain_colours(SPRITES), GENERATOR, small_generator(), CPU, Control(), parent)
    )
    chosen = [RunDir(run).record().config["time_mean"] for run in (parent_run, tmp_path / "child")]
    assert chosen[1] == GENERATOR.resolve(small_generator(), with_plain_colours(SPRITES)).time_mean < chosen[0] == -0.3


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
    sources = json.loads((folder / "sources.json").read_text())
    assert {source["licence"] for listed in sources.values() for source in listed} == {"CC0-1.0"}
    assert sources.keys() >= {recipe for recipe in catalog.recipes() if starter_info(recipe) is not None}
    for manifest, fewest in (("tiles.sha256", 4000), ("characters.sha256", 250)):
        lines = (folder / manifest).read_text().splitlines()
        assert all(len(line.split("  ", 1)[0]) == 64 for line in lines)
        assert len({line.split("  ", 1)[1] for line in lines}) == len(lines) > fewest


def test_starter_is_suggested_for_few_small_sprites() -> None:
    few = make_sprites()
    assert suggest_parent(GENERATOR, few) == STARTER
    assert suggest_parent(catalog.recipe("classifier"), few) is None
    many = few.take(np.arange(FEW + 1) % len(few))
    assert suggest_parent(GENERATOR, many.take(np.arange(FEW))) == STARTER and suggest_parent(GENERATOR, many) is None
    large = dataclasses.replace(few, rgba=few.rgba.repeat(9, axis=1).repeat(9, axis=2))  # of 72 pixels
    assert suggest_parent(GENERATOR, large) is None
    assert suggest_parent(GENERATOR, with_tones(few)) is None


def set_parent(cells: tuple[str, ...]) -> tuple[Parent, dict[str, torch.Tensor]]:
    """A parent with random weights for these cells, and its weights."""
    spec = Spec(8, (), cells=cells)
    weights = SETS.build(SETS.small, spec).state_dict()
    return Parent({"width": SETS.small.width}, spec, weights, ()), weights


def test_cells_start_from_the_parents_best_matching_cells() -> None:
    parent, given = set_parent(("down/stand", "down/step", "left/stand"))
    spec = Spec(8, (), cells=("side", "west/step", "down/step"))
    network = SETS.build(SETS.small, spec)
    fresh = {name: value.clone() for name, value in network.state_dict().items()}
    assert parent.copy_weights(network, SETS, spec) == 0
    sources = {"side": "", "west/step": "left/stand", "down/step": "down/step", "": ""}
    known = SETS.cell_slices(parent.spec)
    for name, ((dim, cells), *others) in SETS.cell_slices(spec).items():
        if others:
            continue  # a weight between two cells
        own, of_parent, before = (tensors[name].movedim(dim, 0) for tensors in (network.state_dict(), given, fresh))
        for cell, source in sources.items():
            rows, given_rows = (
                [row for row, other in enumerate(names) if other == wanted]
                for names, wanted in ((cells, cell), (known[name][0].names, source))
            )
            assert torch.equal(own[rows], before[rows] if cell == "side" else of_parent[given_rows])
    assert torch.equal(network.bottom.conv1.weight, given["bottom.conv1.weight"])


def test_weights_between_two_cells_start_from_those_of_both_matching_cells() -> None:
    parent, given = set_parent(("down/stand", "down/step", "left/stand"))
    copying = given["planes.copy.weight"].normal_(generator=torch.Generator().manual_seed(0))  # [2 * 3, 3, 3, 3]
    spec = Spec(8, (), cells=("side", "west/step", "down/step"))
    network = SETS.build(SETS.small, spec)
    assert parent.copy_weights(network, SETS, spec) == 0
    own = network.planes.copy.weight.detach().unflatten(0, (2, 3))  # plain and mirrored, to, from
    of_parent = copying.unflatten(0, (2, 3))
    assert torch.equal(own[:, 1:, 1:], of_parent[:, [2, 1]][:, :, [2, 1]])
    assert not own[:, 0].any()
    assert not own[:, :, 0].any()


def test_cells_in_another_order_keep_their_weights() -> None:
    parent, given = set_parent(("down", "up"))
    spec = Spec(8, (), cells=("up", "down"))
    network = SETS.build(SETS.small, spec)
    assert parent.copy_weights(network, SETS, spec) == 0
    half = len(given["leave.bias"]) // 2
    assert torch.equal(network.state_dict()["leave.bias"], given["leave.bias"].roll(half))


def test_a_starter_for_sets_is_suggested_for_few_characters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sprites, file = with_sets(make_sprites(per_class=200), ("front", "back")), tmp_path / "sets.safetensors"
    starter_info.cache_clear()
    monkeypatch.setattr(parents, "starter_path", lambda recipe_name: file)
    assert suggest_parent(SETS, sprites) is None
    parent, weights = set_parent(("down", "up"))
    about = StarterInfo("sets", parent.settings, 8, 5, "characters", "0", parent.spec.cells)
    starter_info.cache_clear()
    halves = {name: weights[name].half() for name in ("leave.weight", "leave.bias", "enter.weight")}
    save_file(halves, file, metadata={"about": json.dumps(dataclasses.asdict(about))})
    shutil.copyfile(paths.assets() / "starter" / "sources.json", tmp_path / "sources.json")
    assert suggest_parent(SETS, with_tones(sprites)) == STARTER  # 200 sets of 400 sprites; sets learn no attributes
    assert suggest_parent(SETS, make_sprites()) is None
    starter = load_parent(STARTER, SETS)
    assert starter.spec.cells == ("down", "up") and starter.ancestors[0].licence == "CC0-1.0"
    network = SETS.build(SETS.small, Spec.of(sprites))
    assert starter.copy_weights(network, SETS, Spec.of(sprites)) == 0
    assert torch.equal(network.state_dict()["leave.bias"], halves["leave.bias"].float())
    starter_info.cache_clear()
