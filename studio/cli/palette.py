"""The command for palettes: show, save in another format, take from sprites, bring sprites into."""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.cli.arguments import read_sprites, say_left_out
from studio.cli.flags import given
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core import files
from studio.core.errors import BadInputError, UsageError
from studio.core.formatting import count, number
from studio.data.colour.palette import Palette, dominant_colours
from studio.data.colour.quantizing import BAYER, NO_DITHER
from studio.data.options import ImportOptions
from studio.data.palettes.files import format_for, has_palette_suffix, load_palette, save_palette
from studio.data.palettes.text import format_hex
from studio.data.reading.finding import resolve_roots, title_of_roots

_EXTRACTED, _MOST_EXTRACTED = 32, 256  # colours
_A_ROW = 8  # colours
_MOST_NAMED = 10  # files left out


def palette(args: argparse.Namespace) -> int:
    """Show, save, extract or snap, as the flags say."""
    if args.dither and args.snap is None:
        raise UsageError("--dither goes with --snap.", "Add the palette: --snap warm.gpl.")
    if args.colours is not None and not args.extract:
        raise UsageError("--colours goes with --extract.", "Add --extract.")
    if args.colours is not None and not 1 <= args.colours <= _MOST_EXTRACTED:
        raise UsageError(f"--colours must be from 1 to {_MOST_EXTRACTED}, not {args.colours}.")
    reporter = reporter_for(args)
    if args.snap is not None:
        _snap(args, reporter)
        return 0
    if args.out is not None:
        format_for(args.out)  # a wrong ending is said before the work, not after it
    found = _extracted(args, reporter) if args.extract else _loaded(args.paths)
    _show(found, reporter)
    if args.out is not None:
        written = save_palette(args.out, found)
        reporter.record({"type": "FilesSaved", "paths": [written]})
        reporter.say(f"\nSaved as {written}")
    return 0


def _loaded(paths: list[Path]) -> Palette:
    if len(paths) > 1:
        raise UsageError("One palette at a time.", "For sprites, add --extract or --snap FILE.")
    if paths[0].is_dir():
        raise UsageError(f"{paths[0]} is a folder.", "For its sprites, add --extract or --snap FILE.")
    try:
        return load_palette(paths[0])
    except BadInputError as error:
        if has_palette_suffix(paths[0]):
            raise
        raise BadInputError(error.title, f"{error.hint} For the colours of pictures, add --extract.") from None


def _extracted(args: argparse.Namespace, reporter: Reporter) -> Palette:
    read = read_sprites(args, args.paths, reporter)
    say_left_out(read, reporter)
    sprites = read.sprites
    colours = dominant_colours(sprites.rgba, args.colours or _EXTRACTED)
    if not len(colours):
        raise BadInputError(f"{sprites.title!r} has no opaque pixels.", "A palette is made of opaque colours.")
    return Palette(colours, args.out.stem if args.out else sprites.title)


def _show(found: Palette, reporter: Reporter) -> None:
    colours = format_hex(found)
    names = found.colour_names
    reporter.record({"type": "Palette", "name": found.name, "colours": colours, "colour_names": names})
    reporter.say(f"{found.name}: {count(len(found), 'colour')}\n")
    if names:
        reporter.table(("colour", "name"), list(zip(colours, names, strict=True)))
        return
    for start in range(0, len(colours), _A_ROW):
        reporter.say("  ".join(f"{colour:8}" for colour in colours[start : start + _A_ROW]).rstrip())


def _snap(args: argparse.Namespace, reporter: Reporter) -> None:
    from studio.engine.sampling.snapped_files import FilesSnapped, snap_files

    if args.out is not None and has_palette_suffix(args.out):
        raise UsageError(f"--snap writes a folder of sprites, not {args.out.name!r}.", "Let --out name a folder.")
    if options := sorted(given(args, ImportOptions)):
        flag = f"--{options[0].replace('_', '-')}"
        raise UsageError(f"--snap copies files as they are, and {flag} is for imported sprites.", f"Leave out {flag}.")
    wanted, roots = load_palette(args.snap), resolve_roots(args.paths)
    out = files.free_path(args.out or Path(files.safe_name(f"{title_of_roots(roots)} in {wanted.name}")))
    snapping = snap_files(args.paths, wanted, BAYER if args.dither else NO_DITHER, out)
    done = follow(snapping, reporter, FilesSnapped)
    reporter.record({"type": "FilesSaved", "paths": list(done.paths)})
    reporter.say(f"{count(done.pictures, 'file')} in the colours of {wanted.name}: {out}")
    for item in done.left_out[:_MOST_NAMED]:
        reporter.say(f"Left out: {item.name}: {item.reason}")
    if len(done.left_out) > _MOST_NAMED:
        reporter.say(f"and {number(len(done.left_out) - _MOST_NAMED)} more")
