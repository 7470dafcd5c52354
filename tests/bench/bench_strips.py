"""Which strips and sheets are recognised, and which whole sprites are taken for one.

python -m tests.bench.bench_strips FOLDER [--folders 100] [--strips 40] [--whole 12] [--seed 0]

FOLDER holds whole sprites. Folders as games have them are put together of these (tests/data/composing.py). A strip is
right where each of its frames comes out alone and nothing else does; exact where all numbers of its grid are those that
it was made by. Then the sprites of FOLDER themselves are looked at, of which none is a sheet.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from studio.data.sheets.recognising import sheet_candidates, vote_on_sheets
from tests.bench.tools import command_line, say
from tests.data.composing import Composed, Composer, frames_of, trimmed
from tests.data.making import imported

_SMALLEST = 6  # pixels: sprites that are smaller are not taken into strips


def main() -> None:
    """Print a table by kind of picture, then the false alarms."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folders", type=int, default=100)
    parser.add_argument("--strips", type=int, default=40)
    parser.add_argument("--whole", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    found = imported(chosen.folder).sprites
    sprites = [rgba for rgba in found.rgba if min(trimmed(rgba).shape[:2]) >= _SMALLEST]
    total, right, exact = Counter[str](), Counter[str](), Counter[str]()
    seconds = 0.0
    for seed in range(chosen.seed, chosen.seed + chosen.folders):
        made = Composer(sprites, np.random.default_rng(seed)).folder(chosen.strips, chosen.whole)
        seconds += _judge(made, total, right, exact)
    say(f"{'kind':10}{'pictures':>10}{'right':>10}{'exact':>10}")
    for kind, count in total.items():
        say(f"{kind:10}{count:10,}{right[kind] / count:10.1%}{exact[kind] / count:10.1%}")
    strips = sum(total[kind] for kind in exact)
    wrong = sum(total[kind] - right[kind] for kind in total if kind not in exact)
    say(f"{sum(right[kind] for kind in exact) / strips:.1%} of {strips:,} strips and sheets are right")
    say(f"{wrong} of {total.total() - strips:,} whole sprites beside them are taken for one")
    canvas = found.size, found.size
    sizes = {number: (name.rpartition("/")[0], canvas) for number, name in enumerate(found.names)}
    alarms = vote_on_sheets({number: sheet_candidates(rgba) for number, rgba in enumerate(found.rgba)}, sizes)
    names = " ".join(found.names[number] for number in alarms)
    say(f"{len(alarms)} of the {len(found):,} sprites in the folder are taken for one {names}".rstrip())
    say(f"{1000 * seconds / total.total():.1f} ms a composed picture")


def _judge(made: list[Composed], total: Counter[str], right: Counter[str], exact: Counter[str]) -> float:
    """Count what is recognised in one folder: how many seconds it took."""
    started = time.perf_counter()
    sizes = {number: ("", one.rgba.shape[:2]) for number, one in enumerate(made)}
    sheets = vote_on_sheets({number: sheet_candidates(one.rgba) for number, one in enumerate(made)}, sizes)
    seconds = time.perf_counter() - started
    for number, one in enumerate(made):
        kind, sheet = one.name.split()[0], sheets.get(number)
        total[kind] += 1
        if one.grid is None or sheet is None:
            right[kind] += one.grid is None and sheet is None
        elif frames_of(one.rgba, sheet.grid) == frames_of(one.rgba, one.grid):
            right[kind] += 1
            exact[kind] += replace(sheet.grid, confidence=1.0) == one.grid
    return seconds


if __name__ == "__main__":
    main()
