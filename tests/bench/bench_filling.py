"""How well what is filled in fits to what stays: patches across the seam, by how improbable real sprites make them.

    python -m tests.bench.bench_filling RUN... [--checkpoint last] [--count 384]

Hides a quarter, half and three quarters of the sprites that a run held out, in one square each, and lets its model fill
it in, as it has learnt to and by imposing the kept pixels anew at each step. Excess: the bits a pixel that the patches
of 3 x 3 across the seam have beyond those of the real sprites there. Inside: that of all hidden pixels, below 0 where
they are plainer than the real ones. Error: of hidden pixels, root mean square in levels. Filling is taught in the last
fifth of a training: before that, learnt and imposed are the same.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import copy
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.generators import run_to_end
from studio.data.colour.pixel_art import to_pixel_art
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.devices.detection import choose_device, probe_devices
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality.surprisal import PatchSurprisal
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import split_sprites
from studio.engine.sampling.generate import draw_in_batches, edit_condition
from studio.engine.sampling.settings import GenerateSettings
from studio.recipes.capabilities import EditsSprites
from tests.bench.tools import command_line, say

SHARES = (0.25, 0.5, 0.75)  # that are hidden
_PATCH = 3


def masks(count: int, size: int, share: float) -> NDArray[np.bool_]:
    """Which pixels stay: bool [N, S, S], all but a square somewhere."""
    rng, side = np.random.default_rng(3), round(size * share**0.5)
    keep = np.ones((count, size, size), bool)
    for mask in keep:
        top, left = rng.integers(0, size - side + 1, 2)
        mask[top : top + side, left : left + side] = False
    return keep


def seams(keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pixels bool [N, S, S] whose patch, of which each is the last corner, holds kept and hidden ones."""
    padded = np.pad(keep, ((0, 0), (_PATCH - 1, 0), (_PATCH - 1, 0)), mode="edge")
    patches = np.lib.stride_tricks.sliding_window_view(padded, (_PATCH, _PATCH), (1, 2))
    return np.asarray(patches.any((-2, -1)) & ~patches.all((-2, -1)))


def filled(model: TrainedModel, sprites: Sprites, keep: NDArray[np.bool_], seed: int) -> Rgba:
    """Each sprite with what its own mask hides drawn anew: as the studio does it, which has one mask for all."""
    how = GenerateSettings(seed=seed)

    def steps_of(part: slice) -> Iterator[Tensor]:
        given = edit_condition(model, sprites.rgba[part], 1.0, how.constraints(), keep[part])
        labels = torch.from_numpy(sprites.labels[part])
        assert isinstance(model.recipe, EditsSprites)
        return model.recipe.redraw(model.network, given, labels, how.guidance, how.steps, seed, part.start)

    def finished(drawn: Rgba, part: slice) -> Rgba:
        whole = np.where(keep[part][..., None], sprites.rgba[part], drawn)
        return to_pixel_art(whole, sprites.labels[part], model.style, keep[part])

    return run_to_end(draw_in_batches(model, len(sprites), how.steps, steps_of, finished))


def without_learning(model: TrainedModel) -> TrainedModel:
    """The model as it was before it learnt to fill."""
    network = copy.deepcopy(model.network)
    torch.nn.init.zeros_(network.get_parameter("keep.weight"))
    return dataclasses.replace(model, network=network)


def rows_of(model: TrainedModel, ruler: PatchSurprisal, sprites: Sprites) -> list[str]:
    """A line for each share that is hidden."""
    rows = []
    for share in SHARES:
        keep = masks(len(sprites), sprites.size, share)
        across = seams(keep)
        real = ruler.of(sprites.rgba, across).mean()
        row = f"{share:.0%} hidden, real {real:.2f} bits a pixel across the seam:"
        for name, judged in (("learnt", model), ("imposed", without_learning(model))):
            made = filled(judged, sprites, keep, seed=5)
            hidden = (made.astype(float) - sprites.rgba)[~keep]
            excess, inside = (ruler.of(made, at).mean() - ruler.of(sprites.rgba, at).mean() for at in (across, ~keep))
            row += f"  {name} {excess:+.3f} inside {inside:+.3f} error {np.sqrt((hidden**2).mean()):.1f}"
        rows.append(row)
    return rows


def main() -> None:
    """Print a table for each run."""
    parser = command_line(__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--checkpoint", default="last")
    parser.add_argument("--count", type=int, default=384)
    args = parser.parse_args()
    for path in args.runs:
        run = RunDir(path)
        record, sprites = run.record(), packed.load(run.data)
        model = load_model(path, args.checkpoint, choose_device(probe_devices(), "cpu"))
        split = split_sprites(record, model.config, sprites)
        learnt, held_out = sprites.take(split.training), sprites.take(split.report[: args.count])
        ruler = PatchSurprisal(learnt.rgba, learnt.groups, learnt.rgba)
        say(f"{path.name}: {len(held_out)} sprites held out")
        for row in rows_of(model, ruler, held_out):
            say(row)


if __name__ == "__main__":
    main()
