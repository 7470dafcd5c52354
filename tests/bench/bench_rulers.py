"""What each figure of quality sees: real sprites that were spoilt in known ways, beside whole ones.

    python -m tests.bench.bench_rulers SPRITES

Seven of ten sprites stand for those learnt from, half of the others for those held out; the other half is spoilt. A
figure sees what moves it away from that of the whole sprites ('as they are').
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from studio.core.generators import run_to_end
from studio.core.process import prepare_for_training
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from studio.engine.quality.copies import find_copies
from studio.engine.quality.evaluate import RealSprites, Scorer
from studio.engine.quality.features import learn_features
from studio.engine.runs.split import split_by_group, split_in_halves
from tests.bench.spoiling import spoilt

COLUMNS = (
    "kid_heldout", "fd_heldout", "precision", "recall", "coverage", "likelihood", "kid_fixed", "fd_fixed", "surprisal",
    "copies", "nearer",
)  # fmt: skip


def main() -> None:
    """Print a line of figures for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sprites", type=Path)
    prepare_for_training()
    *_, found = import_sprites([parser.parse_args().sprites], ImportOptions())
    assert isinstance(found, SpritesImported)
    split = split_by_group(found.sprites, share=0.3, seed=0)
    unseen = found.sprites.take(np.union1d(split.validation, split.report))
    first, second = split_in_halves(unseen.groups)
    training, heldout, others = found.sprites.take(split.training), unseen.take(first), unseen.take(second)
    cpu = torch.device("cpu")
    features = run_to_end(learn_features(training, cpu, "fp32"))
    judge = Scorer(RealSprites(training, heldout, training), features)
    near_heldout = run_to_end(find_copies(heldout.rgba, training, None, cpu))
    sys.stdout.write(f"{'':<28}" + "".join(f"{name:>12}" for name in COLUMNS) + "\n")
    for name, sprites in [("as they are", others.rgba), *spoilt(others.rgba, training.rgba)]:
        nearest = run_to_end(find_copies(sprites, training, None, cpu))
        values = {**judge.distances(sprites), **judge.sprite_scores(sprites, None, nearest, near_heldout)}
        sys.stdout.write(f"{name:<28}" + "".join(f"{values[column]:>12.3f}" for column in COLUMNS) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
