"""What becomes of few sprites: the quality of new ones, and how many are copies, as a training goes on.

    python -m tests.bench.bench_small_data SPRITES --counts 60 200 800 --minutes 5 [--with shift_px=1 flip=true]

Takes so many sprites at random from the largest classes, about twenty of each class, trains on them alone, and judges
new sprites at every checkpoint against those of the same classes that it never saw, in features learnt from all. The
time of judging is not the training's. 'nearer': new ones that are nearer to those learnt from than unseen ones are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.config import settings_of
from studio.core.events import CheckpointSaved, QualityMeasured, Validated
from studio.core.generators import returned
from studio.core.process import prepare_for_training
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control import Control
from studio.engine.devices import choose, detect, resolve_precision
from studio.engine.generate import draw
from studio.engine.quality.evaluate import classes_to_draw, loss_gap
from studio.engine.quality.features import SpriteFeatures, features_of
from studio.engine.quality.scores import kid, share_below
from studio.engine.quality.surprisal import PatchSurprisal
from studio.engine.train import train_new
from studio.engine.types import Device, GenerateSettings
from tests.bench.tools import command_line, say
from tests.data.making import imported
from tests.engine.tools import nearest_training_sprites

DRAWN = 256
A_CLASS = 20  # sprites, on average


def some_of(sprites: Sprites, count: int, choice: int) -> tuple[Sprites, Sprites]:
    """So many sprites of the largest classes, chosen by that seed, and the others of these classes."""
    rng = np.random.default_rng(choice)
    largest = np.argsort(-sprites.class_counts(), kind="stable")[: max(1, count // A_CLASS)]
    order = rng.permutation(np.flatnonzero(np.isin(sprites.labels, largest)))
    names = tuple(sprites.class_names[i] for i in np.sort(largest))

    def part(places: NDArray[np.int64]) -> Sprites:
        taken = sprites.take(np.sort(places))
        labels = np.searchsorted(np.sort(largest), taken.labels).astype(np.int64)
        return Sprites(taken.rgba, labels, names, taken.names, f"{len(places)} sprites", groups=taken.groups)

    return part(order[:count]), part(order[count:])


def follow(
    few: Sprites, unseen: Sprites, features: SpriteFeatures, settings: dict[str, str], minutes: float, device: Device
) -> None:
    """Train on the few, and print a line a checkpoint."""
    recipe, control = catalog.recipe("generator"), Control()
    config = recipe.Config(minutes=minutes, checkpoint_every_s=60 * minutes / 10)
    known = {item.name: item for item in settings_of(recipe.Config)}
    config = config.replace(**{name: known[name].parse(text) for name, text in settings.items()})
    real, cpu = features.of(unseen.rgba), torch.device("cpu")
    patches = PatchSurprisal(unseen.rgba, unseen.groups, few.rgba)
    floor = kid(real, features.of(few.rgba))
    near_unseen = nearest_training_sprites(unseen.rgba, few, None, cpu)
    say(f"{len(few)} sprites, {len(few.class_names)} classes, {settings or 'as usual'}: KID of the real ones "
         f"{floor.value:.3f} +- {floor.error:.3f}, copies among the unseen {near_unseen.is_copy.mean():.0%}, "
        f"surprisal of those learnt from {patches.distance(few.rgba):.2f}")  # fmt: skip
    labels, loss, meter = classes_to_draw(few, DRAWN, seed=1), float("nan"), ""
    with tempfile.TemporaryDirectory() as scratch:
        for event in train_new(Path(scratch) / "run", few, recipe, config, device, control):
            if isinstance(event, Validated):
                loss = event.metrics["loss"]
            elif isinstance(event, QualityMeasured):
                meter = f"meter at {event.step}: " + " ".join(f"{k} {v:.3f}" for k, v in vars(event.quality).items())
            elif isinstance(event, CheckpointSaved) and control.live is not None:
                new = returned(draw(control.live, labels, GenerateSettings()))
                distance, seen = kid(real, features.of(new)), kid(features.of(few.rgba), features.of(new))
                near = nearest_training_sprites(new, few, None, cpu)
                nearer = share_below(near.distance, near_unseen.distance)
                epochs = event.step * config.batch_size / len(few)
                say(
                    f"{event.step:>7} steps {epochs:>7.0f} epochs  held-out loss {loss:.3f}  "
                    f"KID unseen {distance.value:.3f} +- {distance.error:.3f}  KID training {seen.value:.3f}  "
                    f"surprisal {patches.distance(new):.2f}  copies {near.is_copy.mean():.0%}  nearer {nearer:.0%}  "
                    f"loss gap {loss_gap(control.live, few, unseen):.1%}  {meter}"
                )


def main() -> None:
    """Follow a training for each number of sprites."""
    parser = command_line(__doc__)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[60, 200, 800])
    parser.add_argument("--choice", type=int, default=0, help="the seed by which the sprites are chosen")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--with", nargs="*", default=[], dest="settings", metavar="NAME=VALUE")
    chosen = parser.parse_args()
    prepare_for_training()
    sprites, device = imported(chosen.sprites).sprites, choose(detect(), "cpu")
    features = returned(features_of(sprites, torch.device("cpu"), resolve_precision(device, "auto")))
    settings = dict(text.split("=", 1) for text in chosen.settings)
    for count in chosen.counts:
        few, unseen = some_of(sprites, count, chosen.choice)
        follow(few, unseen, features, settings, chosen.minutes, device)


if __name__ == "__main__":
    main()
