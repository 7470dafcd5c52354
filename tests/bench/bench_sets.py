"""How well missing views and frames of held-out characters are drawn, beside simpler ways.

python -m tests.bench.bench_sets FOLDER [--rows NAMES] [--minutes 10 | --steps N] [--seeds 0 1 2] [--holdout 0.1]
    [--outlines] [--starter FILE] [--characters N] [--threads 2] [--pix2pix]

FOLDER holds characters that the import recognises as sets, or sheets of them. A seed chooses the held-out characters,
by groups of recolours, mirror images and near twins, and the weights. --outlines: by equal outlines of the first frames
instead, so that near twins of the held-out characters stay. --starter: train from this file of make_sets_starter.py,
which should not have seen the folder. The table has a row for each figure: exactly
right pixels in the union of the true and the drawn silhouettes, means over the seeds with the smallest and the largest.
beside it: the given cell, or its mirror image for a side from the other side. nearest: that cell of the training
character with the most similar given cell. --characters: learn from so many. --pix2pix: also train a plain U-Net with
an L1 loss for as long; its colours are snapped to the given ones.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.events import RunFinished
from studio.core.generators import run_to_end
from studio.core.metrics import metric_title
from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.sets.layout import GAP
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices import detection
from studio.engine.models.loading import load_model
from studio.engine.quality.evaluate import evaluate_heldout, heldout_batch_size
from studio.engine.quality.judge_sets import judge_sets
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import split_sprites
from studio.engine.steps.batches import DeviceSprites
from studio.engine.training.loop import train_new
from studio.engine.training.parents import parse_starter
from studio.recipes.layers import ResidualBlock
from studio.recipes.set_tasks import ExactShares, first_of_rows, tasks_of
from tests.bench.tools import command_line, say

Table = dict[str, Mapping[str, float]]  # by column, then by figure
_RATE, _BATCH, _WIDTH = 1e-3, 16, 32  # of the L1 network


def main() -> None:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", default="")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--outlines", action="store_true")
    parser.add_argument("--starter", type=Path)
    parser.add_argument("--characters", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pix2pix", action="store_true")
    chosen = parser.parse_args()
    options = ImportOptions(sets="sheets", rows=chosen.rows)
    imported = [event for event in import_sprites([chosen.folder], options) if isinstance(event, SpritesImported)]
    all_sprites = imported[0].sprites
    recipe, found = catalog.recipe("sets"), list[Table]()
    parent = parse_starter(chosen.starter.read_bytes(), "CC0-1.0") if chosen.starter else None
    budget = {"minutes": chosen.minutes, "steps": chosen.steps, "threads": chosen.threads}
    for seed in chosen.seeds:
        sprites = _some(all_sprites, chosen.characters, seed) if chosen.characters else all_sprites
        sprites = _with_test_set(sprites, chosen.holdout, seed) if chosen.outlines else sprites
        with tempfile.TemporaryDirectory() as folder:
            run, started = Path(folder) / "run", time.perf_counter()
            config = recipe.Config(seed=seed, holdout=0.0 if chosen.outlines else chosen.holdout, **budget)
            for event in train_new(run, sprites, recipe, config, detection.find_device("cpu"), Control(), parent):
                if isinstance(event, RunFinished):
                    say(f"seed {seed}: {event.step:,} steps in {time.perf_counter() - started:.0f} s")
            found.append(_judged(run, 60 * chosen.minutes if chosen.pix2pix else 0.0))
    _print(found)


def _some(sprites: Sprites, count: int, seed: int) -> Sprites:
    """The sprites of so many characters, chosen at random."""
    layout = sprites.sets
    chosen = np.zeros(len(layout), np.bool_)
    chosen[np.random.default_rng(seed).permutation(len(layout))[:count]] = True
    return sprites.of_sets(layout.part(chosen, np.ones(len(layout.cells), np.bool_)))


def _with_test_set(sprites: Sprites, share: float, seed: int) -> Sprites:
    """The sprites with a share of the characters as test set; equal outlines of the first frames stay together."""
    table = sprites.sets.table[:, np.array(first_of_rows(sprites.sets.cells))]  # of characters that have all views
    outlines = (sprites.rgba[table][..., 3] > 127).reshape(len(table), -1)
    figure = np.unique(outlines, axis=0, return_inverse=True)[1].ravel()
    rank = np.random.default_rng(seed).permutation(figure.max() + 1)[figure]
    ordered = np.sort(rank)
    is_test = np.zeros(len(sprites), np.bool_)
    is_test[np.setdiff1d(sprites.sets.table[rank <= ordered[int(len(rank) * share) - 1]], [GAP])] = True
    return replace(sprites, is_test=is_test)


def _judged(run: Path, pix2pix_s: float) -> Table:
    """The figures of the run's best checkpoint, and of other ways to the same held-out characters."""
    model = load_model(run, "best", detection.find_device("cpu"))
    sprites = packed.load(RunDir(run).data)
    split = split_sprites(RunDir(run).record(), model.config, sprites)
    held = np.union1d(split.validation, split.report)
    heldout, training = (DeviceSprites(sprites.stacked_sets(some), model.device) for some in (held, split.training))
    figures = evaluate_heldout(model, heldout, heldout_batch_size(heldout, model.recipe))
    judged = run_to_end(judge_sets(model, figures, sprites.take(held), sprites.take(split.training)))
    tasks = tasks_of(model.spec.cells, model.network.get_buffer("partners").tolist())
    (held_cells, held_there), (cells, there) = _cells(heldout), _cells(training)
    say(f"{len(cells)} characters to learn from, {len(held_cells)} held out; best at step {model.step:,}")
    nearest, plain = ExactShares(), ExactShares()
    for task in tasks:
        given = torch.tensor(task.given)
        known = held_there & given & (held_there & given).any(1, keepdim=True)
        apart = torch.cdist(held_cells[:, given].flatten(1), cells[:, given].flatten(1))
        there_too = held_there & ~given & known.any(1, keepdim=True)
        nearest.add(task, held_cells, cells[apart.argmin(1)], there_too)
        if pix2pix_s:
            network = _pix2pix(cells, there, given, pix2pix_s / len(tasks))
            plain.add(task, held_cells, _drawn(network, held_cells, given), there_too)
    return {
        "this model": judged.metrics, "beside it": judged.baseline, "nearest": nearest.shares(),
        **({"pix2pix": plain.shares()} if pix2pix_s else {}),
    }  # fmt: skip


def _cells(data: DeviceSprites) -> tuple[Tensor, Tensor]:
    """All sets: x [M, C, 4, S, S], and which cells there are, bool [M, C]."""
    (batch,) = data.plain_batches(len(data), len(data))
    return batch.x.unflatten(1, (-1, 4)), batch.targets > 0


class _Plain(nn.Module):
    """A U-Net from the given cells, stacked as channels, to all cells: RGBA."""

    def __init__(self, cells: int) -> None:
        super().__init__()
        wide = 2 * _WIDTH
        self.enter, self.leave = nn.Conv2d(4 * cells, _WIDTH, 3, 1, 1), nn.Conv2d(_WIDTH, 4 * cells, 1)
        self.high, self.low = ResidualBlock(_WIDTH, _WIDTH), ResidualBlock(_WIDTH, wide)
        self.deep, self.rise = ResidualBlock(wide, wide), ResidualBlock(2 * wide, wide)
        self.last = ResidualBlock(wide + _WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:  # [B, C, 4, S, S], also returned
        high = self.high(self.enter(x.flatten(1, 2)))
        low = self.low(F.avg_pool2d(high, 2))
        deep = self.deep(F.avg_pool2d(low, 2))
        low = self.rise(torch.cat([F.interpolate(deep, low.shape[2:]), low], 1))
        made: Tensor = self.leave(self.last(torch.cat([F.interpolate(low, high.shape[2:]), high], 1)))
        cells: Tensor = made.unflatten(1, (-1, 4))
        return cells


def _pix2pix(cells: Tensor, there: Tensor, given: Tensor, seconds: float) -> _Plain:
    """Train for so long to draw all cells from the given ones, by the mean absolute error."""
    torch.manual_seed(0)
    network, shown = _Plain(cells.shape[1]), cells * given[:, None, None, None]
    optimizer, started = torch.optim.AdamW(network.parameters(), _RATE), time.perf_counter()
    while time.perf_counter() - started < seconds:
        rows = torch.randint(len(cells), (_BATCH,))
        errors = (network(shown[rows]) - cells[rows]).abs() * (there[rows] & ~given)[:, :, None, None, None]
        optimizer.zero_grad()
        errors.mean().backward()
        optimizer.step()
    network.eval()
    return network


def _drawn(network: _Plain, cells: Tensor, given: Tensor) -> Tensor:
    """Draw sets from their given cells; each pixel takes the nearest given colour, or none."""
    made: Tensor = network(cells * given[:, None, None, None]).detach()
    for row, own in enumerate(cells):
        colours = own[given].movedim(1, 3).reshape(-1, 4).unique(dim=0)
        colours = torch.cat([torch.full((1, 4), -1.0), colours])
        pixels = made[row].movedim(1, 3)  # [C, S, S, 4]
        made[row] = colours[torch.cdist(pixels.reshape(-1, 4), colours).argmin(1)].view(pixels.shape).movedim(3, 1)
    return made


def _print(found: list[Table]) -> None:
    heads = list(found[0])
    say(" ".join([f"{'':24}", *(f"{head:>20}" for head in heads)]))
    for name in found[0]["this model"]:
        cells = []
        for head in heads:
            values = [table[head][name] for table in found if name in table[head]]
            spread = f"{np.mean(values):.3f} ({min(values):.3f}-{max(values):.3f})" if values else ""
            cells.append(f"{spread:>20}")
        say(" ".join([f"{metric_title(name):24}", *cells]))


if __name__ == "__main__":
    main()
