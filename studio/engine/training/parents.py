"""Start a training from a parent model's weights: another run, or a starter bundled with the studio."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal

import torch
from safetensors.torch import load as parse_tensors
from torch import Tensor, nn

from studio.core import paths, records
from studio.core.config import TrainingConfig, Value
from studio.core.errors import DamagedError, UsageError
from studio.core.formatting import count
from studio.data.rights import Rights
from studio.data.sets.matching import match_cells
from studio.data.sprites import Sprites
from studio.engine.devices.types import STARTER, ParentSource
from studio.engine.models.loading import load_average_weights
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import Tensors
from studio.engine.runs.folder import Ancestor, RunDir, RunRecord, wrap_read_errors, wrap_write_errors
from studio.recipes.base import CellSlices, Recipe, Spec
from studio.recipes.planning import FEW

_LENGTH_BYTES = 8  # a safetensors file starts with the JSON header's length
_STARTER_NAMES = {"generator": "starter"}  # names of files, if not the recipe's name
_HINT = "Train from scratch, or start from another model."


@dataclass(frozen=True, eq=False)
class Parent:
    """A trained model whose weights start a new run."""

    settings: Mapping[str, Value]  # fixed by the weights, for example the width
    spec: Spec
    weights: Tensors
    ancestors: tuple[Ancestor, ...]  # this model, its own parent, and so on

    def adapt(self, config: TrainingConfig) -> TrainingConfig:
        """Return the config with the settings that this model's weights require, for example the width."""
        return config.replace(**self.settings)

    def copy_weights(self, network: nn.Module, recipe: Recipe, spec: Spec) -> int:
        """Copy this model's weights into a new network.

        Returns the number of parameters skipped because of different shapes. Weights unknown to the parent keep their
        values. Class and number embeddings copy rows by name. Rows of new classes keep random values: started from the
        row for 'any class', new classes would learn to differ late. Slices of cells come from the best matching cells.
        """
        rows, known_rows, left = recipe.rows(spec), recipe.rows(self.spec), 0
        slices, known_slices = recipe.cell_slices(spec), recipe.cell_slices(self.spec)
        buffers = {name for name, _ in network.named_buffers()}  # from training sprites: not counted as skipped
        with torch.no_grad():
            for name, own in network.state_dict().items():
                given = self.weights.get(name)
                if given is not None and name in rows:
                    _copy_rows(own, rows[name], given, known_rows[name])
                elif given is not None and name in slices:
                    _copy_slices(own, slices[name], given, known_slices[name])
                elif given is not None and given.shape == own.shape:
                    own.copy_(given)  # in place: optimizer and EMA hold references to this tensor
                elif given is not None:
                    left += name not in buffers
        return left


@dataclass(frozen=True)
class StarterInfo:
    """A starter's description, stored as JSON in the starter's file. A starter is a recipe's bundled model."""

    recipe: str
    settings: Mapping[str, Value]  # fixed by the starter's weights
    size: int
    step: int
    data_title: str
    data_fingerprint: str
    cells: tuple[str, ...] = ()  # empty unless the model makes sets


def suggest_parent(recipe: Recipe, sprites: Sprites) -> ParentSource:
    """Return the suggested start of a training: the recipe's starter, the model bundled with the studio, or None.

    Suggests the starter for FEW sprites or sets, at most twice as large as the starter's: drawings become cleaner, and
    fewer are copies. Sprites with attributes start from scratch, because a starter learns attributes too slowly.
    """
    info = starter_info(recipe.name)
    has_attributes = "attributes" in recipe.capabilities and sprites.attributes
    if info is None or has_attributes or sprites.size > 2 * info.size:
        return None
    return STARTER if 0 < recipe.count_examples(sprites) <= FEW else None


def describe_examples(recipe: Recipe, sprites: Sprites) -> str:
    """Describe the number of examples for users: '60 sprites', or '30 characters' for a recipe of sets."""
    return count(recipe.count_examples(sprites), recipe.noun)


def load_parent(source: Path | Literal["starter"], recipe: Recipe) -> Parent:
    """Load the recipe's bundled model for STARTER, or a run's best checkpoint. Raises UsageError, RunError."""
    if source == STARTER:
        return _load_starter(recipe)
    run = RunDir(source)
    record = run.record()
    if record.recipe != recipe.name:
        kind, wanted = "a model of sets" if record.cells else f"a {record.recipe}", recipe.kind.partition(" ")[2]
        raise UsageError(f"{record.name} is {kind}: no {wanted} can start from it.", _HINT)
    chosen, info, weights, _ = load_average_weights(run, "best", recipe)
    checkpoints.check_finite(weights, chosen.name)  # NaN weights would spread to the new run
    licence = Rights.from_origin(record.data_origin).licence
    weights_hash = info.sha256["average"]
    itself = Ancestor(record.name, info.step, record.data_title, record.data_fingerprint, weights_hash, licence)
    spec = Spec(record.size, record.class_names, record.target_names, record.cells, record.attributes)
    return Parent(settings_fixed_by(record, recipe), spec, weights, (itself, *record.ancestors))


def save_start(run: RunDir, network: nn.Module) -> str:
    """Write a new run's start weights; return the SHA-256. Raises UnwritableError.

    The run keeps its own copy, because the user may delete the parent.
    """
    content = checkpoints.serialize(network.state_dict())
    with wrap_write_errors(run.path):
        run.write_file(run.start.name, content)
    return hashlib.sha256(content).hexdigest()


def load_start(run: RunDir, record: RunRecord, network: nn.Module) -> None:
    """Load a run's start weights into the network. Raises DamagedError, and RunError if they can't be read."""
    name, hint = f"{run.start.name} of {record.name}", "Train a new run with the same settings."
    try:
        with wrap_read_errors(run.start):
            content = run.start.read_bytes()
    except FileNotFoundError:
        raise DamagedError(f"{name} is missing.", hint) from None
    if hashlib.sha256(content).hexdigest() != record.start_sha256:
        raise DamagedError(f"{name} is damaged.", hint)
    checkpoints.load_into(network, parse_tensors(content), name)


def settings_fixed_by(record: RunRecord, recipe: Recipe) -> dict[str, Value]:
    """Return the settings that a run's weights fix for trainings from these weights. Raises UsageError."""
    return recipe.fixed_settings(recipe.Config.from_json(record.config), record.size)


@cache
def starter_info(recipe_name: str) -> StarterInfo | None:
    """Return the description of a recipe's bundled model without loading weights; None without a bundled model."""
    try:
        with starter_path(recipe_name).open("rb") as file:
            return _read_info(file)
    except FileNotFoundError:
        return None


def starter_path(recipe_name: str) -> Path:
    """Return the path for a recipe's bundled model, whether or not the file exists."""
    return paths.assets() / "starter" / f"{_STARTER_NAMES.get(recipe_name, recipe_name)}.safetensors"


def _load_starter(recipe: Recipe) -> Parent:
    if starter_info(recipe.name) is None:
        raise UsageError(f"The recipe '{recipe.name}' has no starter model.", _HINT)
    path = starter_path(recipe.name)
    listed = records.parse(path.with_name("sources.json").read_bytes(), dict[str, list[dict[str, str]]])
    licences = ", ".join(sorted({source["licence"] for source in listed[recipe.name]}))  # of its training sprites
    return parse_starter(path.read_bytes(), licences)


def parse_starter(content: bytes, licence: str) -> Parent:
    """Parse a starter's file. licence: the licence of the starter's training sprites."""
    info = _read_info(BytesIO(content))
    weights = {name: tensor.float() for name, tensor in parse_tensors(content).items()}
    sha256 = hashlib.sha256(content).hexdigest()
    itself = Ancestor(STARTER, info.step, info.data_title, info.data_fingerprint, sha256, licence)
    return Parent(info.settings, Spec(info.size, (), cells=info.cells), weights, (itself,))


def _read_info(file: BinaryIO) -> StarterInfo:
    """Read the JSON header of a safetensors file, without the weights."""
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    header = json.loads(file.read(length))
    return records.parse(header["__metadata__"]["about"], StarterInfo)


def _copy_rows(own: Tensor, names: Sequence[str], given: Tensor, given_names: Sequence[str]) -> None:
    """Copy embedding rows, [names, ...], to the rows of equal names; an extra last row stands for any name."""
    parent_row = {name: row for row, name in enumerate(given_names)}
    for row, name in enumerate(names):
        if name in parent_row:
            own[row] = given[parent_row[name]]
    if len(own) > len(names) and len(given) > len(given_names):
        own[-1] = given[-1]  # row for any class


def _copy_slices(own: Tensor, slices: Sequence[CellSlices], given: Tensor, given_slices: Sequence[CellSlices]) -> None:
    """Copy the slices of a cell from the parent's best matching cell, and slices without a cell likewise.

    slices: for one or more dimensions. A weight between two cells is copied if both cells have a match.
    """
    places: list[Tensor | slice] = [slice(None)] * own.ndim  # target indices, by dimension
    for number, (slices_of_dim, known) in enumerate(zip(slices, given_slices, strict=True)):
        rows, given_rows = _rows_by_name(slices_of_dim.names), _rows_by_name(known.names)
        matches = dict(zip(rows, match_cells([*rows], [name for name in given_rows if name]), strict=True))
        copied = [name for name in rows if matches[name] or not name]
        to = torch.tensor([place for name in copied for place in rows[name]], dtype=torch.int64)
        taken = [place for name in copied for place in given_rows[matches[name]]]
        given = given.index_select(known.dim, torch.tensor(taken, dtype=torch.int64, device=given.device))
        places[known.dim] = to.view(-1, *[1] * (len(slices) - 1 - number)).to(own.device)
    own[tuple(places)] = given


def _rows_by_name(names: Sequence[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    return rows
