"""The flags of 'generate' that begin with sprites: variations, filling in, in-betweens, more like several."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from studio.cli.flags import given
from studio.cli.reporting import Reporter
from studio.core.errors import UsageError
from studio.core.events import Events
from studio.data.importing.single_sprite import fit, read_mask, read_picture, read_silhouette
from studio.engine.devices.types import MIN_LIKED, GenerateSettings

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel
    from studio.engine.sampling.edit import EditInput

_USUAL_COUNTS = {"start": 16, "like": 16, "between": 6}
_ENDS = 2


def add_edit_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name sprites to begin with."""
    group = parser.add_argument_group("what to begin with, instead of noise")
    kinds = group.add_mutually_exclusive_group()
    about = "draw variations of these sprites, in turn, by --strength"
    kinds.add_argument("--from", dest="start", nargs="+", type=Path, metavar="FILE", help=about)
    about = "draw --count sprites that lead from one to another (default: 6)"
    kinds.add_argument("--between", nargs=_ENDS, type=Path, metavar="FILE", help=about)
    about = "draw sprites that have something of two of these each"
    kinds.add_argument("--like", nargs="+", type=Path, metavar="FILE", help=about)
    about = "with --from: a picture in which those pixels are white that stay; all others are drawn to fit"
    group.add_argument("--keep", type=Path, metavar="FILE", help=about)
    about = (
        "the shape of all sprites: the alpha of this picture or, if nothing of it can be seen through, what is white"
    )
    group.add_argument("--silhouette", type=Path, metavar="FILE", help=about)
    about = f"with --best-of: sprites that you like, {MIN_LIKED} or more"
    group.add_argument("--liked", nargs="+", type=Path, metavar="FILE", help=about)
    about = "put sprites of another size on the model's canvas, by whole pixels"
    group.add_argument("--fit", action="store_true", help=about)


def silhouette_of(args: argparse.Namespace) -> NDArray[np.uint8] | None:
    """The alpha that all sprites are to have, uint8 [H, W]; None for any. Raises BadInputError."""
    return None if args.silhouette is None else read_silhouette(args.silhouette)


def _sources_of(args: argparse.Namespace) -> Sequence[Path]:
    """The files that are begun with; none where noise is."""
    return args.start or args.between or args.like or ()


def edit_settings(args: argparse.Namespace) -> GenerateSettings:
    """What was asked for, with the count that is usual for it. Raises UsageError for flags that don't fit together."""
    asked = given(args, GenerateSettings)
    kind = next((kind for kind in _USUAL_COUNTS if getattr(args, kind)), "")
    if "strength" in asked and kind != "start":
        raise UsageError("--strength says how much of a sprite may change.", "Name one with --from.")
    if args.keep is not None and len(args.start or ()) != 1:
        raise UsageError("--keep says which pixels of a sprite stay.", "Name one with --from.")
    if kind and "quick" in asked:
        raise UsageError("--quick draws from noise alone.", "Leave it out.")
    if args.silhouette is not None and kind in ("like", "between"):
        raise UsageError("What lies between sprites has no silhouette of its own.", "Leave out --silhouette.")
    if args.liked and "best_of" not in asked:
        raise UsageError("--liked says which of many to take.", "Say of how many with --best-of.")
    if kind and "best_of" in asked:
        raise UsageError("--best-of is for sprites from noise.", "Leave it out.")
    if kind:
        asked = {"count": _USUAL_COUNTS[kind], **asked}
    if args.keep is not None:
        asked = {"strength": 1.0, **asked}
    return GenerateSettings(**asked)  # type: ignore[arg-type]


def draw(model: TrainedModel, args: argparse.Namespace, settings: GenerateSettings, reporter: Reporter) -> Events:
    """Draw from noise, or what begins with the sprites that were named. Raises BadInputError, UsageError."""
    from studio.engine.quality.rerank import best_of
    from studio.engine.sampling.edit import draw_similar, redraw, tween
    from studio.engine.sampling.generate import generate

    silhouette = silhouette_of(args)
    if settings.best_of > 1:
        return best_of(model, settings, _read(args.liked or (), model, reporter, fitting=args.fit), silhouette)
    if not _sources_of(args):
        return generate(model, settings, silhouette)
    source = _read(_sources_of(args), model, reporter, fitting=args.fit)
    if args.between:
        return tween(model, settings, source)
    if args.like:
        return draw_similar(model, settings, source)
    return redraw(model, settings, source, None if args.keep is None else read_mask(args.keep), silhouette)


def about_sources(args: argparse.Namespace) -> Mapping[str, str]:
    """What is kept in the files, of what they began with."""
    names = {
        "from": args.start, "between": args.between, "like": args.like, "keep": args.keep and [args.keep],
        "silhouette": args.silhouette and [args.silhouette], "liked": args.liked,
    }  # fmt: skip
    return {kind: ", ".join(path.name for path in paths) for kind, paths in names.items() if paths}


def _read(paths: Sequence[Path], model: TrainedModel, reporter: Reporter, *, fitting: bool) -> EditInput:
    from studio.engine.sampling.edit import EditInput

    sprites, side = [], model.spec.size
    for path in paths:
        fitted = fit(read_picture(path), side)
        if fitted.how and not fitting:
            title = f"{path.name} doesn't fit the model's {side} x {side} pixels."
            raise UsageError(title, f"With --fit it is put there: {fitted.how}.")
        if fitted.how:
            reporter.say(f"{path.name}: {fitted.how}.")
        sprites.append(fitted.rgba)
    drawn = np.stack(sprites) if sprites else np.zeros((0, side, side, 4), np.uint8)
    return EditInput(drawn, np.full(len(sprites), -1))
