"""The command `inspect`: what the doctor says of files and folders."""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from studio.cli.arguments import import_options, read_sprites
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core import paths
from studio.core.formatting import count, decimal, number
from studio.core.shell import command_line
from studio.data.doctor.checks import run_checks
from studio.data.doctor.findings import Finding, Fix, SpritesChecked, list_findings
from studio.data.import_result import SpritesImported
from studio.data.sprites import Sprites

_MOST_CLASSES = 30
_MOST_NAMES = 5
_LONGEST_VALUE = 80  # letters


def inspect(args: argparse.Namespace) -> int:
    """Say what an import finds."""
    reporter = reporter_for(args)
    found, options = read_sprites(args, args.paths, reporter), import_options(args)
    examined = [follow(run_checks(found.sprites, options, paths.cache()), reporter, SpritesChecked)]
    if args.learn:
        examined.append(_learnt(found, reporter))
    _say_what_it_is(found, reporter)
    if examined[0].looked_at < len(found.sprites):
        reporter.say(f"\nLooked over: {number(examined[0].looked_at)} of them, from all over.")
    findings = list_findings(found, options, examined)
    for left_out, heading in ((True, "Left out"), (False, "Kept, but worth a look")):
        of_this_kind = [finding for finding in findings if finding.left_out == left_out]
        if of_this_kind:
            reporter.say(f"\n{heading}:")
        for finding in of_this_kind:
            _say(finding, reporter, len(finding.items) if args.all else _MOST_NAMES)
    return 0


def _learnt(found: SpritesImported, reporter: Reporter) -> SpritesChecked:
    """What only shows to one who has learnt to see these sprites."""
    from studio.engine import catalog
    from studio.engine.devices import detection
    from studio.engine.quality.outliers import find_outliers

    device, config = detection.find_device(detection.AUTO), catalog.recipe().Config()
    return follow(find_outliers(found.sprites, config, device), reporter, SpritesChecked)


def _say_what_it_is(found: SpritesImported, reporter: Reporter) -> None:
    """How many sprites, of which sizes and classes."""
    sprites = found.sprites
    reporter.say(
        f"{sprites.title}: {count(len(sprites), 'sprite')} in {count(len(sprites.class_names), 'class', 'classes')}, "
        f"canvas {sprites.size} x {sprites.size} pixels"
        + (f" (proposed: {found.proposed_size})" if found.proposed_size != sprites.size else "")
    )
    sizes = Counter(dict(found.sizes)).most_common(_MOST_NAMES)
    more = f", and {len(found.sizes) - len(sizes)} more" if len(found.sizes) > len(sizes) else ""
    reporter.say("Sizes: " + ", ".join(f"{w} x {h} ({number(total)})" for (w, h), total in sizes) + more)
    counts = sorted(zip(sprites.class_counts().tolist(), sprites.class_names, strict=True), key=lambda pair: -pair[0])
    reporter.say()
    reporter.table(("class", ">sprites"), [(name, number(total)) for total, name in counts[:_MOST_CLASSES]])
    if len(counts) > _MOST_CLASSES:
        reporter.say(f"and {count(len(counts) - _MOST_CLASSES, 'more class', 'more classes')}")
    _say_numbers(reporter, sprites)


def _say_numbers(reporter: Reporter, sprites: Sprites) -> None:
    """Each number that a labels.csv gives: how many sprites have it, and what it is from and to."""
    rows = []
    for name, column in zip(sprites.target_names, sprites.targets.T, strict=True):
        known = column[~np.isnan(column)]
        ends = (decimal(float(known.min())), decimal(float(known.max()))) if len(known) else ("", "")
        rows.append((name, number(len(known)), *ends))
    if rows:
        reporter.say()
        reporter.table(("number", ">sprites", ">from", ">to"), rows)


def _say(finding: Finding, reporter: Reporter, most: int) -> None:
    """A group with its count, what it means, the first names, and the flags that would mend it."""
    reporter.record(
        {
            "type": "Finding",
            "group": finding.group,
            "count": len(finding.items),
            "left_out": finding.left_out,
            "advice": finding.advice,
            "fixes": finding.fixes,
        }
    )
    reporter.say(f"  {finding.group}: {number(len(finding.items))}. {finding.advice}")
    for item in finding.items[:most]:
        reporter.say(f"    {item.name}: {item.reason}")
    if len(finding.items) > most:
        reporter.say(f"    and {number(len(finding.items) - most)} more; --all names them")
    for fix in finding.fixes:
        reporter.say(f"   > {fix.title}: {_flags(fix)}")


def _flags(fix: Fix) -> str:
    """What to add to the command for it. Of very many names only the first is said."""
    words = []
    for name, value in fix.changes.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
            continue
        text = f"{value:g}" if isinstance(value, float) else str(value)
        if len(text) > _LONGEST_VALUE:
            text = f"{text.partition(';')[0]};…"
        words += [f"--{flag}", text]
    return command_line(*words)
