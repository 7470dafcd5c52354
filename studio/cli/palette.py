"""`studio palette`: show, convert or extract a palette, or recolour sprites with a palette."""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.cli.flags import typed_settings
from studio.cli.inputs import print_excluded, read_sprites
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core import files
from studio.core.errors import BadInputError, UsageError
from studio.core.formatting import count, number
from studio.data.colour.palette import Palette, dominant_colours
from studio.data.colour.quantizing import BAYER, NO_DITHER
from studio.data.options import ImportOptions
from studio.data.palettes.files import format_for, has_palette_suffix, load_palette, save_palette
from studio.data.palettes.text import format_hex
from studio.data.reading.finding import resolve_roots, title_of_roots

_DEFAULT_COLOURS, _MOST_COLOURS = 32, 256  # colours
_COLOURS_PER_ROW = 8  # colours
_MOST_FILES = 10  # listed as excluded


def palette(args: argparse.Namespace) -> int:
    """Show, convert or extract a palette, or recolour files with --snap. Raises UsageError for a conflict of flags."""
    if args.dither and args.snap is None:
        raise UsageError("--dither needs --snap.", "Add a palette: --snap warm.gpl.")
    if args.colours is not None and not args.extract:
        raise UsageError("--colours needs --extract.", "Add --extract.")
    if args.colours is not None and not 1 <= args.colours <= _MOST_COLOURS:
        raise UsageError(f"--colours must be from 1 to {_MOST_COLOURS}, not {args.colours}.")
    reporter = reporter_for(args)
    if args.snap is not None:
        _snap(args, reporter)
        return 0
    if args.out is not None:
        format_for(args.out)  # fails on a wrong suffix before the work starts
    found = _extract(args, reporter) if args.extract else _load(args.paths)
    _show(found, reporter)
    if args.out is not None:
        written = save_palette(args.out, found)
        reporter.write_json({"type": "FilesSaved", "paths": [written]})
        reporter.print(f"\nSaved as {written}")
    return 0


def _load(paths: list[Path]) -> Palette:
    if len(paths) > 1:
        raise UsageError("Only one palette can be shown.", "For sprites, add --extract or --snap FILE.")
    if paths[0].is_dir():
        raise UsageError(f"{paths[0]} is a folder.", "For its sprites, add --extract or --snap FILE.")
    try:
        return load_palette(paths[0])
    except BadInputError as error:
        if has_palette_suffix(paths[0]):
            raise
        raise BadInputError(error.title, f"{error.hint} To extract the colours of images, add --extract.") from None


def _extract(args: argparse.Namespace, reporter: Reporter) -> Palette:
    read = read_sprites(args, args.paths, reporter)
    print_excluded(read, reporter)
    sprites = read.sprites
    colours = dominant_colours(sprites.rgba, args.colours or _DEFAULT_COLOURS)
    if not len(colours):
        raise BadInputError(f"{sprites.title!r} has no opaque pixels.", "Palettes contain opaque colours only.")
    return Palette(colours, args.out.stem if args.out else sprites.title)


def _show(found: Palette, reporter: Reporter) -> None:
    colours = format_hex(found)
    names = found.colour_names
    reporter.write_json({"type": "Palette", "name": found.name, "colours": colours, "colour_names": names})
    reporter.print(f"{found.name}: {count(len(found), 'colour')}\n")
    if names:
        reporter.print_table(("colour", "name"), list(zip(colours, names, strict=True)))
        return
    for start in range(0, len(colours), _COLOURS_PER_ROW):
        reporter.print("  ".join(f"{colour:8}" for colour in colours[start : start + _COLOURS_PER_ROW]).rstrip())


def _snap(args: argparse.Namespace, reporter: Reporter) -> None:
    """Write copies of the sprite files, recoloured with the palette of --snap. Raises UsageError, BadInputError."""
    from studio.engine.sampling.snapped_files import FilesSnapped, snap_files

    if args.out is not None and has_palette_suffix(args.out):
        raise UsageError(f"--snap writes a folder of sprites, not {args.out.name!r}.", "Use a folder for --out.")
    if options := sorted(typed_settings(args, ImportOptions)):
        flag = f"--{options[0].replace('_', '-')}"
        raise UsageError(f"--snap copies files without importing them: {flag} has no effect.", f"Remove {flag}.")
    wanted, roots = load_palette(args.snap), resolve_roots(args.paths)
    out = files.free_path(args.out or Path(files.output_name(f"{title_of_roots(roots)} in {wanted.name}")))
    snapping = snap_files(args.paths, wanted, BAYER if args.dither else NO_DITHER, out)
    done = run_job(snapping, reporter, FilesSnapped)
    reporter.write_json({"type": "FilesSaved", "paths": list(done.paths)})
    reporter.print(f"{count(done.pictures, 'file')} in the colours of {wanted.name}: {out}")
    for item in done.left_out[:_MOST_FILES]:
        reporter.print(f"Excluded {item.name}: {item.reason}")
    if len(done.left_out) > _MOST_FILES:
        reporter.print(f"and {number(len(done.left_out) - _MOST_FILES)} more")
