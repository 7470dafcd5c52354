"""Where a model, an exported file or a saved sprite comes from, and whether it is still as it was."""

from __future__ import annotations

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
from studio.engine.runs.listing import RunsListed, list_runs, remembered_runs
from studio.engine.runs.source import provenance_at
from studio.exports import model_cards, png, provenance_note
from studio.exports.model_cards import Card, Copies, ModelSource
from studio.exports.sprites.formats import sprite_exports

_PNG_SUFFIXES = (".png", ".apng")


def model_provenance(model: TrainedModel) -> ModelSource | None:
    """What a model comes from; None for one of no run. Raises RunError."""
    if model.run is None:
        return None
    return provenance_at(RunDir(model.run), model.step, weights_sha256(model.network.state_dict()))


def provenance_json(model: TrainedModel) -> str:
    """The same as JSON, for files and for who keeps what was drawn; empty for a model of no run. Raises RunError."""
    source = model_provenance(model)
    return "" if source is None else source.to_json()


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of a state dict, whatever file it is in: of the names in their order, the shapes and the numbers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        values = tensor.detach().cpu().contiguous()
        digest.update(repr((name, str(values.dtype), tuple(values.shape))).encode())
        digest.update(values.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_card(model: TrainedModel) -> Card | None:
    """The card of a model, without files; None for one of no run. Raises RunError."""
    source = model_provenance(model)
    if source is None or model.run is None:
        return None
    record = RunDir(model.run).record()
    curves = read_history(model.run).quality
    copies = None
    if curves and (before := int(np.searchsorted(curves["copies"].steps, model.step, "right"))):
        step = int(curves["copies"].steps[before - 1])
        copies = Copies(step, *(float(curves[name].values[before - 1]) for name in ("copies", "copies_real")))
    return Card(
        source, record.created, record.device_name, record.size, record.class_names, record.config, record.versions,
        copies,
    )  # fmt: skip


def write_card(card: Card, paths: tuple[Path, ...]) -> tuple[Path, Path]:
    """Write the card of these files, the main one first, beside it: the JSON and the page. Raises ExportError."""
    (target, page_path), sums = model_cards.card_paths(paths[0]), _file_hashes(paths)
    page = model_cards.card_page(dataclasses.replace(card, files=sums))
    whole = dataclasses.replace(card, files={**sums, page_path.name: hashlib.sha256(page).hexdigest()})
    files.export_together({target: whole.to_json(), page_path: page})
    return target, page_path


def _file_hashes(paths: tuple[Path, ...]) -> dict[str, str]:
    try:
        return {path.name: model_cards.sha256_of(path) for path in paths}
    except OSError as error:
        raise ExportError("What was exported can't be read again.", str(error)) from error


def verify(path: Path, run: Path | None = None) -> Events:
    """Whether an exported file, its card or a saved picture is as it was, and belongs to the run that it names.

    run: the one to compare with; None: one of those that the studio knows. Yields Progress, last Verified. Raises
    BadInputError for a file that tells nothing of where it comes from, RunError.
    """
    yield Progress(0, 2, "looking at the file")
    sources, checks = _read_origin(path)
    yield Progress(1, 2, "looking at the run")
    for source in sources:
        compared = run or _find_run(source)
        if compared is None:
            checks.append(Check(f"The run '{source.run}', which it says it comes from, is not known here.", None))
        else:
            checks += _check_run(source, RunDir(compared))
    yield Progress(2, 2, "looked at")
    yield Verified(path, tuple(checks))


def _find_run(source: ModelSource) -> Path | None:
    """The run that is meant, where the studio knows it."""
    for listed in list_runs(remembered_runs()):
        assert isinstance(listed, RunsListed)
        for summary in listed.runs:
            with contextlib.suppress(OSError):  # one that can't be read is not the one
                if model_cards.sha256_of(summary.path / RECORD_FILE) == source.run_sha256:
                    return summary.path
    return None


def _read_origin(path: Path) -> tuple[list[ModelSource], list[Check]]:
    """Return the sources that a file names, and the checks of its bytes. Raises BadInputError."""
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
    told = provenance_note.provenance_in(form.note_in(data))
    return _check_sprite_file(
        path, provenance_note.parse_sources(path.name, told), provenance_note.checksum_matches(data)
    )


def _check_sprite_file(path: Path, sources: list[ModelSource], is_whole: bool) -> tuple[list[ModelSource], list[Check]]:
    said = "is as it was saved" if is_whole else "was changed after it was saved"
    return sources, [Check(f"{path.name} {said}.", is_whole)]


def _check_export(path: Path) -> tuple[list[ModelSource], list[Check]]:
    card_path = _find_card(path)
    try:
        card = model_cards.read_card(card_path)
    except DamagedError as error:
        return [], [Check(f"{error.title} {error.hint}", False)]
    except OSError as error:
        raise BadInputError(f"{card_path.name} can't be read.", str(error)) from error
    checks = [Check(f"{card_path.name} is as it was written.", True)]
    for name, sha256 in card.files.items():
        try:
            is_same = model_cards.sha256_of(card_path.with_name(name)) == sha256
        except FileNotFoundError:
            checks.append(Check(f"{name} is not there.", False))
            continue
        except OSError as error:
            raise BadInputError(f"{name} can't be read.", str(error)) from error
        checks.append(Check(f"{name} is as it was exported." if is_same else f"{name} was changed.", is_same))
    return [card.source], checks


def _find_card(path: Path) -> Path:
    """The card that a file is, or that names it. Raises BadInputError."""
    if path.name.endswith(model_cards.JSON_ENDING):
        return path
    if not path.exists():
        raise BadInputError(f"{path} is not there.", "Name a file that was exported or saved by the studio.")
    own = model_cards.card_paths(path)[0]
    if own.exists():
        return own
    for card_path in sorted(path.parent.glob(f"*{model_cards.JSON_ENDING}")):
        with contextlib.suppress(BadInputError, DamagedError, OSError):  # another file's
            if path.name in model_cards.read_card(card_path).files:
                return card_path
    if path.suffix.lower() in {form.suffix for form in catalog.model_exports().values()}:
        title = f"{path.name} has no card beside it."
        raise BadInputError(title, f"Its card is {path.name}{model_cards.JSON_ENDING}: keep the two together.")
    *others, last = sorted({*_PNG_SUFFIXES, *(form.suffix for form in sprite_exports().values() if form.has_note)})
    raise BadInputError(
        f"Files such as {path.name} hold no note of their origin.",
        f"Sprites have the note in {', '.join(others)} and {last} files, exported models in the card beside them.",
    )


def _check_run(source: ModelSource, run: RunDir) -> Iterator[Check]:
    """Whether something comes from this run. Raises RunError, BadInputError."""
    own = provenance_at(run, source.step)
    is_run = own.run_sha256 == source.run_sha256
    said = "is the run that it comes from" if is_run else "is another run, or its run.json was changed"
    yield Check(f"{run.path.name} {said}.", is_run)
    sprites = packed.load(run.data)
    fingerprint = dataclasses.replace(sprites).fingerprint  # of the pixels, not the one that is written there
    is_data = fingerprint == source.data_fingerprint
    said = "are those that the model learnt from" if is_data else "are not those that the model learnt from"
    yield Check(f"The sprites of the run {said}.", is_data)
    if source.weights_sha256:
        yield _check_weights(source, run)


def _check_weights(source: ModelSource, run: RunDir) -> Check:
    at = f"the checkpoint at step {number(source.step)}"
    try:
        _, _, weights, _ = load_average_weights(run, str(source.step), catalog.recipe(run.record().recipe))
    except UsageError:
        return Check(f"The run has not kept {at}: its weights can't be compared.", None)
    except (DamagedError, RunError) as error:
        return Check(f"{at[0].upper()}{at[1:]} can't be compared: {error.title}", False)
    is_same = weights_sha256(weights) == source.weights_sha256
    return Check(f"The weights are {'' if is_same else 'not '}those of {at}.", is_same)
