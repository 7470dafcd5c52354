"""`studio predict`: print the classes or numbers that a model predicts for sprites."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from studio.cli.inputs import find_device, find_run, load_model, print_excluded, run_import
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core.events import Classified, Event, NumbersPredicted
from studio.core.formatting import decimal, number, percent
from studio.data.options import options_for_prediction
from studio.engine.runs.folder import RunDir

_MOST_ROWS = 200


def predict(args: argparse.Namespace) -> int:
    """Print the predicted classes or numbers by sprite, and the unreadable files."""
    from studio.engine.sampling.generate import check_predicts, predict

    reporter, path = reporter_for(args), find_run(args.run_name)
    model = load_model(path, args, find_device(args), reporter)
    check_predicts(model)
    options = options_for_prediction(model.spec.size, RunDir(path).record().data_origin)
    read = run_import(args.paths, options, reporter)
    for item in read.quarantine:
        reporter.write_json({"type": "FileLeftOut", "name": item.name, "reason": item.reason})
    sprites = read.sprites
    found = run_job(predict(model, sprites.rgba), reporter, Event)
    if isinstance(found, NumbersPredicted):
        columns = ("sprite", *(f">{name}" for name in found.names))
        rows = list(_numbers(sprites.names, found, reporter))
    else:
        assert isinstance(found, Classified)
        columns = (*("sprite", "class", "or", "or")[: 1 + min(3, len(found.class_names))], *found.attributes)
        rows = list(_classes(sprites.names, found, reporter))
    reporter.print_table(columns, rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        reporter.print(f"and {number(len(rows) - _MOST_ROWS)} more; --json prints all")
    print_excluded(read, reporter)
    for item in read.quarantine[:_MOST_ROWS]:
        reporter.print(f"  {item.name}: {item.reason}")
    return 0


def _classes(names: Sequence[str], found: Classified, reporter: Reporter) -> Iterator[Sequence[str]]:
    """Yield a table row per sprite: the three most probable classes, and attributes. Also writes JSON."""
    for number_of, name in enumerate(names):
        guesses = _best(found, number_of)
        values = {attribute: _best(each, number_of) for attribute, each in found.attributes.items()}
        known = {"attributes": {attribute: dict(each) for attribute, each in values.items()}} if values else {}
        reporter.write_json({"type": "SpriteClassified", "name": name, "classes": dict(guesses), **known})
        shown = [*guesses, *(each[0] for each in values.values())]
        yield (name, *(f"{label} {percent(share)}" for label, share in shown))


def _best(found: Classified, index: int) -> list[tuple[str, float]]:
    """Return the three most probable classes, or values of an attribute, of the sprite at `index`."""
    row = found.probabilities[index]
    return [(found.class_names[label], float(row[label])) for label in np.argsort(-row, kind="stable")[:3]]


def _numbers(names: Sequence[str], found: NumbersPredicted, reporter: Reporter) -> Iterator[Sequence[str]]:
    """Yield a table row per sprite with the predicted numbers. Also writes JSON."""
    for name, row in zip(names, found.numbers.tolist(), strict=True):
        numbers = dict(zip(found.names, row, strict=True))
        reporter.write_json({"type": "NumbersOfSprite", "name": name, "numbers": numbers})
        yield (name, *map(decimal, row))
