"""Measure how well a generator draws combinations of attributes that no sprite has, such as a shield of ice.

    python -m tests.bench.bench_attributes [FOLDER] [--minutes 10 | --steps N] [--judge-minutes 3 | --judge-steps N]
        [--seeds 0 1 2] [--guidance 1.5 2.5] [--runs FOLDER] [--sheet PNG]

Demo art: six kinds in the colours of five elements. A FOLDER of character sheets whose names end with a team's colour
('AxemanRed.png'): kinds and teams; copies of cells are removed. Any other FOLDER: kinds are its largest folders, and
the second attribute is the hue of most of a sprite's pixels.

The training lacks all sprites of five combinations, whose kinds and colours occur in other combinations, and half of
the sprites of five seen combinations of the same kinds. The generator draws all ten combinations from the attributes
alone, with its last checkpoint. A classifier that trained on all sprites judges the drawings: 70 % or more should be
right in both attributes. KID uses fixed features. Drawings of unseen combinations are compared with the sprites left
out, drawings of seen combinations with the held-out half: a comparison with training sprites would reward copies with a
KID of nearly 0. With demo art, both are compared with 200 new sprites of each combination, because KID is uncertain
with few sprites. The first KID should be at most 1.5 times the second. 'real' is the classifier's accuracy on real
sprites.

--runs FOLDER stores the trained models. A second call loads them, to try other values of --guidance.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import argparse
import dataclasses
import sys
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

sys.path.append(str(Path(__file__).resolve().parents[2] / "assets" / "demo"))
from demo_art.finish import is_clean, limit_colours
from make_demo_sprites import CLASSES

CPU = torch.device("cpu")
LEFT_OUT = 5
JUDGED = 200  # drawings of each combination, on average, and new demo sprites of each
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
TEAMS = ("Cyan", "Lime", "Purple", "Red")
CELL = 16  # pixels of a cell in a sheet of a team


def demo_set() -> Sprites:
    """Return the demo sprites of six kinds, each in the colours of a random element. A class is a combination."""
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


def new_demo_sprites(sprites: Sprites, pair: NDArray[np.int64]) -> Sprites:
    """Draw demo sprites of a combination that are not in the demo set."""
    size, draw = CLASSES[KINDS[pair[0]]]
    rng, border = np.random.default_rng([1, *pair.tolist()]), (sprites.size - size) // 2
    known, made = {one.tobytes() for one in sprites.rgba}, list[NDArray[np.uint8]]()
    while len(made) < JUDGED:
        pixels = limit_colours(draw(rng).rgba())
        if pixels is not None and is_clean(pixels):
            sprite = recoloured(np.pad(pixels, ((border, border), (border, border), (0, 0))), int(pair[1]))
            if sprite.tobytes() not in known:
                made.append(sprite)
    of_pair = sprites.take(np.repeat(places_of(sprites, pair[None])[:1], JUDGED))
    return dataclasses.replace(of_pair, rgba=np.stack(made))


def real_set(folder: Path) -> Sprites:
    """Return the colourful sprites of the largest folders, with the folder and the main hue as attributes."""
    sprites = imported(folder).sprites
    colour = np.array([main_hue(sprite) for sprite in sprites.rgba])
    largest = np.sort(np.argsort(-sprites.class_counts(), kind="stable")[:MOST_KINDS])
    chosen = np.flatnonzero(np.isin(sprites.labels, largest) & (colour >= 0))
    sprites, colour = sprites.take(chosen), colour[chosen]
    kind, names = np.searchsorted(largest, sprites.labels), tuple(sprites.class_names[label] for label in largest)
    sprites = dataclasses.replace(sprites, labels=kind, class_names=names)
    return with_values(sprites, {"kind": (names, kind), "colour": (HUES, colour)})


def team_sheets(folder: Path) -> list[tuple[str, str, Path]]:
    """Return kind, team and path of each sheet whose file name is a kind and a team."""
    pairs = ((path.stem, team, path) for path in sorted(folder.glob("*.png")) for team in TEAMS)
    return [(name.removesuffix(team), team, path) for name, team, path in pairs if name.endswith(team)]


def team_set(folder: Path) -> Sprites:
    """Return the distinct cells of the kinds that every team has. Attributes: kind and team."""
    sheets = team_sheets(folder)
    kinds = sorted({kind for kind, _, _ in sheets if {team for other, team, _ in sheets if other == kind} == {*TEAMS}})
    cells: dict[bytes, tuple[int, int, str]] = {}
    for kind, team, path in sheets:
        pixels = np.asarray(Image.open(path).convert("RGBA"))
        places = [(row, column) for row in range(0, len(pixels), CELL) for column in range(0, pixels.shape[1], CELL)]
        for row, column in places if kind in kinds else ():
            cell = pixels[row : row + CELL, column : column + CELL].tobytes()
            cells.setdefault(cell, (kinds.index(kind), TEAMS.index(team), f"{path.stem}-{row}-{column}"))
    kind_of, team_of, names = zip(*cells.values(), strict=True)
    rgba = np.frombuffer(b"".join(cells), np.uint8).reshape(-1, CELL, CELL, 4).copy()
    rgba[rgba[..., 3] == 0] = 0
    labels = np.array(kind_of)
    sprites = Sprites(rgba, labels, tuple(kinds), names, folder.name)
    return with_values(sprites, {"kind": (kinds, labels), "team": (TEAMS, np.array(team_of))})


def main_hue(sprite: NDArray[np.uint8]) -> int:
    """Return the most frequent hue, 0 to 5, of a sprite's colourful pixels; -1 for a grey sprite."""
    pixels = sprite[sprite[..., 3] > 128][:, :3]
    hue, saturation, value = np.asarray(Image.fromarray(pixels[None]).convert("HSV"))[0].T if len(pixels) else [[0]] * 3
    is_colourful = (np.asarray(saturation) > 80) & (np.asarray(value) > 60)
    if is_colourful.sum() < max(8, 0.2 * len(pixels)):
        return -1
    return int(np.bincount((np.asarray(hue)[is_colourful].astype(int) * 6 + 128) // 256 % 6, minlength=6).argmax())


def with_values(sprites: Sprites, known: dict[str, tuple[Sequence[str], NDArray[np.int64]]]) -> Sprites:
    """Return the sprites with attributes. known: for each attribute, its values and the value of each sprite."""
    table = np.stack([values for _, values in known.values()], 1).astype(np.int16)
    return dataclasses.replace(
        sprites, attributes=Attributes(tuple(known), tuple(tuple(names) for names, _ in known.values()), table)
    )


def chosen_combinations(sprites: Sprites) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return five combinations to leave out and five that stay, int64 [5, 2] each.

    Each value of a combination to leave out stays in other combinations. The combinations that stay have the same
    kinds and are the most frequent of their kind.
    """
    pairs, counts = np.unique(sprites.attributes.table, axis=0, return_counts=True)
    in_order = pairs[np.argsort(-counts, kind="stable")].astype(np.int64)
    found: list[NDArray[np.int64]] = []
    for pair in in_order:  # different kinds, and colours in equal numbers
        others = in_order[~np.isin(np.arange(len(in_order)), np.flatnonzero((in_order == pair).all(1)))]
        stays = all((others[:, axis] == pair[axis]).sum() > 1 for axis in (0, 1))
        used = [(one[0] == pair[0], one[1] == pair[1]) for one in found]
        most = -(-LEFT_OUT // len(sprites.attributes.values[1]))
        if stays and not any(kind for kind, _ in used) and sum(colour for _, colour in used) < most:
            found.append(pair)
    left_out = np.stack(found[:LEFT_OUT])
    stay = [pair for pair in in_order if not (left_out == pair).all(1).any()]
    return left_out, np.stack([next(pair for pair in stay if pair[0] == kind) for kind in left_out[:, 0]])


def places_of(sprites: Sprites, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of all sprites of some combinations, int64 [K, 2]."""
    return np.flatnonzero((sprites.attributes.table[:, None] == pairs).all(2).any(1))


def trained(
    sprites: Sprites, recipe_name: str, minutes: float, device: Device, folder: Path, **settings: int
) -> TrainedModel:
    """Train a model, or load its run if the folder exists. settings: of the recipe; 0 for the default."""
    if folder.exists():
        return load_model(folder, "last", device)
    recipe = catalog.recipe(recipe_name)
    changes = {name: value for name, value in settings.items() if value}
    config = recipe.Config().replace(minutes=minutes, **changes)
    for _ in train_new(folder, sprites, recipe, config, device, Control()):
        pass
    return load_model(folder, "last", device)


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


def split(
    sprites: Sprites, left_out: NDArray[np.int64], seen: NDArray[np.int64]
) -> tuple[Sprites, list[Sprites], list[Sprites]]:
    """Return the training sprites, the sprites left out and held-out halves of the seen combinations."""
    of_left_out = [places_of(sprites, pair[None]) for pair in left_out]
    rng = np.random.default_rng(0)
    of_seen = [rng.permutation(places_of(sprites, pair[None])) for pair in seen]
    halves = [np.sort(places[: len(places) // 2]) for places in of_seen]
    learnt = np.setdiff1d(np.arange(len(sprites)), np.concatenate([*of_left_out, *halves]))
    return sprites.take(learnt), [sprites.take(places) for places in of_left_out], [sprites.take(h) for h in halves]


def judged(title: str, model: TrainedModel, judge: TrainedModel, real: Sequence[Sprites], guidance: float) -> float:
    """Draw a multiple of the real sprites of each combination, print the judgement and return the KID."""
    times = max(1, LEFT_OUT * JUDGED // sum(map(len, real)))  # more drawings make KID more certain
    new, wanted, shares = [], [], []
    for sprites in real:
        pair = sprites.attributes.table[0].astype(np.int64)
        new.append(drawn(model, sprites, pair, times * len(sprites), guidance))
        wanted.append(np.repeat(pair[None], times * len(sprites), 0))
        names = "/".join(values[index] for values, index in zip(sprites.attributes.values, pair, strict=True))
        shares.append(f"{names} {right_in_both(judge, new[-1], wanted[-1]):.0%}")
    all_real, all_new, labels = np.concatenate([one.rgba for one in real]), np.concatenate(new), np.concatenate(wanted)
    of_real = np.concatenate([one.attributes.table for one in real]).astype(np.int64)
    features = fixed_features(CPU)
    distance = kid(features.of(all_real), features.of(all_new))
    say(
        f"{title:9} right in both {right_in_both(judge, all_new, labels):.1%}, "
        f"real {right_in_both(judge, all_real, of_real):.1%}, KID {distance.value:.3f} +- {distance.error:.3f}, "
        f"{len(all_new)} drawings of {len(all_real)} sprites: {', '.join(shares)}"
    )
    return distance.value


def follow(sprites: Sprites, chosen: argparse.Namespace, seed: int, runs: Path) -> None:
    """Train and judge once."""
    device = choose_device(probe_devices(), chosen.device)
    learnt, left_out, seen = split(sprites, *chosen_combinations(sprites))
    say(f"seed {seed}: {len(learnt)} sprites learnt from, {sum(map(len, left_out))} left out")
    if chosen.folder is None:
        left_out, seen = (
            [new_demo_sprites(sprites, one.attributes.table[0].astype(np.int64)) for one in real]
            for real in (left_out, seen)
        )
    both = {"seed": seed, "threads": chosen.threads}
    judge = trained(
        sprites, "classifier", chosen.judge_minutes, device, runs / f"judge-{seed}", steps=chosen.judge_steps, **both
    )
    own = {"steps": chosen.steps, "width": chosen.width}
    model = trained(learnt, "generator", chosen.minutes, device, runs / f"run-{seed}", **own, **both)
    for guidance in chosen.guidance:
        of_left_out = judged("left out", model, judge, left_out, guidance)
        of_seen = judged("seen", model, judge, seen, guidance)
        say(f"{model.step} steps, guidance {guidance:g}; KID of left out / seen: {of_left_out / of_seen:.2f}")
        if chosen.sheet:
            save_sheet(model, left_out, guidance, chosen.sheet.with_stem(f"{chosen.sheet.stem}-{seed}-{guidance:g}"))


def save_sheet(model: TrainedModel, real: Sequence[Sprites], guidance: float, path: Path) -> None:
    """Save a PNG file with a row for each combination: twelve drawings, then six real sprites."""
    rows = []
    for sprites in real:
        new = drawn(model, sprites, sprites.attributes.table[0].astype(np.int64), 12, guidance)
        rows.append(np.hstack([*new, *sprites.rgba[np.linspace(0, len(sprites) - 1, 6).astype(int)]]))
    sheet = Image.fromarray(np.vstack(rows))
    sheet.resize((4 * sheet.width, 4 * sheet.height), 0).save(path)


def main() -> None:
    """Train and judge for each seed."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=10.0, help="for the generator")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--judge-minutes", type=float, default=3.0, help="for the classifier")
    parser.add_argument("--judge-steps", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--width", type=int, default=0, help="width of the generator; 0: default")
    parser.add_argument("--guidance", type=float, nargs="+", default=[GenerateSettings().guidance])
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sheet", type=Path, help="PNG file for drawn and real sprites of combinations left out")
    parser.add_argument("--runs", type=Path, help="folder that keeps the trained models")
    chosen = parser.parse_args()
    sprites = chosen_set(chosen.folder)
    with tempfile.TemporaryDirectory() as scratch:
        for seed in chosen.seeds:
            follow(sprites, chosen, seed, chosen.runs or Path(scratch))


def chosen_set(folder: Path | None) -> Sprites:
    """Return the set of a folder, or the demo set."""
    if folder is None:
        return demo_set()
    return team_set(folder) if team_sheets(folder) else real_set(folder)


if __name__ == "__main__":
    main()
