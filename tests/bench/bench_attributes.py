"""Whether a generator draws combinations of attributes that it never saw: 'a shield of ice' where nobody drew one.

    python -m tests.bench.bench_attributes [FOLDER] [--minutes 10 | --steps N] [--judge-minutes 3 | --judge-steps N]
        [--seeds 0 1 2] [--guidance 1.5]

Demo art: six kinds in the colours of five elements; the sprites of five combinations are left out. With a FOLDER: kinds
are its largest folders, and the second attribute is the colour that most of a sprite has; left out are the five most
frequent combinations whose kind and colour are also seen apart. A generator trains on the others and draws the missing
combinations. A classifier that saw all sprites judges: the share that is right in both attributes, 70 % or more. KID in
fixed features to the real sprites of these combinations: at most 1.5 times the KID of as many combinations that were
seen. 'real': what the classifier says to the real sprites.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import argparse
import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from studio.core import paths
from studio.core.events import Classified, SpritesGenerated
from studio.data.attributes.attributes import Attributes
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.detection import choose_device, probe_devices
from studio.engine.devices.types import Device
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality.features import fixed_features
from studio.engine.quality.scores import kid
from studio.engine.sampling.class_choice import attributes_text
from studio.engine.sampling.generate import generate, predict
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.training.loop import train_new
from tests.bench.tools import command_line, say
from tests.data.making import imported
from tests.engine.tools import of_kind

CPU = torch.device("cpu")
LEFT_OUT = 5
KINDS = ("gems", "keys", "potions", "shields", "slimes", "swords")
RAMPS = {  # from dark to light
    "fire": ("#2a0a12", "#7a1420", "#d03a1e", "#f88c20", "#ffe070"),
    "gold": ("#2e2010", "#6e4a18", "#b08020", "#e0b838", "#fff0a0"),
    "ice": ("#101838", "#22488c", "#3c8cd0", "#84d0f0", "#e8fcff"),
    "poison": ("#0c2010", "#1c5424", "#3c9430", "#88cc40", "#e0f8a0"),
    "shadow": ("#100818", "#30184c", "#5c2e88", "#9458c0", "#d8a8f0"),
}
HUES = ("red", "yellow", "green", "cyan", "blue", "magenta")
MOST_KINDS = 12


def demo_set() -> Sprites:
    """The demo sprites of six kinds, each in the colours of one element by chance. A class is a combination."""
    sprites = imported(paths.demo_sprites()).sprites
    kinds = [sprites.class_names.index(name) for name in KINDS]
    sprites = sprites.take(np.flatnonzero(np.isin(sprites.labels, kinds)))
    kind = np.searchsorted(np.sort(kinds), sprites.labels)
    element = np.random.default_rng(0).integers(len(RAMPS), size=len(sprites))
    rgba = np.stack([recoloured(*pair) for pair in zip(sprites.rgba, element.tolist(), strict=True)])
    names = tuple(f"{kind}/{element}" for kind in KINDS for element in RAMPS)
    made = dataclasses.replace(sprites, rgba=rgba, labels=kind * len(RAMPS) + element, class_names=names, stored=None)
    return with_values(made, {"kind": (KINDS, kind), "element": (tuple(RAMPS), element)})


def recoloured(sprite: NDArray[np.uint8], element: int) -> NDArray[np.uint8]:
    """Replace the colours of a sprite, [S, S, 4], from its darkest to its lightest, by those of an element."""
    ramp = np.array([tuple(bytes.fromhex(colour[1:])) for colour in [*RAMPS.values()][element]], np.uint8)
    visible = sprite[..., 3] > 0
    light = sprite[visible][:, :3] @ np.array([0.3, 0.59, 0.11])
    ranks = (light - light.min()) / max(1.0, float(np.ptp(light)))
    made = sprite.copy()
    made[visible, :3] = ramp[np.minimum((ranks * len(ramp)).astype(int), len(ramp) - 1)]
    return made


def real_set(folder: Path) -> Sprites:
    """The sprites of the largest folders that have a colour, with the folder and the colour as attributes."""
    sprites = imported(folder).sprites
    colour = np.array([main_hue(sprite) for sprite in sprites.rgba])
    largest = np.sort(np.argsort(-sprites.class_counts(), kind="stable")[:MOST_KINDS])
    chosen = np.flatnonzero(np.isin(sprites.labels, largest) & (colour >= 0))
    sprites, colour = sprites.take(chosen), colour[chosen]
    kind, names = np.searchsorted(largest, sprites.labels), tuple(sprites.class_names[label] for label in largest)
    sprites = dataclasses.replace(sprites, labels=kind, class_names=names)
    return with_values(sprites, {"kind": (names, kind), "colour": (HUES, colour)})


def main_hue(sprite: NDArray[np.uint8]) -> int:
    """Return the hue, one of six, that most of the colourful pixels of a sprite have; -1 for a grey sprite."""
    pixels = sprite[sprite[..., 3] > 128][:, :3]
    hue, saturation, value = np.asarray(Image.fromarray(pixels[None]).convert("HSV"))[0].T if len(pixels) else [[0]] * 3
    is_colourful = (np.asarray(saturation) > 80) & (np.asarray(value) > 60)
    if is_colourful.sum() < max(8, 0.2 * len(pixels)):
        return -1
    return int(np.bincount((np.asarray(hue)[is_colourful].astype(int) * 6 + 128) // 256 % 6, minlength=6).argmax())


def with_values(sprites: Sprites, known: dict[str, tuple[Sequence[str], NDArray[np.int64]]]) -> Sprites:
    """The sprites with these attributes: for each, its values and the value of each sprite."""
    table = np.stack([values for _, values in known.values()], 1).astype(np.int16)
    return dataclasses.replace(
        sprites, attributes=Attributes(tuple(known), tuple(tuple(names) for names, _ in known.values()), table)
    )


def chosen_combinations(sprites: Sprites) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return combinations to leave out, int64 [5, 2], and as many of those that stay: each value stays elsewhere."""
    pairs, counts = np.unique(sprites.attributes.table, axis=0, return_counts=True)
    in_order = pairs[np.argsort(-counts, kind="stable")].astype(np.int64)
    found: list[NDArray[np.int64]] = []
    for pair in in_order:  # no kind twice, no colour twice as long as there are others
        others = in_order[~np.isin(np.arange(len(in_order)), np.flatnonzero((in_order == pair).all(1)))]
        stays = all((others[:, axis] == pair[axis]).sum() > 1 for axis in (0, 1))
        used = [(one[0] == pair[0], one[1] == pair[1]) for one in found]
        most = -(-LEFT_OUT // len(sprites.attributes.values[1]))
        if stays and not any(kind for kind, _ in used) and sum(colour for _, colour in used) < most:
            found.append(pair)
    left_out = np.stack(found[:LEFT_OUT])
    seen = [pair for pair in in_order if not (left_out == pair).all(1).any()]
    return left_out, np.stack(seen[:LEFT_OUT])


def places_of(sprites: Sprites, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the sprites that have one of these combinations."""
    return np.flatnonzero((sprites.attributes.table[:, None] == pairs).all(2).any(1))


def trained(
    sprites: Sprites, recipe_name: str, minutes: float, steps: int, seed: int, device: Device, folder: Path,
    width: int = 0,
) -> TrainedModel:  # fmt: skip
    """Train a model as the studio would in this time, or for these steps. steps, width: 0 for the usual ones."""
    recipe = catalog.recipe(recipe_name)
    changes = {name: value for name, value in (("steps", steps), ("width", width)) if value}
    config = recipe.Config().replace(minutes=minutes, seed=seed, **changes)
    for _ in train_new(folder, sprites, recipe, config, device, Control()):
        pass
    return load_model(folder, "best", device)


def right_in_both(judge: TrainedModel, rgba: NDArray[np.uint8], wanted: NDArray[np.int64]) -> float:
    """Return the share of sprites whose attributes, int64 [N, 2], the classifier recognises."""
    (found,) = of_kind(list(predict(judge, rgba)), Classified)
    values = np.stack([found.attributes[name].probabilities.argmax(1) for name in judge.spec.attributes], 1)
    return float((values == wanted).all(1).mean())


def drawn(
    model: TrainedModel, sprites: Sprites, pair: NDArray[np.int64], count: int, guidance: float
) -> NDArray[np.uint8]:
    """Draw sprites of a combination."""
    names, values = sprites.attributes.names, sprites.attributes.values
    text = attributes_text({name: values[axis][pair[axis]] for axis, name in enumerate(names)})
    settings = GenerateSettings(count=count, attributes=text, guidance=guidance)
    made = of_kind(list(generate(model, settings)), SpritesGenerated)
    return made[0].sprites


def judged(
    title: str, model: TrainedModel, judge: TrainedModel, sprites: Sprites, pairs: NDArray[np.int64], guidance: float
) -> float:
    """Draw as many sprites of each combination as there are, say what is right, and return the KID."""
    real, new, wanted = [], [], []
    for pair in pairs:
        places = places_of(sprites, pair[None])
        real.append(sprites.rgba[places])
        new.append(drawn(model, sprites, pair, len(places), guidance))
        wanted.append(np.repeat(pair[None], len(places), 0))
        names = "/".join(values[index] for values, index in zip(sprites.attributes.values, pair, strict=True))
        share = right_in_both(judge, new[-1], wanted[-1])
        say(f"   {names:24} {len(places):4} sprites  right {share:4.0%}")
    all_real, all_new, labels = np.concatenate(real), np.concatenate(new), np.concatenate(wanted)
    features = fixed_features(CPU)
    distance = kid(features.of(all_real), features.of(all_new))
    say(
        f"{title:9} right in both {right_in_both(judge, all_new, labels):.1%}, "
        f"real {right_in_both(judge, all_real, labels):.1%}, KID {distance.value:.3f} +- {distance.error:.3f}"
    )
    return distance.value


def follow(sprites: Sprites, chosen: argparse.Namespace, seed: int) -> None:
    """Train and judge once."""
    device = choose_device(probe_devices(), chosen.device)
    left_out, seen = chosen_combinations(sprites)
    places = places_of(sprites, left_out)
    kept = sprites.take(np.setdiff1d(np.arange(len(sprites)), places))
    say(f"seed {seed}: {len(kept)} sprites learnt from, {len(places)} left out")
    with tempfile.TemporaryDirectory() as scratch:
        of_judge = chosen.judge_minutes, chosen.judge_steps, seed, device, Path(scratch) / "judge"
        judge = trained(sprites, "classifier", *of_judge)
        of_run = chosen.minutes, chosen.steps, seed, device, Path(scratch) / "run", chosen.width
        model = trained(kept, "generator", *of_run)
        of_left_out = judged("left out", model, judge, sprites, left_out, chosen.guidance)
        of_seen = judged("seen", model, judge, sprites, seen, chosen.guidance)
        say(f"{model.step} steps; KID of left out / seen: {of_left_out / of_seen:.2f}")
        if chosen.sheet:
            rows = [np.hstack([*drawn(model, sprites, pair, 12, chosen.guidance)]) for pair in left_out]
            Image.fromarray(np.vstack(rows)).resize((12 * 3 * sprites.size, len(rows) * 3 * sprites.size), 0).save(
                chosen.sheet.with_stem(f"{chosen.sheet.stem}-{seed}")
            )


def main() -> None:
    """Train and judge for each seed."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=10.0, help="for the generator")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--judge-minutes", type=float, default=3.0, help="for the classifier")
    parser.add_argument("--judge-steps", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--width", type=int, default=0, help="of the generator; the usual one by default")
    parser.add_argument("--guidance", type=float, default=GenerateSettings().guidance)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sheet", type=Path, help="PNG file for twelve sprites of each combination that was left out")
    chosen = parser.parse_args()
    sprites = real_set(chosen.folder) if chosen.folder else demo_set()
    for seed in chosen.seeds:
        follow(sprites, chosen, seed)


if __name__ == "__main__":
    main()
