"""The race: how good are new sprites after how many minutes, by the studio and by others, on one machine?

    python -m tests.bench.race SPRITES --racers studio loop --minutes 2.5 5 10 [--drawn FOLDER] [--prototype SCRIPT]

All train on the same sprites, of which a twentieth was taken out, and are judged as `studio evaluate` judges,
by the same features. What they draw is kept in a folder, so that the long races need to be run but once, and the table
is of all that the folder holds; without racers it is judged anew. The other programs come with
`uv pip install --group race`. race_on_dcss.json keeps the figures of such long races: they stand beside those of a race
on the same sprites, racer by racer where it did not take part itself.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.engine.devices.detection import choose_device, probe_devices, resolve_precision
from studio.engine.quality.evaluate import RealSprites, judge
from studio.engine.quality.features import learn_features
from studio.recipes.generator import GeneratorConfig
from tests.bench.bench_loop import write_folder
from tests.bench.racers import RACERS
from tests.bench.tools import command_line
from tests.data.making import imported

MARK = "kid_heldout"
KEPT = Path(__file__).with_name("race_on_dcss.json")
COLUMNS = ("kid_heldout", "kid_training", "fd_heldout", "fd_training", "precision", "recall", "copies", "colours")


def load(folder: Path) -> tuple[Sprites, Sprites]:
    """The training and the validation sprites of a folder."""
    sprites, config = imported(folder).sprites, GeneratorConfig()
    is_heldout = _heldout(sprites, config.holdout, config.seed)
    return sprites.take(np.flatnonzero(~is_heldout)), sprites.take(np.flatnonzero(is_heldout))


def _heldout(sprites: Sprites, share: float, seed: int) -> NDArray[np.bool_]:
    """The rule that the kept figures were taken by, which does not know of groups: about `share` of each class.

    Races of hours are not run again for another one.
    """
    order = np.lexsort((np.random.default_rng(seed).random(len(sprites)), sprites.labels))
    # Every 1/share-th sprite of a list sorted by class, shuffled inside each class: a stratified choice.
    ranks = np.floor((np.arange(int(len(sprites) * share)) + 0.5) / share).astype(np.int64)
    heldout = np.zeros(len(sprites), dtype=bool)
    heldout[order[ranks]] = True
    return heldout & (sprites.class_counts()[sprites.labels] > 1)


def run(racer: str, folder: Path, chosen: argparse.Namespace) -> None:
    """Let one racer train, in a process of its own, and keep what it draws after each number of minutes."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "tests.bench.racers", racer, str(folder), output, "--count", str(chosen.count)]
        numbers = [f"{minutes:g}" for minutes in chosen.minutes]
        told = ["--prototype", chosen.prototype, "--pace", str(chosen.pace)]
        subprocess.run([*command, *told, "--minutes", *numbers], check=True)
        for number in numbers:
            shutil.copy(Path(output) / f"{number}.npy", chosen.drawn / f"{racer}_{number}.npy")


def judged(chosen: argparse.Namespace, training: Sprites, heldout: Sprites) -> list[dict[str, Any]]:
    """The figures of all sprites that were drawn in this race or an earlier one, and of real ones."""
    precision = resolve_precision(choose_device(probe_devices(), "cpu"), "auto")
    features = run_to_end(learn_features(training, torch.device("cpu"), precision))
    real = RealSprites(training, heldout, training)
    results: list[dict[str, Any]] = []
    for path in sorted(chosen.drawn.glob("*_*.npy")):
        racer, _, minutes = path.stem.rpartition("_")
        figures = run_to_end(judge(racer, np.load(path), None, real, features)).figures
        if not results:
            results.append({"racer": "(real sprites)", "minutes": 0.0, **figures["real"]})
        results.append({"racer": racer, "minutes": float(minutes), **figures["new"]})
    return results


def kept(training: Sprites, raced: set[str]) -> list[dict[str, Any]]:
    """The figures of earlier races on these sprites, of all who did not race now."""
    earlier = json.loads(KEPT.read_text(encoding="utf-8"))
    if earlier["fingerprint"] != training.fingerprint:
        return []
    return [row for row in earlier["results"] if row["racer"] not in raced]


def table(results: list[dict[str, Any]]) -> str:
    """The results as lines of text, the best KID of each budget first."""
    lines = [f"{'minutes':>8}  {'racer':<26}" + "".join(f"{name:>14}" for name in COLUMNS)]
    for row in sorted(results, key=lambda row: (row["minutes"], row["kid_heldout"])):
        lines.append(
            f"{row['minutes']:>8}  {row['racer']:<26}"
            + "".join(f"{row.get(name, math.nan):>14.4f}" for name in COLUMNS)
        )
    return "\n".join(lines) + "\n"


def marks(results: list[dict[str, Any]]) -> str:
    """For each result, the minutes after which each racer was as near to validation sprites; '-' where it never was."""
    rows = [row for row in results if row["minutes"]]
    racers = sorted({row["racer"] for row in rows})
    lines = ["minutes until as good as", f"{'minutes':>8}  {'racer':<26}" + "".join(f"{name:>26}" for name in racers)]
    for row in sorted(rows, key=lambda row: (row["racer"], row["minutes"])):
        words = []
        for racer in racers:
            reached = [r["minutes"] for r in rows if r["racer"] == racer and r[MARK] <= row[MARK]]
            words.append(f"{min(reached):g}" if reached else "-")
        lines.append(f"{row['minutes']:>8}  {row['racer']:<26}" + "".join(f"{word:>26}" for word in words))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Race, judge, and print all results."""
    parser = command_line(__doc__)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--racers", nargs="*", choices=RACERS, default=["studio", "loop"])
    parser.add_argument("--minutes", type=float, nargs="+", default=[2.5, 5.0, 10.0])
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--drawn", type=Path, default=Path("race"), help="the folder of what was drawn")
    parser.add_argument("--prototype", default="", help="the script that races as 'prototype'")
    parser.add_argument("--pace", type=float, default=0.0, help="steps that count as a minute; see racers.py")
    chosen = parser.parse_args()
    if chosen.pace and len(chosen.racers) > 1:
        parser.error("--pace is one racer's: let the others race on their own")
    chosen.drawn.mkdir(parents=True, exist_ok=True)
    training, heldout = load(chosen.sprites)
    with tempfile.TemporaryDirectory() as scratch:
        write_folder(training, Path(scratch))
        for racer in chosen.racers:
            run(racer, Path(scratch), chosen)
    results = judged(chosen, training, heldout)
    results += kept(training, {row["racer"] for row in results})
    (chosen.drawn / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    sys.stdout.write(table(results) + "\n" + marks(results))


if __name__ == "__main__":
    main()
