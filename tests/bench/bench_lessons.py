"""Measure every lesson on a device, and print the figures as an entry of assets/lessons/cards.json.

python -m tests.bench.bench_lessons --device cuda > card.json
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys

import torch

from studio.core import paths
from studio.data.import_result import SpritesImported
from studio.data.importing.importing import import_sprites
from studio.data.options import ImportOptions
from studio.engine.devices import detection
from studio.lab.learn.catalog import lessons
from studio.lab.learn.running import lesson_context
from studio.lab.outcome import Outcome


def main() -> None:
    """Run each lesson on the demo sprites, and print name, date, version and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, help="of each measurement (default: the lesson's own)")
    args = parser.parse_args()
    device = detection.find_device(args.device)
    events = import_sprites([paths.demo_sprites()], ImportOptions())
    found = [event for event in events if isinstance(event, SpritesImported)]
    figures = {}
    for lesson in lessons().values():
        context = lesson_context(found[-1].sprites, device, args.seconds or lesson.seconds)
        outcomes = [event for event in lesson.run(context) if isinstance(event, Outcome)]
        figures[lesson.name] = dict(outcomes[-1].figures)
        print(f"{lesson.name}: {lesson.card_text(outcomes[-1].figures)}", file=sys.stderr)  # noqa: T201
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    card = {"name": device.name, "date": date, "torch": torch.__version__, "lessons": figures}
    print(json.dumps(card, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
