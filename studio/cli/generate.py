"""`studio generate`: new sprites in files. `studio distil`: a network that draws faster."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from studio.cli.complete import NEW_SET_SETTINGS, draw_new_sets
from studio.cli.edit import add_edit_flags, draw, edit_settings, silhouette_of, source_metadata
from studio.cli.flags import add_setting_flags, typed_settings
from studio.cli.inputs import find_device, find_run, load_model
from studio.cli.reporting import reporter_for, run_job
from studio.cli.saving import format_for, names_file, save_sprites
from studio.core import files
from studio.core.errors import UsageError
from studio.core.events import Distilled, SpritesGenerated
from studio.core.formatting import count, describe_speedup
from studio.core.generators import run_to_end
from studio.core.shell import command_line
from studio.data.colour.quantizing import BAYER, NO_DITHER
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.palettes.files import load_palette
from studio.engine.runs.folder import RunDir
from studio.engine.sampling.settings import CompleteSettings, GenerateSettings
from studio.exports.model_cards import provenance_metadata
from studio.exports.sprites.base import SpriteSet

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel


_TILE_FLAGS = {  # by flag: the value of the setting, and the help
    "tiles": {
        "corner-tiles": ("corner", "Draw a tile for each combination of terrains at its corners."),
        "blob-tiles": ("blob", "Draw the 47 tiles of a terrain on another one, by edges and corners, and the ground."),
        "dual-grid": ("dual-grid", "Draw corner tiles for a grid that is shifted by half a tile."),
    }
}


def add_generate_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add a flag for every setting of generating, and the flags that start from sprites."""
    names = {"class_name": "class", "attributes": "attribute"}
    add_setting_flags(
        parser, GenerateSettings, "generation", names, repeated=("attributes",), one_flag_each=_TILE_FLAGS
    )
    add_setting_flags(parser, CompleteSettings, "new characters, with a model of sets", only=NEW_SET_SETTINGS)
    add_edit_flags(parser)


def generate(args: argparse.Namespace) -> int:
    """Draw new sprites and save them as a sheet, an animation or single files."""
    if args.columns is not None and args.columns < 1:
        raise UsageError(f"--columns must be at least 1, not {args.columns}.")
    reporter, path = reporter_for(args), find_run(args.run_name)
    if RunDir(path).record().cells:
        return draw_new_sets(args, path, reporter)
    if for_sets := typed_settings(args, CompleteSettings).keys() & {*NEW_SET_SETTINGS}:
        raise UsageError(f"--{min(for_sets)} needs a model of sets.", f"Remove --{min(for_sets)}.")
    settings = edit_settings(args)
    choice = _colour_choice(settings, args)
    values = [part.rpartition("=")[2] for part in settings.attributes.split(",")]  # of the attributes
    what = " ".join(filter(None, (*values, settings.class_name.rpartition("/")[2]))) or "sprites"
    out = args.out or Path(f"{files.output_name(f'{path.resolve().name} {what}')}-{settings.seed}.png")
    spec = settings.tile_set_spec()
    form = format_for(out, args.format, is_tile_set=spec is not None)
    model = load_model(path, args, find_device(args), reporter)
    as_drawn = settings.replace(true_pixels=False)
    drawn = run_job(draw(model, args, as_drawn, reporter), reporter, SpritesGenerated)
    constraints = settings.constraints(silhouette_of(args))
    sprites = run_to_end(recolour_sprites(drawn.sprites, drawn.labels, model.style, choice, drawn.keep, constraints))
    made = dataclasses.replace(drawn, sprites=sprites)
    palette = choice.palette.name if choice.palette is not None else ""
    about = {**settings.to_json(), **source_metadata(args), **({"palette": palette} if palette else {})}
    colours = choice.palette.visible() if choice.palette is not None else model.style.palette
    as_saved = to_sprite_set(made, model, about, args.columns, colours if settings.true_pixels else None)
    tile_set = None if spec is None else spec.tile_set(sprites)
    metadata = as_saved.about if args.texts else {}
    as_saved = dataclasses.replace(as_saved, is_animation=bool(args.between), about=metadata, tile_set=tile_set)
    written = save_sprites(as_saved, out, form, reporter)
    where = written[0] if len(written) < 3 and names_file(out) else out
    of = f", in the colours of {palette}" if palette else ""
    reporter.print(f"Saved {count(len(made.sprites), 'new sprite')} of {made.model}{of}: {where}")
    return 0


def _colour_choice(settings: GenerateSettings, args: argparse.Namespace) -> ColourMode:
    """Return how to recolour the drawn sprites. Raises BadInputError, and UsageError for conflicts."""
    if args.palette is not None and not settings.true_pixels:
        raise UsageError("--palette needs true pixels.", "Remove --no-true-pixels or --palette.")
    if args.dither and args.palette is None:
        raise UsageError("--dither needs a palette.", "Add --palette FILE.")
    palette = load_palette(args.palette) if args.palette is not None else None
    return ColourMode(settings.true_pixels, palette, BAYER if args.dither else NO_DITHER)


def to_sprite_set(
    made: SpritesGenerated, model: TrainedModel, about: Mapping[str, Any], columns: int | None,
    palette: NDArray[np.uint8] | None = None,
) -> SpriteSet:  # fmt: skip
    """Return generated sprites with their names, classes and metadata, for saving. palette: uint8 [K, 3]."""
    from studio.engine.models.provenance import provenance_json

    known = {"model": made.model, "recipe": model.recipe.name}
    about = {**known, **about, **provenance_metadata([provenance_json(model)])}
    classes = [model.spec.class_names[label] if label >= 0 else "" for label in made.labels]
    return SpriteSet(made.sprites, made.titles, classes, palette, about=about, columns=columns)


def distil(args: argparse.Namespace) -> int:
    """Distil a generator into a few-step network, stored with its checkpoint."""
    from studio.engine.sampling.distil import DistilSettings, distil

    reporter, path = reporter_for(args), find_run(args.run_name)
    settings = DistilSettings(**typed_settings(args, DistilSettings))  # type: ignore[arg-type]
    found = run_job(distil(path, args.checkpoint, find_device(args), settings), reporter, Distilled)
    reporter.print(describe_speedup(found.sprites_per_s, found.usual_sprites_per_s, found.alike))
    reporter.print(command_line("studio", "generate", args.run_name, "--quick"))
    return 0
