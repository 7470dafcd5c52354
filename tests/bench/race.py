"""The race: how good are new sprites after how many minutes, by the studio and by others, on one machine?

    python -m tests.bench.race SPRITES --racers studio loop --minutes 2.5 5 10 [--results FILE] [--prototype SCRIPT]

All train on the same sprites, those that `studio train` would not hold out, and are judged as `studio evaluate` judges,
by the same features. What a race gives is added to the results file, so that the long ones need to be run but once; the
table shows all that the file holds. The other programs come with `pip install -e .[race]`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from studio.data.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.sprites import Sprites
from studio.engine.batches import split
from studio.engine.devices import choose, detect, resolve_precision
from studio.engine.evaluate import judge
from studio.engine.features import features_of
from studio.recipes.generator import GeneratorConfig
from tests.bench.bench_loop import write_folder
from tests.bench.racers import RACERS
from tests.generators import returned

COLUMNS = ("kid_heldout", "kid_training", "fd_heldout", "fd_training", "precision", "recall", "copies", "colours")


def load(folder: Path) -> tuple[Sprites, Sprites]:
    """The training and the held-out sprites of a folder."""
    *_, found = import_sprites([folder], ImportOptions())
    assert isinstance(found, SpritesImported)
    config = GeneratorConfig()
    training, heldout = split(found.sprites, config.holdout, config.seed)
    return found.sprites.take(training), found.sprites.take(heldout)


def run(racer: str, folder: Path, chosen: argparse.Namespace) -> dict[float, np.ndarray]:
    """What a racer draws after each number of minutes, trained in a process of its own."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "tests.bench.racers", racer, str(folder), output, "--count", str(chosen.count)]
        numbers = [f"{minutes:g}" for minutes in chosen.minutes]
        subprocess.run([*command, "--prototype", chosen.prototype, "--minutes", *numbers], check=True)
        return {float(number): np.load(Path(output) / f"{number}.npy") for number in numbers}


def table(results: list[dict[str, object]]) -> str:
    """The results as lines of text, the best KID of each budget first."""
    lines = [f"{'minutes':>8}  {'racer':<26}" + "".join(f"{name:>14}" for name in COLUMNS)]
    for row in sorted(results, key=lambda row: (row["minutes"], row["kid_heldout"])):
        lines.append(f"{row['minutes']:>8}  {row['racer']:<26}" + "".join(f"{row[name]:>14.4f}" for name in COLUMNS))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Race, judge, and print all results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--racers", nargs="*", choices=RACERS, default=["studio", "loop"])
    parser.add_argument("--minutes", type=float, nargs="+", default=[2.5, 5.0, 10.0])
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--results", type=Path, default=Path("race.json"))
    parser.add_argument("--prototype", default="", help="the script that races as 'prototype'")
    chosen = parser.parse_args()
    training, heldout = load(chosen.sprites)
    precision = resolve_precision(choose(detect(), "cpu"), "auto")
    features = returned(features_of(training, torch.device("cpu"), precision))
    results = json.loads(chosen.results.read_text(encoding="utf-8")) if chosen.results.exists() else []
    with tempfile.TemporaryDirectory() as scratch:
        write_folder(training, Path(scratch))
        for racer in chosen.racers:
            for minutes, sprites in run(racer, Path(scratch), chosen).items():
                judged = judge(racer, sprites, None, training, heldout, features).figures
                results.append({"racer": racer, "minutes": minutes, **judged["new"]})
                real = {"racer": "(real sprites)", "minutes": 0.0, **judged["real"]}
                results = [row for row in results if row["racer"] != real["racer"]] + [real]
                chosen.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    sys.stdout.write(table(results))


if __name__ == "__main__":
    main()
