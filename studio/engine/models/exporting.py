"""Export a trained model to a file of another format, then read the file back and compare its outputs."""

import contextlib
import copy
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from studio.core import files
from studio.core.config import Config
from studio.core.discovery import find_plugin
from studio.core.errors import ExportError
from studio.core.events import Event, Events, Exported, Notice, Progress
from studio.core.generators import Steps
from studio.engine import catalog
from studio.engine.devices import detection
from studio.engine.models import provenance
from studio.engine.models.model import TrainedModel
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import heldout_groups
from studio.engine.steps import batches, optim
from studio.engine.steps.batches import premultiply, to_input, to_rgba, unpremultiply
from studio.exports.base import PROBE, ExportableModel, ModelExport, TrainingCode
from studio.exports.model_cards import ModelSource, card_paths
from studio.recipes.base import Batch, BatchRng, Recipe
from studio.recipes.capabilities import CompletesSets, DrawsFromNoise
from studio.recipes.flow import normal_rows
from studio.recipes.set_drawing import draw_missing, set_condition

_COPIED_PERCENT, _WRITTEN_PERCENT, _COMPARED_PERCENT = 5, 30, 90
_MAX_UNDECIDED = 0.01  # allowed share of different output values in sprites and cells


def export(model: TrainedModel, format_name: str, target: Path, config: Config | None = None) -> Events:
    """Export a model to a file, read the file back and compare outputs: yields Progress, Notices, and Exported last.

    Copies the model before the first event, so training may continue meanwhile. target: file or folder; in a folder,
    the file is named after the run. An existing file is not overwritten: the export gets a new name and a Notice.
    config: settings of the format; None uses its defaults.

    Raises UsageError for an unknown format. Raises ExportError and leaves no files if a package is missing, the format
    can't hold this model, the file can't be written or read back, or its outputs differ by more than the format allows.
    """
    form = find_plugin(catalog.model_exports(), format_name, "export format")
    config = form.Config() if config is None else config
    if missing := form.missing():
        raise ExportError(f"Can't export to {form.title} yet.", missing)
    if problem := form.problem(model.recipe):
        raise ExportError(f"This model can't be exported as {form.title}.", problem)
    with detection.wrap_device_errors(model.device):
        exportable, about = exportable_copy(model), provenance.model_card(model)  # before the first yield
    if exportable.attributes and not form.takes_attributes:
        hint = "Choose another format, such as safetensors."
        raise ExportError(f"{form.title} can't hold a model with attributes.", hint)
    yield _progress(0, "copying the model")
    wanted = _with_suffix(form, exportable, target)
    chosen = _unused_path(form, wanted, config)
    yield _progress(_COPIED_PERCENT, "writing the file")
    with files.staged(chosen) as draft:  # files get their final names after verification
        with files.wrap_export_errors(chosen):
            drafts = form.write(exportable, draft, config)
        found = yield from _read_back(form, drafts, exportable, config)
        yield _progress(_COMPARED_PERCENT, "comparing with the live model")
        difference = check_difference(form, exportable, config, found, chosen)
        cards = () if about is None else provenance.write_card(about, tuple(drafts))
        moved = files.publish((*drafts, *cards), chosen.parent)
    paths, card = moved[: len(drafts)], moved[len(drafts) :]
    if chosen != wanted:
        yield Notice("info", f"{wanted.name} already exists: saved as {chosen.name}.", "")
    yield _progress(100, "checked")
    size = sum(path.stat().st_size for path in paths)
    yield Exported(paths, difference, form.snippets(paths, exportable, config), size, card)


def _progress(percent: float, what: str) -> Progress:
    return Progress(int(percent), 100, f"% done: {what}")


def _read_back(
    form: ModelExport, paths: Sequence[Path], model: ExportableModel, config: Config
) -> Generator[Event, None, Tensor]:
    """Read an exported file back and return the outputs of the model in it; yields Progress."""
    what = "reading the file back"
    yield _progress(_WRITTEN_PERCENT, what)
    reading = form.read_back(paths, model, config)
    if isinstance(reading, Tensor):
        return reading
    with contextlib.closing(reading):
        for share in (steps := Steps(reading)):
            yield _progress(_WRITTEN_PERCENT + share * (_COMPARED_PERCENT - _WRITTEN_PERCENT), what)
        return steps.result


def exportable_copy(model: TrainedModel) -> ExportableModel:
    """Return a copy of the model in float32 on the CPU, with all data needed for an export."""
    # A copy, because weights of a live model change; in NCHW for other programs.
    network = copy.deepcopy(model.network).float().cpu().to(memory_format=torch.contiguous_format)
    recipe, config, spec = model.recipe, model.config, model.spec
    source, network_class = provenance.model_provenance(model), recipe.network_class(config)

    def outputs(candidate: nn.Module) -> Tensor:
        with torch.no_grad():
            if recipe.makes == "sets":
                return _odds(candidate, *PROBE.sets(len(spec.cells), spec.size))
            if recipe.makes != "sprites":
                return recipe.predictor_of(spec)(candidate, PROBE.sprites(spec.size)).float()  # [N, K]
            labels = exportable.probe_labels
            *_, last = recipe.draw(candidate, labels, PROBE.guidance, PROBE.steps, PROBE.seed)
        return last.float()  # [N, 4, S, S]

    def draw_from(candidate: nn.Module, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int) -> Tensor:
        assert isinstance(recipe, DrawsFromNoise)
        *_, last = recipe.draw_from(candidate, noise, labels, guidance, steps)
        return last  # [N, 4, S, S]

    def complete(
        candidate: nn.Module, cells: Tensor, given: Tensor, chances: Tensor, variety: float | Tensor
    ) -> Tensor:
        assert isinstance(recipe, CompletesSets)
        return draw_missing(recipe.complete, candidate, cells, given, chances, variety)

    exportable = ExportableModel(
        title=model.title, recipe=recipe.name, makes=recipe.makes, config=config.to_json(), size=spec.size,
        class_names=spec.class_names, target_names=spec.target_names, cells=spec.cells,
        attributes=spec.attributes if "attributes" in recipe.capabilities else {},
        architecture={
            "class": network_class.__name__,
            "arguments": {**recipe.arguments(config, spec), **recipe.attribute_arguments(spec)},
        },
        step=model.step, ancestors=[asdict(ancestor) for ancestor in model.ancestors],
        network=network.eval().requires_grad_(False),
        # Functions and classes whose source code exported scripts contain.
        portable=(network_class, *_code_of_use(recipe)),
        # A network with random weights, to load exported weights into.
        fresh=lambda: recipe.build(config, spec).eval().requires_grad_(False),
        outputs=outputs, capabilities=recipe.capabilities, solver=recipe.solver, style=model.style.to_json(),
        noise=recipe.noise(network, PROBE.count, PROBE.seed) if isinstance(recipe, DrawsFromNoise) else None,
        draw_from=draw_from, predict=recipe.predictor_of(spec), draw_missing=complete,
        training=_training_code(model, source), source=source,
        premultiplied=premultiply, straight=unpremultiply,
    )  # fmt: skip
    return exportable


def _code_of_use(recipe: Recipe) -> tuple[Any, ...]:
    """Return the functions that use the network: the code of exported loaders and scripts."""
    if isinstance(recipe, CompletesSets):
        return recipe.complete, draw_missing, normal_rows
    return (recipe.draw, to_rgba) if recipe.makes == "sprites" else (to_input,)


def _odds(network: nn.Module, cells: Tensor, given: Tensor) -> Tensor:
    """Return the network's odds of each colour for each pixel of sets, float32 [N, C, P, S, S].

    cells: uint8 [N, C, S, S, 4]. given: bool [N, C].
    """
    picks = torch.arange(len(cells)) / len(cells)
    condition, _ = set_condition(cells, given, network.get_buffer("palettes"), picks)
    known = given[:, :, None, None].expand_as(condition.index).float()
    logits: Tensor = network(condition.index, condition.palette, known)
    return logits.float().softmax(2)


def _training_code(model: TrainedModel, source: ModelSource | None) -> TrainingCode:
    """Return the functions and settings of the training, for formats that write a training script."""
    recipe, config = model.recipe, model.config
    loss_of_batch = recipe.loss_of(model.spec)
    own = [recipe.arguments, loss_of_batch]
    if type(recipe).statistics is not Recipe.statistics:  # an overridden method belongs to the recipe
        is_sampled = source is None or source.data_count > batches.max_sampled(model.spec.size)
        own += [recipe.statistics, *([batches.subsample] if is_sampled else [])]
    shared = (
        heldout_groups, batches.shuffled_indices, batches.step_seed, batches.shift, to_input, optim.orthogonalize,
        optim.learning_rate, optim.ema_decay,
    )  # fmt: skip

    def loss(network: nn.Module, x: Tensor, y: Tensor, targets: Tensor, seed: int) -> Tensor:
        batch = Batch(x, y, torch.zeros(len(y), 3), targets, progress=1.0)  # progress: of the training, 0 to 1
        with torch.no_grad():
            return loss_of_batch(network, batch, config, BatchRng(torch.Generator().manual_seed(seed), batch))

    data = None if model.run is None else RunDir(model.run).data
    return TrainingCode(config, data, (*own, *shared), loss, loss_of_batch.__name__)


def check_difference(form: ModelExport, model: ExportableModel, config: Config, found: Tensor, path: Path) -> float:
    """Return the largest relative difference between the outputs of the exported file and of the original model.

    found: outputs of the exported file. Differences are relative to the largest output; for numbers, to the largest of
    each column, because columns have different units. Ignores the few largest differences between pixels of sprites
    and cells, where two colours are equally likely. Raises ExportError if the difference exceeds the format's limit.
    """
    live, most = form.live(model, config), form.largest_difference(model, config)
    if found.shape != live.shape or not bool(torch.isfinite(found).all()):
        raise ExportError(f"The outputs of {path.name} are invalid.", "The file was deleted. Export again.")
    largest = live.abs().amax(0) if model.makes == "numbers" else live.abs().max()  # [K] or []
    apart = ((found - live).abs() / largest.clamp(min=torch.finfo(live.dtype).tiny)).flatten().sort().values
    # `apart` is sorted. Where two colours are equally likely, rounding decides, and programs round differently.
    undecided = int(len(apart) * _MAX_UNDECIDED) if model.makes in ("sprites", "sets") else 0
    difference = float(apart[len(apart) - 1 - undecided])
    if difference > most:
        differs, allowed = (f"{100 * share:.2g} %" for share in (difference, most))
        title = f"{path.name} differs from the model by {differs}; {allowed} is allowed."
        raise ExportError(title, "The file was deleted. Export to another format.")
    return difference


def _with_suffix(form: ModelExport, model: ExportableModel, target: Path) -> Path:
    """Return `target` with the format's suffix; in a folder, a file named after the run."""
    if target.is_dir():
        return target / f"{files.output_name(model.title, 'model')}{form.suffix}"
    return target if target.suffix.lower() == form.suffix else target.with_name(target.name + form.suffix)


def _unused_path(form: ModelExport, wanted: Path, config: Config) -> Path:
    """Return `wanted`, or a numbered variant if the file, a companion file or its model card exists."""
    candidate, number = files.free_path(wanted), 2
    while any(path.exists() for path in (*form.companions(candidate, config), *card_paths(candidate))):
        candidate = files.free_path(wanted.with_name(f"{wanted.stem} {number}{wanted.suffix}"))
        number += 1
    return candidate
