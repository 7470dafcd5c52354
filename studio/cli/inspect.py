"""`studio inspect`: print the problems that the doctor finds in sprites, and flags to fix problems."""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from studio.cli.flags import setting_flags
from studio.cli.inputs import import_options, read_sprites
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core import paths
from studio.core.formatting import count, decimal, number
from studio.data.doctor.checks import run_checks
from studio.data.doctor.findings import Finding, SpritesChecked, list_findings
from studio.data.doctor.neighbours import Analysis
from studio.data.import_result import SpritesImported
from studio.data.sprites import Sprites

_MOST_CLASSES = 30
_MOST_NAMES = 5
_MOST_VALUES = 8
_LONGEST_VALUE = 80  # letters


def inspect(args: argparse.Namespace) -> int:
    """Import sprites, and print a summary and the problems found."""
    reporter = reporter_for(args)
    found, options = read_sprites(args, args.paths, reporter), import_options(args)
    examined = [run_job(run_checks(found.sprites, options, paths.cache()), reporter, SpritesChecked)]
    if args.learn:
        examined.append(_find_outliers(found, reporter))
    _print_summary(found, reporter)
    if examined[0].looked_at < len(found.sprites):
        reporter.print(f"\nExamined a sample of {number(examined[0].looked_at)} sprites.")
    findings = list_findings(found, options, examined)
    for left_out, heading in ((True, "Excluded"), (False, "Imported, but worth checking")):
        of_this_kind = [finding for finding in findings if finding.left_out == left_out]
        if of_this_kind:
            reporter.print(f"\n{heading}:")
        for finding in of_this_kind:
            _print_finding(finding, reporter, len(finding.items) if args.all else _MOST_NAMES)
    return 0


def _find_outliers(found: SpritesImported, reporter: Reporter) -> SpritesChecked:
    """Train a small network on the sprites to find outliers and wrong classes; return the findings."""
    from studio.engine import catalog
    from studio.engine.devices import detection
    from studio.engine.quality.outliers import find_outliers

    device, config = detection.find_device(detection.AUTO), catalog.recipe().Config()
    return run_job(find_outliers(Analysis(found.sprites), config, device), reporter, SpritesChecked)


def _print_summary(found: SpritesImported, reporter: Reporter) -> None:
    """Print numbers, sizes and classes of sprites, with sets, numbers and attributes."""
    sprites = found.sprites
    reporter.print(
        f"{sprites.title}: {count(len(sprites), 'sprite')} in {count(len(sprites.class_names), 'class', 'classes')}, "
        f"canvas {sprites.size} x {sprites.size} pixels"
        + (f" (proposed: {found.proposed_size})" if found.proposed_size != sprites.size else "")
    )
    sizes = Counter(dict(found.sizes)).most_common(_MOST_NAMES)
    more = f", and {len(found.sizes) - len(sizes)} more" if len(found.sizes) > len(sizes) else ""
    reporter.print("Sizes: " + ", ".join(f"{w} x {h} ({number(total)})" for (w, h), total in sizes) + more)
    if "cut sheet" in found.note_groups:
        reporter.print(f"Sheets: a class per {found.sheet_summary.classes}; --sheet-classes changes this")
    _print_sets(found, reporter)
    counts = sorted(zip(sprites.class_counts().tolist(), sprites.class_names, strict=True), key=lambda pair: -pair[0])
    reporter.print()
    reporter.print_table(("class", ">sprites"), [(name, number(total)) for total, name in counts[:_MOST_CLASSES]])
    if len(counts) > _MOST_CLASSES:
        reporter.print(f"and {count(len(counts) - _MOST_CLASSES, 'more class', 'more classes')}")
    _print_numbers(reporter, sprites)
    _print_attributes(found, reporter)


def _print_sets(found: SpritesImported, reporter: Reporter) -> None:
    """Print the views and frames of found characters, or of characters that slicing would find."""
    sets = found.sprites.sets
    if sets:
        gaps = f"; {count(sets.gaps, 'cell')} missing" if sets.gaps else ""
        more = "" if sets.chosen else f"; --sets {sets.kind} holds them out whole, --sets off ignores them"
        reporter.print(f"Sets: {sets.describe()}{gaps}{more}")
    elif found.proposed_sets is not None:
        reporter.print(f"Sets: looks like {found.proposed_sets.describe()}; --sets sheets slices them")


def _print_attributes(found: SpritesImported, reporter: Reporter) -> None:
    """Print the attributes with sprite counts by value, or the attributes that an option would read."""
    attributes, proposed = found.sprites.attributes, found.proposed_attributes
    rows = []
    for name, values, counts in zip(attributes.names, attributes.values, attributes.counts(), strict=True):
        pairs = sorted(zip(counts.tolist(), values, strict=True), key=lambda pair: -pair[0])
        listed = ", ".join(f"{value} ({number(total)})" for total, value in pairs[:_MOST_VALUES])
        more = f", and {len(pairs) - _MOST_VALUES} more" if len(pairs) > _MOST_VALUES else ""
        rows.append((name, number(len(found.sprites) - int(counts.sum())), listed + more))
    if rows:
        reporter.print()
        reporter.print_table(("attribute", ">without", "values"), rows)
    if proposed is not None:
        what = "Folders" if proposed.source == "folders" else "File names"
        flags = f"--attributes {proposed.source} --attribute-names {','.join(proposed.names)}"
        reporter.print(f"\n{what} look like attributes: {proposed.describe()}; {flags} reads them")


def _print_numbers(reporter: Reporter, sprites: Sprites) -> None:
    """Print count and range by number column from labels.csv."""
    rows = []
    for name, column in zip(sprites.target_names, sprites.targets.T, strict=True):
        known = column[~np.isnan(column)]
        ends = (decimal(float(known.min())), decimal(float(known.max()))) if len(known) else ("", "")
        rows.append((name, number(len(known)), *ends))
    if rows:
        reporter.print()
        reporter.print_table(("number", ">sprites", ">from", ">to"), rows)


def _print_finding(finding: Finding, reporter: Reporter, most: int) -> None:
    """Print a problem: count, advice, the first `most` files, and flags to fix the problem."""
    about = {"group": finding.group, "count": len(finding.items), "left_out": finding.left_out}
    reporter.write_json({"type": "Finding", **about, "advice": finding.advice, "fixes": finding.fixes})
    reporter.print(f"  {finding.title}: {number(len(finding.items))}. {finding.advice}")
    for item in finding.items[:most]:
        reporter.print(f"    {item.name}: {item.reason}")
    if len(finding.items) > most:
        reporter.print(f"    and {number(len(finding.items) - most)} more; --all lists them")
    for fix in finding.fixes:
        reporter.print(f"   > {fix.title}: {setting_flags(fix.changes, _LONGEST_VALUE)}")
