"""The flags of `studio generate` that start from sprites: variations, inpainting, tweens and similar sprites."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from studio.cli.flags import typed_settings
from studio.cli.reporting import Reporter
from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Events
from studio.data.colour.constraints import NONE
from studio.data.importing.single_sprite import fit_to_canvas, load_frames, load_image, load_mask, load_silhouette
from studio.engine.sampling.settings import MIN_LIKED, GenerateSettings

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel
    from studio.engine.sampling.edit import EditInput

_DEFAULT_COUNTS = {"start": 16, "like": 16, "between": 6}


def add_edit_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name sprites to start from."""
    group = parser.add_argument_group("start from sprites instead of noise")
    kinds = group.add_mutually_exclusive_group()
    about = "draw variations of these sprites; --strength sets the amount of change"
    kinds.add_argument("--from", dest="start", nargs="+", type=Path, metavar="FILE", help=about)
    about = "tween: draw --count sprites between two sprites (default: 6)"
    kinds.add_argument("--between", nargs=2, type=Path, metavar="FILE", help=about)
    about = "draw similar sprites: mixes of two of these sprites"
    kinds.add_argument("--like", nargs="+", type=Path, metavar="FILE", help=about)
    about = "with --from: inpainting mask; white pixels stay, all others are redrawn"
    group.add_argument("--keep", type=Path, metavar="FILE", help=about)
    about = "shape of the sprites: the alpha of an image, or the white pixels of an opaque image"
    group.add_argument("--silhouette", type=Path, metavar="FILE", help=about)
    about = f"with --best-of: sprites you like, {MIN_LIKED} or more"
    group.add_argument("--liked", nargs="+", type=Path, metavar="FILE", help=about)
    about = "with a tile set: a sheet as the studio saves it; its tiles stay, fully transparent tiles are drawn"
    group.add_argument("--given", type=Path, metavar="FILE", help=about)
    about = "pad, crop or scale sprites of another size to the model's canvas"
    group.add_argument("--fit", action="store_true", help=about)


def silhouette_of(args: argparse.Namespace) -> NDArray[np.uint8] | None:
    """Load the alpha of --silhouette, uint8 [H, W]; None without the flag. Raises BadInputError."""
    return None if args.silhouette is None else load_silhouette(args.silhouette)


def edit_settings(args: argparse.Namespace) -> GenerateSettings:
    """Return the typed settings of `studio generate`, with defaults for edits. Raises UsageError for conflicts."""
    typed = typed_settings(args, GenerateSettings)
    if "terrains" in typed:
        typed = {"tiles": "corner", **typed}
    kind = next((kind for kind in _DEFAULT_COUNTS if getattr(args, kind)), "")
    if "strength" in typed and kind != "start":
        raise UsageError("--strength needs a sprite to change.", "Add --from FILE.")
    if args.keep is not None and len(args.start or ()) != 1:
        raise UsageError("--keep needs exactly one sprite to redraw.", "Add --from FILE.")
    if kind and "quick" in typed:
        raise UsageError("--quick can't start from sprites.", "Remove --quick.")
    if args.silhouette is not None and kind in ("like", "between"):
        raise UsageError("--silhouette can't be combined with --like or --between.", "Remove --silhouette.")
    if args.liked and "best_of" not in typed:
        raise UsageError("--liked needs --best-of.", "Add --best-of N.")
    if kind and "best_of" in typed:
        raise UsageError("--best-of can't start from sprites.", "Remove --best-of.")
    if args.silhouette is not None and typed.get("tiles", NONE) != NONE:
        raise UsageError("A tile set can't have a silhouette.", "Remove --silhouette.")
    if "variants" in typed and typed.get("tiles", NONE) == NONE:
        raise UsageError("--variants needs a tile set.", "Add --corner-tiles, --blob-tiles or --dual-grid.")
    if args.given is not None and typed.get("tiles", NONE) == NONE:
        raise UsageError("--given needs a tile set.", "Add --corner-tiles, --blob-tiles or --dual-grid.")
    if kind:
        typed = {"count": _DEFAULT_COUNTS[kind], **typed}
    if args.keep is not None:
        typed = {"strength": 1.0, **typed}
    return GenerateSettings(**typed)  # type: ignore[arg-type]


def draw(model: TrainedModel, args: argparse.Namespace, settings: GenerateSettings, reporter: Reporter) -> Events:
    """Create the job that draws sprites, from noise or from files named by flags. Raises BadInputError, UsageError."""
    from studio.engine.quality.rerank import best_of
    from studio.engine.sampling.edit import draw_similar, redraw, tween
    from studio.engine.sampling.generate import generate
    from studio.engine.sampling.tile_sets import draw_tile_set

    silhouette, sources = silhouette_of(args), args.start or args.between or args.like or ()
    if settings.best_of > 1:
        return best_of(model, settings, _read_sprites(args.liked or (), model, reporter, fitting=args.fit), silhouette)
    if not sources and settings.tiles != NONE:
        return draw_tile_set(model, settings, None if args.given is None else _read_tiles(args.given, settings, model))
    if not sources:
        return generate(model, settings, silhouette)
    source = _read_sprites(sources, model, reporter, fitting=args.fit)
    if args.between:
        return tween(model, settings, source)
    if args.like:
        return draw_similar(model, settings, source)
    return redraw(model, settings, source, None if args.keep is None else load_mask(args.keep), silhouette)


def source_metadata(args: argparse.Namespace) -> Mapping[str, str]:
    """Return the names of the source files by flag, for the metadata of the saved sprites."""
    names = {
        "from": args.start, "between": args.between, "like": args.like, "keep": args.keep and [args.keep],
        "silhouette": args.silhouette and [args.silhouette], "liked": args.liked,
        "given": args.given and [args.given],
    }  # fmt: skip
    return {kind: ", ".join(path.name for path in paths) for kind, paths in names.items() if paths}


def _read_tiles(path: Path, settings: GenerateSettings, model: TrainedModel) -> Rgba:
    """Cut a sheet of a tile set that the user began: uint8 [N, S, S, 4]. Raises BadInputError, UsageError."""
    plan, picture = settings.tile_set_spec(), load_frames(path, whole=True)[0].rgba
    assert plan is not None
    return plan.layout(model.spec.size).cut_sheet(picture, path.name)


def _read_sprites(paths: Sequence[Path], model: TrainedModel, reporter: Reporter, *, fitting: bool) -> EditInput:
    """Read sprite files at the model's size. fitting: resize other sizes, which otherwise raise UsageError."""
    from studio.engine.sampling.edit import EditInput

    sprites, side = [], model.spec.size
    for path in paths:
        fitted = fit_to_canvas(load_image(path), side)
        if fitted.description and not fitting:
            title = f"{path.name} doesn't fit the model's {side} x {side} pixels."
            raise UsageError(title, f"--fit changes the size: {fitted.description}.")
        if fitted.description:
            reporter.print(f"{path.name}: {fitted.description}.")
        sprites.append(fitted.rgba)
    drawn = np.stack(sprites) if sprites else np.zeros((0, side, side, 4), np.uint8)
    return EditInput(drawn, np.full(len(sprites), -1))
