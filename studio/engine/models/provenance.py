"""Provenance of models, exported files and saved images: record the source run, and detect later changes."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from studio.core import files
from studio.core.errors import BadInputError, DamagedError, ExportError, RunError, UsageError
from studio.core.events import Check, Events, Progress, Verified
from studio.core.formatting import number
from studio.data.store import packed
from studio.engine import catalog
from studio.engine.models.loading import load_average_weights
from studio.engine.models.model import TrainedModel
from studio.engine.runs.folder import RECORD_FILE, RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import remembered_runs, run_folders
from studio.engine.runs.source import provenance_at
from studio.exports import model_cards, png, provenance_note
from studio.exports.model_cards import Card, Copies, ModelSource
from studio.exports.sprites.formats import sprite_exports

_PNG_SUFFIXES = (".png", ".apng")


def model_provenance(model: TrainedModel) -> ModelSource | None:
    """Return the provenance of a model; None for a model without a run. Raises RunError."""
    if model.run is None:
        return None
    return provenance_at(RunDir(model.run), model.step, weights_sha256(model.network.state_dict()))


def provenance_json(model: TrainedModel) -> str:
    """Return the provenance of a model as JSON; '' for a model without a run. Raises RunError."""
    return source.to_json() if (source := model_provenance(model)) else ""


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a state dict: its names, shapes, dtypes and values. Independent of the file format."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        values = tensor.detach().cpu().contiguous()  # channels_last weights hash like contiguous ones
        digest.update(repr((name, str(values.dtype), tuple(values.shape))).encode())
        digest.update(values.flatten().view(torch.uint8).numpy().data)  # raw bytes: numpy has no bfloat16
    return digest.hexdigest()


def model_card(model: TrainedModel) -> Card | None:
    """Return the model card of a model, without file names; None for a model without a run. Raises RunError."""
    source = model_provenance(model)
    if source is None or model.run is None:
        return None
    record = RunDir(model.run).record()
    curves = read_history(model.run).quality
    copies = None
    # The newest measurement up to the model's step.
    if curves and (before := int(np.searchsorted(curves["copies"].steps, model.step, "right"))):
        step = int(curves["copies"].steps[before - 1])
        copies = Copies(step, *(float(curves[name].values[before - 1]) for name in ("copies", "copies_real")))
    size, names = record.size, record.class_names
    return Card(source, record.created, record.device_name, size, names, record.config, record.versions, copies)


def write_card(card: Card, paths: tuple[Path, ...]) -> tuple[Path, Path]:
    """Write a model card, as JSON and HTML, beside `paths`, the exported files, main file first. Raises ExportError."""
    target, page_path = model_cards.card_paths(paths[0])
    try:
        sums = {path.name: model_cards.sha256_of(path) for path in paths}
    except OSError as error:
        raise ExportError("The exported file can't be read back.", str(error)) from error
    page = model_cards.card_page(dataclasses.replace(card, files=sums))
    # The JSON also lists the hash of the page; the page can't contain its own.
    whole = dataclasses.replace(card, files={**sums, page_path.name: hashlib.sha256(page).hexdigest()})
    files.export_together({target: whole.to_json(), page_path: page})
    return target, page_path


def verify(path: Path, run: Path | None = None) -> Events:
    """Check whether a file is unchanged and belongs to its run: yields Progress, last Verified.

    path: an exported model, its model card, or a saved image. run: the run to compare with; None searches the known
    runs. Raises RunError, and BadInputError for a file without provenance.
    """
    yield Progress(0, 2, "reading the file")
    sources, checks = _read_origin(path)
    yield Progress(1, 2, "reading the run")
    for source in sources:
        compared = run or _find_run(source)
        if compared is None:
            checks.append(Check(f"The run '{source.run}' named in the file was not found.", None))
        else:
            checks += _check_run(source, RunDir(compared))
    yield Progress(2, 2, "verified")
    yield Verified(path, tuple(checks))


def _find_run(source: ModelSource) -> Path | None:
    for path in run_folders(remembered_runs()):
        with contextlib.suppress(OSError):  # an unreadable run is no match
            if model_cards.sha256_of(path / RECORD_FILE) == source.run_sha256:
                return path
    return None


def _read_origin(path: Path) -> tuple[list[ModelSource], list[Check]]:
    """Return the provenance entries in a file, and checks whether the file is unchanged. Raises BadInputError."""
    suffix = path.suffix.lower()
    form = next((form for form in sprite_exports().values() if form.has_note and form.suffix == suffix), None)
    if suffix in _PNG_SUFFIXES:
        return _check_sprite_file(path, *png.read_provenance(path))
    if form is None:
        return _check_export(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path.name} can't be read.", f"{error.strerror or error}.") from error
    sources = provenance_note.parse_sources(path.name, provenance_note.provenance_in(form.note_in(data)))
    return _check_sprite_file(path, sources, provenance_note.checksum_matches(data))


def _check_sprite_file(path: Path, sources: list[ModelSource], is_whole: bool) -> tuple[list[ModelSource], list[Check]]:
    """Return a sprite file's provenance, and a check of `is_whole`, whether the file's checksum matches."""
    verdict = "is unchanged since it was saved" if is_whole else "was changed after it was saved"
    return sources, [Check(f"{path.name} {verdict}.", is_whole)]


def _check_export(path: Path) -> tuple[list[ModelSource], list[Check]]:
    """Return an exported model's provenance, and checks of its files against its card. Raises BadInputError."""
    card_path = _find_card(path)
    try:
        card = model_cards.read_card(card_path)
    except DamagedError as error:
        return [], [Check(f"{error.title} {error.hint}", False)]
    except OSError as error:
        raise BadInputError(f"{card_path.name} can't be read.", str(error)) from error
    checks = [Check(f"{card_path.name} is unchanged.", True)]
    for name, sha256 in card.files.items():
        try:
            is_same = model_cards.sha256_of(card_path.with_name(name)) == sha256
        except FileNotFoundError:
            checks.append(Check(f"{name} is missing.", False))
            continue
        except OSError as error:
            raise BadInputError(f"{name} can't be read.", str(error)) from error
        checks.append(Check(f"{name} is unchanged since the export." if is_same else f"{name} was changed.", is_same))
    return [card.source], checks


def _find_card(path: Path) -> Path:
    """Return the model card of an exported file, or `path` if it is a card. Raises BadInputError without a card."""
    if path.name.endswith(model_cards.JSON_ENDING):
        return path
    if not path.exists():
        raise BadInputError(f"{path} does not exist.", "Choose a file that the studio exported or saved.")
    own = model_cards.card_paths(path)[0]
    if own.exists():
        return own
    # A companion file, such as the weights of a script, is listed in the card of its main file.
    for card_path in sorted(path.parent.glob(f"*{model_cards.JSON_ENDING}")):
        with contextlib.suppress(BadInputError, DamagedError, OSError):  # the card of another file
            if path.name in model_cards.read_card(card_path).files:
                return card_path
    if path.suffix.lower() in {form.suffix for form in catalog.model_exports().values()}:
        title = f"{path.name} has no card beside it."
        raise BadInputError(title, f"Keep {path.name}{model_cards.JSON_ENDING} in the same folder.")
    *others, last = sorted({*_PNG_SUFFIXES, *(form.suffix for form in sprite_exports().values() if form.has_note)})
    hint = f"Sprites have it in {', '.join(others)} and {last} files, exported models in the model card beside them."
    raise BadInputError(f"Files like {path.name} contain no provenance.", hint)


def _check_run(source: ModelSource, run: RunDir) -> Iterator[Check]:
    """Compare a run's run.json, sprites and weights with a provenance. Raises RunError, BadInputError."""
    own = provenance_at(run, source.step)
    is_run = own.run_sha256 == source.run_sha256
    verdict = "is the source run" if is_run else "is a different run, or its run.json was changed"
    yield Check(f"{run.path.name} {verdict}.", is_run)
    sprites = packed.load(run.data)
    fingerprint = dataclasses.replace(sprites).fingerprint  # computed from the pixels, not the stored one
    is_data = fingerprint == source.data_fingerprint
    verdict = "match the training sprites of the model" if is_data else "differ from the training sprites of the model"
    yield Check(f"The sprites of the run {verdict}.", is_data)
    if source.weights_sha256:
        yield _check_weights(source, run)


def _check_weights(source: ModelSource, run: RunDir) -> Check:
    at = f"the checkpoint at step {number(source.step)}"
    try:
        _, _, weights, _ = load_average_weights(run, str(source.step), catalog.recipe(run.record().recipe))
    except UsageError:
        return Check(f"The run has deleted {at}: can't compare the weights.", None)
    except (DamagedError, RunError) as error:
        return Check(f"Can't compare {at}: {error.title}", False)
    is_same = weights_sha256(weights) == source.weights_sha256
    return Check(f"The weights {'match' if is_same else 'differ from'} {at}.", is_same)
