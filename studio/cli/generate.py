"""The commands that use a trained model: generate, distil, predict, export."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from studio.cli.arguments import find_device, find_run, import_with, load_model, say_left_out
from studio.cli.edit import about_sources, add_edit_flags, draw, edit_settings, silhouette_of
from studio.cli.event_log import export_log
from studio.cli.flags import add_settings, given
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core import files
from studio.core.discovery import find_plugin
from studio.core.errors import UsageError
from studio.core.events import Classified, Distilled, Event, Exported, Notice, NumbersPredicted, SpritesGenerated
from studio.core.formatting import count, decimal, describe_agreement, describe_speedup, memory, number, percent
from studio.core.generators import run_to_end
from studio.core.shell import command_line
from studio.data.colour.quantizing import BAYER, NO_DITHER
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.options import options_for_prediction
from studio.data.palettes.files import load_palette
from studio.data.pixels import corner_tiles
from studio.engine.devices.types import GenerateSettings
from studio.engine.runs.analysis.event_log import FORMAT as TENSORBOARD
from studio.engine.runs.folder import EXPORTS_FOLDER, RunDir
from studio.exports.cards import provenance
from studio.exports.png import save_files
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.formats import sprite_export_for, sprite_exports

if TYPE_CHECKING:
    from studio.core.config import Config
    from studio.engine.models.model import TrainedModel
    from studio.exports.base import ModelExport

_MOST_ROWS = 200
_LOG_HELP = "Not the model but how it came about: curves, samples and settings, in a folder for TensorBoard."


def add_generate_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting of generating."""

    add_settings(parser, GenerateSettings, "what to draw", renamed={"class_name": "class"})
    add_edit_flags(parser)


def generate(args: argparse.Namespace) -> int:
    """Draw new sprites into a sheet or into files."""
    reporter = reporter_for(args)
    settings = edit_settings(args)
    choice = _colours(settings, args)
    if args.columns < 1:
        raise UsageError(f"--columns must be at least 1, not {args.columns}.")
    path = find_run(args.run_name)
    what = settings.class_name.rpartition("/")[2] or "sprites"
    out = args.out or Path(f"{files.safe_name(f'{path.resolve().name} {what}')} {settings.seed}.png")
    form = _form_of(out, args.format)
    model = load_model(path, args, find_device(args), reporter)
    as_drawn = settings.replace(true_pixels=False)
    drawn = follow(draw(model, args, as_drawn, reporter), reporter, SpritesGenerated)
    constraints = settings.constraints(silhouette_of(args))
    sprites = run_to_end(recolour_sprites(drawn.sprites, drawn.labels, model.style, choice, drawn.keep, constraints))
    made = dataclasses.replace(drawn, sprites=sprites)
    palette = choice.palette.name if choice.palette is not None else ""
    about = {**settings.to_json(), **about_sources(args), **({"palette": palette} if palette else {})}
    colours = choice.palette.visible() if choice.palette is not None else model.style.palette
    columns = corner_tiles.GRID_SIDE if settings.corner_tiles else args.columns  # so laid out, they meet
    as_saved = as_set(made, model, about, columns, colours if settings.true_pixels else None)
    told = as_saved.about if args.texts else {}
    written = _save(dataclasses.replace(as_saved, is_animation=bool(args.between), about=told), out, form, reporter)
    reporter.record({"type": "FilesSaved", "paths": written})
    where = written[0] if len(written) < 3 and _is_sheet(out) else out
    of = f", in the colours of {palette}" if palette else ""
    reporter.say(f"{count(len(made.sprites), 'new sprite')} of {made.model}{of}: {where}")
    return 0


def _colours(settings: GenerateSettings, args: argparse.Namespace) -> ColourMode:
    """What becomes of the drawn sprites. Raises BadInputError for a palette, UsageError for flags that don't fit."""
    if args.palette is not None and not settings.true_pixels:
        raise UsageError("Only true pixels come in a palette.", "Leave out --no-true-pixels or --palette.")
    if args.dither and args.palette is None:
        raise UsageError("--dither makes up the colours of a palette.", "Name one with --palette.")
    palette = load_palette(args.palette) if args.palette is not None else None
    return ColourMode(settings.true_pixels, palette, BAYER if args.dither else NO_DITHER)


def _form_of(out: Path, name: str) -> SpriteExport | None:
    """The format that was named, or that the ending of `out` says; None for a folder of files. Raises UsageError."""
    if name:
        return find_plugin(sprite_exports(), name, "format for sprites")
    return sprite_export_for(out) if _is_sheet(out) else None


def as_set(
    made: SpritesGenerated,
    model: TrainedModel,
    about: Mapping[str, Any],
    columns: int,
    palette: NDArray[np.uint8] | None = None,
) -> SpriteSet:
    """New sprites as they are saved, with what made them. palette: uint8 [K, 3], the one they are drawn in."""
    from studio.engine.models.provenance import provenance_json

    return SpriteSet(
        made.sprites,
        made.titles,
        classes=[model.spec.class_names[label] if label >= 0 else "" for label in made.labels],
        palette=palette,
        about={"model": made.model, "recipe": model.recipe.name, **about, **provenance([provenance_json(model)])},
        columns=columns,
    )


def _save(sprites: SpriteSet, out: Path, form: SpriteExport | None, reporter: Reporter) -> list[Path]:
    """Save new sprites in a format, or as files in a folder."""
    if form is not None:
        written = form.write(sprites, out)
        for note in form.notes(sprites):
            reporter.show(Notice("info", note))
        return written
    digits = len(str(len(sprites)))
    stems = [label.rpartition("/")[2] or "sprite" for label in sprites.classes]
    names = sprites.names or [f"{stem} {place:0{digits}d}" for place, stem in enumerate(stems, 1)]
    return save_files(out, sprites.sprites, names, sprites.about)


def _is_sheet(out: Path) -> bool:
    """Whether a sheet is to be saved as `out`; else files go into that folder, which may have a dot in its name."""
    return bool(out.suffix) and not out.is_dir()


def add_distil_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting of distilling."""
    from studio.engine.sampling.distil import DistilSettings

    add_settings(parser, DistilSettings, "how to teach")


def distil(args: argparse.Namespace) -> int:
    """Teach a second network to draw in few looks, and keep it with the checkpoint."""
    from studio.engine.sampling.distil import DistilSettings, distil

    reporter, path = reporter_for(args), find_run(args.run_name)
    settings = DistilSettings(**given(args, DistilSettings))  # type: ignore[arg-type]
    found = follow(distil(path, args.checkpoint, find_device(args), settings), reporter, Distilled)
    reporter.say(describe_speedup(found.sprites_per_s, found.usual_sprites_per_s, found.alike))
    reporter.say(command_line("studio", "generate", args.run_name, "--quick"))
    return 0


def predict(args: argparse.Namespace) -> int:
    """Print the class or the numbers of every file, or the reason why a file can't be read."""
    from studio.engine.sampling.generate import predict

    reporter = reporter_for(args)
    path = find_run(args.run_name)
    model = load_model(path, args, find_device(args), reporter)
    options = options_for_prediction(model.spec.size, RunDir(path).record().data_origin)
    read = import_with(args.paths, options, reporter)
    for item in read.quarantine:
        reporter.record({"type": "FileLeftOut", "name": item.name, "reason": item.reason})
    sprites = read.sprites
    found = follow(predict(model, sprites.rgba), reporter, Event)
    if isinstance(found, NumbersPredicted):
        columns, rows = (
            ("sprite", *(f">{name}" for name in found.names)),
            list(_numbers(sprites.names, found, reporter)),
        )
    else:
        assert isinstance(found, Classified)
        columns = ("sprite", "class", "or", "or")[: 1 + min(3, len(found.class_names))]
        rows = list(_classes(sprites.names, found, reporter))
    reporter.table(columns, rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        reporter.say(f"and {number(len(rows) - _MOST_ROWS)} more; --json prints all")
    say_left_out(read, reporter)
    for item in read.quarantine[:_MOST_ROWS]:
        reporter.say(f"  {item.name}: {item.reason}")
    return 0


def _classes(names: Sequence[str], found: Classified, reporter: Reporter) -> Iterator[Sequence[str]]:
    """A row for each sprite with its most probable classes, which are recorded."""
    for name, row in zip(names, found.probabilities, strict=True):
        best = np.argsort(-row, kind="stable")[:3]
        guesses = [(found.class_names[index], float(row[index])) for index in best]
        reporter.record({"type": "SpriteClassified", "name": name, "classes": dict(guesses)})
        yield (name, *(f"{label} {percent(share)}" for label, share in guesses))


def _numbers(names: Sequence[str], found: NumbersPredicted, reporter: Reporter) -> Iterator[Sequence[str]]:
    """A row for each sprite with its numbers, which are recorded."""
    for name, row in zip(names, found.numbers.tolist(), strict=True):
        reporter.record({"type": "NumbersOfSprite", "name": name, "numbers": dict(zip(found.names, row, strict=True))})
        yield (name, *map(decimal, row))


def add_export_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add a flag for every setting of the format that `words` name. Raises UsageError."""
    first_look = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first_look.add_argument("--format", nargs="?")
    first_look.add_argument("--out", nargs="?", type=Path)
    named = first_look.parse_known_args(words)[0]
    if named.format is None and named.out is None:  # formats need torch, for which --help does not wait
        parser.epilog = (
            "formats have settings of their own: studio export --format safetensors --help lists all formats"
        )
        return
    if named.format == TENSORBOARD:
        return  # it has no settings
    from studio.engine import catalog

    form = _format(named.format, named.out)
    add_settings(parser, form.Config, f"settings of {form.name}")
    helps = {other.name: other.help for other in catalog.model_exports().values()} | {TENSORBOARD: _LOG_HELP}
    formats = "\n".join(f"  {name:12}{about}" for name, about in helps.items())
    parser.epilog = f"formats (each has its own settings: --format NAME --help):\n{formats}"


def export(args: argparse.Namespace) -> int:
    """Write a model in another format, and check it; or the history of a run for TensorBoard."""
    if args.format == TENSORBOARD:
        return export_log(args)
    from studio.engine.devices import detection

    reporter = reporter_for(args)
    path = find_run(args.run_name)
    form = _format(args.format, args.out)
    config = form.Config(**given(args, form.Config))
    target = args.out
    if target is None:
        target = path / EXPORTS_FOLDER / f"{files.safe_name(RunDir(path).record().name)}{form.suffix}"
    # A probe finds out the fastest precision. Exports are fp32 whatever that is: marked as probed, the CPU gets none.
    cpu = dataclasses.replace(detection.find_device("cpu"), probed=True)
    export_model(load_model(path, args, cpu, reporter), form.name, target, reporter, config)
    return 0


def export_model(
    model: TrainedModel, format_name: str, target: Path, reporter: Reporter, config: Config | None = None
) -> Exported:
    """Export one model and say what was written, how exact it is and how to load it."""
    from studio.engine.models.exporting import export

    done = follow(export(model, format_name, target, config), reporter, Exported)
    written = " and ".join(str(path) for path in done.paths)
    same = describe_agreement(done.difference)
    reporter.say(f"Wrote {written} ({memory(done.size_bytes)})")
    reporter.say(f"Read back and compared with the model at step {model.step:,}: {same}.")
    if done.card:
        reporter.say(f"Its card, which says where it comes from: {done.card[1]}")
    for language, snippet in done.snippets.items():
        reporter.say(f"\nUse it in {language}:\n\n{snippet}")
    return done


def _format(name: str | None, out: Path | None) -> ModelExport:
    """The format of that name, else the one that a file name asks for, else the first. Raises UsageError."""
    from studio.engine import catalog

    forms = catalog.model_exports()
    if name:
        return find_plugin(forms, name, "export format")
    if out is None or not out.suffix or out.is_dir():
        return next(iter(forms.values()))
    for form in forms.values():
        if form.suffix == out.suffix.lower():
            return form
    endings = ", ".join(form.suffix for form in forms.values())
    raise UsageError(f"There is no export format for {out.suffix}.", f"Let --out end in one of: {endings}.")
