"""`studio complete`: draw missing views and frames of characters. `studio generate`: draw new characters."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio.cli.flags import typed_settings
from studio.cli.given import Given, parse_given, read_given
from studio.cli.inputs import find_device, find_run, load_model
from studio.cli.messages import DONE
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.cli.saving import format_for, names_file, save_sprites
from studio.core import files
from studio.core.errors import UsageError
from studio.core.events import SetsDrawn
from studio.core.formatting import count, number
from studio.engine.sampling.settings import CompleteSettings, GenerateSettings, GivenSets
from studio.exports.model_cards import provenance_metadata
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import Cells

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel

NEW_SET_SETTINGS = ("rounds",)  # fields of CompleteSettings, flags of `studio generate`
_NEW_SETS = 16
_FROM_NOTHING = "New characters start from nothing; 'studio complete' starts from given cells."
_OWN_COLOURS = "New characters take the colours of a training character."
_OTHERS = "A model of sets draws new characters with --count, --seed and --rounds alone."
# Flags of `studio generate` that new characters refuse, and why, by argument name.
_REFUSED = {
    **{name: (f"--{name}", _FROM_NOTHING) for name in ("between", "like", "keep", "silhouette", "fit")},
    "start": ("--from", _FROM_NOTHING),
    "palette": ("--palette", _OWN_COLOURS), "dither": ("--dither", _OWN_COLOURS),
    "liked": ("--liked", "Best-of compares single sprites, not characters."),
    "columns": ("--columns", "The frames of a view are the columns."),
}  # fmt: skip


def complete(args: argparse.Namespace) -> int:
    """Draw the missing cells of the given characters, and save whole characters."""
    from studio.engine.sampling.complete import check_completes

    reporter, path = reporter_for(args), find_run(args.run_name)
    settings = CompleteSettings(**typed_settings(args, CompleteSettings))  # type: ignore[arg-type]
    if args.out is not None:
        format_for(args.out, args.format)  # fails on a wrong suffix before the work starts
    model = load_model(path, args, find_device(args), reporter)
    check_completes(model)
    given = parse_given(args.given, model.spec.cells)
    sets = read_given(given, model.spec.cells, model.spec.size)
    about = {"given": ", ".join(_describe(item, model.spec.cells) for item in given)}
    _draw_and_save(model, settings, sets, about, args, reporter)
    return DONE


def draw_new_sets(args: argparse.Namespace, path: Path, reporter: Reporter) -> int:
    """Draw and save new characters for `studio generate`. Raises UsageError for flags of other models."""
    typed = typed_settings(args, GenerateSettings)
    names = {"class_name": "class"}
    others = (names.get(name, name).replace("_", "-") for name in typed if name not in ("count", "seed"))
    refused = [(f"--{name}", _OTHERS) for name in others]
    refused += [why for name, why in _REFUSED.items() if getattr(args, name) not in (None, False)]
    if refused:
        flag, reason = refused[0]
        raise UsageError(f"{flag} does not apply to a model of sets.", reason)
    values = {"count": _NEW_SETS, **typed, **typed_settings(args, CompleteSettings)}
    settings = CompleteSettings(**values)  # type: ignore[arg-type]
    if args.out is not None:
        format_for(args.out, args.format)
    model = load_model(path, args, find_device(args), reporter)
    _draw_and_save(model, settings, None, {}, args, reporter)
    return DONE


def _describe(given: Given, cells: Sequence[str]) -> str:
    """Return a given picture or folder by name, for the metadata of saved files."""
    return given.path.name if given.cell is None else f"{cells[given.cell]}={given.path.name}"


def _draw_and_save(
    model: TrainedModel, settings: CompleteSettings, sets: GivenSets | None, about: Mapping[str, Any],
    args: argparse.Namespace, reporter: Reporter,
) -> None:  # fmt: skip
    """Complete sets, or draw new sets without `sets`; save all to --out and report the files."""
    from studio.engine.models.provenance import provenance_json
    from studio.engine.sampling.complete import complete as complete_sets

    drawn = run_job(complete_sets(model, settings, sets), reporter, SetsDrawn)
    known = {"model": drawn.model, "recipe": model.recipe.name, **settings.to_json(), **about}
    known |= provenance_metadata([provenance_json(model)])
    out = args.out or Path(f"{files.output_name(f'{model.title} {_title(sets)}')}-{settings.seed}.png")
    form = format_for(out, args.format)
    sprites = drawn.cells.reshape(-1, *drawn.cells.shape[2:])
    cells = Cells.full(drawn.cell_names, len(sprites), _names(sets, settings.count))
    saved = SpriteSet(sprites, about=known if args.texts else {}, cells=cells)
    written = save_sprites(saved, out, form, reporter)
    for row, of_set in enumerate(_files_by_set(written, saved, cells, form)):
        reporter.write_json(_as_json(drawn, row, settings.count if sets else 1, of_set))
    more = f" and {count(len(written) - 1, 'more file', 'more files')}" if len(written) > 2 else ""
    where = f"{written[0]}{more}" if names_file(out) else out
    drawn_cells = count(int((~drawn.given).sum()), "cell")
    what = f"{count(len(cells), 'new character')}" if sets is None else f"{drawn_cells} of {_described(sets, settings)}"
    reporter.print(f"Saved {what}, by {drawn.model}: {where}")


def _title(sets: GivenSets | None) -> str:
    if sets is None:
        return "characters"
    return sets.names[0].replace("/", " ") if len(sets.names) == 1 else "characters"


def _described(sets: GivenSets, settings: CompleteSettings) -> str:
    """Describe the completed characters: '3 characters, 4 candidates each'."""
    many = count(len(sets.names), "character")
    return many if settings.count == 1 else f"{many}, {number(settings.count)} candidates each"


def _names(sets: GivenSets | None, candidates: int) -> tuple[str, ...]:
    """Return the names of the saved sets; () numbers the sets."""
    if sets is None or len(sets.names) == 1:
        return ()
    if candidates == 1:
        return sets.names
    return tuple(f"{name}/{candidate}" for name in sets.names for candidate in range(1, candidates + 1))


def _files_by_set(
    written: Sequence[Path], sprites: SpriteSet, cells: Cells, form: SpriteExport | None
) -> list[Sequence[Path]]:
    """Return the files of each set. Sets in one file share the file."""
    if form is not None and len(form.split(sprites)) % len(cells):
        return [written] * len(cells)
    share = len(written) // len(cells)
    return [written[start : start + share] for start in range(0, len(written), share)]


def _as_json(drawn: SetsDrawn, row: int, candidates: int, paths: Sequence[Path]) -> Mapping[str, Any]:
    """Return the description of a saved set for --json."""
    given = [cell for cell, is_given in zip(drawn.cell_names, drawn.given[row].tolist(), strict=True) if is_given]
    which = {"name": drawn.names[row], "candidate": row % candidates + 1, "given": given, "cells": drawn.cell_names}
    return {"type": "SetSaved", **which, "files": paths, "seed": drawn.seed, "model": drawn.model}
