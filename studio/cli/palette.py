"""`studio palette`: show, convert or extract a palette or its ramps, or recolour sprites with a palette or ramps."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from studio.cli.flags import typed_settings
from studio.cli.inputs import print_excluded, read_sprites
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core import files
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError, UsageError
from studio.core.formatting import count, number
from studio.data.colour.palette import Palette, dominant_colours
from studio.data.colour.quantizing import BAYER, NO_DITHER, map_to_palette
from studio.data.colour.ramp_exchange import RampExchange
from studio.data.colour.ramps import MOST_RAMP_COLOURS, Ramp, Ramps, dark_to_light, find_ramps, ramp_named
from studio.data.options import ImportOptions
from studio.data.palettes.files import format_for, has_palette_suffix, load_palette, save_palette
from studio.data.palettes.text import format_hex
from studio.data.reading.finding import resolve_roots, title_of_roots

_DEFAULT_COLOURS, _MOST_COLOURS = 32, 256  # colours
_COLOURS_PER_ROW = 8  # colours
_MOST_FILES = 10  # listed as excluded
_FOR_SPRITES = "For sprites, add --extract, --ramps, --ramp or --snap."


def palette(args: argparse.Namespace) -> int:
    """Show, convert or extract a palette or its ramps, or recolour files with --snap or --ramp.

    Raises UsageError for a conflict of flags.
    """
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
    if args.ramp:
        _exchange_ramps(args, reporter)
        return 0
    if args.out is not None:
        format_for(args.out)  # fails on a wrong suffix before the work starts
    if args.ramps:
        found = _show_ramps(args, reporter)
    else:
        found = _extract(args, reporter) if args.extract else _load(args.paths)
        _show(found, reporter)
    if args.out is not None:
        written = save_palette(args.out, found)
        reporter.write_json({"type": "FilesSaved", "paths": [written]})
        reporter.print(f"\nSaved as {written}")
    return 0


def _load(paths: list[Path]) -> Palette:
    if len(paths) > 1:
        raise UsageError("Only one palette can be shown.", _FOR_SPRITES)
    if paths[0].is_dir():
        raise UsageError(f"{paths[0]} is a folder.", _FOR_SPRITES)
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


def _show_ramps(args: argparse.Namespace, reporter: Reporter) -> Palette:
    """Show the ramps of a palette file or of sprite files; return their colours, ramp by ramp, named 'red 1'."""
    is_palette = len(args.paths) == 1 and has_palette_suffix(args.paths[0]) and args.paths[0].suffix.lower() != ".png"
    if is_palette:
        palette = load_palette(args.paths[0])
        title, ramps = palette.name, find_ramps(palette.visible())
    else:
        title, ramps = _ramps_of_files(args, "--ramps", reporter)
    rows = [(ramp.name, [f"{colour.tobytes().hex()}" for colour in ramp.colours]) for ramp in ramps]
    reporter.write_json({"type": "Ramps", "ramps": [{"name": name, "colours": codes} for name, codes in rows]})
    reporter.print(f"{title}: {count(len(ramps), 'ramp')}\n")
    reporter.print_table(("ramp", "colours, dark to light"), [(name, " ".join(codes)) for name, codes in rows])
    colours = np.concatenate([ramp.colours for ramp in ramps])
    names = tuple(f"{name} {step}" for name, codes in rows for step in range(1, len(codes) + 1))
    return Palette(np.pad(colours, ((0, 0), (0, 1)), constant_values=255), title, names)


def _ramps_of_files(args: argparse.Namespace, flag: str, reporter: Reporter) -> tuple[str, Ramps]:
    """Return the title of the sprite files and the ramps of their colours. Raises UsageError, BadInputError."""
    from studio.engine.sampling.recoloured_files import ColoursFound, find_file_colours

    _check_copying(args, flag)
    found = run_job(find_file_colours(args.paths, MOST_RAMP_COLOURS), reporter, ColoursFound)
    return title_of_roots(resolve_roots(args.paths)), find_ramps(found.colours[:, :3])


def _exchange_ramps(args: argparse.Namespace, reporter: Reporter) -> None:
    """Write copies of the sprite files with exchanged ramps. Raises UsageError, BadInputError."""
    title, ramps = _ramps_of_files(args, "--ramp", reporter)
    targets = parse_exchanges(args.ramp, ramps, title)
    names = ", ".join(f"{old} in {new.name}" for old, new in targets.items())
    _write_copies(args, RampExchange(ramps, targets), names, reporter)


def parse_exchanges(texts: list[str], ramps: Ramps, title: str) -> dict[str, Ramp]:
    """Read exchanges like 'red=blue', 'red=warm.gpl' or 'red=warm.gpl#blue': the new ramps by old name.

    A file without '#' is one ramp. title: of the sprites. Raises UsageError and BadInputError.
    """
    targets: dict[str, Ramp] = {}
    for text in texts:
        old, equals, new = (part.strip() for part in text.partition("="))
        if not (old and equals and new):
            raise UsageError(f"--ramp {text!r} is no exchange.", "Write OLD=NEW: --ramp red=blue or red=warm.gpl#blue.")
        source = ramp_named(ramps, old, title)
        if source.name in targets:
            raise UsageError(f"--ramp exchanges {source.name!r} twice.", "Give each ramp one new ramp.")
        path, hash_sign, name = new.rpartition("#") if "#" in new else (new, "", "")
        is_name = not hash_sign and any(ramp.name == new.lower() for ramp in ramps)
        if is_name or not Path(path).suffix:
            targets[source.name] = ramp_named(ramps, new, title)
        else:
            palette = load_palette(Path(path))
            colours = palette.visible()
            whole = Ramp(palette.name, dark_to_light(colours))
            targets[source.name] = ramp_named(find_ramps(colours), name, palette.name) if hash_sign else whole
    return targets


def _snap(args: argparse.Namespace, reporter: Reporter) -> None:
    """Write copies of the sprite files, recoloured with the palette of --snap. Raises UsageError, BadInputError."""
    _check_copying(args, "--snap")
    wanted = load_palette(args.snap)
    wanted.visible()
    snap = partial(map_to_palette, palette=wanted, dither=BAYER if args.dither else NO_DITHER)
    _write_copies(args, snap, f"in the colours of {wanted.name}", reporter)


def _check_copying(args: argparse.Namespace, flag: str) -> None:
    """Raise UsageError for flags that don't fit the reading of files without an import. flag: the flag that reads."""
    if flag != "--ramps" and args.out is not None and has_palette_suffix(args.out):
        raise UsageError(f"{flag} writes a folder of sprites, not {args.out.name!r}.", "Use a folder for --out.")
    if options := sorted(typed_settings(args, ImportOptions)):
        unused = f"--{options[0].replace('_', '-')}"
        raise UsageError(f"{flag} reads files without importing them: {unused} has no effect.", f"Remove {unused}.")


def _write_copies(args: argparse.Namespace, recolour: Callable[[Rgba], Rgba], how: str, reporter: Reporter) -> None:
    """Write recoloured copies of the sprite files. how: the change, for users: 'in the colours of Warm'."""
    from studio.engine.sampling.recoloured_files import FilesRecoloured, recolour_files

    default = f"{title_of_roots(resolve_roots(args.paths))} {how.replace('the colours of ', '')}"
    out = files.free_path(args.out or Path(files.output_name(default)))
    done = run_job(recolour_files(args.paths, recolour, out), reporter, FilesRecoloured)
    reporter.write_json({"type": "FilesSaved", "paths": list(done.paths)})
    reporter.print(f"{count(done.pictures, 'file')} {how}: {out}")
    for item in done.left_out[:_MOST_FILES]:
        reporter.print(f"Excluded {item.name}: {item.reason}")
    if len(done.left_out) > _MOST_FILES:
        reporter.print(f"and {number(len(done.left_out) - _MOST_FILES)} more")
